// The two sweeps (section 3.4): one connector after another, each point the mean of three runs.

import type { Config } from "../config";
import { NotRunning } from "../connectors/connector";
import { loadConnector } from "../connectors/registry";
import type { Prepared } from "../init/prepare";
import { sleep } from "../init/processes";
import type { Session } from "../init/session";
import type { Sweep } from "../opts";
import { formatInteger, formatLatency } from "../report/format";
import { progressPrinter } from "../report/progress";
import type { FoundTestCase } from "../tests/test_cases";
import { chooseCases, ExitCode, exitCodes } from "./bench";
import { sessionUntilIdle } from "./idle";
import { type RunResult, timestamp, writeJson } from "./results";
import { runOnce } from "./runner";
import { mean } from "./statistics";

const runsPerPoint = 3;
const pauseMilliseconds = 1000;

const scalars = [
  "tps",
  "samples",
  "p50_ms",
  "p95_ms",
  "p99_ms",
  "collision_ops",
  "collision_count",
  "collision_rate",
] as const;

type AverageResult = Record<(typeof scalars)[number], number> & { timeSeries: [] };

export interface SweepPoint {
  alpha?: number;
  concurrency?: number;
  avgResult: AverageResult;
}

/** The points of a sweep over alpha: in steps, both ends included. */
export function contentionPoints({ from, to, step }: Sweep): number[] {
  const points: number[] = [];
  for (let alpha = from; alpha <= to; alpha += step) points.push(alpha);
  return points;
}

/** The points of a sweep over the concurrency: by a factor, whole numbers. */
export function concurrencyPoints({ from, to, step }: Sweep): number[] {
  const points: number[] = [];
  for (let concurrency = from; concurrency <= to; concurrency *= step) points.push(concurrency);
  return points.map(Math.round);
}

export function averageOf(results: readonly RunResult[]): AverageResult {
  const averages = Object.fromEntries(
    scalars.map((key) => [key, mean(results.map((result) => result[key]))]),
  );
  return { ...(averages as Record<(typeof scalars)[number], number>), timeSeries: [] };
}

export async function sweep(
  config: Config,
  test: string,
  session: Session,
  kind: "contention" | "concurrency",
  range: Sweep,
): Promise<number> {
  const { cases, absent } = await chooseCases(config, test);
  for (const { system, reason } of absent) session.say(`${system}: ${reason}`);
  await sessionUntilIdle(config, session);
  const exit = new ExitCode();
  const results: object[] = [];
  for (const found of cases) {
    try {
      results.push(await sweepOne(config, test, session, kind, range, found, exit));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      session.say(`${found.testCase.system}: ${reason}`);
      if (error instanceof NotRunning) exit.add(config.connectors ? exitCodes.notRunning : exitCodes.ok);
      else exit.add(exitCodes.failed);
      if (!(error instanceof NotRunning) && !config.keepGoing) break;
    }
  }
  const { seconds, concurrency, accounts, alphas } = config;
  const file = {
    schemaVersion: 1,
    test,
    seconds,
    concurrency,
    accounts,
    alpha: alphas[0],
    tag: config.tag,
    results,
  };
  const path = writeJson(config.runsDir, `sweep-${test}-${timestamp(new Date())}.json`, file);
  session.say(`Wrote results to ${path}`);
  return exit.value;
}

async function sweepOne(
  config: Config,
  test: string,
  session: Session,
  kind: "contention" | "concurrency",
  range: Sweep,
  found: FoundTestCase,
  exit: ExitCode,
): Promise<object> {
  const { testCase, file } = found;
  const definition = await loadConnector(testCase.system);
  const prepared = await definition.prepare(session.context(config, test));
  try {
    const res: SweepPoint[] = [];
    for (const value of kind === "contention" ? contentionPoints(range) : concurrencyPoints(range)) {
      const load = kind === "contention" ? { alpha: value } : { concurrency: value };
      const runs: RunResult[] = [];
      for (let run = 1; run <= runsPerPoint; run++) {
        const result = await runPoint(config, session, found, prepared, definition.create, load);
        if (result.verify.ran && !result.verify.ok) exit.add(exitCodes.notVerified);
        runs.push(result);
        await sleep(pauseMilliseconds);
      }
      const avgResult = averageOf(runs);
      res.push({ ...load, avgResult });
      const at = Object.entries(load).map(([name, number]) => `${name} ${number}`);
      session.say(
        `${testCase.system}, ${at.join()}: ${formatInteger(avgResult.tps)} TPS, p50 ${formatLatency(avgResult.p50_ms)} ms`,
      );
      await sleep(pauseMilliseconds);
    }
    const { seconds, concurrency, accounts, alphas } = config;
    const label = testCase.label ?? file;
    return { system: testCase.system, label, file, seconds, concurrency, accounts, alpha: alphas[0], res };
  } finally {
    await prepared.stop();
  }
}

async function runPoint(
  config: Config,
  session: Session,
  { testCase }: FoundTestCase,
  prepared: Prepared,
  create: (config: Config, prepared: Prepared) => ReturnType<Parameters<typeof runOnce>[0]["connect"]>,
  load: { alpha?: number; concurrency?: number },
): Promise<RunResult> {
  const progress = progressPrinter(testCase.system, config.seconds);
  try {
    return await runOnce({
      config,
      testCase,
      alpha: load.alpha ?? config.alphas[0] ?? 1.5,
      concurrency: load.concurrency ?? config.concurrency,
      inFlight: config.benchPipelined ? config.maxInflightPerWorker : undefined,
      connect: () => create(config, prepared),
      serverProcesses: prepared.serverProcesses,
      say: session.say,
      onPoint: progress.point,
    });
  } finally {
    progress.end();
  }
}
