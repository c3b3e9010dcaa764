// How the gate gets the programs of another commit: with a small build in place of cargo's.

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { repositoryDirectory, runCommand } from "../src/init/commands";
import { programsOfCommit } from "../src/init/other_tree";

let directory: string;
let repository: string;
let cacheDirectory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lightcone-bench-tree-"));
  repository = join(directory, "repository");
  cacheDirectory = join(directory, "cache");
  execFileSync("git", ["init", "--quiet", repository]);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=test", "-c", "user.email=test@localhost", ...args], {
    cwd: repository,
    encoding: "utf8",
  }).trim();

function commit(source: string): string {
  writeFileSync(join(repository, "source"), source);
  git("add", "source");
  git("commit", "--quiet", "--message", source);
  return git("rev-parse", "HEAD");
}

const trees: string[] = [];
/** "Compiles" the source and, as cargo may do with a lock file, changes a file of the tree. */
const build = (tree: string) => {
  trees.push(tree);
  const steps = "mkdir -p ../target && cp source ../target/spacetimedb-standalone && echo built >> source";
  return runCommand("sh", ["-c", `${steps} && touch left && realpath ../target`], { workingDirectory: tree });
};

const options = () => ({ repository, cacheDirectory, build, say: () => undefined });
const programOf = (programs: string) => readFileSync(join(programs, "spacetimedb-standalone"), "utf8");

describe("the programs of another commit", () => {
  it("are built outside this tree, which stays as it is", async () => {
    const first = commit("first");
    commit("second");
    appendFileSync(join(repository, "source"), ", not committed");
    const before = git("status", "--porcelain");
    expect(programOf(await programsOfCommit(first.slice(0, 8), options()))).toBe("first");
    expect(git("status", "--porcelain")).toBe(before);
    expect(readFileSync(join(repository, "source"), "utf8")).toBe("second, not committed");
    expect(relative(repository, trees.at(-1)!).startsWith("..")).toBe(true);
  });

  it("are those of the commit, whatever was built before in the same place", async () => {
    const first = commit("first");
    const second = commit("second");
    for (const [sha, source] of [
      [first, "first"],
      [second, "second"],
      ["HEAD~1", "first"],
    ] as const) {
      expect(programOf(await programsOfCommit(sha, options()))).toBe(source);
    }
    expect(new Set(trees.slice(-3)).size).toBe(1);
    expect(readdirSync(cacheDirectory).filter((name) => name !== "target")).toHaveLength(1);
    expect(readFileSync(join(trees.at(-1)!, "source"), "utf8")).toBe("firstbuilt\n");
  });

  it("are built again after the cache has been emptied", async () => {
    const first = commit("first");
    await programsOfCommit(first, options());
    rmSync(cacheDirectory, { recursive: true });
    expect(programOf(await programsOfCommit(first, options()))).toBe("first");
    // Or a part of it.
    rmSync(join(trees.at(-1)!, ".git"));
    expect(programOf(await programsOfCommit(first, options()))).toBe("first");
  });

  it("need a commit of this repository", async () => {
    commit("first");
    await expect(programsOfCommit("nonsense", options())).rejects.toThrow(
      "nonsense is no commit of this repository",
    );
    expect(existsSync(cacheDirectory)).toBe(false);
  });

  it("need a build that succeeds, and leaves the server", async () => {
    commit("first");
    const failing = () => runCommand("sh", ["-c", "echo error: no such crate >&2; exit 101"]);
    await expect(programsOfCommit("HEAD", { ...options(), build: failing })).rejects.toThrow(
      /ended with 101:\nerror: no such crate/,
    );
    await expect(programsOfCommit("HEAD", { ...options(), build: async () => directory })).rejects.toThrow(
      "has left no spacetimedb-standalone",
    );
  });
});

describe("the build of another tree", () => {
  const scripts = join(repositoryDirectory, "scripts");

  /** Runs the script with a cargo that writes down how it was called. */
  async function buildOf(tree: string, environment: Record<string, string>) {
    const programs = join(directory, "bin");
    const log = join(directory, "cargo.log");
    mkdirSync(programs, { recursive: true });
    const lines = ["#!/bin/sh", `echo "$PWD|$CARGO_TARGET_DIR|$RUSTY_V8_ARCHIVE|$*" > ${log}`, "echo noise"];
    writeFileSync(join(programs, "cargo"), `${lines.join("\n")}\n`, { mode: 0o755 });
    const script = join(repositoryDirectory, "bench/scripts/prepare.sh");
    const printed = await runCommand(script, ["server-of", tree], {
      environment: {
        PATH: `${programs}:${process.env["PATH"]}`,
        XDG_CACHE_HOME: cacheDirectory,
        CARGO_TARGET_DIR: join(directory, "target-of-this-tree"),
        LIGHTCONE_JS_ENGINE: undefined,
        ...environment,
      },
    });
    const [workingDirectory, target, archive, words] = readFileSync(log, "utf8").trim().split("|");
    return { printed: printed.trim(), workingDirectory, target, archive, words };
  }

  it("has a target directory of its own, and the engine of this tree", async () => {
    mkdirSync(join(repository, "scripts"));
    copyFileSync(join(scripts, "js-engine.sh"), join(repository, "scripts/js-engine.sh"));
    const target = join(cacheDirectory, "lightcone/gate-target");
    const build = "build --release --package lightcone-cli";
    const engine = "--no-default-features --features lightcone-cli/v8,lightcone-cli/bundler";
    expect(await buildOf(repository, { RUSTY_V8_ARCHIVE: "/somewhere/v8.a.gz" })).toEqual({
      ...{ printed: join(target, "release"), workingDirectory: repository, target },
      ...{ archive: "/somewhere/v8.a.gz", words: `${build} ${engine}` },
    });
    expect(await buildOf(repository, { LIGHTCONE_JS_ENGINE: "quickjs", RUSTY_V8_ARCHIVE: "" })).toMatchObject(
      {
        words: build,
      },
    );
  });

  it("works for commits that know no choice of engine", async () => {
    const built = await buildOf(repository, { RUSTY_V8_ARCHIVE: "/somewhere/v8.a.gz" });
    expect(built.words).toBe("build --release --package lightcone-cli");
  });
});
