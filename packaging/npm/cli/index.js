// The program is in a package for each platform (`optionalDependencies`): npm installs the one whose `os`, `cpu` and `libc` fit.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

function program() {
  const name = `@lightcone/${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/spacetime`);
  } catch {
    console.error(
      `Error: ${name} is not installed. Either there is no program for this platform (Linux needs glibc), or npm was told to leave out optional dependencies.`,
    );
    process.exit(1);
  }
}

/** Runs `spacetime` with these arguments in this process's terminal; the process ends as it does. */
export function run(args) {
  const file = program();
  const child = spawn(file, args, { stdio: "inherit" });
  child.on("error", (error) => {
    console.error(`Error: ${file} cannot be run: ${error.message}`);
    process.exit(1);
  });
  // A terminal sends Ctrl-C to both; what only this process is sent is passed on.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
