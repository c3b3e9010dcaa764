// Figures of a time series (section 6.3), the same as those of the published post-processing.

import type { RangeStatistics, SeriesPoint } from "./result";

type Point = Pick<SeriesPoint, "tSec" | "tps" | "p50_ms" | "p99_ms" | "samples">;

export const median = (values: readonly number[]): number => {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Of a sample (n-1); 0 for fewer than two values. */
export const standardDeviation = (values: readonly number[]): number => {
  if (values.length < 2) return 0;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
};

/** The points with `from <= tSec < to`. */
export function rangeStatistics(
  series: readonly Point[],
  from = Number.NEGATIVE_INFINITY,
  to = Number.POSITIVE_INFINITY,
): RangeStatistics {
  const points = series.filter((point) => point.tSec >= from && point.tSec < to);
  const rates = points.map((point) => point.tps);
  const busy = points.filter((point) => point.samples > 0);
  const samples = points.reduce((sum, point) => sum + point.samples, 0);
  const tps_mean = points.length === 0 ? 0 : samples / points.length;
  const tps_stdev = standardDeviation(rates);
  return {
    samples,
    duration_s: points.length,
    tps_mean,
    tps_min: rates.length === 0 ? 0 : Math.min(...rates),
    tps_max: rates.length === 0 ? 0 : Math.max(...rates),
    tps_median: median(rates),
    tps_stdev,
    tps_cv_pct: tps_mean === 0 ? 0 : (tps_stdev / tps_mean) * 100,
    zero_seconds: points.filter((point) => point.tps === 0).length,
    p50_ms: median(busy.map((point) => point.p50_ms)),
    p99_ms: median(busy.map((point) => point.p99_ms)),
    p99_ms_max: Math.max(0, ...busy.map((point) => point.p99_ms)),
  };
}

/** The second at which throughput stays below a tenth of its peak for three points; null if it never does. */
export function collapseAt(series: readonly Point[]): number | null {
  const low = Math.max(0, ...series.map((point) => point.tps)) / 10;
  return firstRun(series, 3, (point) => point.tps < low, 2);
}

/** The second from which nothing happens for 30 points; null if that never is. */
export const deathAt = (series: readonly Point[]): number | null =>
  firstRun(series, 30, (point) => point.tps === 0, 29);

function firstRun(series: readonly Point[], length: number, holds: (point: Point) => boolean, back: number) {
  let run = 0;
  for (const point of series) {
    run = holds(point) ? run + 1 : 0;
    if (run === length) return point.tSec - back;
  }
  return null;
}

/** Student's t for 95 % on both sides, by degrees of freedom 1 to 30; beyond, the normal distribution is close. */
const studentT95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** Half the width of the 95 % confidence interval of the mean; null for fewer than three values. */
export function confidence95(values: readonly number[]): number | null {
  if (values.length < 3) return null;
  const t = studentT95[values.length - 2] ?? 1.96;
  return (t * standardDeviation(values)) / Math.sqrt(values.length);
}
