// Where the programs of PostgreSQL are: what PG_BIN_DIR names, Debian's packages, or the path. Root on Debian gets the
// package installed when there are none.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../config";
import { runCommand } from "./commands";
import { foundOrInstalled, pathDirectories } from "./debian_package";

/** Where Debian keeps one directory per major version. */
const debianRoot = "/usr/lib/postgresql";

export interface PostgresPrograms {
  /** Holds `postgres` and `initdb`. */
  directory: string;
  /** As `postgres --version` says it, e.g. `15.20 (Debian 15.20-0+deb12u1)`. */
  version: string;
}

function holdsServer(directory: string): boolean {
  return existsSync(join(directory, "postgres")) && existsSync(join(directory, "initdb"));
}

function debianDirectories(): string[] {
  if (!existsSync(debianRoot)) return [];
  return readdirSync(debianRoot)
    .filter((name) => /^\d+$/.test(name))
    .sort((left, right) => Number(right) - Number(left))
    .map((version) => join(debianRoot, version, "bin"));
}

function findDirectory(environment: Environment): string | undefined {
  const named = environment["PG_BIN_DIR"];
  if (!named) return [...debianDirectories(), ...pathDirectories(environment)].find(holdsServer);
  if (holdsServer(named)) return named;
  throw new Error(`PG_BIN_DIR is ${named}, but the programs postgres and initdb are not in it`);
}

/** Finds PostgreSQL, and installs it where that can be done without asking. */
export async function findPostgres(
  say: (line: string) => void,
  environment: Environment = process.env,
): Promise<PostgresPrograms> {
  const directory = await foundOrInstalled(
    {
      program: "postgres",
      package: "postgresql",
      name: "PostgreSQL",
      urlVariable: "PG_URL, its programs in PG_BIN_DIR",
      say,
    },
    () => findDirectory(environment),
  );
  const version = await runCommand(join(directory, "postgres"), ["--version"]);
  return { directory, version: version.trim().replace(/^postgres \(PostgreSQL\) /, "") };
}
