// One run of test-1 by the native load generator (crates/loadgen): the same transfers in the same order, so that no system
// is limited by a client in JavaScript. An experiment of its own (section 12, claim 8). The connector prepares the system
// and verifies it; only the load comes from another program.
//
// Other than in a run by the connectors' own clients, the warm-up lies before the window: every figure is without it.

import { join } from "node:path";
import { type Config, UsageError } from "../config";
import type { ConnectorDefinition, NativeTarget, Prepared } from "../connectors/definition";
import { prepareScriptCommand, runCommand } from "../init/commands";
import { verifyTransfers } from "../workloads/transfers/workload";
import { realClock } from "./clock";
import { CpuAccount, usageOf } from "./cpu";
import { LatencyHistogram } from "./histogram";
import type { RunResult, SeriesPoint, VerifyReport } from "./result";
import { runResult } from "./results";
import { type RunOptions, systemOf, verifyRun } from "./runner";

/** A connector that the native load generator cannot reach. */
export class NotNative extends Error {
  override readonly name = "NotNative";
}

/** How the native load generator reaches the systems of a connector; found out before anything is started for it. */
export function nativeTargetOf({
  key,
  nativeTarget,
}: ConnectorDefinition): (config: Config, prepared: Prepared) => NativeTarget {
  if (nativeTarget) return nativeTarget;
  throw new NotNative(`the native load generator does not speak the protocol of ${key}`);
}

let program: Promise<string> | undefined;

/** The program: `LIGHTCONE_LOADGEN`, the one beside `LIGHTCONE_BIN`, or built now. */
export function loadGeneratorProgram(say: (line: string) => void): Promise<string> {
  program ??= (async () => {
    const given = process.env["LIGHTCONE_LOADGEN"];
    if (!given && !process.env["LIGHTCONE_BIN"]) say("building the load generator (release)");
    const path = given ?? join((await prepareScriptCommand("loadgen")).trim(), "lightcone-loadgen");
    const help = await runCommand(path, ["--help"]).catch((error: Error) => {
      throw new Error(`${path} is not the load generator (LIGHTCONE_LOADGEN names it): ${error.message}`);
    });
    if (!help.includes("--json-lines")) throw new Error(`${path} is too old: build it from this tree`);
    return path;
  })();
  return program;
}

export interface NativeRunOptions extends Omit<RunOptions, "ops" | "clock"> {
  system: string;
  target: NativeTarget;
}

/** In an open loop calls start when they are due; so many per connection may wait for answers. */
const openLoopInFlight = 40;

/** Connections and operations in flight on each: as many in all as the suite's own clients have. */
export function connectionsOf(options: Pick<NativeRunOptions, "config" | "target" | "run">): {
  connections: number;
  inFlight: number;
} {
  const { config, target, run } = options;
  const { concurrency } = run;
  const inFlight = run.pipelining?.inFlight ?? (config.rate === undefined ? 1 : openLoopInFlight);
  const connections = Math.min(concurrency, target.connectionsMax ?? concurrency);
  return { connections, inFlight: Math.ceil((concurrency * inFlight) / connections) };
}

/** The program has no more threads than connections. */
const threadsOf = (config: Config, connections: number) => Math.min(config.loadGeneratorThreads, connections);

export function argumentsOf(options: NativeRunOptions): string[] {
  const { config, target } = options;
  const { connections, inFlight } = connectionsOf(options);
  const values: Record<string, string | number> = {
    target: target.kind,
    connections,
    "in-flight": inFlight,
    seconds: config.seconds - config.warmupSec,
    "warmup-seconds": config.warmupSec,
    accounts: config.accounts,
    "initial-balance": config.initialBalance,
    alpha: options.run.alpha ?? 0,
    pairs: config.precomputedTransferPairs,
    threads: threadsOf(config, connections),
    ...(config.rate !== undefined && { rate: config.rate }),
  };
  return [
    ...Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]),
    ...(target.arguments ?? []),
    ...(config.verifyStrict && target.kind !== "convex" ? ["--verify-strict"] : []),
    "--json-lines",
    "--quiet",
  ];
}

