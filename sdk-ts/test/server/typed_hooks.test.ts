// Hooks without generated files, in a browser: a page of React that has its types from the module's sources alone. What the compiler
// says of all frameworks is in typed_hooks.ts.

import { writeFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server } from "../../../tests/e2e/src/server";

let server: Server;
let browser: Browser;
let pages: HttpServer;

async function bundled(file: string, define: Record<string, string> = {}): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, file)],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["spacetime:sys*"],
    define,
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

beforeAll(async () => {
  server = await Server.start();
  const path = server.home.path("typed.js");
  writeFileSync(path, await bundled("typed_module.ts"));
  await server.cliOk("publish", "--js-path", path, "--yes", "typed");
  const script = await bundled("typed_page.tsx", {
    "process.env.NODE_ENV": '"development"',
    SERVER: JSON.stringify(server.url),
  });
  // Nothing of the module gets into the bundle.
  expect(script).not.toContain("a slug is wanted");
  pages = createServer(({ url }, response) => {
    response.writeHead(200, { "content-type": url === "/page.js" ? "text/javascript" : "text/html" });
    response.end(
      url === "/page.js"
        ? script
        : `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/page.js"></script>`,
    );
  });
  await new Promise<void>((listening) => pages.listen(0, "127.0.0.1", listening));
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
  });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  pages?.close();
  await server?.stop();
});

test("two pages see each other's letters, of a submodule, and call its functions", async () => {
  const problems: string[] = [];
  const open = async () => {
    const view = await browser.newPage();
    view.on("pageerror", (error) => problems.push(String(error)));
    view.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await view.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
    return view;
  };
  const [ann, bob] = [await open(), await open()];
  await ann.getByRole("button", { name: "Send" }).click();
  for (const view of [ann, bob]) await view.getByRole("listitem").filter({ hasText: "to ann" }).waitFor();
  await bob.getByRole("button", { name: "Count" }).click();
  await bob.getByText("1 sent").waitFor();
  expect(problems).toEqual([]);
});
