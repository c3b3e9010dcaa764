// What a connector's preparation works with, and what it hands back.

import type { Config } from "../config";
import type { Fairness } from "../connectors/connector";
import type { ProcessGroup } from "./processes";

export interface PrepareContext {
  config: Config;
  /** The test that is going to run, e.g. `test-1`: which tables or modules are needed. */
  test: string;
  /** Says what is being done, one line. */
  say(line: string): void;
  /** Starts programs; everything that it started ends with the suite, whatever happens. */
  processes: ProcessGroup;
  /** A directory of this invocation for data and logs, on a real disk; removed at the end. */
  workDirectory: string;
  /** For `prep`: what is started listens on its usual port and stays, modules are published anew. */
  asService?: boolean;
  /** Directory of the server's programs; those of this tree if left out. */
  programs?: string;
}

/** A system that is ready to be measured. */
export interface Prepared {
  /** Where connectors connect to; its meaning is the connector's. */
  url: string;
  fairness: Fairness;
  /**
   * The processes whose CPU is the server's, each with its descendants; null for a remote system. A program that was
   * not started by the suite is found by the port it listens on: `processesListeningOn`.
   */
  serverProcesses: number[] | null;
  /** Its size is measured before and after, where it is known. */
  dataDirectory?: string;
  /** Name and version of what was measured, e.g. `{ database: "PostgreSQL 15.14" }`. */
  software: Record<string, string>;
  /** Fresh data of the same kind: for `--prep-between-alphas` and between repetitions. */
  reseed(): Promise<void>;
  /** Kills what was started, without warning, and starts it again on the same data (`--kill-after`). */
  crash?(): Promise<void>;
  /** Stops what was started for this; leaves alone what was found running. */
  stop(): Promise<void>;
}
