// The programs of another commit: built in a working tree of its own, outside this one, so that nothing here changes.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UsageError } from "../config";
import { prepareScriptCommand, repositoryDirectory, runCommand } from "./commands";

const serverProgram = "spacetimedb-standalone";

export interface OtherTreeOptions {
  say(line: string): void;
  repository?: string;
  /** Where working trees are kept. */
  cacheDirectory?: string;
  /** Builds the programs of a working tree; answers their directory. */
  build?(tree: string): Promise<string>;
}

/** As `scripts/lib.sh` has it. */
const defaultCache = () =>
  join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "lightcone", "gate");

const buildRelease = (tree: string) => prepareScriptCommand("server-of", tree);

/**
 * One working tree per repository serves all commits: what two of them have in common is built once. Its target directory is
 * `gate-target` in the cache, never that of this tree.
 */
const treeOf = (repository: string, cacheDirectory: string) =>
  join(cacheDirectory, createHash("sha256").update(repository).digest("hex").slice(0, 12));

async function checkOut(repository: string, tree: string, sha: string): Promise<void> {
  const git = (workingDirectory: string, ...args: string[]) => runCommand("git", args, { workingDirectory });
  if (existsSync(join(tree, ".git"))) {
    // What a build has changed, e.g. a lock file, must not stay.
    await git(tree, "checkout", "--quiet", "--force", "--detach", sha);
    await git(tree, "clean", "--quiet", "-fd");
    return;
  }
  mkdirSync(dirname(tree), { recursive: true });
  rmSync(tree, { recursive: true, force: true });
  // One that was removed by hand is still known to git.
  await git(repository, "worktree", "prune");
  await git(repository, "worktree", "add", "--quiet", "--force", "--detach", tree, sha);
}

/** The directory of the programs of a commit; builds them. */
export async function programsOfCommit(commit: string, options: OtherTreeOptions): Promise<string> {
  const { say, repository = repositoryDirectory, build = buildRelease } = options;
  const revision = ["rev-parse", "--verify", "--quiet", `${commit}^{commit}`];
  const found = await runCommand("git", revision, { workingDirectory: repository }).catch(() => "");
  const sha = found.trim();
  if (sha === "") throw new UsageError(`${commit} is no commit of this repository`);
  const tree = treeOf(repository, options.cacheDirectory ?? defaultCache());
  await checkOut(repository, tree, sha);
  say(`building the server of ${sha.slice(0, 12)} (release) in ${tree}: the first time takes minutes`);
  const directory = (await build(tree)).trim();
  if (!existsSync(join(directory, serverProgram)))
    throw new Error(`the build of ${sha.slice(0, 12)} has left no ${serverProgram} in ${directory}`);
  return directory;
}
