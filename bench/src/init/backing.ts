// Systems that the suite starts: a program on what it keeps its data in.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext } from "../connectors/definition";
import { packageDirectory } from "./commands";

/** What a started server runs on, e.g. its database. */
export interface Backing {
  environment: Record<string, string>;
  /**
   * Processes beside the server whose CPU counts, e.g. those of the database; null if it is remote. After a crash they are
   * others.
   */
  processes(): number[] | null;
  dataDirectory?: string;
  /** Kills the database without warning and starts it again on the same data. */
  crash?(): Promise<void>;
  stop(): Promise<void>;
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

/** A system that runs, with what is behind it. */
export interface Started extends Omit<Backing, "environment"> {
  url: string;
}

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
  try {
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
  } catch (error) {
    await backing.stop();
    throw error;
  }
}
