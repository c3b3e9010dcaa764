// Programs of Debian's packages that the suite needs: root gets them installed, others are told what to do.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Environment } from "../config";
import { runCommand } from "./commands";

const installMillisecondsMax = 300_000;
const lockSecondsMax = 120;
const aptGet = "/usr/bin/apt-get";

const mayInstall = (): boolean => process.getuid?.() === 0 && existsSync(aptGet);

async function installPackage(name: string): Promise<void> {
  const environment = { DEBIAN_FRONTEND: "noninteractive" };
  const options = { environment, timeout: installMillisecondsMax };
  // Another program may be installing just now, even another process of this suite.
  const lock = ["-o", `DPkg::Lock::Timeout=${lockSecondsMax}`];
  await runCommand(aptGet, [...lock, "update", "-qq"], options);
  await runCommand(aptGet, [...lock, "install", "-y", "-qq", "--no-install-recommends", name], options);
}

/** Debian keeps servers where only root has them on the path. */
const serverDirectories = ["/usr/sbin", "/usr/local/sbin"];

export const pathDirectories = (environment: Environment = process.env): string[] =>
  (environment["PATH"] ?? "").split(delimiter).filter((directory) => directory !== "");

const findProgram = (name: string): string | undefined =>
  [...pathDirectories(), ...serverDirectories].map((directory) => join(directory, name)).find(existsSync);

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

/** What `find` finds; installs the package that has it where that can be done without asking. */
export async function foundOrInstalled(
  { program, name, urlVariable, say, ...needed }: NeededProgram,
  find: () => string | undefined = () => findProgram(program),
): Promise<string> {
  const found = find();
  if (found) return found;
  if (!mayInstall()) {
    throw new Error(
      `${name} is not installed. Install it (Debian: \`apt-get install ${needed.package}\`), or name a running server in ` +
        urlVariable,
    );
  }
  say(`installing Debian's package ${needed.package} (a service that it may start is not used)`);
  await installPackage(needed.package);
  const installed = find();
  if (!installed) throw new Error(`Debian's package ${needed.package} was installed, but has no ${program}`);
  return installed;
}
