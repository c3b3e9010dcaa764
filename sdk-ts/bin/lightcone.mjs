#!/usr/bin/env node
// `npx lightcone start`: runs the command `spacetime` of `@lightcone/cli`, which brings the program. This package does not depend on
// that, so that who installs the SDK for a page does not get 90 MB with it. A project that has `@lightcone/cli` runs its own;
// otherwise the first use gets the one of this version from npm and keeps it in the user's cache.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const CLI = "@lightcone/cli";
const require = createRequire(import.meta.url);

function installed() {
  try {
    return require.resolve(CLI, { paths: [process.cwd(), fileURLToPath(new URL(".", import.meta.url))] });
  } catch {
    return undefined;
  }
}

function cached() {
  const { version } = require("../package.json");
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "lightcone", "npm");
  const place = join(cache, version);
  if (!existsSync(place)) install(cache, place, version);
  return require.resolve(CLI, { paths: [place] });
}

function install(cache, place, version) {
  console.error(
    `Getting ${CLI} ${version} with npm, once. To have it in a project: npm install --save-dev ${CLI}`,
  );
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(`${place}.`);
  try {
    // By its name the program's package is not optional: npm says what is wrong with it.
    const packages = [CLI, `@lightcone/${process.platform}-${process.arch}`].map(
      (name) => `${name}@${version}`,
    );
    const options = ["--prefix", staging, "--no-audit", "--no-fund", "--loglevel", "error"];
    execFileSync("npm", ["install", ...options, ...packages], { stdio: ["ignore", "ignore", "inherit"] });
    // In one step, so that there is never half of it; another process may have been faster.
    if (!existsSync(place)) renameSync(staging, place);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

try {
  const { run } = await import(pathToFileURL(installed() ?? cached()));
  run(process.argv.slice(2));
} catch (error) {
  console.error(`Error: ${error.message}`);
  process.exitCode = 1;
}
