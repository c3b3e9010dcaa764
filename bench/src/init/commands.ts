// Commands that run to their end.

import { spawn } from "node:child_process";
import { join, resolve } from "node:path";

export const packageDirectory = resolve(import.meta.dirname, "../..");
export const repositoryDirectory = resolve(packageDirectory, "..");
const prepareScript = join(packageDirectory, "scripts/prepare.sh");

export interface CommandOptions {
  workingDirectory?: string;
  environment?: Record<string, string | undefined>;
}

/** Runs a command; answers its standard output. One that fails rejects with all that it printed. */
export function runCommand(command: string, args: string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((done, reject) => {
    const child = spawn(command, args, {
      cwd: options.workingDirectory,
      env: { ...process.env, ...options.environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
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
      if (code === 0) done(output);
      else
        reject(new Error(`${[command, ...args].join(" ")} ended with ${signal ?? code}:\n${all.trimEnd()}`));
    });
  });
}

/** Runs `scripts/prepare.sh`. */
export const prepareScriptCommand = (...args: string[]) => runCommand(prepareScript, args);
