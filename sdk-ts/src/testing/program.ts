// Where the programs of the server are, and what `spacetime build` makes.

import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { LightconeError } from "../core";

const run = promisify(execFile);
const CLI = "@lightcone/cli";
/** Compilers say a lot. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** The end of what a program said, for an error. */
const TOLD_CHARACTERS_MAX = 8_000;

/** The programs of a Lightcone. */
export interface Programs {
  cli: string;
  server: string;
}

/** The programs: those beside `binary`, of `LIGHTCONE_BIN`, of `@lightcone/cli` for the project in a directory, or of `PATH`. */
export function findPrograms(binary = process.env.LIGHTCONE_BIN, directory = process.cwd()): Programs {
  const cli = binary ? resolve(binary) : (ofPackage(directory) ?? ofPath());
  if (cli === undefined || !existsSync(cli)) {
    const where = binary ? `${binary} does not exist` : `there is neither ${CLI} nor spacetime in PATH`;
    throw new LightconeError(
      "LC0858",
      `no server for tests: ${where}. npm install --save-dev ${CLI}, or set LIGHTCONE_BIN to the program spacetime`,
    );
  }
  const server = join(dirname(cli), "spacetimedb-standalone");
  if (!existsSync(server)) {
    throw new LightconeError("LC0858", `no server for tests: ${server} is not beside ${cli}`);
  }
  return { cli, server };
}

/** The program that `npx lightcone` runs: that of the project, or of the user's cache. */
function ofPackage(directory: string): string | undefined {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lightcone", "npm");
  const project = createRequire(join(directory, "package.json"));
  for (const place of [directory, join(cache, sdkVersion(project))]) {
    try {
      const cli = project.resolve(CLI, { paths: [place] });
      return createRequire(cli).resolve(`@lightcone/${process.platform}-${process.arch}/bin/spacetime`);
    } catch {
      // Not installed there.
    }
  }
  return undefined;
}

/** The version of this package, which that of the program in the cache is called after. */
function sdkVersion(project: NodeJS.Require): string {
  try {
    const { version } = JSON.parse(readFileSync(project.resolve("lightcone/package.json"), "utf8"));
    return version as string;
  } catch {
    // It has another name in this project.
    return "";
  }
}

function ofPath(): string | undefined {
  const directories = (process.env.PATH ?? "").split(delimiter).filter((directory) => directory !== "");
  return directories.map((directory) => join(directory, "spacetime")).find((path) => existsSync(path));
}

/** A program of a module, as it is published. */
export interface Program {
  hostType: "Js" | "Wasm";
  bytes: Uint8Array<ArrayBuffer>;
}

/** Reads a `.js` or `.wasm` file, or builds the module in a directory. */
export async function loadProgram(path: string, programs: Programs): Promise<Program> {
  const absolute = resolve(path);
  if (!existsSync(absolute)) throw new LightconeError("LC0859", `no module at ${absolute}`);
  const file = statSync(absolute).isDirectory() ? await build(absolute, programs) : absolute;
  return {
    hostType: file.endsWith(".wasm") ? "Wasm" : "Js",
    bytes: new Uint8Array(readFileSync(file)),
  };
}

/** Builds the module in a directory; the file that came of it. */
async function build(directory: string, { cli }: Programs): Promise<string> {
  await output(cli, ["build", "--module-path", directory], directory);
  if (existsSync(join(directory, "Cargo.toml"))) return rustProgram(directory);
  const bundle = join(directory, "dist/bundle.js");
  if (existsSync(bundle)) return bundle;
  throw new LightconeError(
    "LC0859",
    `${directory} is neither a TypeScript nor a Rust module; build it, and name the file`,
  );
}

/** What cargo has built, and wasm-opt made smaller if it is installed. */
async function rustProgram(directory: string): Promise<string> {
  const args = ["metadata", "--format-version", "1", "--no-deps"];
  const metadata = JSON.parse(await output(process.env.CARGO || "cargo", args, directory));
  const targets: { crate_types: string[]; name: string }[] = metadata.packages.flatMap(
    (one: { targets: unknown[] }) => one.targets,
  );
  const library = targets.find(({ crate_types }) => crate_types.includes("cdylib"));
  const name = library?.name.replaceAll("-", "_");
  const built = join(metadata.target_directory, "wasm32-unknown-unknown/release", `${name}.wasm`);
  const optimised = built.replace(/wasm$/, "opt.wasm");
  const isOptimised = existsSync(optimised) && statSync(optimised).mtimeMs >= statSync(built).mtimeMs;
  return isOptimised ? optimised : built;
}

/** Runs a program that must succeed; what it printed. */
async function output(program: string, args: string[], cwd: string): Promise<string> {
  try {
    const { stdout } = await run(program, args, { cwd, maxBuffer: OUTPUT_BYTES_MAX });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.slice(-TOLD_CHARACTERS_MAX) || String(error);
    throw new LightconeError("LC0859", `${program} ${args.join(" ")} failed:\n${said}`, { cause: error });
  }
}
