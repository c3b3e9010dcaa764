// What a browser loads: the size of a small application's bundle, and that unused parts are left out.

import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";

const BUNDLE_BYTES_MAX = 30_000;

async function bundle(options: { entryPoints?: string[]; contents?: string }): Promise<string> {
  const result = await build({
    ...(options.contents !== undefined
      ? { stdin: { contents: options.contents, resolveDir: import.meta.dirname, loader: "ts" } }
      : { entryPoints: options.entryPoints }),
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  return result.outputFiles[0]!.text;
}

test("a small application is below 30 kB with Brotli", async () => {
  const code = await bundle({ entryPoints: ["test/apps/small_app.ts"] });
  const compressed = brotliCompressSync(code).length;
  expect(compressed).toBeGreaterThan(5000);
  expect(compressed).toBeLessThan(BUNDLE_BYTES_MAX);
  // Nothing of Node, and nothing that the bundler would have to resolve.
  expect(code).not.toMatch(/require\(|from"node:|import\("(ws|undici)/);
});

test("an application that uses identities only does not get the connection", async () => {
  const code = await bundle({
    contents: 'import { Identity } from "../../src/client"; console.log(Identity.zero());',
  });
  expect(code.length).toBeLessThan(4000);
  expect(code).not.toContain("WebSocket");
});
