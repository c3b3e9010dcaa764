// A row of every table: a system under a load, with the figures of all of its runs (section 6.4).

import { LatencyHistogram } from "../core/histogram";
import type { RepeatedResult, RunFile } from "../core/result";
import { failureShare, failureShareMost } from "../core/results";
import { confidence95, mean } from "../core/statistics";
import { formatLatency, formatParameters, transportNotes } from "./format";
import { serverOf } from "./series";

export type SummaryRow = ReturnType<typeof rowOf>;

const parametersOf = (file: RunFile) => formatParameters(file.results[0].parameters);

/** One row per test, system and load; several runs of the same become their mean. */
export function summaryRows(files: readonly RunFile[]): SummaryRow[] {
  const groups = new Map<string, RunFile[]>();
  for (const file of files) {
    const { test, alpha, concurrency, tag, load_generator, fairness } = file;
    const { inflight, transport, isolation } = fairness;
    const load = [test, alpha, concurrency, inflight, transport, isolation, parametersOf(file)];
    const key = JSON.stringify([file.results[0].system, ...load, tag, load_generator]);
    const group = groups.get(key);
    if (group) group.push(file);
    else groups.set(key, [file]);
  }
  return [...groups.values()].map(rowOf).sort((a, b) => (a.alpha ?? 0) - (b.alpha ?? 0) || b.tps - a.tps);
}

/** The throughput of a run of test-1 is that of its steady state; a run without whole seconds has none. */
const rateOf = (file: RunFile): number => {
  const { steady, tps, repetitions } = file.results[0].res;
  if (file.alpha === null) return repetitions.tps_mean;
  return steady.duration_s === 0 ? tps : steady.tps_mean;
};

function spreadOf(files: readonly RunFile[]): number | null {
  const results = files.map((file) => file.results[0].res);
  if (files[0]!.alpha !== null) return mean(results.map(({ steady }) => steady.tps_stdev));
  if (results.every(({ repetitions }) => repetitions.each.length < 2)) return null;
  return mean(results.map(({ repetitions }) => repetitions.tps_stdev));
}

/** Operations while CPU and disk were measured: those of the whole seconds, or all of a run that ends by itself. */
const measuredOps = (file: RunFile): number => {
  const { steady, samples } = file.results[0].res;
  const isWhole = file.alpha === null && steady.warmup_sec === 0;
  return isWhole ? samples : steady.samples || samples;
};

const complete = (values: readonly (number | null)[]): number[] | undefined => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 || known.length < values.length ? undefined : known;
};

