// The files of a run (sections 6.1 and 14.3): made, named, written and read.

import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Config, UsageError } from "../config";
import type { KindResult } from "../workloads/workload";
import { othersShareMost } from "./cpu";
import type { LatencyHistogram } from "./histogram";
import type {
  CpuReport,
  LoadReport,
  OperationResult,
  RepeatedResult,
  RunFile,
  RunResult,
  SeriesPoint,
  VerifyReport,
} from "./result";
import { mean, median, rangeStatistics, standardDeviation } from "./statistics";

export interface ResultParts {
  samples: number;
  misses: number;
  noops: number;
  errors: number;
  timeouts: number;
  unsent: number;
  unfinished: number;
  completedTotal: number;
  elapsedSeconds: number;
  /** What the throughput counts. */
  successes: number;
  errorSamples: RunResult["errorSamples"];
  timeSeries: SeriesPoint[];
  partialPoint: SeriesPoint;
  warmupSec: number;
  histogram: LatencyHistogram;
  steadyHistogram: LatencyHistogram;
  kinds: ReadonlyMap<string, KindResult>;
  load: LoadReport | undefined;
  verify: VerifyReport;
  cpu: CpuReport | null;
  /** Keys that have a meaning for one workload alone. */
  figures: Partial<RunResult> | undefined;
}

function operationResult(kind: KindResult, elapsedSeconds: number): OperationResult {
  const { count, ok, miss, errors, histogram } = kind;
  const tps = elapsedSeconds === 0 ? 0 : ok / elapsedSeconds;
  return { count, ok, miss, errors, tps, ...histogram.summary() };
}

/** Per unit of what the throughput counts, where an operation is another unit. */
function scaled(cpu: CpuReport | null, factor: number): CpuReport | null {
  if (!cpu || cpu.ops_per_cpu_s === null || cpu.ops_per_cpu_pct === null) return cpu;
  return { ...cpu, ops_per_cpu_s: cpu.ops_per_cpu_s * factor, ops_per_cpu_pct: cpu.ops_per_cpu_pct * factor };
}

export function runResult(parts: ResultParts): RunResult {
  const { samples, successes, elapsedSeconds, timeSeries, warmupSec, verify } = parts;
  const steady = parts.steadyHistogram.summary();
  const invalid: string[] = [];
  if (verify.ran && !verify.ok) invalid.push(`verification failed: ${verify.message}`);
  if (samples === 0) invalid.push("nothing succeeded");
  return {
    tps: elapsedSeconds === 0 ? 0 : successes / elapsedSeconds,
    samples,
    ...parts.histogram.summary(),
    ...{ collision_ops: 0, collision_count: 0, collision_rate: 0, skipped: 0 },
    timeSeries,
    partialPoint: parts.partialPoint,
    steady: {
      warmup_sec: warmupSec,
      ...rangeStatistics(timeSeries, warmupSec),
      hist_p50_ms: steady.p50_ms,
      hist_p95_ms: steady.p95_ms,
      hist_p99_ms: steady.p99_ms,
      hist_p999_ms: steady.p999_ms,
      hist_max_ms: steady.max_ms,
    },
    completedTotal: parts.completedTotal,
    errors: parts.errors,
    timeouts: parts.timeouts,
    unsent: parts.unsent,
    unfinished: parts.unfinished,
    noops: parts.noops,
    misses: parts.misses,
    errorSamples: parts.errorSamples,
    verify,
    cpu: scaled(parts.cpu, samples === 0 ? 1 : successes / samples),
    invalid,
    latencyHistogram: parts.histogram.encode(),
    steadyLatencyHistogram: parts.steadyHistogram.encode(),
    ops: Object.fromEntries(
      [...parts.kinds].map(([name, kind]) => [name, operationResult(kind, elapsedSeconds)]),
    ),
    load: parts.load ?? null,
    elapsed_s: elapsedSeconds,
    extras: {},
    ...parts.figures,
  };
}

/** The repetition with the median throughput stands for all. */
export function combined(each: readonly RunResult[], isRepeatable = true): RepeatedResult {
  const rates = each.map(({ tps }) => tps);
  const middle = median(rates);
  const nearest = [...each].sort((a, b) => Math.abs(a.tps - middle) - Math.abs(b.tps - middle))[0]!;
  return {
    ...nearest,
    invalid: [...new Set(each.flatMap(({ invalid }) => invalid))],
    repetitions: {
      tps_mean: mean(rates),
      tps_stdev: standardDeviation(rates),
      each: isRepeatable ? [...each] : [],
    },
  };
}

