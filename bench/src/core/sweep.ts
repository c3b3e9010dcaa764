// The two sweeps (section 3.4): one connector after another, each point the mean of three runs.

import type { Config, Sweep } from "../config";
import { NotRunning } from "../connectors/connector";
import { sleep } from "../init/processes";
import type { Session } from "../init/session";
import { formatInteger, formatLatency } from "../report/format";
import { progressPrinter } from "../report/progress";
import type { TestCase } from "../tests/find";
import { inFlightOf, labelOf, transferRun, transferWorkload } from "../workloads/transfers/workload";
import { chooseCases, exitCodeOf, exitCodes } from "./bench";
import { sessionUntilIdle } from "./idle";
import type { RunResult } from "./result";
import { timestamp, writeJson } from "./results";
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

/** What one point of a sweep differs in from the settings. */
type Point = { alpha: number } | { concurrency: number };
type SweepPoint = Point & { avgResult: AverageResult };

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
  points: readonly Point[],
): Promise<number> {
  const { cases, absent } = chooseCases(config, test);
  for (const { system, reason } of absent) session.say(`${system}: ${reason}`);
  await sessionUntilIdle(config, session);
  const codes: number[] = [];
  const { seconds, concurrency, accounts, alphas, tag } = config;
  const settings = { seconds, concurrency, accounts, alpha: alphas[0] };
  const results: object[] = [];
  for (const testCase of cases) {
    const { system, label } = testCase;
    try {
      const res = await sweepOne(config, session, points, testCase, codes);
      results.push({ system, label, file: `${system}.ts`, ...settings, res });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      session.say(`${system}: ${reason}`);
      if (error instanceof NotRunning) codes.push(config.connectors ? exitCodes.notRunning : exitCodes.ok);
      else codes.push(exitCodes.failed);
      if (!(error instanceof NotRunning) && !config.keepGoing) break;
    }
  }
  const file = { schemaVersion: 1, test, ...settings, tag, results };
  const path = writeJson(config.runsDir, `sweep-${test}-${timestamp(new Date())}.json`, file);
  session.say(`Wrote results to ${path}`);
  return exitCodeOf(codes);
}

async function sweepOne(
  config: Config,
  session: Session,
  values: readonly Point[],
  testCase: TestCase,
  codes: number[],
): Promise<SweepPoint[]> {
  const { system } = testCase;
  const ops = await testCase.ops();
  const definition = await testCase.definition();
  const prepared = await definition.prepare(session.context(config, transferWorkload.name));
  try {
    const points: SweepPoint[] = [];
    for (const varied of values) {
      const { concurrency } = config;
      const load = { alpha: config.alphas[0]!, concurrency, inFlight: inFlightOf(config), ...varied };
      const runs: RunResult[] = [];
      for (let run = 1; run <= runsPerPoint; run++) {
        const progress = progressPrinter(system, config.seconds);
        const connect = () => definition.create(config, prepared);
        session.say(`${system} ${labelOf(config, load)}`);
        const result = await runOnce({
          ...{ config, ops, connect, prepared, say: session.say, onPoint: progress.point },
          run: transferRun(config, load),
        }).finally(() => progress.end());
        if (result.verify.ran && !result.verify.ok) codes.push(exitCodes.notVerified);
        runs.push(result);
        await sleep(pauseMilliseconds);
      }
      const avgResult = averageOf(runs);
      points.push({ ...varied, avgResult });
      const at = Object.entries(varied).map(([name, number]) => `${name} ${number}`);
      session.say(
        `${system}, ${at.join()}: ${formatInteger(avgResult.tps)} TPS, p50 ${formatLatency(avgResult.p50_ms)} ms`,
      );
      await sleep(pauseMilliseconds);
    }
    return points;
  } finally {
    await prepared.stop();
  }
}
