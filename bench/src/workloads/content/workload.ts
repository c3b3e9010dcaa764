// content-crud (section 16): each test creates a record, reads, changes, reads, deletes and reads it again.

import { type Config, unlessGiven } from "../../config";
import type { LatencyHistogram } from "../../core/histogram";
import type { Engine, Operation, Outcome, Verdict, Workload, WorkloadRun } from "../workload";

const defaultTests = 10_000;
const defaultConcurrency = 100;
const stepsPerTest = 6;

export interface Content {
  title: string;
  body: string;
  author: string;
  status: string;
  data?: { run_id: number; created_at: string };
}

export type ContentChange = Pick<Content, "title" | "body" | "status">;

export function contentOf(runId: number, hasData: boolean): Content {
  return {
    title: `Smoke Test Content ${runId}`,
    body: `This is smoke test content number ${runId}`,
    author: "Smoke Tester",
    status: "draft",
    ...(hasData && { data: { run_id: runId, created_at: new Date().toISOString() } }),
  };
}

export function changeOf(content: Content): ContentChange {
  return { title: `${content.title} updated`, body: `${content.body} updated`, status: "published" };
}

type Perform = (operation: Operation) => Promise<Outcome | undefined>;

/** One test; whether all of its steps had the expected outcome. What cannot be done any more is left out. */
export async function runTest(perform: Perform, runId: number, hasData: boolean): Promise<boolean> {
  const content = contentOf(runId, hasData);
  const created = await perform({ kind: "create", args: { content } });
  if (!created) return false;
  const id = created.found as string;
  const change = changeOf(content);
  const steps: Operation[] = [
    { kind: "read", args: { id, expected: content } },
    { kind: "update", args: { id, change } },
    { kind: "read", args: { id, expected: { ...content, ...change } } },
    { kind: "delete", args: { id } },
    { kind: "read", args: { id, expected: null } },
  ];
  let isGood = true;
  for (const step of steps) isGood = (await perform(step)) !== undefined && isGood;
  return isGood;
}

const elapsed = (histogram: LatencyHistogram) => ({
  count: histogram.count,
  min: histogram.percentile(0),
  max: histogram.percentile(100),
  avg: histogram.summary().mean_ms,
  p90: histogram.percentile(90),
  p95: histogram.percentile(95),
  p99: histogram.percentile(99),
});

/** Of connections that are told by the server how long it took. */
function serverElapsed({ connections }: Engine): { count: number; avg: number } {
  const timed = connections.flatMap((connection) => (connection as Partial<ServerTimed>).serverElapsed ?? []);
  const sum = (of: (one: ServerTimed["serverElapsed"]) => number) =>
    timed.reduce((total, one) => total + of(one), 0);
  const count = sum((one) => one.count);
  return { count, avg: count === 0 ? 0 : sum((one) => one.sumMilliseconds) / count };
}

interface ServerTimed {
  serverElapsed: { count: number; sumMilliseconds: number };
}

function settingsOf(config: Config) {
  const parallel = Number(process.env["TEST_PARALLEL"]);
  const isParallel = parallel > 0 && Number.isInteger(parallel);
  return {
    tests: config.tests ?? defaultTests,
    concurrency: unlessGiven(config, "concurrency", isParallel ? parallel : defaultConcurrency),
    hasData: process.env["TEST_DATA_FIELD"] !== "false",
    mode: config.crudMode,
  };
}

function createRun(config: Config): WorkloadRun {
  const { tests, concurrency, hasData, mode } = settingsOf(config);
  let next = 0;
  let succeeded = 0;

  const one = async (measurement: Engine, worker: number): Promise<void> => {
    const isGood = await runTest((operation) => measurement.perform(worker, operation), next++, hasData);
    if (isGood) succeeded++;
  };

  /** All tests of a batch begin together, and the next batch waits for the last of them. */
  const batches = async (measurement: Engine, workers: number): Promise<void> => {
    while (next < tests) {
      const size = Math.min(workers, tests - next);
      await Promise.all(Array.from({ length: size }, (_, worker) => one(measurement, worker)));
    }
  };

  const steady = async (measurement: Engine, workers: number): Promise<void> => {
    const loop = async (worker: number) => {
      while (next < tests) await one(measurement, worker);
    };
    await Promise.all(Array.from({ length: workers }, (_, worker) => loop(worker)));
  };

  const report = (measurement: Engine) => {
    const kind = (name: string) => {
      const found = measurement.kinds.get(name);
      return found ? elapsed(found.histogram) : null;
    };
    return {
      timestamp: new Date().toISOString(),
      level: "INFO",
      message: "Finished performance test",
      TEST_LIMIT: tests,
      TEST_PARALLEL: concurrency,
      N_BATCHES: Math.ceil(tests / concurrency),
      testCount: { error: tests - succeeded, success: succeeded, total: tests },
      testElapsed: measurement.elapsedSeconds * 1000,
      createElapsed: kind("create"),
      readElapsed: kind("read"),
      updateElapsed: kind("update"),
      deleteElapsed: kind("delete"),
      requestElapsed: elapsed(measurement.histogram),
      serverElapsed: serverElapsed(measurement),
      requests: {
        totalCount: stepsPerTest * tests,
        countPerSecond: measurement.samples / measurement.elapsedSeconds,
      },
      elapsedTotal: measurement.elapsedSeconds * 1000,
    };
  };

  return {
    parameters: { tests, mode, ...(hasData ? {} : { data: false }) },
    limit: { mode: "drain" },
    concurrency,
    load: async ({ run }) => {
      await run("clear");
      return undefined;
    },
    generator: () => ({ next: () => undefined }),
    drive: mode === "batch" ? batches : steady,
    verify: async (): Promise<Verdict> => ({
      ok: succeeded === tests,
      message: `${succeeded} of ${tests} tests had the expected outcome in all of their steps`,
    }),
    figures: (measurement) => ({ extras: { report: report(measurement) } }),
    closingLine: (measurement) => JSON.stringify(report(measurement)),
  };
}

export const contentWorkload: Workload = {
  name: "content-crud",
  samples: 1,
  runs: (config) => {
    const { tests, concurrency } = settingsOf(config);
    return [{ label: `with ${tests} tests, ${concurrency} at a time`, create: () => createRun(config) }];
  },
};
