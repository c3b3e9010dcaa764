// Tables, charts and pages of runs (chapter 09, sections 6.4 and 6.5).

import { describe, expect, it } from "vitest";
import { LatencyHistogram } from "../src/core/histogram";
import type { RunFile, RunResult } from "../src/core/result";
import { fileNameOf } from "../src/core/results";
import { averageOf, concurrencyPoints, contentionPoints } from "../src/core/sweep";
import { barsOf, htmlPage, originOf } from "../src/report/page";
import { publishedFigures, publishedHardware } from "../src/report/published";
import { summaryRows } from "../src/report/rows";
import { linearScale, logScale } from "../src/report/scale";
import { serverOf } from "../src/report/series";
import { statsTable } from "../src/report/stats";
import { summaryMarkdown } from "../src/report/tables";
import { runFile } from "./support/run_file";

describe("file names", () => {
  it("have test, connector, alpha, tag and time", () => {
    expect(fileNameOf(runFile({ system: "spacetimedb" }))).toBe(
      "test-1-spacetimedb-a1.5-2026-01-02T03-04-05-678Z.json",
    );
    expect(fileNameOf({ ...runFile({ system: "bun" }), tag: "after lunch/2" })).toBe(
      "test-1-bun-a1.5-after_lunch_2-2026-01-02T03-04-05-678Z.json",
    );
  });
});

describe("summary", () => {
  const rowOf = (files: RunFile[]) => summaryRows(files)[0]!;

  it("has the columns of the chapter, the fastest first", () => {
    const files = [
      runFile({ system: "slow", tps: 10 }),
      runFile({ system: "fast", tps: 303919.6, inFlight: 40 }),
    ];
    const lines = summaryMarkdown(files, []).split("\n");
    expect(lines[0]).toBe("## test-1, alpha 1.5 – full stacks: client, server and database");
    expect(lines[2]).toMatch(
      /^\| System \| clients \| pipelining \| max_pool \| TPS \| TPS Stddev \| p50 lat ms \| p99 lat ms \| max lat ms \| failed \| server \| isolation \| durability \|/,
    );
    expect(lines[4]).toMatch(/^\| fast \| 64 \| 40 \| N\/A \| 303,920 \|/);
    expect(lines[5]).toMatch(/^\| slow \| 64 \| off \| N\/A \| 10 \|/);
  });

  it("has the mean of several runs, and their confidence from three on", () => {
    const runs = [9, 10, 11].map((tps) => runFile({ tps }));
    expect(rowOf(runs)).toMatchObject({ runs: 3, tps: 10 });
    expect(rowOf(runs).tpsConfidence95).toBeCloseTo(2.484, 3);
    expect(rowOf(runs.slice(1)).tpsConfidence95).toBeNull();
  });

  it("marks what must not be believed", () => {
    const invalid = runFile({ system: "wrong", invalid: ["verification failed: sum"] });
    expect(summaryMarkdown([invalid], [])).toContain("invalid (100)");
    expect(summaryMarkdown([runFile({ clientBound: true })], [])).toContain("client-bound");
    const stalled = runFile({ zeroSeconds: 6 });
    expect(rowOf([stalled]).didNotComplete).toBe(true);
    expect(summaryMarkdown([stalled], [])).toContain("did not complete");
    expect(summaryMarkdown([runFile({})], [{ system: "gone", reason: "not running\nmore" }])).toContain(
      "- gone: not running\n",
    );
  });

  it("has the percentiles of all runs together, not the mean of percentiles", () => {
    const withLatencies = (milliseconds: number, count: number) => {
      const histogram = new LatencyHistogram();
      for (let i = 0; i < count; i++) histogram.record(milliseconds);
      const file = runFile({});
      file.results[0]!.res.steadyLatencyHistogram = histogram.encode();
      return file;
    };
    const row = rowOf([withLatencies(1, 980), withLatencies(100, 20)]);
    expect(row.p50_ms).toBeCloseTo(1, 1);
    expect(row.p99_ms).toBeCloseTo(100, 0);
    expect(row.max_ms).toBeCloseTo(100, 0);
  });

  it("has no latency for a row in which more than 1 % failed, and says how many did", () => {
    const failing = (timeouts: number) => {
      const file = runFile({ tps: 99 });
      file.results[0]!.res.timeouts = timeouts;
      return file;
    };
    const fine = summaryMarkdown([failing(9)], []);
    expect(fine).toContain("| 1.00 | 3.00 | 3.00 | 0.9 % |");
    const bad = summaryMarkdown([failing(11)], []);
    expect(bad).toContain("| – | – | – | 1.1 % |");
    expect(bad).toContain("no measurement of latency: more than 1 % failed");
  });

  it("marks runs on a busy machine", () => {
    const busy = { ...runFile({}), machineBusy: "other programs used 40 % of the machine" };
    expect(summaryMarkdown([busy], [])).toContain(
      "not to be published: other programs used 40 % of the machine",
    );
  });

  it("says whose server each row is", () => {
    const table = summaryMarkdown(
      ["spacetimedb", "sqlite_batched_rpc"].map((system) => runFile({ system })),
      [],
    );
    expect(table).toMatch(/\| spacetimedb \| .*\| Lightcone \|/);
    expect(table).toMatch(/\| sqlite_batched_rpc \| .*\| Node.js, SQLite in batches \|/);
    expect(serverOf("spacetimedb", "found at 127.0.0.1:3000")).toBe("server found at 127.0.0.1:3000");
  });

  it("does not put other classes into the table of full stacks", () => {
    const files = [runFile({ system: "stack" }), runFile({ system: "a_map", systemClass: "not-durable" })];
    const [first, second] = summaryMarkdown(files, []).split("## ").slice(1);
    expect(first).toContain("stack");
    expect(first).not.toContain("a_map");
    expect(second).toMatch(/not durable[\s\S]*a_map/);
  });

  it("says which transport a row had that could have another, and keeps their runs apart", () => {
    const over = (system: string, transport: string, tps: number) => {
      const file = runFile({ system, tps });
      return { ...file, fairness: { ...file.fairness, transport } };
    };
    const frames = "WebSocket, frames of many requests";
    const files = [
      over("sqlite_batched_rpc", frames, 20),
      over("sqlite_batched_rpc", "HTTP", 10),
      over("sqlite_rpc", "HTTP", 5),
    ];
    expect(summaryRows(files).map(({ tps }) => tps)).toEqual([20, 10, 5]);
    const [, , , , first, second, third] = summaryMarkdown(files, []).split("\n");
    expect(first).toMatch(/\| over WebSocket, frames of many requests \|$/);
    expect(second).toMatch(/\| over HTTP \|$/);
    expect(third).not.toContain("over");
  });

  it("compares one and many in flight with the latency that a closed loop must have", () => {
    const files = [runFile({ tps: 1000 }), runFile({ tps: 1000, inFlight: 40 })];
    expect(summaryMarkdown(files, [])).toMatch(
      /One and many in flight[\s\S]*\| 2560 \| 1,000 \| 1,000 \| .* \| 64.0 \| .* \| 2560 \|/,
    );
  });
});

