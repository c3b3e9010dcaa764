// One measured run (section 5.2): connections, data, the loop, verification, close.

import { performance } from "node:perf_hooks";
import type { Config } from "../config";
import type { Connector } from "../connectors/connector";
import type { Prepared } from "../connectors/definition";
import type { RunOperation, SystemUnderTest, Verdict, WorkloadRun } from "../workloads/workload";
import { type Clock, realClock, withTimeout } from "./clock";
import { CpuAccount } from "./cpu";
import { inTurn, refilled, whenDue } from "./loops";
import { Measurement } from "./measurement";
import type { RunResult, SeriesPoint, VerifyReport } from "./result";
import { runResult } from "./results";

export interface RunOptions {
  config: Config;
  run: WorkloadRun;
  ops: Record<string, RunOperation>;
  /** A fresh connector, not yet open. */
  connect: () => Connector;
  prepared: Pick<Prepared, "processes" | "dataDirectory" | "crash">;
  say: (line: string) => void;
  onPoint?: (point: SeriesPoint) => void;
  clock?: Clock;
}

/** Distinct errors that are printed; the file has more. */
const shownErrorsMax = 3;

export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { config, run, say } = options;
  run.draw?.();
  const root = options.connect();
  const system = systemOf(options, root);
  const workers: Connector[] = [];
  try {
    await root.open(root.createWorker ? run.concurrency : undefined);
    const load = await run.load(system);
    if (load) say(`loaded ${load.rows} rows, ${Math.round(load.rows_per_s)} per second`);
    for (let index = 0; index < run.concurrency; index++) {
      workers.push(root.createWorker ? await root.createWorker({ index, total: run.concurrency }) : root);
    }
    const { measurement, cpu } = await measure(options, system, workers);
    const verify = await verifyRun(options, () => run.verify(system, measurement));
    for (const { message, count } of measurement.errorSamples.slice(0, shownErrorsMax)) {
      say(`failed ${count} times: ${message}`);
    }
    if (run.closingLine) console.log(run.closingLine(measurement));
    const result = runResult({
      ...measurement,
      errorSamples: measurement.errorSamples,
      elapsedSeconds: measurement.elapsedSeconds,
      successes: run.successes?.(measurement) ?? measurement.samples,
      warmupSec: warmupOf(run),
      load,
      verify,
      cpu: cpu?.report() ?? null,
      figures: run.figures?.(measurement),
    });
    await closeAll(config, root, workers, say);
    return result;
  } catch (error) {
    // What went wrong first counts; what cannot be closed after it does not.
    await closeAll(config, root, workers, () => {}).catch(() => undefined);
    throw error;
  }
}

const warmupOf = ({ limit }: WorkloadRun) => (limit.mode === "time" ? limit.warmupSec : 0);

export function systemOf(
  options: Pick<RunOptions, "connect" | "say"> & Partial<Pick<RunOptions, "ops" | "prepared" | "clock">>,
  root: Connector,
): SystemUnderTest {
  const { connect, say, ops = {}, prepared, clock = realClock } = options;
  return {
    ...{ root, connect, say, clock },
    ...(prepared?.crash && { crash: prepared.crash }),
    // Loading may take much longer than an operation of the run: no timeout.
    async run(kind, args = {}) {
      const perform = ops[kind];
      if (!perform) throw new Error(`${root.name} has no operation ${kind}`);
      return (await perform(root, args)) ?? {};
    },
  };
}

async function measure(
  { config, run, ops, prepared, say, onPoint }: RunOptions,
  system: SystemUnderTest,
  workers: Connector[],
): Promise<{ measurement: Measurement; cpu: CpuAccount | undefined }> {
  const { clock } = system;
  const { limit } = run;
  const warmupSec = warmupOf(run);
  const cpu = config.cpuAccounting
    ? new CpuAccount(
        prepared.processes(),
        prepared.dataDirectory,
        () => performance.eventLoopUtilization().idle,
        () => clock.now(),
      )
    : undefined;
  let hasStarted = false;
  const measurement = new Measurement({
    ...{ clock, workers, ops, warmupSec },
    ...(limit.mode === "time" && { seconds: limit.seconds }),
    opTimeoutMs: config.opTimeoutMs,
    minOpTimeoutMs: config.minOpTimeoutMs,
    tailSlackMs: config.tailSlackMs,
    ...(config.logErrors && { logError: (message: string) => say(`failed: ${message}`) }),
    onInterval: (point) => {
      if (point) {
        cpu?.sample(point.tSec >= warmupSec, point.samples);
        onPoint?.(point);
      } else if (!hasStarted) {
        cpu?.sample(warmupSec === 0, 0);
      }
      hasStarted = true;
    },
  });
  const generators = workers.map((_, worker) => run.generator(worker, workers.length));
  let beside: Promise<void> | undefined;
  await measurement.measure(() => {
    beside = run.beside?.(measurement, system);
    // Awaited when the run is over: until then, its failure waits.
    beside?.catch(() => undefined);
    if (run.drive) return run.drive(measurement, workers.length);
    const { rate, maxInflightPerWorker } = config;
    if (!run.pipelining) {
      const inFlight = maxInflightPerWorker ?? 1;
      return inTurn(measurement, generators, { limit, inFlight, rate, givesUp: true });
    }
    if (rate !== undefined) return whenDue(measurement, generators, rate);
    const { inFlight } = run.pipelining;
    if (inFlight !== undefined) return refilled(measurement, generators, inFlight);
    return inTurn(measurement, generators, { limit, inFlight: 1, givesUp: false });
  });
  await beside;
  const late = measurement.completedTotal - measurement.samples - measurement.misses;
  if (late > 0) say(`${late} operations succeeded after the window and do not count`);
  // A run that ends by itself is measured to its end, and so is a window shorter than an interval.
  if (limit.mode !== "time" || measurement.timeSeries.length === 0) {
    cpu?.sample(true, measurement.partialPoint.samples);
  }
  return { measurement, cpu };
}

/** Never rejects: a failed verification is a result. */
export async function verifyRun(
  { config, run, say }: Pick<RunOptions, "config" | "run" | "say">,
  judge: () => Promise<Verdict>,
): Promise<VerifyReport> {
  const nothing = { accounts: "0", total: "0", expected: "0", changed: "0" };
  if (!config.verifyTransactions && !run.alwaysVerifies) {
    return { ran: false, ok: true, ...nothing, message: "not asked for" };
  }
  const verdict = await judge().catch((error: unknown) => ({
    ok: false,
    message: error instanceof Error ? error.message : String(error),
  }));
  const report: VerifyReport = { ran: true, ...nothing, ...verdict };
  if (!report.ran) say(`Not verified: ${report.message}`);
  else if (report.ok) say(`Verification passed: ${report.strict?.message ?? report.message}`);
  else say(`Verification failed: ${report.message}`);
  return report;
}

/** Workers that cannot be closed are only mentioned; a root that cannot be closed ends the run. */
async function closeAll(config: Config, root: Connector, workers: Connector[], say: (line: string) => void) {
  for (const worker of workers) {
    if (worker === root) continue;
    try {
      await withTimeout(worker.close(), config.opTimeoutMs, "closing a worker");
    } catch (error) {
      say(`warning: ${error instanceof Error ? error.message : error}`);
    }
  }
  await withTimeout(root.close(), config.opTimeoutMs, `closing ${root.name}`);
}
