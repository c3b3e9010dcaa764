// The scoreboard: which runs count, and what stands beside what.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunFile } from "../src/core/result";
import { readRuns } from "../src/core/results";
import type { PublishedFigure } from "../src/report/published";
import { counterpartOf, publishedRows, targets } from "../src/report/scoreboard_compare";
import { type MeasuredRow, measurementsOf } from "../src/report/scoreboard_measured";
import { loadTitle, scoreboardPage } from "../src/report/scoreboard_page";
import { type Difference, runFile } from "./support/run_file";

const run = (directory: string, difference: Difference, rest: Partial<RunFile> = {}) => ({
  directory,
  file: { ...runFile(difference), ...rest },
});

/** A run of a workload, made from one of test-1. */
function workloadFile(
  test: string,
  difference: Difference,
  concurrency: number,
  parameters: Record<string, unknown>,
  rest: { ops?: Record<string, unknown>; extras?: Record<string, unknown> } = {},
): { directory: string; file: RunFile } {
  const file = runFile(difference);
  const entry = file.results[0]!;
  const res = {
    ...entry.res,
    ops: rest.ops ?? {},
    extras: rest.extras ?? {},
    repetitions: { tps_mean: entry.res.tps, tps_stdev: 0, each: [] },
  };
  const results = [{ ...entry, alpha: null, concurrency, parameters, res }];
  return {
    directory: "results/one",
    file: { ...file, test, concurrency, alpha: null, results } as unknown as RunFile,
  };
}

const row = (difference: Partial<MeasuredRow>): MeasuredRow => ({
  test: "test-1",
  load: "alpha=1.5 inflight=40",
  system: "lightcone",
  values: { rate: 1 },
  runs: 1,
  isDurable: true,
  notes: [],
  day: "2026-01-02",
  ...difference,
});