/** What the load generator tells of one second. */
interface NativeSecond {
  second: number;
  transfers: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

/** Its report at the end, as far as it is used here. */
export interface NativeReport {
  transfers: number;
  noops: number;
  retries: number;
  refused: Record<string, number>;
  failed: Record<string, number>;
  disconnects: Record<string, number>;
  unanswered: number;
  unfinished: number;
  unsent: number;
  skipped: number;
  strict: string | null;
}

interface NativeRun {
  report: NativeReport;
  /** Microseconds and how often. */
  histogram: [number, number][];
}

type NativeLine =
  | "started"
  | { second: NativeSecond }
  | { report: NativeReport; histogram_us: [number, number][] };

export async function runNative(options: NativeRunOptions): Promise<RunResult> {
  const { config, system, say, run } = options;
  if (config.seconds <= config.warmupSec) throw new UsageError("--seconds must be above --warmup-sec");
  const { connections, inFlight } = connectionsOf(options);
  const path = await loadGeneratorProgram(say);
  say(
    `${system}: native load generator, ${connections} connections for ${run.concurrency} clients, ` +
      `${config.rate === undefined ? `${inFlight} in flight each` : `${config.rate} operations/s`}`,
  );
  const root = options.connect();
  try {
    await root.open();
    const series: SeriesPoint[] = [];
    const { run: native, cpu } = await drive(options, path, series);
    const verify = await verifyRun(options, () => verifyTransfers(config, systemOf(options, root)));
    return resultOf(config, series, native, withStrict(verify, native.report, say), cpu);
  } finally {
    await root.close().catch(() => undefined);
  }
}

/** Runs the program; fills `series` as its seconds pass. */
async function drive(
  options: NativeRunOptions,
  path: string,
  series: SeriesPoint[],
): Promise<{ run: NativeRun; cpu: CpuAccount | undefined }> {
  const { config, target } = options;
  let cpu: CpuAccount | undefined;
  let run: NativeRun | undefined;
  const take = (line: NativeLine) => {
    if (line === "started") cpu?.sample(true, 0);
    else if ("second" in line) {
      const point = pointOf(config, line.second);
      cpu?.sample(true, point.samples);
      series.push(point);
      options.onPoint?.(point);
    } else run = { report: line.report, histogram: line.histogram_us };
  };
  const failure = await runCommand(path, argumentsOf(options), {
    // The address may have a password: not for the list of processes.
    environment: { LIGHTCONE_LOADGEN_URL: target.url },
    onStart: (pid) => {
      if (config.cpuAccounting) cpu = cpuAccountOf(options, pid);
    },
    onLine: (line) => take(JSON.parse(line) as NativeLine),
  }).then(
    () => "it ended without a report",
    (error: Error) => error.message,
  );
  // One that failed its own check has a report all the same.
  if (!run) throw new Error(`the load generator: ${failure}`);
  return { run, cpu };
}

function cpuAccountOf(options: NativeRunOptions, pid: number): CpuAccount {
  const threads = threadsOf(options.config, connectionsOf(options).connections);
  const now = () => realClock.now();
  const clientUsage = () => usageOf([pid]);
  // What its threads did not compute, they waited.
  const idleMilliseconds = () => now() - (clientUsage().cpuSeconds * 1000) / threads;
  return new CpuAccount(
    options.prepared.processes(),
    options.prepared.dataDirectory,
    idleMilliseconds,
    now,
    clientUsage,
  );
}

function pointOf(
  { warmupSec }: Config,
  { second, transfers, p50_ms, p95_ms, p99_ms }: NativeSecond,
): SeriesPoint {
  const counted = { tps: transfers, samples: transfers, dtMs: 1000 };
  return { tSec: warmupSec + second, ...counted, p50_ms, p95_ms, p99_ms };
}

/** The load generator has compared every account with what was acknowledged. */
function withStrict(
  verify: VerifyReport,
  { strict, unanswered }: NativeReport,
  say: (line: string) => void,
): VerifyReport {
  if (strict === null) return verify;
  const ok = strict === "passed";
  const message = ok ? `every account is right, ${unanswered} outcomes unknown` : strict;
  const wrongAccounts = Number(/(\d+) accounts are wrong/.exec(strict)?.[1] ?? 0);
  say(`Strict verification ${ok ? "passed" : "FAILED"}: ${message}`);
  return {
    ...verify,
    ran: true,
    ok: verify.ok && ok,
    message: verify.ok && !ok ? message : verify.message,
    strict: { ok, wrongAccounts, unknownOperations: unanswered, message },
  };
}

export function resultOf(
  config: Config,
  timeSeries: SeriesPoint[],
  { report, histogram }: NativeRun,
  verify: VerifyReport,
  cpu: CpuAccount | undefined,
): RunResult {
  const elapsedSeconds = config.seconds - config.warmupSec;
  const latencies = new LatencyHistogram();
  for (const [microseconds, count] of histogram) latencies.recordCount(microseconds, count);
  const kinds = [report.refused, report.failed, report.disconnects];
  const errorSamples = kinds.flatMap((counts) =>
    Object.entries(counts).map(([message, count]) => ({ message, count })),
  );
  const rest = report.transfers - timeSeries.reduce((sum, point) => sum + point.samples, 0);
  const restMs = Math.max(0, (elapsedSeconds - timeSeries.length) * 1000);
  const { p50_ms, p95_ms, p99_ms } = latencies.summary();
  return runResult({
    samples: report.transfers,
    successes: report.transfers,
    completedTotal: report.transfers,
    elapsedSeconds,
    misses: 0,
    noops: report.noops,
    errors: errorSamples.reduce((sum, { count }) => sum + count, 0),
    timeouts: report.unanswered,
    unsent: report.unsent,
    unfinished: report.unfinished,
    errorSamples,
    timeSeries,
    partialPoint: {
      tSec: config.seconds,
      tps: restMs < 1 ? 0 : (rest * 1000) / restMs,
      ...{ p50_ms, p95_ms, p99_ms },
      samples: rest,
      dtMs: restMs,
    },
    warmupSec: config.warmupSec,
    // The warm-up is in neither, and collisions are not counted by this program.
    histogram: latencies,
    steadyHistogram: latencies,
    kinds: new Map(),
    load: undefined,
    verify,
    cpu: cpu?.report() ?? null,
    figures: { skipped: report.skipped },
  });
}
