// The built package (`npm run build`) as ES module and as CommonJS module in Node, Bun and Deno, on a real server.
// Bun and Deno are those of test/runtimes; `npm install --no-package-lock` there installs them.

import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server, wasm } from "../../../tests/e2e/src/server";

const runtimes = join(import.meta.dirname, "../runtimes");
const smoke = join(runtimes, "smoke.mjs");

/** The program inside of the package for this platform; an install script may have moved it to `.bin`. */
function program(scope: string, path: string, name: string): string {
  const packages = join(runtimes, "node_modules", scope);
  const found = (existsSync(packages) ? readdirSync(packages) : [])
    .map((platform) => join(packages, platform, path))
    .concat(join(runtimes, "node_modules/.bin", name))
    .find((file) => existsSync(file));
  if (!found)
    throw new Error(`${name} is not installed: run npm install --no-package-lock in sdk-ts/test/runtimes`);
  return found;
}

let server: Server;

beforeAll(async () => {
  if (!existsSync(join(import.meta.dirname, "../../dist/index.mjs")))
    throw new Error("run npm run build first");
  server = await Server.start('[websocket]\ncompression = "as-asked"\n');
  await server.publish("bank", wasm("transfer"));
});
afterAll(() => server?.stop());

const commands: Record<string, () => string[]> = {
  node: () => [process.execPath],
  bun: () => [program("@oven", "bin/bun", "bun")],
  deno: () => [program("@deno", "deno", "deno"), "run", "--allow-all", "--no-lock"],
};

test.each([
  ["node", "gzip", "esm"],
  ["node", "brotli", "cjs"],
  ["bun", "gzip", "esm"],
  ["bun", "brotli", "cjs"],
  ["deno", "gzip", "esm"],
  ["deno", "brotli", "cjs"],
])("%s, %s, %s", async (runtime, compression, format) => {
  const [file, ...options] = commands[runtime]!();
  const args = [...options, smoke, server.url, "bank", compression, format];
  const { stdout } = await promisify(execFile)(file!, args, { timeout: 30_000 });
  expect(JSON.parse(stdout)).toEqual({
    rows: 5000,
    updates: ["1:10>7", "2:10>13"],
    refused: "SenderError: insufficient_funds",
    hasIdentity: true,
  });
});
