// What a browser loads: the package is packed and installed as users get it, and bundled with what they bundle with.

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { build as esbuild } from "esbuild";
import { build as vite } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const run = promisify(execFile);
const packageDirectory = join(import.meta.dirname, "../..");
let directory: string;
let app: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "lightcone-bundle-"));
  const packed = join(directory, "package");
  app = join(directory, "app");
  await mkdir(packed);
  await mkdir(app);
  for (const name of ["package.json", "README.md", "LICENSE"]) {
    await cp(join(packageDirectory, name), join(packed, name));
  }
  const tsdown = join(packageDirectory, "node_modules/.bin/tsdown");
  // Types are no part of a bundle, and take most of the time.
  await run(tsdown, ["--no-dts", "--out-dir", join(packed, "dist")], { cwd: packageDirectory });
  const { stdout } = await run("npm", ["pack", "--silent"], { cwd: packed });
  await writeFile(join(app, "package.json"), '{ "private": true, "type": "module" }');
  const tarball = join(packed, stdout.trim().split("\n").at(-1)!);
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", tarball], {
    cwd: app,
  });
}, 300_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

const FRAMEWORKS = ["@angular/core", "@tanstack/react-query", "react", "solid-js", "svelte", "vue"];
const EXTERNAL = [
  ...FRAMEWORKS,
  "solid-js/store",
  "svelte/store",
  "spacetime:sys@2.0",
  "spacetime:sys@2.1",
  "spacetime:sys@2.2",
];

/** `alias`: what is bundled in place of this package. */
type Alias = Record<string, string>;

async function withEsbuild(file: string, alias: Alias = {}): Promise<string> {
  const result = await esbuild({
    entryPoints: [file],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
    logLevel: "silent",
    external: EXTERNAL,
    alias,
  });
  return result.outputFiles[0]!.text;
}

async function withVite(file: string, alias: Alias = {}): Promise<string> {
  const result = await vite({
    root: app,
    configFile: false,
    resolve: { alias },
    logLevel: "silent",
    build: {
      write: false,
      target: "es2022",
      minify: "esbuild",
      modulePreload: false,
      rollupOptions: { input: file, external: EXTERNAL },
    },
  });
  const { output } = (Array.isArray(result) ? result[0]! : result) as { output: { code?: string }[] };
  return output.map(({ code }) => code ?? "").join("");
}

async function write(name: string, source: string): Promise<string> {
  const file = join(app, `${name}.ts`);
  await writeFile(file, source);
  return file;
}

describe.each([
  ["esbuild", withEsbuild],
  ["vite", withVite],
])("%s", (bundler, bundle) => {
  test.each<[name: string, from: string, bytesMax: number]>([
    ["Identity", "lightcone", 2100],
    ["Timestamp", "lightcone", 2500],
    ["SenderError", "lightcone", 300],
    ["setGlobalLogLevel", "lightcone", 300],
    ["BinaryReader", "lightcone", 3200],
    ["SenderError", "lightcone/server", 300],
    ["useTable", "lightcone/react", 19_000],
    ["useTable", "lightcone/vue", 20_000],
    ["useTable", "lightcone/solid", 20_000],
    ["useTable", "lightcone/svelte", 20_000],
    ["injectTable", "lightcone/angular", 20_000],
    ["useSpacetimeDBQuery", "lightcone/tanstack", 9_000],
    ["lightconeCollectionOptions", "lightcone/tanstack-db", 50_000],
  ])("%s of %s brings only what it needs", async (name, from, bytesMax) => {
    const source = `import { ${name} } from "${from}"; console.log(${name});`;
    const code = await bundle(await write(`${bundler}-${name}-${from.replace("/", "-")}`, source));
    expect(code).toContain("console.log");
    expect(code.length).toBeLessThan(bytesMax);
    expect(code).not.toContain("WebSocket");
  });

  test("a small application is smaller than with the published package, also with Brotli", async () => {
    for (const name of ["apps/small_app.ts", "client/bindings.ts"]) {
      const source = await readFile(join(packageDirectory, "test", name), "utf8");
      const moved = source.replaceAll(/"\.\.\/(\.\.\/src\/)?client(\/bindings)?"/g, (_, src) =>
        src ? '"lightcone"' : '"./bindings"',
      );
      await write(name.split(/[/.]/)[1]!, moved);
    }
    const code = await bundle(join(app, "small_app.ts"));
    const published = join(packageDirectory, "node_modules/spacetimedb/dist/index.browser.mjs");
    const other = await bundle(join(app, "small_app.ts"), { lightcone: published });
    expect(code.length).toBeLessThan(other.length);
    expect(brotliCompressSync(code).length).toBeLessThan(brotliCompressSync(other).length);
    // Nothing of Node, and nothing that the bundler would have to resolve.
    expect(code).not.toMatch(/require\(|from"node:|import\("(ws|undici)/);
  });
});

test("every entry loads as ES module and as CommonJS module, and both have the same names", async () => {
  const names = async (flag: string, code: string): Promise<string[]> => {
    const { stdout } = await run("node", [`--input-type=${flag}`, "-e", code], { cwd: app });
    return JSON.parse(stdout) as string[];
  };
  await mkdir(join(app, "node_modules/@angular"));
  await mkdir(join(app, "node_modules/@tanstack"));
  for (const name of FRAMEWORKS) {
    await symlink(join(packageDirectory, "node_modules", name), join(app, "node_modules", name));
  }
  const print = "console.log(JSON.stringify(Object.keys(all).sort()))";
  for (const [entry, name] of [
    ["", "DbConnectionImpl"],
    ["/react", "useTable"],
    ["/vue", "useTable"],
    ["/solid", "useTable"],
    ["/svelte", "useTable"],
    ["/angular", "injectTable"],
    ["/tanstack", "spacetimeDBQuery"],
    ["/tanstack-db", "lightconeCollectionOptions"],
  ]) {
    const asModule = await names("module", `import * as all from "lightcone${entry}"; ${print}`);
    expect(await names("commonjs", `const all = require("lightcone${entry}"); ${print}`)).toEqual(asModule);
    expect(asModule).toContain(name);
  }
});