/** What other programs did during a run, if it was too much. */
export function busyReason(
  atStart: string | undefined,
  cpus: readonly (CpuReport | null)[],
): string | undefined {
  const shares = cpus.map((cpu) => cpu?.others_share ?? 0);
  const most = Math.max(0, ...shares);
  if (most > othersShareMost) return `other programs used ${(most * 100).toFixed(0)} % of the machine`;
  return atStart;
}

/** Operations that did not succeed, as a share of all that had an outcome or were due. */
export function failureShare(res: Pick<RunResult, "samples" | "errors" | "timeouts" | "unsent">): number {
  const failures = res.errors + res.timeouts + res.unsent;
  return failures === 0 ? 0 : failures / (failures + res.samples);
}

/** Above it a run is no measurement of latency: the slowest operations are those that failed. */
export const failureShareMost = 0.01;

/** `2026-01-02T03-04-05-678Z` */
export const timestamp = (date: Date): string => date.toISOString().replace(/[:.]/g, "-");

/** The part of `config` that goes into a file. */
export function configOfFile(config: Config): RunFile["config"] {
  const { benchPipelined, maxInflightPerWorker, rate } = config;
  return {
    ...(benchPipelined !== undefined && { benchPipelined }),
    ...(maxInflightPerWorker !== undefined && { maxInflightPerWorker }),
    poolMax: config.poolMax,
    stdbConfirmedReads: config.stdbConfirmedReads,
    stdbCompression: config.stdbCompression,
    warmupSec: config.warmupSec,
    ...(rate !== undefined && { rate }),
  };
}

export function fileNameOf(file: RunFile): string {
  const tag = file.tag === "" ? "" : `-${file.tag.replace(/[^A-Za-z0-9_.-]+/g, "_")}`;
  // Another experiment: a program that collects test-1-*.json must not find it.
  const experiment = file.load_generator === undefined ? "" : `${file.load_generator}-`;
  const alpha = file.alpha === null ? "" : `-a${file.alpha}`;
  const at = timestamp(new Date(file.startedAt));
  return `${experiment}${file.test}-${file.results[0].system}${alpha}${tag}-${at}.json`;
}

/** Makes the directory of the results if need be. */
export function ensureDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
    accessSync(directory, constants.W_OK);
  } catch (error) {
    throw new UsageError(`results cannot be written to ${directory}: ${(error as Error).message}`);
  }
}

/** Writes into the directory of the runs, which is made if need be; answers the path. */
export function writeJson(directory: string, name: string, value: unknown): string {
  ensureDirectory(directory);
  const path = join(directory, name);
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
  return path;
}

export interface NamedRun {
  path: string;
  directory: string;
  file: RunFile;
}

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new UsageError(`${path} is not JSON: ${(error as Error).message}`);
  }
}

/**
 * A run as it is written today: files of before, and of the published suite, say less of a result. What they leave out has
 * its usual meaning; no figure is changed.
 */
function completed(file: RunFile): RunFile {
  const results = file.results.map((entry) => {
    const res = entry.res as Partial<RepeatedResult> & RunResult;
    return {
      ...entry,
      parameters: entry.parameters ?? {},
      res: {
        ...{ unsent: 0, unfinished: 0, ops: {}, load: null, misses: 0, extras: {}, elapsed_s: file.seconds },
        repetitions: { tps_mean: res.tps, tps_stdev: 0, each: [] },
        ...res,
      },
    };
  });
  return { ...file, results: results as RunFile["results"] };
}

/**
 * Runs that are there: of files, and of those in directories, or in all directories below them. What is no result of a run,
 * e.g. a summary or a sweep, is passed over.
 */
export function readRuns(paths: readonly string[], isRecursive: boolean): NamedRun[] {
  const names = paths.flatMap((path) => {
    if (!existsSync(path)) throw new UsageError(`there is no ${path}`);
    if (!statSync(path).isDirectory()) return [path];
    const found = readdirSync(path, { recursive: isRecursive, encoding: "utf8" });
    return found
      .filter((name) => name.endsWith(".json"))
      .sort()
      .map((name) => join(path, name));
  });
  return [...new Set(names)].flatMap((path) => {
    const file = parse(path) as Partial<RunFile> | null;
    const entry = Array.isArray(file?.results) ? file.results[0] : undefined;
    if (!Array.isArray(entry?.res?.timeSeries)) return [];
    return [{ path, directory: dirname(path), file: completed(file as RunFile) }];
  });
}
