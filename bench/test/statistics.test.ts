// Figures of a series (chapter 09, section 6.3), and how they are printed.

import { describe, expect, it } from "vitest";
import { collapseAt, confidence95, deathAt, median, rangeStatistics } from "../src/core/statistics";
import { formatBytes, formatInteger, formatLatency } from "../src/report/format";
import { tested, vectors } from "./support/vectors";

interface SeriesVectors {
  series: {
    name: string;
    warmup_sec: number;
    points: { tSec: number; tps: number }[];
    tps_mean: number;
    tps_stdev: number;
    tps_cv_pct: number;
  }[];
}

const vectorsOfSeries = vectors<SeriesVectors>("09-statistics.json").series;

const point = (tSec: number, tps: number) => ({ tSec, tps, samples: tps, p50_ms: tSec, p99_ms: 2 * tSec });

describe("statistics", () => {
  it.each(tested(vectorsOfSeries))(
    "has the figures of the chapter: $name",
    ({ warmup_sec, points, ...expected }) => {
      const series = points.map(({ tSec, tps }) => point(tSec, tps));
      const { tps_mean, tps_stdev, tps_cv_pct } = expected;
      expect(rangeStatistics(series, warmup_sec)).toMatchObject({ tps_mean, tps_stdev, tps_cv_pct });
    },
  );

  it("counts samples, silent seconds and percentiles", () => {
    const series = vectorsOfSeries[0]!.points.map(({ tSec, tps }) => point(tSec, tps));
    expect(rangeStatistics(series, 30)).toMatchObject({
      samples: 400,
      duration_s: 4,
      tps_min: 90,
      tps_max: 110,
      zero_seconds: 0,
      p50_ms: 31.5,
      p99_ms_max: 66,
    });
    // The point without samples has no percentile.
    expect(rangeStatistics(series, 0, 30)).toMatchObject({ duration_s: 2, zero_seconds: 1, p50_ms: 2 });
  });

  it("is 0 for nothing", () => {
    expect(rangeStatistics([])).toMatchObject({ tps_mean: 0, tps_stdev: 0, p99_ms_max: 0, tps_min: 0 });
    expect(median([])).toBe(0);
  });

  it("sees a collapse and a death", () => {
    const dying = [...Array(10).keys()].map((i) => point(i + 1, 100));
    for (let second = 11; second <= 45; second++) dying.push(point(second, 0));
    expect(collapseAt(dying)).toBe(11);
    expect(deathAt(dying)).toBe(11);
    expect(deathAt(dying.slice(0, 39))).toBeNull();
    expect(collapseAt([point(1, 100), point(2, 5), point(3, 5), point(4, 100)])).toBeNull();
  });

  it("knows the confidence of a mean from three values on", () => {
    expect(confidence95([1, 2])).toBeNull();
    expect(confidence95([9, 10, 11])).toBeCloseTo(2.484, 3);
  });
});

describe("figures", () => {
  it("are printed as people read them", () => {
    expect(formatInteger(303919.6)).toBe("303,920");
    expect([7.394, 12.95, 0.0861, 1082.4, 999.6, 0].map(formatLatency)).toEqual([
      "7.39",
      "12.9",
      "0.0861",
      "1080",
      "1000",
      "0",
    ]);
    expect([999, 1000, 31_100_000].map(formatBytes)).toEqual(["999 B", "1.0 KB", "31.1 MB"]);
  });
});
