// The file of a run of a workload (section 14.3), and the table of all of them.

import type { Absence } from "../core/bench";
import type { CpuReport } from "../core/cpu";
import { failureShare, failureShareMost, type RunFile, type RunResult } from "../core/results";
import { mean, median, rangeStatistics, standardDeviation } from "../core/statistics";
import { formatBytes, formatInteger, formatLatency, formatPercent, transportNotes } from "../report/format";
import type { KindResult, Measurement } from "./measurement";
import { operationTable } from "./operation_table";
import type { LoadReport, Verdict } from "./workload";

export interface OperationResult {
  count: number;
  ok: number;
  miss: number;
  errors: number;
  tps: number;
  mean_ms: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  p999_ms: number;
  max_ms: number;
}

/** One repetition. */
export interface SampleResult extends RunResult {
  ops: Record<string, OperationResult>;
  load: LoadReport | null;
  elapsed_s: number;
  misses: number;
  extras: Record<string, unknown>;
}

export interface WorkloadEntry {
  system: string;
  label: string;
  file: string;
  seconds: number;
  concurrency: number;
  accounts: number;
  alpha: null;
  parameters: Record<string, number | string | boolean>;
  /** The repetition with the median throughput, and all of them. */
  res: SampleResult & { repetitions: { tps_mean: number; tps_stdev: number; each: SampleResult[] } };
}

export interface WorkloadFile extends Omit<RunFile, "alpha" | "results"> {
  alpha: null;
  results: WorkloadEntry[];
}

function operationResult(kind: KindResult, elapsedSeconds: number): OperationResult {
  const { count, ok, miss, errors, histogram } = kind;
  return {
    count,
    ok,
    miss,
    errors,
    tps: elapsedSeconds === 0 ? 0 : ok / elapsedSeconds,
    ...histogram.summary(),
  };
}

export interface SampleParts {
  measurement: Measurement;
  warmupSec: number;
  load: LoadReport | undefined;
  verdict: Verdict | undefined;
  cpu: CpuReport | null;
  /** What the throughput counts. */
  successes: number;
  extras: Record<string, unknown>;
}

/** Per unit of what the throughput counts, where an operation is another unit. */
function scaled(cpu: CpuReport | null, factor: number): CpuReport | null {
  if (!cpu || cpu.ops_per_cpu_s === null || cpu.ops_per_cpu_pct === null) return cpu;
  return { ...cpu, ops_per_cpu_s: cpu.ops_per_cpu_s * factor, ops_per_cpu_pct: cpu.ops_per_cpu_pct * factor };
}

export function sampleResult(parts: SampleParts): SampleResult {
  const { measurement, warmupSec, load, verdict, cpu, successes, extras } = parts;
  const elapsed_s = measurement.elapsedSeconds;
  const all = measurement.histogram.summary();
  const steady = measurement.steadyHistogram.summary();
  const invalid: string[] = [];
  if (verdict && !verdict.ok) invalid.push(`verification failed: ${verdict.message}`);
  if (measurement.samples === 0) invalid.push("nothing succeeded");
  const errorSamples = [...measurement.errorSamples].map(([message, count]) => ({ message, count }));
  return {
    tps: elapsed_s === 0 ? 0 : successes / elapsed_s,
    samples: measurement.samples,
    p50_ms: all.p50_ms,
    p95_ms: all.p95_ms,
    p99_ms: all.p99_ms,
    collision_ops: 0,
    collision_count: 0,
    collision_rate: 0,
    timeSeries: measurement.timeSeries,
    partialPoint: measurement.partialPoint,
    steady: {
      warmup_sec: warmupSec,
      ...rangeStatistics(measurement.timeSeries, warmupSec),
      hist_p50_ms: steady.p50_ms,
      hist_p95_ms: steady.p95_ms,
      hist_p99_ms: steady.p99_ms,
      hist_p999_ms: steady.p999_ms,
      hist_max_ms: steady.max_ms,
    },
    completedTotal: measurement.completedTotal,
    errors: measurement.errors,
    timeouts: measurement.timeouts,
    unfinished: measurement.unfinished,
    noops: 0,
    skipped: 0,
    errorSamples,
    p999_ms: all.p999_ms,
    max_ms: all.max_ms,
    mean_ms: all.mean_ms,
    verify: {
      ran: verdict !== undefined,
      ok: verdict?.ok ?? true,
      accounts: "0",
      total: "0",
      expected: "0",
      changed: "0",
      message: verdict?.message ?? "not asked for",
    },
    cpu: scaled(cpu, measurement.samples === 0 ? 1 : successes / measurement.samples),
    invalid,
    latencyHistogram: measurement.histogram.encode(),
    steadyLatencyHistogram: measurement.steadyHistogram.encode(),
    ops: Object.fromEntries(
      [...measurement.kinds].map(([name, kind]) => [name, operationResult(kind, elapsed_s)]),
    ),
    load: load ?? null,
    elapsed_s,
    misses: measurement.misses,
    extras,
  };
}

