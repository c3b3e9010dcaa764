// What a newcomer does: `spacetime init`, `spacetime dev`, and a page that shows live data. Each run takes one of the small templates,
// the next one at the next commit; LIGHTCONE_TEMPLATES=all takes all, and LIGHTCONE_TEMPLATES=vue-ts,nuxt-ts those.

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { type Browser, openBrowser } from "../src/browser";
import { Project } from "../src/project";

const SMALL = [
  "browser-ts",
  "react-ts",
  "vue-ts",
  "svelte-ts",
  "solid-ts",
  "tanstack-ts",
  "remix-ts",
  "bun-ts",
  "deno-ts",
];
/** A minute of installing and compiling each. */
const LARGE = ["angular-ts", "nextjs-ts", "nuxt-ts", "astro-ts"];

function chosen(): string[] {
  const wanted = process.env.LIGHTCONE_TEMPLATES;
  if (wanted) return wanted === "all" ? [...SMALL, ...LARGE] : wanted.split(",");
  // Nothing, where this is no repository: the first one.
  const { stdout } = spawnSync("git", ["rev-list", "--count", "HEAD"], { cwd: import.meta.dirname });
  return [SMALL[Number(stdout) % SMALL.length]!];
}

let server: Server;
let browser: Browser;
const screenshots = process.env.LIGHTCONE_SCREENSHOTS ?? join(import.meta.dirname, "../screenshots");
beforeAll(async () => {
  server = await Server.start();
  browser = await openBrowser();
  mkdirSync(screenshots, { recursive: true });
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test.each(chosen())(
  "%s: from init to two pages that show the same people",
  { timeout: 600_000 },
  async (template) => {
    const started = Date.now();
    const project = await Project.init(server, template);
    const dev = project.dev();
    try {
      await dev.says(/http:\/\/localhost:\d+/, 240_000);
      const url = /http:\/\/localhost:\d+/.exec(dev.output())![0];
      // Some say the address before they have compiled the page.
      const answers = () =>
        fetch(url)
          .then(({ ok }) => ok)
          .catch(() => false);
      while (!(await answers())) await new Promise((done) => setTimeout(done, 100));
      const [ann, bob] = [await browser.context.newPage(), await browser.context.newPage()];
      const problems: string[] = [];
      for (const view of [ann, bob]) {
        view.on("pageerror", (error) => problems.push(String(error)));
        view.on("console", (message) => message.type() === "error" && problems.push(message.text()));
        await view.goto(url, { timeout: 120_000 });
        await view.getByText("Connected", { exact: true }).waitFor({ timeout: 60_000 });
      }
      await ann.getByLabel("Name").fill("Ann");
      await ann.getByRole("button", { name: "Add" }).click();
      for (const view of [ann, bob]) await view.getByRole("listitem").filter({ hasText: "Ann" }).waitFor();
      console.log(`${template}: live after ${((Date.now() - started) / 1000).toFixed(0)} s`);
      await ann.getByLabel("Name").fill("   ");
      await ann.getByRole("button", { name: "Add" }).click();
      await ann.getByRole("alert").filter({ hasText: "must not be empty" }).waitFor();
      await bob.screenshot({ path: join(screenshots, `${template}.png`) });
      await Promise.all([ann.close(), bob.close()]);
      // A refused name is one to Deno's page.
      expect(problems.filter((problem) => !problem.includes("400")).join("\n")).toBe("");
      // The page builds too, and its types fit.
      if (process.env.LIGHTCONE_TEMPLATES) await project.shell("npm run build");
    } catch (error) {
      throw new Error(`${error}\n${dev.output()}`);
    } finally {
      await dev.end();
    }
  },
);
