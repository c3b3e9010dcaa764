// What a test consists of (section 14.1): a workload, and per connector how its operations are asked for.

import type { Config } from "../config";
import type { Connector } from "../connectors/connector";
import type { Clock } from "../core/clock";
import type { LatencyHistogram } from "../core/histogram";
import type { LoadReport, Parameters, RunResult, VerifyReport } from "../core/result";

/** One operation of a generator. */
export interface Operation {
  kind: string;
  args: Record<string, unknown>;
}

/** How an operation ended. Answers of a system may stand for it as they are: what is not there has its usual meaning. */
export interface Outcome {
  /** False: the system refused. */
  ok?: boolean;
  /** What was asked for is not there: counted apart, neither success nor error. */
  miss?: boolean;
  /** False: a success, but there was nothing to do, e.g. for lack of funds. */
  applied?: boolean;
  /** What the operation found, for those whose next operation depends on it. */
  found?: unknown;
}

/**
 * Asks a connection for one kind of operation. A rejection is a failed operation. A system's own answer, which may be
 * nothing, counts as a success unless it says otherwise.
 */
export type RunOperation = (connection: Connector, args: Record<string, unknown>) => Promise<Outcome>;

/** `next` has looked for an operation long enough: others get their turn before it is asked again. */
export const later = "later";

/** Draws the operations of one worker, the same ones in every run. */
export interface Generator {
  /** Undefined: there is nothing more to do. */
  next(): Operation | typeof later | undefined;
  /** Told how an operation ended, before `next` is asked again; the outcome is undefined if it failed or timed out. */
  ended?(operation: Operation, outcome: Outcome | undefined, error?: unknown): void;
}

export interface Verdict extends Partial<Omit<VerifyReport, "ok" | "message">> {
  ok: boolean;
  message: string;
}

/** When a run is over. */
export type Limit =
  | { mode: "time"; seconds: number; warmupSec: number }
  | { mode: "count"; operations: number }
  /** As soon as every generator has nothing more to do. */
  | { mode: "drain" };

/** What became of the operations of one kind. */
export interface KindResult {
  count: number;
  ok: number;
  miss: number;
  errors: number;
  histogram: LatencyHistogram;
}

/** What a workload sees of the engine that performs and measures its operations. */
export interface Engine {
  readonly clock: Clock;
  /** One per worker. */
  readonly connections: readonly Connector[];
  readonly kinds: ReadonlyMap<string, KindResult>;
  readonly histogram: LatencyHistogram;
  readonly samples: number;
  readonly errors: number;
  readonly timeouts: number;
  /** Seconds from the start to the last completion, or the whole window of a timed run. */
  readonly elapsedSeconds: number;
  /** Whether the system has a kind of operation: some have more than others. */
  has(kind: string): boolean;
  /**
   * Performs one operation on the connection of a worker. Never rejects; undefined says that it failed or timed out.
   * `due` is when it should have started, in an open loop.
   */
  perform(worker: number, operation: Operation, due?: number): Promise<Outcome | undefined>;
  /** Ends a timed window now; what is in flight is still waited for. */
  halt(): void;
}

/** The system under test, as a run prepares and checks it: through its root connection, nothing measured. */
export interface SystemUnderTest {
  root: Connector;
  /** Asks the root for an operation by its kind. */
  run(kind: string, args?: Record<string, unknown>): Promise<Outcome>;
  /** A further connection, not yet open. */
  connect(): Connector;
  /** Kills the server and starts it again on its data; absent where the suite has not started it. */
  crash?(): Promise<void>;
  clock: Clock;
  say(line: string): void;
}

/** One run of a workload, with what its generators and checks share. */
export interface WorkloadRun {
  /** For the tables and the file, e.g. `{ records: 1000 }`. */
  parameters: Parameters;
  limit: Limit;
  concurrency: number;
  /** Of test-1; others have null and 0 in the file. */
  alpha?: number;
  accounts?: number;
  /**
   * Paced as the published runner does it (sections 5.4 and 5.5), with so many in flight per worker; undefined: one, and
   * the next when it has ended. Without it, `--max-inflight-per-worker` operations follow each other.
   */
  pipelining?: { inFlight: number | undefined };
  /** Done before anything is connected: what keeps the event loop for seconds. */
  draw?(): void;
  /** Creates and loads the data. */
  load(system: SystemUnderTest): Promise<LoadReport | undefined>;
  generator(worker: number, workers: number): Generator;
  /** Replaces the loop over the generators, for work that has an order of its own. */
  drive?(engine: Engine, workers: number): Promise<void>;
  /** What happens to the system while it is measured. */
  beside?(engine: Engine, system: SystemUnderTest): Promise<void>;
  /** It verifies although that was not asked for. */
  alwaysVerifies?: boolean;
  verify(system: SystemUnderTest, engine: Engine): Promise<Verdict>;
  /** What the throughput counts, where that is not every operation, e.g. jobs. */
  successes?(engine: Engine): number;
  /** A line to print at the end, in the shape that readers of this workload know. */
  closingLine?(engine: Engine): string;
  /** Keys of the file that have a meaning for this workload alone. */
  figures?(engine: Engine): Partial<RunResult>;
}

export interface Workload {
  name: string;
  /** How often it repeats itself with fresh data; undefined: it does not. */
  samples?: number;
  /** Settings that have another default here than in test-1. */
  settings?(config: Config): Partial<Config>;
  /** Said before the first run. */
  warnings?(config: Config): string[];
  /** Several runs, one after another, e.g. for a list of concurrencies. */
  runs(config: Config): { label: string; create(): WorkloadRun }[];
}
