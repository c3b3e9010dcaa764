// What a connector's preparation works with, what it hands back, and what a connector consists of.

import type { Config } from "../config";
import type { Fairness } from "../core/result";
import type { ProcessGroup } from "../init/processes";
import type { Connector } from "./connector";

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

/** A system that runs, with what is behind it. */
export interface Started {
  /** Where connectors connect to; its meaning is the connector's. */
  url: string;
  /**
   * The processes whose CPU is the server's, each with its descendants; null for a remote system. After a crash they are
   * others.
   */
  processes(): number[] | null;
  /** Its size is measured before and after, where it is known. */
  dataDirectory?: string;
  /** Kills what was started, without warning, and starts it again on the same data (`--kill-after`). */
  crash?(): Promise<void>;
  /** Stops what was started for this; leaves alone what was found running. */
  stop(): Promise<void>;
}

/** A system that is ready to be measured. */
export interface Prepared extends Started {
  fairness: Fairness;
  /** Name and version of what was measured, e.g. `{ database: "PostgreSQL 15.14" }`. */
  software: Record<string, string>;
  /** Fresh data of the same kind, for `--prep-between-alphas`; left out where each run loads its own. */
  reseed?(): Promise<void>;
}

/** The columns of a full stack in one round trip, but for what is said. */
export const fairnessOf = (
  said: Partial<Fairness> & Pick<Fairness, "isolation" | "durability" | "transport" | "colocated">,
): Fairness => ({
  systemClass: "full-stack",
  poolMax: null,
  orm: "none",
  clientLanguage: "TypeScript",
  roundTripsPerTx: 1,
  ...said,
});

/** How the native load generator (crates/loadgen) reaches a system. */
export interface NativeTarget {
  /** Its `--target`. */
  kind: "websocket" | "spacetime-http" | "rpc" | "batched" | "postgres" | "convex";
  url: string;
  /** Further arguments. */
  arguments?: string[];
  /** Connections that the system allows; more in flight then share one. */
  connectionsMax?: number;
  roundTripsPerTx?: number;
}

/** How to prepare a system and how to connect to it. */
export interface ConnectorDefinition {
  readonly key: string;
  /** What a person has to start when the suite cannot: printed after "not running: start it with". */
  readonly startCommand: string;
  /** Where it listens when it runs already; at the server's address if left out. */
  usualUrl?(config: Config): string | undefined;
  /** Makes the system ready, seeded for `context.test`; rejects with `NotRunning` where that cannot be done. */
  prepare(context: PrepareContext): Promise<Prepared>;
  /** A fresh connector, not yet open, of what `prepare` answered. */
  create(config: Config, prepared: Prepared): Connector;
  /** Where the native load generator finds what `prepare` answered; without it, it does not speak its protocol. */
  nativeTarget?(config: Config, prepared: Prepared): NativeTarget;
}