describe("runs", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "scoreboard-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("are found below a directory, or named; what is no run is passed over", () => {
    mkdirSync(join(directory, "inner"));
    const name = join(directory, "inner", "test-1-mock.json");
    writeFileSync(name, JSON.stringify(runFile({})));
    writeFileSync(join(directory, "summary.json"), '{"test":"test-1","rows":[]}');
    writeFileSync(join(directory, "notes.md"), "none");
    expect(readRuns([directory], true).map((found) => found.directory)).toEqual([join(directory, "inner")]);
    expect(readRuns([directory, name], true)).toHaveLength(1);
    expect(() => readRuns([join(directory, "missing")], true)).toThrow("there is no");
    writeFileSync(join(directory, "broken.json"), "{");
    expect(() => readRuns([directory], true)).toThrow("broken.json is not JSON");
  });

  it("of one load and directory are averaged, and invalid ones left out", () => {
    const runs = [
      run("a", { tps: 10 }),
      run("a", { tps: 30 }),
      run("a", { tps: 1000, invalid: ["verification failed"] }),
      run("a", { tps: 7, inFlight: 40 }),
    ];
    const { rows, invalidRuns } = measurementsOf(runs);
    expect(invalidRuns).toBe(1);
    expect(rows.map(({ load, runs, values }) => [load, runs, values.rate])).toEqual([
      ["alpha=1.5 inflight=1", 2, 20],
      ["alpha=1.5 inflight=40", 1, 7],
    ]);
    expect(rows[0]!.values).toMatchObject({ p50_ms: 1, p99_ms: 3, ops_per_cpu_pct: 0.5 });
    expect(rows[0]!.notes).toContain("2 runs");
  });

  it("of the newest directory count, load by load", () => {
    const late = { startedAt: "2026-02-03T00:00:00.000Z" };
    const runs = [
      run("old", { tps: 10 }),
      run("new", { tps: 20 }, late),
      run("old", { tps: 30, inFlight: 40 }),
    ];
    for (const order of [runs, [...runs].reverse()]) {
      const { rows, days, directories } = measurementsOf(order);
      expect(rows.map(({ values }) => values.rate).sort()).toEqual([20, 30]);
      expect(days).toEqual(["2026-01-02", "2026-02-03"]);
      expect(directories).toEqual(["new", "old"]);
    }
  });

  it("by the native load generator are a test of their own", () => {
    const { rows } = measurementsOf([
      run("a", { tps: 1 }),
      run("a", { tps: 2 }, { load_generator: "native" }),
    ]);
    expect(rows.map(({ test }) => test)).toEqual(["test-1", "test-1, native load generator"]);
    expect(counterpartOf({ ...rows[1]!, system: "bun" }, publishedRows())).toBeUndefined();
  });

  it("of workloads are named as the published loads are", () => {
    const loads = measurementsOf([
      workloadFile("content-crud", {}, 100, { tests: 10_000, mode: "batch" }),
      workloadFile("content-crud", {}, 100, { tests: 10_000, mode: "steady" }),
      workloadFile("ycsb-a", {}, 64, { records: 1000, seconds: 5 }),
      workloadFile("job-queue", {}, 16, { jobs: 2000 }),
      workloadFile("authed-load", {}, 50, { scenario: "mixed", seconds: 60 }),
      workloadFile("http-floor", {}, 50, { seconds: 15 }),
    ]).rows.map(({ load }) => load);
    const names = ["tests=10000 concurrency=100", "tests=10000 concurrency=100 steady", "run"];
    expect(loads).toEqual([...names, "concurrency=16", "mixed", "clients=50"]);
  });

  it("of serial tests have a row per operation, and one for reads inside the server", () => {
    const result = { ok: 1, mean_ms: 2, p99_ms: 4 };
    const extras = {
      rows_per_operation: { find_many: 1, create_many: 100 },
      engine_hot_us: { find_many: 10 },
    };
    const ops = { find_many: result, create_many: result };
    const { rows } = measurementsOf([
      workloadFile("data-layer", { system: "lightcone" }, 1, { iterations: 5 }, { ops, extras }),
    ]);
    expect(rows.map(({ load, values }) => [load, values.rate, values.mean_us])).toEqual([
      ["find_many cold", 500, 2000],
      ["find_many hot", 100_000, 10],
      ["create_many", 50_000, 20],
    ]);
    const against = rows.map((own) => counterpartOf(own, publishedRows())?.values.rate);
    expect(against).toEqual([1600, 83_721, 13_006]);
  });
});

describe("rows are compared with", () => {
  const published = publishedRows();
  const other = (difference: Partial<MeasuredRow>) => {
    const found = counterpartOf(row(difference), published);
    return found && [found.system, found.load, found.values.rate];
  };

  it("the same system under the same load, ours with what it speaks", () => {
    expect(other({})).toEqual(["spacetimedb", "alpha=1.5 inflight=40", 303_920]);
    expect(other({ system: "spacetimedb_rust" })?.[2]).toBe(265_541);
    expect(other({ system: "spacetimedb_rust", load: "alpha=0 inflight=40" })?.[2]).toBe(279_025);
    expect(other({ system: "bun", load: "alpha=0 inflight=1" })?.[2]).toBe(10_730);
    expect(other({ system: "node_memory_rpc" })).toBeUndefined();
    expect(other({ load: "alpha=1.5 inflight=1" })).toBeUndefined();
    expect(other({ load: "alpha=1.5 inflight=40 clients=8" })).toBeUndefined();
  });

  it("what third parties reported of the same system", () => {
    const load = "alpha=0 inflight=40";
    expect(other({ system: "sqlite_batched_rpc", load })?.[2]).toBe(163_075);
    expect(other({ system: "postgres_sproc_rpc", load })?.[2]).toBe(32_000);
    expect(other({ system: "postgres_sproc_rpc" })?.[2]).toBe(8000);
  });

  it("the best of the same durability elsewhere", () => {
    const ycsb = { test: "ycsb-a", load: "run" };
    expect(other(ycsb)?.[2]).toBe(38_024);
    expect(other({ ...ycsb, isDurable: false })?.[2]).toBe(82_740);
    expect(other({ ...ycsb, test: "ycsb-c" })?.[2]).toBe(103_370);
    expect(other({ ...ycsb, system: "mysql_direct" })?.[2]).toBe(2555);
    const content = { test: "content-crud", load: "tests=10000 concurrency=100" };
    expect(other({ ...content, system: "spacetimedb_http" })?.[2]).toBe(13_771);
    expect(other({ ...content, system: "node_rest_sqlite" })?.[2]).toBe(12_000);
    const jobs = { test: "job-queue", load: "concurrency=16" };
    expect([other(jobs)?.[2], other({ ...jobs, isDurable: false })?.[2]]).toEqual([4347, 30_685.2]);
    expect(other({ test: "job-lease", load: "concurrency=8" })?.[2]).toBe(31_658);
    expect(other({ test: "http-floor", load: "clients=50" })?.[2]).toBe(43_210);
    expect(other({ test: "authed-load", load: "mixed" })?.[2]).toBe(2384);
  });

  it("a figure in every row to beat", () => {
    for (const { test, load, metric, published: name } of targets) {
      const found = published.find(
        (own) => own.test === test && own.load === (name.load ?? load) && own.system === name.system,
      );
      expect(found?.values[metric], `${test} ${load} ${name.system} ${metric}`).toBeTypeOf("number");
    }
  });
});

