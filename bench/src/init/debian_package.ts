// Programs of Debian's packages that the suite needs: root gets them installed, others are told what to do.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const installMillisecondsMax = 300_000;
const lockSecondsMax = 120;
const aptGet = "/usr/bin/apt-get";

export const mayInstall = (): boolean => process.getuid?.() === 0 && existsSync(aptGet);

export async function installPackage(name: string): Promise<void> {
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const options = { env: environment, timeout: installMillisecondsMax };
  // Somebody else may be installing just now, even another process of this suite.
  const lock = ["-o", `DPkg::Lock::Timeout=${lockSecondsMax}`];
  await run(aptGet, [...lock, "update", "-qq"], options);
  await run(aptGet, [...lock, "install", "-y", "-qq", "--no-install-recommends", name], options);
}

/** Debian keeps servers where only root has them on the path. */
const serverDirectories = ["/usr/sbin", "/usr/local/sbin"];

function findProgram(name: string): string | undefined {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((directory) => directory !== "");
  return [...path, ...serverDirectories].map((directory) => join(directory, name)).find(existsSync);
}

interface NeededProgram {
  program: string;
  /** Debian's package that has it. */
  package: string;
  /** For messages, e.g. `MariaDB`. */
  name: string;
  /** The variable that names a running server instead. */
  urlVariable: string;
  say(line: string): void;
}

/** The path of a program; installs its package where that can be done without asking. */
export async function neededProgram(needed: NeededProgram): Promise<string> {
  const { program, name, urlVariable, say } = needed;
  const found = findProgram(program);
  if (found) return found;
  if (!mayInstall()) {
    throw new Error(
      `${name} is not installed. Install it (Debian: \`apt-get install ${needed.package}\`), or name a running server in ` +
        urlVariable,
    );
  }
  say(`installing Debian's package ${needed.package} (a service that it may start is not used)`);
  await installPackage(needed.package);
  const installed = findProgram(program);
  if (!installed) throw new Error(`Debian's package ${needed.package} was installed, but has no ${program}`);
  return installed;
}
