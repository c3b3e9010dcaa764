// Versions of the suite itself.

import { execFileSync } from "node:child_process";
import { packageDirectory } from "../init/commands";

let found: Record<string, string> | undefined;

export function suiteSoftware(): Record<string, string> {
  found ??= { suiteCommit: commit(), node: process.version };
  return found;
}

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync("git", args, {
      cwd: packageDirectory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    return `${git("rev-parse", "--short=12", "HEAD")}${git("status", "--porcelain") === "" ? "" : " with changes"}`;
  } catch {
    // Not a clone.
    return "unknown";
  }
}