describe("the page", () => {
  const figure = (system: string, metric: string, value: number): PublishedFigure => ({
    ...{ seed: "004", test: "test-1", variant: "alpha=1.5 inflight=40", unit: "", hardware: "H4" },
    ...{ system, metric, value },
  });
  const published = publishedRows([
    { ...figure("spacetimedb", "tps", 300), stddev: 5 },
    figure("convex", "tps", 2000),
  ]);

  it("has what was published and measured, told apart, with machines and ratios", () => {
    const measurements = measurementsOf([
      run("a", { system: "lightcone", tps: 450, inFlight: 40 }),
      run("a", { system: "spacetimedb", tps: 330, inFlight: 40 }),
    ]);
    const page = scoreboardPage(measurements, published, ["bench/results/a"]);
    expect(page).toContain("| H4 | Intel i9-14900K");
    expect(page).not.toContain("| H1 |");
    expect(page).toContain("are all this repository's server");
    expect(page).toContain("measured here: 2026-01-02, on a processor, 1 cores, 2 threads");
    const section = page.split("## test-1")[1]!.split("\n").slice(2);
    expect(section[0]).toBe(
      "| System | published transfers/s | on | measured here transfers/s | measured here p50 ms | measured here p99 ms | " +
        "measured here per CPU % | measured ÷ published | notes |",
    );
    expect(section.slice(2, 5)).toEqual([
      "| `lightcone` | – | – | 450 | 1.00 | 3.00 | 0.500 | 1.50 of spacetimedb |  |",
      "| `spacetimedb` | 300 ± 5.00 | H4 | 330 | 1.00 | 3.00 | 0.500 | 1.10 |  |",
      "| convex | 2,000 | H4 | – | – | – | – | – |  |",
    ]);
    expect(page).toContain("`lightcone` 450 (1.50)<br>`spacetimedb` 330 (1.10) |");
  });

  it("says loads in words", () => {
    expect(loadTitle("alpha=1.5 inflight=40")).toBe("alpha 1.5, 40 in flight");
    expect(loadTitle("alpha=0 inflight=1 clients=8")).toBe("alpha 0, 1 in flight, 8 clients");
    expect(loadTitle("tests=10000 concurrency=100")).toBe("10,000 tests, 100 at a time");
    expect(loadTitle("concurrency=1")).toBe("1 worker");
    expect(loadTitle("concurrency=16")).toBe("16 workers");
    expect(loadTitle("clients=50")).toBe("50 clients");
  });
});
