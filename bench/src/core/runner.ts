// One measured run of test-1 (section 5.2): pairs, connections, window, verification, close.

import { performance } from "node:perf_hooks";
import type { Config } from "../config";
import { type Connector, VerificationFailure, type VerifyTotals } from "../connectors/connector";
import type { TestCase } from "../scenario_recipes/test_case";
import { type Clock, realClock } from "./clock";
import { CpuAccount } from "./cpu";
import { Ledger } from "./ledger";
import { pairsOf } from "./pairs";
import type { RunResult, VerifyReport } from "./results";
import { rangeStatistics } from "./statistics";
import { MeasuredWindow, type SeriesPoint, type WindowResult } from "./window";

export interface RunOptions {
  config: Config;
  testCase: TestCase;
  alpha: number;
  concurrency: number;
  /** Operations in flight per worker; undefined: not pipelined. */
  inFlight: number | undefined;
  /** A fresh connector, not yet open. */
  connect: () => Connector;
  serverProcesses: number[] | null;
  dataDirectory?: string;
  say: (line: string) => void;
  onPoint?: (point: SeriesPoint) => void;
  /** Kills the server and starts it again on its data, for `--kill-after`. */
  crash?: () => Promise<void>;
  clock?: Clock;
}

const verifyMilliseconds = 60_000;

export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { config, testCase, alpha, concurrency, say } = options;
  const clock = options.clock ?? realClock;
  say(
    `${testCase.system}: ${config.seconds} s, ${concurrency} workers, ` +
      `${config.rate === undefined ? `${options.inFlight ?? 1} in flight each` : `${config.rate} operations/s`}, ` +
      `alpha ${alpha}, ${config.accounts} accounts`,
  );
  const pairs = pairsOf(config.precomputedTransferPairs, config.accounts, alpha);
  const root = options.connect();
  const workers: Connector[] = [];
  try {
    await root.open(root.createWorker ? concurrency : undefined);
    for (let index = 0; index < concurrency; index++) {
      workers.push(root.createWorker ? await root.createWorker({ index, total: concurrency }) : root);
    }
    const ledger = config.verifyStrict ? new Ledger(await balancesOf(root)) : undefined;
    const { window, cpu } = await measure(options, clock, workers, pairs, ledger);
    const verified = await verifyRun(options, clock, root, ledger);
    const result = resultOf(config, window, verified, cpu?.report() ?? null);
    await closeAll(config, root, workers, say);
    return result;
  } catch (error) {
    // What went wrong first counts; what cannot be closed after it does not.
    await closeAll(config, root, workers, () => {}).catch(() => undefined);
    throw error;
  }
}

async function measure(
  options: RunOptions,
  clock: Clock,
  workers: Connector[],
  pairs: ReturnType<typeof pairsOf>,
  ledger: Ledger | undefined,
): Promise<{ window: WindowResult; cpu: CpuAccount | undefined }> {
  const { config, say } = options;
  const cpu = config.cpuAccounting
    ? new CpuAccount(
        options.serverProcesses,
        options.dataDirectory,
        () => performance.eventLoopUtilization().idle,
        () => clock.now(),
      )
    : undefined;
  let hasStarted = false;
  const window = new MeasuredWindow({
    clock,
    workers,
    run: options.testCase.run,
    pairs,
    accounts: config.accounts,
    seconds: config.seconds,
    warmupSec: config.warmupSec,
    inFlight: options.inFlight,
    ...(config.rate !== undefined && { rate: config.rate }),
    opTimeoutMs: config.opTimeoutMs,
    minOpTimeoutMs: config.minOpTimeoutMs,
    tailSlackMs: config.tailSlackMs,
    ...(ledger && { ledger }),
    ...(config.logErrors && { logError: (message: string) => say(`failed: ${message}`) }),
    onInterval: (point) => {
      if (point) {
        cpu?.sample(point.tSec >= config.warmupSec, point.samples);
        options.onPoint?.(point);
      } else if (!hasStarted) {
        cpu?.sample(config.warmupSec === 0, 0);
      }
      hasStarted = true;
    },
  });
  const crashed =
    config.killAfterSec === undefined ? undefined : crashAfter(options, clock, config.killAfterSec, window);
  const result = await window.measure();
  await crashed;
  if (result.completedTotal > result.samples) {
    say(`${result.completedTotal - result.samples} operations succeeded after the window and do not count`);
  }
  // A window shorter than an interval has no point; what it used is measured all the same.
  if (result.timeSeries.length === 0) cpu?.sample(true, result.partialPoint.samples);
  return { window: result, cpu };
}

async function crashAfter(
  options: RunOptions,
  clock: Clock,
  seconds: number,
  window: MeasuredWindow,
): Promise<void> {
  if (!options.crash) throw new Error("--kill-after needs a server that the suite has started");
  await clock.sleep(seconds * 1000);
  options.say("killing the server");
  window.halt();
  await options.crash();
  options.say("the server is back");
}

