// What data-layer and data-layer-crm share (section 18.1): one client that does one operation at a time, a table of what
// each takes, and the cost of reads inside the server where it can be asked for.

import type { Config } from "../../config";
import type { LatencySummary, LoadReport, SerialExtras } from "../../core/result";
import { formatInteger, formatLatency, markdownTable, type TextColumn } from "../../report/format";
import type { Engine, Operation, Outcome, SystemUnderTest, Verdict, WorkloadRun } from "../workload";

const defaultIterations = 2_000;
const warmupIterations = 200;
/** Operations over many rows are repeated less often by this factor. */
const manyRowsDivisor = 20;

export interface Step {
  kind: string;
  /** Rows that one operation is about: figures are given per row. */
  rows: number;
  /** Entries of the log that one operation makes. */
  events: number;
  args(iteration: number): Record<string, unknown>;
  /** Performed before each operation, unmeasured: no answer may be one of before. */
  before?: () => Operation;
  /** The number of the same read for the operation `bench_loop`. */
  loopOperation?: number;
}

type Arguments = Step["args"];

/** About one row, with or without an entry of the log. */
export const read = (kind: string, args: Arguments, loopOperation?: number): Step => ({
  ...{ kind, args, rows: 1, events: 0 },
  ...(loopOperation !== undefined && { loopOperation }),
});
export const write = (kind: string, args: Arguments): Step => ({ kind, args, rows: 1, events: 1 });

/** The loop of `bench_loop` runs at least so long, or its clock says little. */
const loopMicroseconds = 100_000;
const loopIterationsFirst = 20;
const loopIterationsMax = 1_000_000;
const loopGrowthMax = 10;

/** Microseconds of one iteration, from the clock of the server's module. */
export async function loopCost({ run }: Pick<SystemUnderTest, "run">, op: number): Promise<number> {
  for (let iters = loopIterationsFirst; ; ) {
    const elapsed = Number((await run("bench_loop", { op, iters })).found);
    if (!(elapsed >= 0)) throw new Error(`bench_loop answers ${elapsed} microseconds`);
    if (elapsed >= loopMicroseconds || iters >= loopIterationsMax) return elapsed / iters;
    const growth = Math.min(loopGrowthMax, Math.ceil((1.2 * loopMicroseconds) / Math.max(1, elapsed)));
    iters = Math.min(loopIterationsMax, iters * growth);
  }
}

export interface SerialOptions {
  config: Config;
  steps: readonly Step[];
  /** Rows that `seed` makes. */
  rows: number;
  verify(system: SystemUnderTest, done: Done): Promise<Verdict>;
}

/** What the run has written, its warm-up included. */
export interface Done {
  /** Entries that the log must have. */
  events: number;
  /** Acknowledged operations by kind. */
  operations: ReadonlyMap<string, number>;
}

export function serialRun({ config, steps, rows, verify }: SerialOptions): WorkloadRun {
  const iterations = config.iters ?? defaultIterations;
  let system!: SystemUnderTest;
  const engineHot = new Map<string, number>();
  const operations = new Map<string, number>();
  let expectedEvents = 0;

  const done = ({ kind, events }: Step) => {
    expectedEvents += events;
    operations.set(kind, (operations.get(kind) ?? 0) + 1);
  };

  const perform = async (measurement: Engine, step: Step): Promise<void> => {
    const { run } = system;
    const divisor = step.rows === 1 ? 1 : manyRowsDivisor;
    const warmups = Math.min(iterations, Math.ceil(warmupIterations / divisor));
    const repetitions = Math.max(1, Math.floor(iterations / divisor));
    const operation = (iteration: number): Operation => ({ kind: step.kind, args: step.args(iteration) });
    for (let iteration = 0; iteration < warmups; iteration++) {
      await run(step.kind, operation(iteration).args);
      done(step);
    }
    if (step.loopOperation !== undefined && measurement.has("bench_loop")) {
      engineHot.set(step.kind, await loopCost(system, step.loopOperation));
    }
    for (let iteration = 0; iteration < repetitions; iteration++) {
      const first = step.before?.();
      if (first) await run(first.kind, first.args);
      const outcome: Outcome | undefined = await measurement.perform(0, operation(iteration));
      if (outcome) done(step);
    }
  };

  /** Per row, in microseconds. */
  const table = (measurement: Engine): string => {
    const summaryOf = (kind: string) => {
      const result = measurement.kinds.get(kind);
      return result && result.ok > 0 ? result.histogram.summary() : undefined;
    };
    const figure =
      (name: keyof LatencySummary) =>
      ({ kind, rows }: Step) => {
        const milliseconds = summaryOf(kind)?.[name];
        return milliseconds === undefined ? "–" : formatLatency((milliseconds * 1000) / rows);
      };
    const perSecond = ({ kind, rows }: Step) => {
      const summary = summaryOf(kind);
      return summary ? formatInteger((1000 * rows) / summary.mean_ms) : "–";
    };
    const hotOf = ({ kind }: Step) => engineHot.get(kind);
    const hot: TextColumn<Step>[] = [
      ["engine-hot µs", (step) => (hotOf(step) === undefined ? "–" : formatLatency(hotOf(step)!))],
      ["engine-hot per second", (step) => (hotOf(step) ? formatInteger(1e6 / hotOf(step)!) : "–")],
    ];
    return markdownTable(steps, [
      ["Operation", ({ kind, rows }) => (rows === 1 ? kind : `${kind}, per row (${rows})`)],
      ["mean µs", figure("mean_ms")],
      ["p50", figure("p50_ms")],
      ["p95", figure("p95_ms")],
      ["p99", figure("p99_ms")],
      ["per second", perSecond],
      ...(engineHot.size > 0 ? hot : []),
    ]);
  };

  return {
    parameters: { iterations },
    limit: { mode: "drain" },
    concurrency: 1,
    load: async (loaded): Promise<LoadReport> => {
      system = loaded;
      const start = performance.now();
      await system.run("seed");
      const seconds = (performance.now() - start) / 1000;
      return { rows, seconds, rows_per_s: rows / seconds };
    },
    generator: () => ({ next: () => undefined }),
    drive: async (measurement) => {
      for (const step of steps) await perform(measurement, step);
    },
    closingLine: table,
    figures: () => {
      const extras: SerialExtras = {
        rows_per_operation: Object.fromEntries(steps.map(({ kind, rows }) => [kind, rows])),
        engine_hot_us: Object.fromEntries(engineHot),
      };
      return { extras: { ...extras } };
    },
    verify: (checked) => verify(checked, { events: expectedEvents, operations }),
  };
}
