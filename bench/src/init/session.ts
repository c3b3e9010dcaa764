// One invocation of the suite: its work directory and its processes, gone when it ends, however it ends.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Config, UsageError } from "../config";
import type { PrepareContext } from "../connectors/definition";
import { packageDirectory } from "./commands";
import { ProcessGroup, removeAbandoned } from "./processes";

export interface Session {
  workDirectory: string;
  processes: ProcessGroup;
  context(config: Config, test: string): PrepareContext;
  say(line: string): void;
  /** Removes what the session has made; also called when the process ends. */
  end(): void;
}

export const say = (line: string): void => console.log(`[bench] ${line}`);

function makeDirectory(parent: string): string {
  try {
    mkdirSync(parent, { recursive: true });
    removeAbandoned(parent, "run-");
    return mkdtempSync(join(parent, `run-${process.pid}-`));
  } catch (error) {
    throw new UsageError(`data cannot be written to ${parent} (BENCH_DATA_DIR): ${(error as Error).message}`);
  }
}

export function openSession(): Session {
  // Beside the package and not in /tmp, which may be memory: a sync must reach a disk.
  const parent = process.env["BENCH_DATA_DIR"] ?? join(packageDirectory, ".data");
  const workDirectory = makeDirectory(parent);
  const processes = new ProcessGroup();
  const end = () => {
    processes.killAll();
    rmSync(workDirectory, { recursive: true, force: true });
  };
  process.on("exit", end);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => process.exit(code));
  }
  return {
    workDirectory,
    processes,
    say,
    end,
    context: (config, test) => ({ config, test, say, processes, workDirectory }),
  };
}
