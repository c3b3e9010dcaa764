// Databases of this invocation: fresh data in a directory of its own, on a free port of 127.0.0.1, gone when they are stopped.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext } from "../connectors/definition";
import type { Started } from "./backing";
import { freePort, type Program } from "./processes";

/** A port may be taken by somebody else between the moment it was found free and the start. */
const startAttemptsMax = 3;

export async function onFreePort(
  launch: (port: number) => Promise<Program>,
): Promise<{ program: Program; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { program: await launch(port), port };
    } catch (error) {
      if (attempt === startAttemptsMax) throw error;
    }
  }
}

/** Processes of a killed server may write for a moment yet. */
export const removeDirectory = (directory: string): void =>
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });

export const newPassword = (): string => randomBytes(18).toString("base64url");

interface PrivateServerOptions {
  name: string;
  /** Makes the data; answers the arguments of the server on a port. */
  make(directory: string, password: string): Promise<(port: number) => string[]>;
  command: string;
  readyWhen: RegExp;
  /** Below the directory, where the data is not all of it. */
  dataDirectory?: string;
  url(port: number, password: string): string;
}

export async function startPrivateServer(
  { say, processes, workDirectory }: PrepareContext,
  { name, make, command, readyWhen, dataDirectory = ".", url }: PrivateServerOptions,
): Promise<Started> {
  const directory = mkdtempSync(join(workDirectory, `${name.toLowerCase()}-`));
  const password = newPassword();
  try {
    const argumentsOn = await make(directory, password);
    const launch = (port: number) =>
      processes.start({
        ...{ name, command, readyWhen, workingDirectory: directory, logFile: join(directory, "server.log") },
        args: argumentsOn(port),
      });
    const { program, port } = await onFreePort(launch);
    say(`${name} on port ${port}, data in ${directory}`);
    return {
      url: url(port, password),
      dataDirectory: join(directory, dataDirectory),
      processes: () => [program.pid],
      async stop() {
        await program.stop();
        removeDirectory(directory);
        say(`${name} on port ${port} stopped, its data removed`);
      },
    };
  } catch (error) {
    removeDirectory(directory);
    throw error;
  }
}
