// Systems that the suite starts: a program on what it keeps its data in.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext, Started } from "../connectors/definition";
import { packageDirectory } from "./commands";
import { orStopped } from "./processes";

/** What a started server runs on, e.g. its database; its processes are those beside the server. */
export interface Backing extends Omit<Started, "url"> {
  environment: Record<string, string>;
}

export type Back = (context: PrepareContext) => Promise<Backing>;

export const noBacking: Back = async () => ({ environment: {}, processes: () => [], stop: async () => {} });

/** A fresh file for a SQLite server. */
export const sqliteBacking: Back = async ({ config, workDirectory }) => {
  const directory = mkdtempSync(join(workDirectory, "sqlite-"));
  return {
    environment: {
      SQLITE_FILE: join(directory, "accounts.sqlite"),
      SQLITE_DURABILITY: config.sqliteDurability,
      SQLITE_MODE: process.env["SQLITE_MODE"] ?? "default",
    },
    processes: () => [],
    dataDirectory: directory,
    stop: async () => rmSync(directory, { recursive: true, force: true }),
  };
};

export interface ServerProgram {
  key: string;
  /** The program and its arguments. */
  command: string[];
  environment?: Record<string, string>;
}

export const nodeCommand = (file: string, ...args: string[]): string[] => [
  ...[process.execPath, "--import", "tsx", join(packageDirectory, file), ...args],
];

/** By the program of the npm package `bun`. */
export const bunCommand = (file: string): string[] => [
  ...[join(packageDirectory, "node_modules", ".bin", "bun"), "run", join(packageDirectory, file)],
];

/** Starts a server, which prints where it listens. */
export async function startServerOn(
  context: PrepareContext,
  back: Back,
  program: ServerProgram,
): Promise<Started> {
  const { environment, ...backing } = await back(context);
  return orStopped(backing, async () => {
    const [command, ...args] = program.command;
    const running = await context.processes.start({
      name: program.key,
      command: command!,
      args,
      workingDirectory: packageDirectory,
      environment: { ...program.environment, ...environment },
      logFile: join(context.workDirectory, `${program.key}.log`),
      readyWhen: /listening on (http:\/\/[0-9.:]+)/,
    });
    return {
      ...backing,
      url: running.ready,
      processes() {
        const behind = backing.processes();
        return behind === null ? null : [running.pid, ...behind];
      },
      async stop() {
        await running.stop();
        await backing.stop();
      },
    };
  });
}