/** The repetition with the median throughput stands for all. */
export function combined(samples: readonly SampleResult[]): WorkloadEntry["res"] {
  const rates = samples.map(({ tps }) => tps);
  const middle = median(rates);
  const nearest = [...samples].sort((a, b) => Math.abs(a.tps - middle) - Math.abs(b.tps - middle))[0]!;
  return {
    ...nearest,
    invalid: [...new Set(samples.flatMap(({ invalid }) => invalid))],
    repetitions: { tps_mean: mean(rates), tps_stdev: standardDeviation(rates), each: [...samples] },
  };
}

const columns =
  "System | parameters | clients | in flight | throughput/s | ± | p50 ms | p95 ms | p99 ms | by kind: mean / p99 ms | " +
  "failed | errors | misses | server CPU avg / peak | ops per CPU % | load rows/s | data | durability | verify | notes";

function tableRow(file: WorkloadFile): string {
  const { res, system, concurrency, parameters } = file.results[0]!;
  const { repetitions, cpu, load } = res;
  const kinds = Object.entries(res.ops).map(
    ([name, { mean_ms, p99_ms }]) => `${name} ${formatLatency(mean_ms)} / ${formatLatency(p99_ms)}`,
  );
  const failed = failureShare(res);
  const notes = [
    ...res.invalid.map((reason) => `invalid: ${reason}`),
    ...(file.machineBusy === undefined ? [] : [`not to be published: ${file.machineBusy}`]),
    ...(failed > failureShareMost ? ["no measurement of latency: more than 1 % failed"] : []),
    ...transportNotes(system, file.fairness.transport),
    ...(cpu?.client_bound ? ["client-bound"] : []),
  ];
  const server = cpu?.server;
  return [
    system,
    Object.entries(parameters)
      .map(([name, value]) => `${name} ${typeof value === "number" ? formatInteger(value) : value}`)
      .join(", "),
    String(concurrency),
    String(file.fairness.inflight),
    res.invalid.length > 0
      ? `invalid (${formatInteger(repetitions.tps_mean)})`
      : formatInteger(repetitions.tps_mean),
    repetitions.each.length < 2 ? "–" : formatInteger(repetitions.tps_stdev),
    ...[res.p50_ms, res.p95_ms, res.p99_ms].map((ms) =>
      failed > failureShareMost ? "–" : formatLatency(ms),
    ),
    kinds.join(", "),
    formatPercent(failed),
    String(res.errors + res.timeouts),
    String(res.misses),
    server ? `${formatPercent(server.cpu_avg_pct / 100)} / ${formatPercent(server.cpu_peak_pct / 100)}` : "–",
    cpu?.ops_per_cpu_pct == null ? "–" : formatInteger(cpu.ops_per_cpu_pct),
    load ? formatInteger(load.rows_per_s) : "–",
    cpu?.data_bytes_after == null ? "–" : formatBytes(cpu.data_bytes_after),
    file.fairness.durability,
    res.verify.ran ? (res.verify.ok ? "yes" : "FAILED") : "no",
    notes.join("; ").replaceAll("|", "/").replaceAll("\n", " "),
  ].join(" | ");
}

const classTitles: Record<string, string> = {
  "full-stack": " – full stacks: client, server and database",
  "database-direct": " – database without a server in front",
  "client-cache": " – answered from the client's cache",
  "not-durable": " – not durable",
};

/** One table per test and class of systems: classes are not compared with each other (section 12, claim 2). */
export function workloadMarkdown(files: readonly WorkloadFile[], absent: readonly Absence[]): string {
  const dashes = columns.split("|").map(() => "---");
  const parts: string[] = [];
  for (const test of new Set(files.map((file) => file.test))) {
    for (const [systemClass, title] of Object.entries(classTitles)) {
      const chosen = files
        .filter((file) => file.test === test && file.fairness.systemClass === systemClass)
        .sort((a, b) => b.results[0]!.res.repetitions.tps_mean - a.results[0]!.res.repetitions.tps_mean);
      if (chosen.length === 0) continue;
      const rows = chosen.map((file) => `| ${tableRow(file)} |`);
      parts.push([`## ${test}${title}\n`, `| ${columns} |`, `|${dashes.join("|")}|`, ...rows].join("\n"));
      const operations = operationTable(chosen);
      if (operations) parts.push(operations);
    }
  }
  if (absent.length > 0) {
    const lines = absent.map(({ system, reason }) => `- ${system}: ${reason.split("\n")[0]}`);
    parts.push(`Without a result:\n\n${lines.join("\n")}`);
  }
  return `${parts.join("\n\n")}\n`;
}
