// The built package (`npm run build`) in each framework, in Chromium, on a real server: pages that a server has rendered are
// hydrated, connect, and see what other pages do. CHROMIUM names the browser.

import { existsSync, writeFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Server } from "../../../tests/e2e/src/server";
import { renderOnServer } from "../frameworks/server_pages";
import { svelteForEsbuild } from "../frameworks/svelte_files";

const frameworks = join(import.meta.dirname, "../frameworks");
const dist = join(import.meta.dirname, "../../dist");

/** Of the bindings in ../client. */
const MODULE = `
  import { schema, SenderError, t, table } from "lightcone/server";
  const row = () => ({ id: t.u32().primaryKey(), name: t.string() });
  const db = schema({
    person: table({ public: true }, row()),
    mark: table({ public: true }, { id: t.u32(), name: t.string() }),
  });
  export default db;
  export const add_person = db.reducer({ id: t.u32(), name: t.string() }, (ctx, person) => {
    if (person.name === "") throw new SenderError("a person needs a name");
    ctx.db.person.insert(person);
    ctx.db.mark.insert(person);
  });
  export const double_it = db.procedure({ value: t.u32() }, t.u64(), (_, { value }) => BigInt(value) * 2n);
`;

const HOUSES = [
  { export: "react", file: "react", server: "react.server.ts" },
  { export: "tanstack", file: "react", server: "tanstack.server.ts" },
  { export: "vue", file: "vue", server: "vue.server.ts" },
  { export: "solid", file: "solid", server: "solid.server.ts" },
  { export: "svelte", file: "svelte", server: "svelte.server.ts" },
  { export: "angular", file: "angular", server: "angular.server.ts" },
];

/** The tests import sources; here they get what is published. */
const published: Plugin = {
  name: "published",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.\/\.\.\/src\/\w+$/ }, ({ path }) => ({
      path: join(dist, `${path.split("/").at(-1)!.replace("client", "index")}.mjs`),
    }));
  },
};

let server: Server;
let browser: Browser;
let pages: HttpServer;
const files = new Map<string, { type: string; body: string }>();

async function publishModule(): Promise<void> {
  const { outputFiles } = await build({
    stdin: { contents: MODULE, loader: "ts", resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["spacetime:sys*"],
    alias: { "lightcone/server": join(dist, "server.mjs") },
  });
  const path = server.home.path("people.js");
  writeFileSync(path, outputFiles[0]!.text);
  await server.cliOk("publish", "--js-path", path, "--yes", "people");
}

/** The program of a page, as a bundler makes it for development, so that frameworks complain of what they do not like. */
async function script(house: (typeof HOUSES)[number]): Promise<string> {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { ${house.export} } from "./${house.file}";
        import { DbConnection } from "../client/bindings";
        const builder = DbConnection.builder().withUri("${server.url}").withDatabaseName("people");
        const page = Object.assign(window, { page: { builder, log: [], seen: [], controls: {} } }).page;
        ${house.export}.show(document.body, page, true);
      `,
      resolveDir: frameworks,
      loader: "ts",
    },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["development"],
    define: {
      "process.env.NODE_ENV": '"development"',
      __VUE_OPTIONS_API__: "true",
      __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
    plugins: [published, svelteForEsbuild("client")],
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

beforeAll(async () => {
  if (!existsSync(join(dist, "vue.mjs"))) throw new Error("run npm run build first");
  server = await Server.start();
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
  });
  await publishModule();
  pages = createServer(({ url }, response) => {
    const file = files.get(url!);
    response.writeHead(file ? 200 : 404, { "content-type": file?.type ?? "text/plain" });
    response.end(file?.body);
  });
  await new Promise<void>((listening) => pages.listen(0, "127.0.0.1", listening));
}, 120_000);

afterAll(async () => {
  await browser?.close();
  pages?.close();
  await server?.stop();
});

const problems: string[] = [];

async function open(name: string) {
  const view = await browser.newPage();
  view.on("pageerror", (error) => problems.push(`${name}: ${error}`));
  view.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`${name}: ${message.text()}`);
  });
  await view.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/${name}`);
  return {
    view,
    shows: (text: string) => view.locator("p").filter({ hasText: text }).waitFor({ timeout: 40_000 }),
  };
}

describe.each(HOUSES)("$export", (house) => {
  test("two pages that were rendered on a server see each other's people", async () => {
    const name = house.export;
    const body = await renderOnServer(house);
    files.set(`/${name}.js`, { type: "text/javascript", body: await script(house) });
    files.set(`/${name}`, {
      type: "text/html",
      body: `<!doctype html><html><head><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="/${name}.js"></script></head><body>${body}</body></html>`,
    });
    const before = Number((await server.sql("people", "SELECT COUNT(*) AS n FROM person"))[0]![0]);
    const [ann, bob] = [await open(name), await open(name)];
    await Promise.all([ann.shows("true true"), bob.shows("true true")]);
    expect(await ann.view.evaluate("page.seen[0]")).toBe("false false /0");
    expect(await ann.view.locator("p").count()).toBe(1);
    await ann.view.evaluate(`page.controls.add({ id: ${before}, name: "${name}" })`);
    await bob.shows(`${name}/${before + 1}`);
    // Both tables changed in one transaction.
    const seen = (await bob.view.evaluate("page.seen")) as string[];
    expect(seen.filter((text) => text.includes(name))).toHaveLength(1);
    expect(await ann.view.evaluate("page.controls.double({ value: 4 }).then(String)")).toBe("8");
    const refusal = await ann.view.evaluate(
      `page.controls.add({ id: 900, name: "" }).then(() => "taken", (error) => error.message)`,
    );
    expect(refusal).toBe("a person needs a name");
    expect(problems).toEqual([]);
    await bob.view.close();
    await ann.view.close();
  });
});

test("pages of all frameworks come back when the server does", async () => {
  const all = await Promise.all(HOUSES.map((house) => open(house.export)));
  await Promise.all(all.map(({ shows }) => shows(`true true ${HOUSES.map((house) => house.export).join()}`)));
  expect(problems).toEqual([]);
  const { port } = new URL(server.url);
  await server.kill();
  await Promise.all(all.map(({ shows }) => shows(`false true ${HOUSES[0]!.export}`)));
  await server.launch("--listen-addr", `127.0.0.1:${port}`);
  await Promise.all(all.map(({ shows }) => shows(`true true ${HOUSES[0]!.export}`)));
  await all[0]!.view.evaluate(`page.controls.add({ id: ${HOUSES.length}, name: "late" })`);
  await Promise.all(all.map(({ shows }) => shows(`late/${HOUSES.length + 1}`)));
});
