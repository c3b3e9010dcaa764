// What a test other than test-1 consists of (section 14.1): a workload, and per connector how its operations are asked for.

import type { Config } from "../config";
import type { Connector, ConnectorDefinition } from "../connectors/connector";
import type { Measurement } from "./measurement";

/** One operation of a generator. */
export interface Operation {
  kind: string;
  args: Record<string, unknown>;
}

export interface Outcome {
  ok: boolean;
  /** What was asked for is not there: counted apart, neither success nor error. */
  miss?: boolean;
  /** What the operation found, for those whose next operation depends on it. */
  found?: unknown;
}

/** Asks a connection for one kind of operation. A rejection is a failed operation. */
export type RunOperation = (connection: Connector, args: Record<string, unknown>) => Promise<Outcome>;

/** A file of `src/tests/<test>/`: one connector of a workload. */
export interface WorkloadCase {
  system: string;
  label?: string;
  ops: Record<string, RunOperation>;
  /** Only runs when it is named. */
  isOptional?: boolean;
  /** How the system is prepared and connected to, where it is not as for test-1. */
  definition?: ConnectorDefinition;
}

/** Draws the operations of one worker, the same ones in every run. */
export interface Generator {
  /** Undefined: there is nothing more to do. */
  next(): Operation | undefined;
  /** Told how an operation ended, before `next` is asked again; undefined if it failed. */
  ended?(operation: Operation, outcome: Outcome | undefined): void;
}

export interface LoadReport {
  rows: number;
  seconds: number;
  rows_per_s: number;
}

export interface Verdict {
  ok: boolean;
  message: string;
}

/** When a run is over. */
export type Limit =
  | { mode: "time"; seconds: number; warmupSec: number }
  | { mode: "count"; operations: number }
  /** As soon as every generator has nothing more to do. */
  | { mode: "drain" };

/** One run of a workload, with what its generators and checks share. */
export interface WorkloadRun {
  /** For the first line of output and the file, e.g. `{ records: 1000 }`. */
  parameters: Record<string, number | string | boolean>;
  limit: Limit;
  concurrency: number;
  /** Creates and loads the data, through the root connection. */
  load(root: Connector, run: RunNamed): Promise<LoadReport | undefined>;
  generator(worker: number, workers: number): Generator;
  /** Replaces the loop over the generators, for work that has an order of its own. */
  drive?(measurement: Measurement, workers: number): Promise<void>;
  verify(root: Connector, run: RunNamed, measurement: Measurement): Promise<Verdict>;
  /** What the throughput counts, where that is not every operation, e.g. jobs. */
  successes?(measurement: Measurement): number;
  /** A line to print at the end, in the shape that readers of this workload know. */
  closingLine?(measurement: Measurement): string;
  /** Figures of this workload alone, for the file. */
  extras?(measurement: Measurement): Record<string, unknown>;
}

/** Asks for an operation by its kind, without measuring it. */
export type RunNamed = (
  connection: Connector,
  kind: string,
  args?: Record<string, unknown>,
) => Promise<Outcome>;

export interface Workload {
  name: string;
  samples: number;
  /** Settings that have another default here than in test-1. */
  settings?(config: Config): Partial<Config>;
  /** Several runs, one after another, e.g. for a list of concurrencies. */
  runs(config: Config): { label: string; create(): WorkloadRun }[];
}
