// Commands that run to their end.

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { endGroup } from "./processes";

export const packageDirectory = resolve(import.meta.dirname, "../..");
export const repositoryDirectory = resolve(packageDirectory, "..");
const prepareScript = join(packageDirectory, "scripts/prepare.sh");

export interface CommandOptions extends Pick<SpawnOptions, "uid" | "gid" | "timeout"> {
  workingDirectory?: string;
  environment?: Record<string, string | undefined>;
  /** Told the process, and each line of standard output as it comes. */
  onStart?(pid: number): void;
  onLine?(line: string): void;
}

// A build must not go on when the suite is stopped.
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) endGroup(child, "SIGKILL");
});

/** Runs a command; answers its standard output. One that fails rejects with all that it printed. */
export function runCommand(command: string, args: string[], given: CommandOptions = {}): Promise<string> {
  const { workingDirectory, environment, onStart, onLine, ...options } = given;
  return new Promise((done, reject) => {
    const child = spawn(command, args, {
      ...options,
      detached: true,
      cwd: workingDirectory,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(child);
    if (child.pid !== undefined) onStart?.(child.pid);
    if (onLine) createInterface({ input: child.stdout }).on("line", onLine);
    let output = "";
    let all = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      all += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      all += text;
    });
    child.once("error", (error) => reject(new Error(`${command}: ${error.message}`)));
    child.once("close", (code, signal) => {
      running.delete(child);
      if (code === 0) done(output);
      else
        reject(new Error(`${[command, ...args].join(" ")} ended with ${signal ?? code}:\n${all.trimEnd()}`));
    });
  });
}

/** Runs `scripts/prepare.sh`. */
export const prepareScriptCommand = (...args: string[]) => runCommand(prepareScript, args);