describe("published figures", () => {
  it("stand beside the measured ones of the same load, with the ratio and the hardware", () => {
    const files = [
      runFile({ system: "lightcone", tps: 607_840, inFlight: 40 }),
      runFile({ system: "sqlite_rpc", tps: 3188, inFlight: 40 }),
      runFile({ system: "bun", tps: 2773 }),
    ];
    const table = summaryMarkdown(files, []).split("## Published and measured")[1]!;
    expect(table).toMatch(
      /\| lightcone \| 1.5 \| 40 \| 303,920 ± 4,712 \| 607,840 \| 2.00 \| 7.39 \| 1.00 \| Intel i9-14900K/,
    );
    expect(table).toMatch(/\| bun \| 1.5 \| 1 \| 2,773 ± 61 \| 2,773 \| 1.00 \|/);
    // Nothing was published for SQLite at this load.
    expect(table).not.toContain("sqlite_rpc");
    expect(summaryMarkdown([runFile({ system: "mock" })], [])).not.toContain("Published");
  });

  it("have all that a reader needs", () => {
    const figures = publishedFigures();
    expect(figures.length).toBeGreaterThan(400);
    for (const figure of figures) {
      expect(figure.value, JSON.stringify(figure)).toBeTypeOf("number");
      expect(
        figure.hardware === "unknown" || publishedHardware[figure.hardware],
        JSON.stringify(figure),
      ).toBeTruthy();
    }
    const keys = figures.map(({ test, variant, system, metric }) => `${test}|${variant}|${system}|${metric}`);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("stats.tsv", () => {
  it("has the columns of the chapter, sorted by alpha and system", () => {
    const fast = runFile({ system: "fast", tps: 303919.6 });
    const files = [
      { name: "a.json", file: runFile({ system: "slow", tps: 0.5 }) },
      { name: "b.json", file: fast },
      { name: "c.json", file: { ...runFile({ system: "zero" }), alpha: 0 } },
    ];
    const [header, ...rows] = statsTable(files, 3, 2)
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t"));
    expect(header!.join(" ")).toBe(
      "system alpha duration_s concurrency agg_tps agg_samples agg_p50_ms agg_p95_ms agg_p99_ms agg_collision_rate " +
        "ss_tps_mean ss_tps_median ss_tps_stdev ss_tps_cv_pct ss_p50_ms ss_p99_ms ss_zero_secs tail_tps_mean tail_p50_ms " +
        "tail_p99_ms ts_tps_min ts_tps_max ts_p99_max collapse_at_s death_at_s file",
    );
    expect(rows.map((row) => row[0])).toEqual(["zero", "fast", "slow"]);
    expect(rows[1]!.join(" ")).toBe(
      "fast 1.5 10 64 303919.6 3039196 1.00 2.00 3.00 0.0500 303919.6 303919.6 0.0000 0.0000 1.00 3.00 0 303919.6 1.00 3.00 303919.6 303919.6 3.00   b.json",
    );
    expect(rows[2]![4]).toBe("0.5000");
    // A run that is shorter than the warm-up has no steady state.
    expect(statsTable(files.slice(0, 1)).split("\n")[1]!.split("\t").slice(10, 17)).toEqual(
      Array(7).fill(""),
    );
  });
});

describe("scales", () => {
  it("have whole decades, or round steps from 0", () => {
    const log = logScale([12, 9000]);
    expect([log.at(10), log.at(100), log.at(10_000)]).toEqual([0, 1 / 3, 1]);
    expect(log.ticks.filter(({ isMajor }) => isMajor).map(({ label }) => label)).toEqual([
      "10",
      "100",
      "1k",
      "10k",
    ]);
    expect(logScale([]).at(1)).toBe(0);
    expect(linearScale([0, 47]).ticks.map(({ value }) => value)).toEqual([0, 10, 20, 30, 40, 50]);
  });
});

describe("bars", () => {
  const files = [9, 10, 11].map((tps) => runFile({ system: "spacetimedb", tps }));
  const [chart] = barsOf(summaryRows(files), originOf(files));

  it("are means of all runs, with the interval of the mean, and say so with commit and machine", () => {
    expect(chart).toContain("Mean of 3 runs; line: 95 % interval");
    expect(chart).toMatch(/class="error"/);
    expect(chart).toContain(">10<");
    expect(chart).toContain("commit abc; 2 × a processor");
  });

  it("have one colour and one label per server", () => {
    const rows = summaryRows(
      ["lightcone", "spacetimedb_rust", "sqlite_rpc"].map((system) => runFile({ system })),
    );
    const [bars] = barsOf(rows, "");
    expect(bars!.match(/>Lightcone</g)).toHaveLength(2);
    expect(bars!.match(/bar hue\d/g)!.sort()).toEqual(["bar hue0", "bar hue0", "bar hue5"]);
  });

  it("of one run do not call its spread more than that", () => {
    expect(barsOf(summaryRows([runFile({})]), "")[0]).toContain("One run each; line: spread of its seconds");
  });
});

describe("the page", () => {
  it("loads nothing, and keeps hostile names from becoming markup", () => {
    const file = runFile({ system: "<script>alert(1)</script>" });
    const page = htmlPage(
      [file, runFile({ system: "lightcone", inFlight: 40 })],
      [{ system: "bun", reason: "<b>" }],
    );
    expect(page).not.toMatch(/(src|href)=|@import|url\(/);
    expect(page).not.toContain("<script>alert");
    expect(page).toContain("40 in flight per connection");
    expect(page).toContain("&lt;b&gt;");
    expect(page.match(/<polyline/g)).toHaveLength(2 * 3);
  });
});

describe("sweeps", () => {
  it("have both ends", () => {
    expect(contentionPoints({ from: 0, to: 2, step: 0.5, fixed: 64 })).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(concurrencyPoints({ from: 1, to: 64, step: 4, fixed: 0 })).toEqual([1, 4, 16, 64]);
  });

  it("average the eight scalars and drop the series", () => {
    const average = averageOf([
      { tps: 1, samples: 2 },
      { tps: 3, samples: 4 },
    ] as RunResult[]);
    expect(average).toMatchObject({ tps: 2, samples: 3, timeSeries: [] });
    expect(Object.keys(average)).toHaveLength(9);
  });
});