function rowOf(files: readonly RunFile[]) {
  const first = files[0]!;
  const { test, alpha, fairness, load_generator, concurrency } = first;
  const { systemClass, poolMax, isolation, durability, transport, roundTripsPerTx } = fairness;
  const { system, label, res: firstResult } = first.results[0];
  const results = files.map((file) => file.results[0].res);
  const rates = files.map(rateOf);
  const sum = (of: (res: RepeatedResult) => number) => results.reduce((total, res) => total + of(res), 0);
  const cpus = results.flatMap((res) => res.cpu ?? []);
  const servers = cpus.flatMap((cpu) =>
    cpu.server ? [{ ...cpu.server, perCpuSecond: cpu.ops_per_cpu_s }] : [],
  );
  const ofServers = (of: (all: typeof servers) => number) => (servers.length === 0 ? null : of(servers));
  const written = complete(cpus.map((cpu) => cpu.device_written_bytes ?? null));
  const data = complete(cpus.map((cpu) => cpu.data_bytes_after));
  const ops = files.reduce((total, file) => total + measuredOps(file), 0);
  const isTransfers = alpha !== null;
  return {
    ...{ test, system, label },
    /** Absent if the connectors' own clients made the load. */
    ...(load_generator !== undefined && { load_generator }),
    /** Null for every test but test-1. */
    alpha,
    /** What else tells a load from others, e.g. `records 1,000`. */
    parameters: parametersOf(first),
    clients: concurrency,
    inFlight: fairness.inflight,
    pipelined: fairness.pipelined,
    ...{ poolMax, systemClass },
    runs: files.length,
    tps: mean(rates),
    /** Spread of the seconds of a run, or of its repetitions; null where there is one. */
    tpsStddev: spreadOf(files),
    /** Half the width of the 95 % confidence interval over the runs, from three runs on. */
    tpsConfidence95: confidence95(rates),
    /** Of all runs together, without their warm-up. */
    ...mergedLatencies(results),
    /** By kind of operation, of the first run. */
    ops: firstResult.ops,
    /** Whose server it is, and what is before and behind it. */
    server: serverOf(system, first.software["server"]),
    ...{ isolation, durability, transport, roundTripsPerTx },
    errors: sum((res) => res.errors),
    timeouts: sum((res) => res.timeouts),
    misses: sum((res) => res.misses),
    /** Of all operations: errors, timeouts, and what was due and never started. */
    failureShare: failureShare({
      samples: sum((res) => res.samples),
      errors: sum((res) => res.errors),
      timeouts: sum((res) => res.timeouts),
      unsent: sum((res) => res.unsent),
    }),
    /** Null where the load generator does not count collisions. */
    collisionRate:
      isTransfers && load_generator === undefined ? mean(results.map((res) => res.collision_rate)) : null,
    verify: verifyText(results.map((res) => res.verify)),
    loadedRowsPerSecond: firstResult.load?.rows_per_s ?? null,
    serverCpuSeconds: ofServers((all) => all.reduce((total, server) => total + server.cpu_s, 0)),
    opsPerCpuSecond: ofServers((all) => mean(all.map((server) => server.perCpuSecond ?? 0))),
    peakServerMemoryBytes: ofServers((all) => Math.max(...all.map((server) => server.peak_rss_bytes))),
    clientIdleShare: cpus.length === 0 ? null : mean(cpus.map((cpu) => cpu.client_idle_share)),
    clientBound: cpus.some((cpu) => cpu.client_bound),
    /** Of the block device below the data. */
    writtenBytesPerOp: written && ops > 0 ? written.reduce((total, bytes) => total + bytes, 0) / ops : null,
    dataBytes: data ? Math.max(...data) : null,
    didNotComplete:
      isTransfers &&
      results.some((res) => res.samples === 0 || res.steady.zero_seconds * 2 > res.steady.duration_s),
    invalid: [...new Set(results.flatMap((res) => res.invalid))],
    /** Why runs of this row must not be published. */
    busy: [...new Set(files.flatMap((file) => file.machineBusy ?? []))],
  };
}

/** Percentiles of all runs together: those of a mean of percentiles would be of no run. */
function mergedLatencies(results: readonly RepeatedResult[]) {
  const texts = results.map((res) => res.steadyLatencyHistogram || res.latencyHistogram);
  if (texts.some((text) => !text)) {
    // A file without a histogram, e.g. of the published suite.
    const of = (key: "hist_p50_ms" | "hist_p99_ms") => mean(results.map((res) => res.steady[key]));
    const max_ms = Math.max(...results.map((res) => res.steady.hist_max_ms));
    return { p50_ms: of("hist_p50_ms"), p99_ms: of("hist_p99_ms"), max_ms };
  }
  const merged = new LatencyHistogram();
  for (const text of texts) merged.add(LatencyHistogram.decode(text));
  const { p50_ms, p99_ms, max_ms } = merged.summary();
  return { p50_ms, p99_ms, max_ms };
}

const verifyText = (reports: readonly { ran: boolean; ok: boolean; strict?: unknown }[]): string => {
  if (reports.some(({ ran }) => !ran)) return "no";
  if (reports.some(({ ok }) => !ok)) return "FAILED";
  return reports.every(({ strict }) => strict) ? "strict" : "yes";
};

/** A latency, or why there is none. */
export const latencyText = (row: SummaryRow, milliseconds: number): string =>
  row.failureShare > failureShareMost ? "–" : formatLatency(milliseconds);

/** What a reader must know of a row besides its figures. */
export function notesOf(row: SummaryRow): string[] {
  return [
    ...row.invalid.map((reason) => `invalid: ${reason}`),
    ...row.busy.map((reason) => `not to be published: ${reason}`),
    ...(row.failureShare > failureShareMost ? ["no measurement of latency: more than 1 % failed"] : []),
    ...transportNotes(row.system, row.transport),
    ...(row.clientBound ? ["client-bound"] : []),
  ];
}