async function balancesOf(root: Connector): Promise<BigInt64Array> {
  if (!root.balances) throw new Error(`${root.name} cannot read all balances: no --verify-strict`);
  return root.balances();
}

/** Never rejects: a failed verification is a result. */
export async function verifyRun(
  options: Pick<RunOptions, "config" | "say" | "connect">,
  clock: Clock,
  root: Connector,
  ledger: Ledger | undefined,
): Promise<VerifyReport> {
  const { config, say } = options;
  const report = (ran: boolean, ok: boolean, message: string, totals?: VerifyTotals): VerifyReport => ({
    ran,
    ok,
    accounts: String(totals?.accounts ?? 0n),
    total: String(totals?.total ?? 0n),
    expected: String((totals?.accounts ?? 0n) * BigInt(config.initialBalance)),
    changed: String(totals?.changed ?? 0n),
    message,
  });
  if (!config.verifyTransactions && !ledger) return report(false, true, "not asked for");
  // After a crash the old connections are dead.
  const reader = config.killAfterSec === undefined ? root : options.connect();
  try {
    if (reader !== root) await reader.open();
    const totals = await withTimeout(verifyPatiently(reader, clock), verifyMilliseconds, "the verification");
    if (totals.accounts === 0n) {
      // Servers that somebody else has started may not know what they were seeded with.
      const message = "the server was not told the initial balance, so nothing was verified";
      say(`Not verified: ${message}`);
      return report(false, true, message);
    }
    const verified = report(true, true, "the sum is right and balances have changed", totals);
    if (ledger) {
      verified.strict = ledger.check(
        await withTimeout(balancesOf(reader), verifyMilliseconds, "reading all balances"),
      );
      verified.ok = verified.strict.ok;
      if (!verified.ok) verified.message = verified.strict.message;
    }
    say(
      verified.ok
        ? `Verification passed: ${verified.strict?.message ?? verified.message}`
        : failed(verified.message),
    );
    return verified;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say(failed(message));
    return report(true, false, message, error instanceof VerificationFailure ? error.totals : undefined);
  } finally {
    if (reader !== root) await reader.close().catch(() => undefined);
  }
}

const verifyAttempts = 20;
const verifyPauseMilliseconds = 1000;

/**
 * A system that is still busy with operations that timed out may not be able to add up, e.g. for lack of connections or
 * by a conflict. It gets more attempts; a wrong sum is final.
 */
async function verifyPatiently(reader: Connector, clock: Clock): Promise<VerifyTotals> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await reader.verify();
    } catch (error) {
      if (error instanceof VerificationFailure || attempt === verifyAttempts) throw error;
      await clock.sleep(verifyPauseMilliseconds);
    }
  }
}

const failed = (message: string) => `Verification failed: ${message}`;

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

export async function withTimeout<T>(promise: Promise<T>, milliseconds: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

function resultOf(
  config: Config,
  window: WindowResult,
  verify: VerifyReport,
  cpu: ReturnType<CpuAccount["report"]> | null,
): RunResult {
  const all = window.histogram.summary();
  const steady = window.steadyHistogram.summary();
  const invalid: string[] = [];
  if (verify.ran && !verify.ok) invalid.push(`verification failed: ${verify.message}`);
  if (window.samples === 0) invalid.push("nothing succeeded");
  return {
    tps: window.samples / config.seconds,
    samples: window.samples,
    p50_ms: all.p50_ms,
    p95_ms: all.p95_ms,
    p99_ms: all.p99_ms,
    collision_ops: window.collisions.ops,
    collision_count: window.collisions.collisions,
    collision_rate: window.collisions.rate,
    timeSeries: window.timeSeries,
    partialPoint: window.partialPoint,
    steady: {
      warmup_sec: config.warmupSec,
      ...rangeStatistics(window.timeSeries, config.warmupSec),
      hist_p50_ms: steady.p50_ms,
      hist_p95_ms: steady.p95_ms,
      hist_p99_ms: steady.p99_ms,
      hist_p999_ms: steady.p999_ms,
      hist_max_ms: steady.max_ms,
    },
    completedTotal: window.completedTotal,
    errors: window.errors,
    timeouts: window.timeouts,
    unsent: window.unsent,
    unfinished: window.unfinished,
    noops: window.noops,
    skipped: window.skipped,
    errorSamples: window.errorSamples,
    p999_ms: all.p999_ms,
    max_ms: all.max_ms,
    mean_ms: all.mean_ms,
    verify,
    cpu,
    invalid,
    latencyHistogram: window.histogram.encode(),
    steadyLatencyHistogram: window.steadyHistogram.encode(),
  };
}
