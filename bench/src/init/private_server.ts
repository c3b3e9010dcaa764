// Databases of this invocation: fresh data in a directory of its own, on a free port of 127.0.0.1, gone when they are stopped.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext, Started } from "../connectors/definition";
import { freePort, type Program, sleep } from "./processes";

/** Another program may take a port between the moment it was found free and the start. */
const startAttemptsMax = 3;
const restartAttemptsMax = 20;
const restartPauseMilliseconds = 250;

export interface PrivateServerOptions {
  name: string;
  /** What is said besides the name, e.g. the version. */
  details?: string;
  /** Makes the data; answers the command and its arguments for a port. */
  make(directory: string, password: string): Promise<(port: number) => string[]>;
  readyWhen: RegExp;
  /** Where its directory is made, if not in that of the invocation, and what its name begins with. */
  parent?: string;
  prefix?: string;
  /** Below the directory, where the data is not all of it. */
  dataDirectory?: string;
  /** What asks it to end, if not SIGTERM. */
  stopSignal?: NodeJS.Signals;
  url(port: number, password: string): string;
}

type Context = Pick<PrepareContext, "say" | "processes" | "workDirectory">;

async function attempted<T>(most: number, pauseMilliseconds: number, attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (attempts === most) throw error;
      await sleep(pauseMilliseconds);
    }
  }
}

export async function startPrivateServer(
  { say, processes, workDirectory }: Context,
  options: PrivateServerOptions,
): Promise<Started> {
  const { name, details = "", make, readyWhen, dataDirectory = ".", stopSignal } = options;
  const { parent = workDirectory, prefix = `${name.toLowerCase()}-` } = options;
  const directory = mkdtempSync(join(parent, prefix));
  // Processes of a killed server may write for a moment yet.
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  // Behind the end of the processes, which the session has registered before.
  process.once("exit", remove);
  const removeNow = () => {
    process.removeListener("exit", remove);
    remove();
  };
  const password = randomBytes(18).toString("base64url");
  try {
    const commandOn = await make(directory, password);
    const launch = (port: number): Promise<Program> => {
      const [command = "", ...args] = commandOn(port);
      const logFile = join(directory, "server.log");
      return processes.start({ name, command, args, readyWhen, workingDirectory: directory, logFile });
    };
    let port = 0;
    let program = await attempted(startAttemptsMax, 0, async () => launch((port = await freePort())));
    say(`${name}${details} on port ${port}, data in ${directory}`);
    return {
      url: options.url(port, password),
      dataDirectory: join(directory, dataDirectory),
      processes: () => [program.pid],
      async crash() {
        await program.kill();
        // Until the last process of the old one has let go of the memory that they shared.
        program = await attempted(restartAttemptsMax, restartPauseMilliseconds, () => launch(port));
      },
      async stop() {
        await program.stop(stopSignal);
        removeNow();
        say(`${name} on port ${port} stopped, its data removed`);
      },
    };
  } catch (error) {
    removeNow();
    throw error;
  }
}
