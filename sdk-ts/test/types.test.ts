import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Module, packageDirectory } from "./support/host";

const run = promisify(execFile);
const bin = (name: string) => join(packageDirectory, "node_modules", ".bin", name);

// A project moves over by changing one line, `"spacetimedb": "npm:lightcone@…"`: its sources then find the files of this
// package under the name of the other one. The same sources must satisfy the compiler with either.

const FIXTURES = ["documented.ts", "features.ts", "generic.ts"];
/** What is not the source of a module. */
const CLIENTS = ["frameworks.ts"];
const OURS_ONLY = ["stricter.ts", "generic_functions.ts", "remote_bindings.ts"];
const MODULES = ["transfer-ts-npm", "coverage-ts"];

/** The compiler options of the CLI's template (spec 04 §12). */
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    skipLibCheck: true,
    moduleResolution: "bundler",
    jsx: "react-jsx",
    target: "ESNext",
    lib: ["ES2021", "dom"],
    module: "ESNext",
    isolatedModules: true,
    noEmit: true,
    types: [],
  },
  include: ["./src/*"],
};

let directory: string;
let built: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "lightcone-types-"));
  built = join(directory, "built");
  await mkdir(built);
  await run(bin("tsdown"), ["--out-dir", join(built, "dist")], { cwd: packageDirectory });
  await cp(join(packageDirectory, "package.json"), join(built, "package.json"));
  // The frameworks, for the projects and for the package in them.
  await symlink(join(packageDirectory, "node_modules"), join(directory, "node_modules"));
}, 120_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

/** A project with the fixtures, and a package installed as `spacetimedb`. */
async function project(
  name: string,
  installed: string,
  fixtures = [...FIXTURES, ...CLIENTS],
): Promise<string> {
  const root = join(directory, name);
  await mkdir(join(root, "src"), { recursive: true });
  await mkdir(join(root, "node_modules"));
  await symlink(installed, join(root, "node_modules", "spacetimedb"));
  await writeFile(join(root, "tsconfig.json"), JSON.stringify(TSCONFIG));
  for (const fixture of fixtures) {
    await cp(join(packageDirectory, "test/types/fixtures", fixture), join(root, "src", fixture));
  }
  for (const module of MODULES) {
    await cp(join(packageDirectory, "../modules", module, "src/index.ts"), join(root, "src", `${module}.ts`));
  }
  return root;
}

async function compile(root: string): Promise<string> {
  try {
    await run(bin("tsc"), ["-p", root]);
    return "";
  } catch (error: any) {
    return error.stdout;
  }
}

describe("the same sources compile", () => {
  it("with the published package", async () => {
    const installed = join(packageDirectory, "node_modules/spacetimedb");
    expect(await compile(await project("npm", installed))).toBe("");
  }, 60_000);

  it("with this package under its name, and so does the module of its README", async () => {
    const root = await project("ours", built, [...FIXTURES, ...CLIENTS, ...OURS_ONLY]);
    const readme = await readFile(join(packageDirectory, "README.md"), "utf8");
    const shown = /```ts\n(.*?)```/s.exec(readme)![1]!;
    await writeFile(join(root, "src/readme.ts"), shown.replace("lightcone/server", "spacetimedb/server"));
    expect(await compile(root)).toBe("");
  }, 60_000);
});

describe("the same sources are the same module", () => {
  const files = [
    ...FIXTURES.map((fixture) => `test/types/fixtures/${fixture}`),
    ...MODULES.map((module) => `../modules/${module}/src/index.ts`),
  ];
  it.each(files)("%s", async (file) => {
    const source = await readFile(join(packageDirectory, file), "utf8");
    const ours = (await Module.load(source, { path: join(built, "dist") })).describe();
    expect(ours).toBe((await Module.load(source, "npm")).describe());
  });
});

describe("the names of the published package", () => {
  it("are all there on the module side", async () => {
    const namesOf = async (sdk: "npm" | { path: string }) => {
      const module = await Module.load(
        `import * as all from "spacetimedb/server";
         globalThis.names = Object.keys(all);
         export default all.schema({});`,
        sdk,
      );
      return [...(module.context["names"] as string[])];
    };
    const ours = new Set(await namesOf({ path: join(built, "dist") }));
    expect((await namesOf("npm")).filter((name) => !ours.has(name))).toEqual([]);
  });
});
