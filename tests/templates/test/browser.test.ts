import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../e2e/src/server";
import { type Browser, openBrowser } from "../src/browser";
import { Project } from "../src/project";

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
  for (const page of pages.values()) (await page.catch(() => undefined))?.stop();
  await server.stop();
});

/** Builds the page, serves it, and returns where. */
async function serve(project: Project): Promise<Page> {
  await project.publish();
  await project.generate("typescript");
  await project.shell("npm run build");
  const preview = project.start("npx vite preview --host 127.0.0.1 --port 0");
  await preview.says(/http:\/\/127\.0\.0\.1:\d+/);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(preview.output())![0];
  return { url, stop: () => preview.stop() };
}

interface Page {
  url: string;
  stop(): void;
}

const pages = new Map<string, Promise<Page>>();

/** How a player of game-ts is listed: name and mass. */
const listed = (name: string, mass = /\d+/) => new RegExp(`^${name} ${mass.source}$`);

test("game-ts: players see each other move, eat and leave", async () => {
  const project = await Project.create(server, "game-ts");
  const page = await serve(project);
  pages.set("game-ts", Promise.resolve(page));
  const other = await openBrowser();
  const [ann, bob] = [await browser.context.newPage(), await other.context.newPage()];
  const problems: string[] = [];
  for (const [view, name] of [
    [ann, "Ann"],
    [bob, "Bob"],
  ] as const) {
    view.on("pageerror", (error) => problems.push(String(error)));
    await view.goto(page.url);
    await view.getByText("Connected", { exact: true }).waitFor();
    await view.getByLabel("Name").fill(name);
    await view.getByRole("button", { name: "Play" }).click();
    await view.getByRole("button", { name: "Play" }).waitFor({ state: "hidden" });
  }
  for (const view of [ann, bob]) {
    for (const name of ["Ann", "Bob"]) {
      await view
        .getByRole("listitem")
        .filter({ hasText: listed(name) })
        .waitFor();
    }
  }
  // There is food everywhere: who goes around finds some.
  const larger = bob.getByRole("listitem").filter({ hasText: listed("Ann", /(2[2-9]|[3-9]\d)/) });
  const keys = ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"];
  for (let turn = 0; (await larger.count()) === 0; turn++) {
    expect(turn, "Ann finds food").toBeLessThan(60);
    const key = keys[turn % 4]!;
    await ann.keyboard.down(key);
    await ann.waitForTimeout(700 + 500 * turn);
    await ann.keyboard.up(key);
  }
  await ann.screenshot({ path: join(screenshots, "game-ts.png") });
  await bob.close();
  await ann.getByRole("listitem").filter({ hasText: "Bob" }).waitFor({ state: "detached" });
  // Without players nothing happens.
  await ann.close();
  await expect.poll(() => project.sql("SELECT * FROM tick")).not.toMatch(/Interval/);
  expect(await project.sql("SELECT * FROM player")).not.toContain("Ann");
  expect(problems).toEqual([]);
  await other.close();
});

/** The page of a template, made once. */
function pageOf(template: string): Promise<Page> {
  let page = pages.get(template);
  if (!page) pages.set(template, (page = Project.create(server, template).then(serve)));
  return page;
}

test("browser-ts: two pages show the same people", async () => {
  const page = await pageOf("browser-ts");
  const [ann, bob] = [await browser.context.newPage(), await browser.context.newPage()];
  await Promise.all([ann.goto(page.url), bob.goto(page.url)]);
  await ann.getByLabel("Name").fill("Ann");
  await ann.getByRole("button", { name: "Add" }).click();
  for (const view of [ann, bob]) await view.getByRole("listitem").filter({ hasText: "Ann" }).waitFor();
  await bob.screenshot({ path: join(screenshots, "browser-ts.png") });
  await Promise.all([ann.close(), bob.close()]);
});

