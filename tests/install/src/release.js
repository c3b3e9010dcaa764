// The files of the release under test, and what its tests do with programs.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const RELEASE = process.env.LIGHTCONE_RELEASE;
const MODULES = process.env.LIGHTCONE_MODULES_WASM_DIR;
if (!RELEASE || !MODULES) throw new Error("run tests/install/run.sh, which makes the release");

/** The one file of the release whose name fits. */
export function file(name) {
  const found = readdirSync(RELEASE).filter((entry) => name.test(entry));
  if (found.length !== 1) throw new Error(`${name} is not one file: ${found}`);
  return join(RELEASE, found[0]);
}

/** What a command writes to stdout; an error has what it writes to stderr. */
export async function run(command, args, options = {}) {
  const { stdout } = await promisify(execFile)(command, args, { encoding: "utf8", ...options });
  return stdout;
}

/** An empty directory that is gone after the test. */
export function scratch(t) {
  const directory = mkdtempSync(join(tmpdir(), "lightcone-install-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Starts a server with a command, and resolves when it listens. */
export async function serve(t, command, args, options = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"], detached: true, ...options });
  const exited = once(child, "exit").then(([status]) => status);
  const closed = once(child, "close");
  // As Ctrl-C does: all processes of the terminal's group get it, if there still are any.
  const stop = async () => {
    try {
      process.kill(-child.pid, "SIGINT");
    } catch {}
    await closed;
    return exited;
  };
  t.after(stop);
  let said = "";
  const url = await new Promise((resolve, reject) => {
    child.stdout.on("data", (text) => {
      said += text;
      const found = /listening on (\S+)\n/.exec(said);
      if (found) resolve(`http://${found[1]}`);
    });
    child.on("exit", () => reject(new Error(`the server ended: ${said}`)));
  });
  return { url, pid: child.pid, exited, stop };
}

/** Publishes a module with the command line of the release, and calls it. */
export async function firstCall(spacetime, url) {
  await spacetime("publish", "--server", url, "--bin-path", join(MODULES, "transfer.wasm"), "--yes", "bank");
  await spacetime("call", "--server", url, "bank", "seed", "3", "10");
}
