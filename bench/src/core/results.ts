// The files of a run (section 6.1): keys of the published format, and ours beside them.

import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, UsageError } from "../config";
import type { Fairness } from "../connectors/connector";
import { type CpuReport, othersShareMost } from "./cpu";
import type { Hardware } from "./hardware";
import type { RangeStatistics } from "./statistics";
import type { SeriesPoint } from "./window";

export interface VerifyReport {
  ran: boolean;
  ok: boolean;
  accounts: string;
  total: string;
  expected: string;
  changed: string;
  message: string;
  strict?: { ok: boolean; wrongAccounts: number; unknownOperations: number; message: string };
}

export interface SteadyStatistics extends RangeStatistics {
  warmup_sec: number;
  hist_p50_ms: number;
  hist_p95_ms: number;
  hist_p99_ms: number;
  hist_p999_ms: number;
  hist_max_ms: number;
}

/** The eight scalars that the published format has, and ours. */
export interface RunResult {
  tps: number;
  samples: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  collision_ops: number;
  collision_count: number;
  collision_rate: number;
  timeSeries: SeriesPoint[];
  partialPoint: SeriesPoint;
  steady: SteadyStatistics;
  completedTotal: number;
  errors: number;
  timeouts: number;
  /** Open loop: operations that were due and not started before the end. Absent in older files. */
  unsent?: number;
  /** Operations without an answer when the window ended: in the latencies with their age. Absent in older files. */
  unfinished?: number;
  noops: number;
  skipped: number;
  errorSamples: { message: string; count: number }[];
  p999_ms: number;
  max_ms: number;
  mean_ms: number;
  verify: VerifyReport;
  cpu: CpuReport | null;
  /** Why this run must not be compared with others; empty for a good one. */
  invalid: string[];
  latencyHistogram: string;
  /** The same without the warm-up. Absent in older files. */
  steadyLatencyHistogram?: string;
}

export interface RunEntry {
  system: string;
  label: string;
  file: string;
  seconds: number;
  concurrency: number;
  accounts: number;
  alpha: number;
  res: RunResult;
}

export interface RunFile {
  schemaVersion: 1;
  /** Absent if the connectors' own clients made the load. */
  load_generator?: "native";
  test: string;
  seconds: number;
  concurrency: number;
  accounts: number;
  alpha: number;
  run: number;
  runs: number;
  tag: string;
  startedAt: string;
  /** Why the machine was not idle; such a run is marked and never published. */
  machineBusy?: string;
  config: {
    benchPipelined?: boolean;
    maxInflightPerWorker?: number;
    poolMax: number;
    stdbConfirmedReads: boolean;
    stdbCompression: string;
    warmupSec: number;
    /** Open loop: operations per second that were due. */
    rate?: number;
  };
  fairness: Fairness & {
    pipelined: boolean;
    inflight: number;
    /** Round trip to the server that the client talks to, by a TCP handshake. */
    rttMs?: number | null;
  };
  software: Record<string, string>;
  hardware: Hardware;
  results: RunEntry[];
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
  const failures = res.errors + res.timeouts + (res.unsent ?? 0);
  return failures === 0 ? 0 : failures / (failures + res.samples);
}

/** Above it a run is no measurement of latency: the slowest operations are those that failed. */
export const failureShareMost = 0.01;

/** `2026-01-02T03-04-05-678Z` */
export const timestamp = (date: Date): string => date.toISOString().replace(/[:.]/g, "-");

/** The part of `config` that goes into a file. */
export function configOfFile(config: Config): RunFile["config"] {
  return {
    ...(config.benchPipelined === undefined ? {} : { benchPipelined: config.benchPipelined }),
    ...(config.maxInflightPerWorker === undefined
      ? {}
      : { maxInflightPerWorker: config.maxInflightPerWorker }),
    poolMax: config.poolMax,
    stdbConfirmedReads: config.stdbConfirmedReads,
    stdbCompression: config.stdbCompression,
    warmupSec: config.warmupSec,
    ...(config.rate === undefined ? {} : { rate: config.rate }),
  };
}

export function fileNameOf(file: RunFile): string {
  const tag = file.tag === "" ? "" : `-${file.tag.replace(/[^A-Za-z0-9_.-]+/g, "_")}`;
  const system = file.results[0]?.system ?? "none";
  // Not to be found by whoever collects test-1-*.json: it is another experiment.
  const experiment = file.load_generator === undefined ? "" : `${file.load_generator}-`;
  return `${experiment}${file.test}-${system}-a${file.alpha}${tag}-${timestamp(new Date(file.startedAt))}.json`;
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