test("chat-react-ts: two pages see each other, their names and messages", async () => {
  const page = await pageOf("chat-react-ts");
  // Two users: two browsers, because the token is kept per browser.
  const other = await openBrowser();
  const [ann, bob] = [await browser.context.newPage(), await other.context.newPage()];
  const problems: string[] = [];
  for (const view of [ann, bob]) {
    view.on("pageerror", (error) => problems.push(String(error)));
    view.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await view.goto(page.url);
  }
  for (const [view, name] of [
    [ann, "Ann"],
    [bob, "Bob"],
  ] as const) {
    await view
      .getByLabel("Your name")
      .waitFor({ timeout: 20_000 })
      .catch(async (error) => {
        await view.screenshot({ path: join(screenshots, "chat-failed.png") });
        throw new Error(`${problems.join("\n")}\n${await view.content()}`, { cause: error });
      });
    await view.getByLabel("Your name").fill(name);
    await view.getByRole("button", { name: "Save" }).click();
  }
  for (const view of [ann, bob]) {
    await view.locator(".people .online").filter({ hasText: "Ann" }).waitFor();
    await view.locator(".people .online").filter({ hasText: "Bob" }).waitFor();
  }
  await ann.getByLabel("Message", { exact: true }).fill("Hello Bob!");
  await ann.getByRole("button", { name: "Send" }).click();
  await bob.locator(".messages .theirs").filter({ hasText: "Hello Bob!" }).waitFor();
  await bob.getByLabel("Message", { exact: true }).fill("Hello Ann, how fast that was!");
  await bob.getByRole("button", { name: "Send" }).click();
  await ann.locator(".messages .theirs").filter({ hasText: "Hello Ann" }).waitFor();
  await ann.screenshot({ path: join(screenshots, "chat-ann.png") });
  await bob.screenshot({ path: join(screenshots, "chat-bob.png") });

  // An empty name is refused by the module, and the page says so.
  await ann.getByLabel("Your name").fill("   ");
  await ann.getByRole("button", { name: "Save" }).click();
  await ann.getByRole("alert").filter({ hasText: "must not be empty" }).waitFor();

  // Presence: who closes the page is seen to be gone; who comes back is the same.
  await bob.close();
  await ann.locator(".people .offline").filter({ hasText: "Bob" }).waitFor();
  const again = await other.context.newPage();
  await again.goto(page.url);
  await ann.locator(".people .online").filter({ hasText: "Bob" }).waitFor();
  await again.locator(".messages .mine").filter({ hasText: "Hello Ann" }).waitFor();
  expect(problems).toEqual([]);
  await other.close();
});

/** Where the pages keep who they are. */
const TOKENS = `Object.keys(localStorage).filter(key => key.endsWith('/token'))`;

test("chat-react-ts: a lost connection takes nothing of what is being typed", async () => {
  const page = await pageOf("chat-react-ts");
  const view = await browser.context.newPage();
  await view.goto(page.url);
  await view.getByLabel("Message", { exact: true }).fill("a long thought");
  await view.getByLabel("Your name").fill("Half a na");
  const { port } = new URL(server.url);
  await server.kill();
  await view.getByText("Connection lost").waitFor();
  expect(await view.getByLabel("Message", { exact: true }).inputValue()).toBe("a long thought");
  expect(await view.getByLabel("Your name").inputValue()).toBe("Half a na");
  expect(await view.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
  await server.launch("--listen-addr", `127.0.0.1:${port}`);
  await view.getByText("Connection lost").waitFor({ state: "detached", timeout: 60_000 });
  await view.getByRole("button", { name: "Send" }).click();
  await view.locator(".messages .mine").filter({ hasText: "a long thought" }).waitFor();
  expect(await view.getByLabel("Your name").inputValue()).toBe("Half a na");
  await view.close();
});

test.each([
  ["chat-react-ts", "of another server", (token: string) => `${token.slice(0, -20)}${"x".repeat(20)}`],
  ["browser-ts", "of another server", (token: string) => `${token.slice(0, -20)}${"x".repeat(20)}`],
  ["browser-ts", "that is none", () => "no token at all"],
])("%s: a token %s is replaced", async (template, _, spoil) => {
  const page = await pageOf(template);
  const context = await openBrowser();
  const view = await context.context.newPage();
  const isThere = () =>
    template === "browser-ts"
      ? view.getByText("Connected", { exact: true }).waitFor()
      : view.getByLabel("Your name").waitFor();
  await view.goto(page.url);
  await isThere();
  const first = await view.evaluate<string>(`localStorage.getItem(${TOKENS}[0])`);
  await view.evaluate(`localStorage.setItem(${TOKENS}[0], ${JSON.stringify(spoil(first))})`);
  await view.goto(page.url);
  await isThere();
  const second = await view.evaluate(`localStorage.getItem(${TOKENS}[0])`);
  expect(second).toMatch(/^ey/);
  expect(second).not.toBe(first);
  // An identity is not given up because the server is away for a moment.
  const { port } = new URL(server.url);
  await server.kill();
  await view.goto(page.url);
  await view.getByText("Cannot connect").waitFor();
  await server.launch("--listen-addr", `127.0.0.1:${port}`);
  if (template === "browser-ts") await isThere();
  expect(await view.evaluate(`localStorage.getItem(${TOKENS}[0])`)).toBe(second);
  await context.close();
});

test("browser-ts: a page comes back by itself, with what was typed", async () => {
  const page = await pageOf("browser-ts");
  const view = await browser.context.newPage();
  await view.goto(page.url);
  await view.getByText("Connected", { exact: true }).waitFor();
  await view.getByLabel("Name").fill("Half a na");
  const { port } = new URL(server.url);
  await server.kill();
  await view.getByText(/lost|Cannot connect/).waitFor();
  await server.launch("--listen-addr", `127.0.0.1:${port}`);
  await view.getByText("Connected", { exact: true }).waitFor();
  await view.getByRole("button", { name: "Add" }).click();
  await view.getByRole("listitem").filter({ hasText: "Half a na" }).waitFor();
  await view.close();
});
