// The built package (`npm run build`) as ES module and as CommonJS module in Node, Bun and Deno, and in a worker of workerd,
// on a real server. All but Node are those of test/runtimes; `npm install --no-package-lock` there installs them.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Server, wasm } from "../../../tests/e2e/src/server";

const runtimes = join(import.meta.dirname, "../runtimes");
const main = join(runtimes, "main.mjs");

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

const SEEN = {
  rows: 5000,
  updates: ["1:10>7", "2:10>13"],
  refused: "SenderError: insufficient_funds",
  hasIdentity: true,
};

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
  const args = [...options, main, server.url, "bank", compression, format];
  const { stdout } = await promisify(execFile)(file!, args, { timeout: 30_000 });
  expect(JSON.parse(stdout)).toEqual(SEEN);
});

describe("workerd", () => {
  let directory: string;
  let running: ChildProcess | undefined;

  afterAll(() => {
    running?.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  });

  async function freePort(): Promise<number> {
    const listener = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => listener.once("listening", resolve));
    const { port } = listener.address() as { port: number };
    await new Promise((resolve) => listener.close(resolve));
    return port;
  }

  /** What a worker with this package says. */
  async function ask(packageUnderTest: string, compression: string): Promise<unknown> {
    directory ??= mkdtempSync(join(tmpdir(), "lightcone-workerd-"));
    await build({
      entryPoints: [join(runtimes, "worker.mjs")],
      alias: { "package under test": packageUnderTest },
      bundle: true,
      format: "esm",
      conditions: ["worker", "browser"],
      external: ["undici"],
      outfile: join(directory, "worker.mjs"),
      logLevel: "error",
    });
    const port = await freePort();
    const config = `
      using Workerd = import "/workerd/workerd.capnp";
      const config :Workerd.Config = (
        services = [
          (name = "main", worker = (
            modules = [(name = "worker", esModule = embed "worker.mjs")],
            compatibilityDate = "2025-01-01",
          )),
          (name = "internet", network = (allow = ["public", "private", "local"])),
        ],
        sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
      );`;
    writeFileSync(join(directory, "config.capnp"), config);
    running?.kill("SIGKILL");
    const workerd = program("@cloudflare", "bin/workerd", "workerd");
    running = spawn(workerd, ["serve", join(directory, "config.capnp")], { stdio: "inherit" });
    const query = new URLSearchParams({ url: server.url, database: "bank", compression });
    for (;;) {
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/?${query}`);
        return await answer.json();
      } catch (error) {
        // It takes a moment until it listens.
        if (running.exitCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  test.each(["gzip", "none"])("%s", async (compression) => {
    expect(await ask(join(import.meta.dirname, "../../dist/index.mjs"), compression)).toEqual(SEEN);
  });

  test("the published package makes functions from text, which is forbidden there", async () => {
    expect(await ask("spacetimedb", "gzip")).toContain("Code generation from strings disallowed");
  });
});
