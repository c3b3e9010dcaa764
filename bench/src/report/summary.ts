// The tables at the end (section 6.4).

import type { Absence } from "../core/bench";
import { LatencyHistogram } from "../core/histogram";
import { failureShare, failureShareMost, type RunFile, type RunResult } from "../core/results";
import { confidence95, mean } from "../core/statistics";
import { formatBytes, formatInteger, formatLatency, formatPercent, transportNotes } from "./format";
import { publishedTable } from "./published";
import { serverOf } from "./series";

export interface SummaryRow {
  system: string;
  /** Absent if the connectors' own clients made the load. */
  load_generator?: "native";
  label: string;
  alpha: number;
  clients: number;
  inFlight: number;
  pipelined: boolean;
  poolMax: number | null;
  systemClass: string;
  runs: number;
  tps: number;
  tpsStddev: number;
  /** Half the width of the 95 % confidence interval over the runs, from three runs on. */
  tpsConfidence95: number | null;
  /** Of all runs together, without their warm-up. */
  p50_ms: number;
  p99_ms: number;
  max_ms: number;
  /** Whose server it is, and what is before and behind it. */
  server: string;
  isolation: string;
  durability: string;
  transport: string;
  roundTripsPerTx: number;
  errors: number;
  timeouts: number;
  /** Of all operations: errors, timeouts, and what was due and never started. */
  failureShare: number;
  /** Null where the load generator does not count collisions. */
  collisionRate: number | null;
  verify: string;
  serverCpuSeconds: number | null;
  opsPerCpuSecond: number | null;
  clientIdleShare: number | null;
  clientBound: boolean;
  /** Of the block device below the data. */
  writtenBytesPerOp: number | null;
  peakServerMemoryBytes: number | null;
  didNotComplete: boolean;
  invalid: string[];
  /** Why runs of this row must not be published. */
  busy: string[];
}

/** One row per system, alpha and load; several runs of the same become their mean. */
export function summaryRows(files: readonly RunFile[]): SummaryRow[] {
  const groups = new Map<string, RunFile[]>();
  for (const file of files) {
    const key = [
      file.results[0]!.system,
      file.alpha,
      file.concurrency,
      file.fairness.inflight,
      file.fairness.transport,
      file.fairness.isolation,
      file.tag,
      file.load_generator,
    ].join(" ");
    const group = groups.get(key);
    if (group) group.push(file);
    else groups.set(key, [file]);
  }
  return [...groups.values()].map(rowOf).sort((a, b) => a.alpha - b.alpha || b.tps - a.tps);
}

function rowOf(files: readonly RunFile[]): SummaryRow {
  const first = files[0]!;
  const entry = first.results[0]!;
  const results = files.map((file) => file.results[0]!.res);
  // A run without whole seconds has no steady state.
  const rates = results.map((res) => (res.steady.duration_s === 0 ? res.tps : res.steady.tps_mean));
  const sum = (of: (res: (typeof results)[number]) => number) =>
    results.reduce((total, res) => total + of(res), 0);
  const cpus = results.flatMap((res) => (res.cpu ? [res.cpu] : []));
  const servers = cpus.flatMap((cpu) =>
    cpu.server ? [{ ...cpu.server, perCpuSecond: cpu.ops_per_cpu_s }] : [],
  );
  const steadyOps = sum((res) => res.steady.samples || res.samples);
  const latencies = mergedLatencies(results);
  const deviceBytes = cpus.map((cpu) => cpu.device_written_bytes ?? null);
  return {
    system: entry.system,
    ...(first.load_generator !== undefined && { load_generator: first.load_generator }),
    label: entry.label,
    alpha: first.alpha,
    clients: first.concurrency,
    inFlight: first.fairness.inflight,
    pipelined: first.fairness.pipelined,
    poolMax: first.fairness.poolMax,
    systemClass: first.fairness.systemClass,
    runs: files.length,
    tps: mean(rates),
    tpsStddev: mean(results.map((res) => res.steady.tps_stdev)),
    tpsConfidence95: confidence95(rates),
    ...latencies,
    server: serverOf(entry.system, first.software["server"]),
    isolation: first.fairness.isolation,
    durability: first.fairness.durability,
    transport: first.fairness.transport,
    roundTripsPerTx: first.fairness.roundTripsPerTx,
    errors: sum((res) => res.errors),
    timeouts: sum((res) => res.timeouts),
    failureShare: failureShare({
      samples: sum((res) => res.samples),
      errors: sum((res) => res.errors),
      timeouts: sum((res) => res.timeouts),
      unsent: sum((res) => res.unsent ?? 0),
    }),
    collisionRate: first.load_generator === undefined ? mean(results.map((res) => res.collision_rate)) : null,
    verify: verifyText(results.map((res) => res.verify)),
    serverCpuSeconds:
      servers.length === 0 ? null : servers.reduce((total, server) => total + server.cpu_s, 0),
    opsPerCpuSecond: servers.length === 0 ? null : mean(servers.map((server) => server.perCpuSecond ?? 0)),
    clientIdleShare: cpus.length === 0 ? null : mean(cpus.map((cpu) => cpu.client_idle_share)),
    clientBound: cpus.some((cpu) => cpu.client_bound),
    writtenBytesPerOp:
      deviceBytes.length === 0 || deviceBytes.includes(null) || steadyOps === 0
        ? null
        : deviceBytes.reduce((total: number, bytes) => total + (bytes ?? 0), 0) / steadyOps,
    peakServerMemoryBytes:
      servers.length === 0 ? null : Math.max(...servers.map((server) => server.peak_rss_bytes)),
    didNotComplete: results.some(
      (res) => res.samples === 0 || res.steady.zero_seconds * 2 > res.steady.duration_s,
    ),
    invalid: [...new Set(results.flatMap((res) => res.invalid))],
    busy: [...new Set(files.flatMap((file) => file.machineBusy ?? []))],
  };
}

/** Percentiles of all runs together: those of a mean of percentiles would be of no run. */
function mergedLatencies(results: readonly RunResult[]): Pick<SummaryRow, "p50_ms" | "p99_ms" | "max_ms"> {
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

const verifyText = (reports: readonly { ran: boolean; ok: boolean; strict?: unknown }[]): string => {
  if (reports.some(({ ran }) => !ran)) return "no";
  if (reports.some(({ ok }) => !ok)) return "FAILED";
  return reports.every(({ strict }) => strict) ? "strict" : "yes";
};

const columns = [
  "System | clients | pipelining | max_pool | TPS | TPS Stddev | p50 lat ms | p99 lat ms | max lat ms | failed",
  "server | isolation | durability | round trips/tx | errors | collision rate | verify | server CPU s",
  "TPS per CPU-s | disk writes/tx | peak memory | client idle | notes",
].join(" | ");

function tableRow(row: SummaryRow): string {
  const tps = row.didNotComplete ? "did not complete" : formatInteger(row.tps);
  const spread =
    row.tpsConfidence95 === null ? "" : ` (95 % of ${row.runs} runs: ±${formatInteger(row.tpsConfidence95)})`;
  const orNone = <T>(value: T | null, format: (value: T) => string) => (value === null ? "–" : format(value));
  return [
    row.system,
    String(row.clients),
    row.pipelined ? String(row.inFlight) : "off",
    row.poolMax === null ? "N/A" : String(row.poolMax),
    row.invalid.length > 0 && !row.didNotComplete ? `invalid (${tps})` : tps,
    formatInteger(row.tpsStddev) + spread,
    latencyText(row, row.p50_ms),
    latencyText(row, row.p99_ms),
    latencyText(row, row.max_ms),
    formatPercent(row.failureShare),
    row.server,
    row.isolation,
    row.durability,
    String(row.roundTripsPerTx),
    String(row.errors + row.timeouts),
    orNone(row.collisionRate, formatPercent),
    row.verify,
    orNone(row.serverCpuSeconds, (seconds) => seconds.toFixed(2)),
    orNone(row.opsPerCpuSecond, formatInteger),
    orNone(row.writtenBytesPerOp, formatBytes),
    orNone(row.peakServerMemoryBytes, formatBytes),
    orNone(row.clientIdleShare, formatPercent),
    notesOf(row).join("; ").replaceAll("|", "/").replaceAll("\n", " "),
  ].join(" | ");
}

/** Systems of other classes get tables of their own: they are not compared with full stacks (section 12, claim 2). */
const classTitles: Record<string, string> = {
  "full-stack": " – full stacks: client, server and database",
  "database-direct": " – database without a server in front",
  "client-cache": " – answered from the client's cache",
  "not-durable": " – not durable",
};

/** The Markdown of everything. */
export function summaryMarkdown(test: string, files: readonly RunFile[], absent: readonly Absence[]): string {
  const all = summaryRows(files);
  const parts = [
    ...tablesOf(
      test,
      all.filter((row) => row.load_generator === undefined),
    ),
    // Another experiment (section 12, claim 8): tables of its own.
    ...tablesOf(
      `${test} by the native load generator`,
      all.filter((row) => row.load_generator === "native"),
    ),
  ];
  if (absent.length > 0) {
    parts.push(
      `Without a result:\n\n${absent.map(({ system, reason }) => `- ${system}: ${oneLine(reason)}`).join("\n")}`,
    );
  }
  return `${parts.join("\n\n")}\n`;
}

function tablesOf(test: string, rows: readonly SummaryRow[]): string[] {
  const parts: string[] = [];
  for (const alpha of new Set(rows.map((row) => row.alpha))) {
    for (const [systemClass, title] of Object.entries(classTitles)) {
      const chosen = rows.filter((row) => row.alpha === alpha && row.systemClass === systemClass);
      if (chosen.length === 0) continue;
      parts.push(`## ${test}, alpha ${alpha}${title}\n\n${table(columns, chosen.map(tableRow))}`);
    }
  }
  const matrix = matrixTable(rows);
  if (matrix) parts.push(matrix);
  const published = publishedTable(test, rows);
  if (published) parts.push(published);
  return parts;
}

const oneLine = (text: string) => text.split("\n")[0]!;

function table(header: string, rows: readonly string[]): string {
  const dashes = header
    .split("|")
    .map(() => "---")
    .join("|");
  return [`| ${header} |`, `|${dashes}|`, ...rows.map((row) => `| ${row} |`)].join("\n");
}

/** What one client in flight and many have to do with each other: in a closed loop, latency is in flight by throughput. */
function matrixTable(rows: readonly SummaryRow[]): string | undefined {
  const pairs = rows.flatMap((row) => {
    const one = rows.find((o) => o.system === row.system && o.alpha === row.alpha && !o.pipelined);
    return row.pipelined && one ? [{ one, many: row }] : [];
  });
  if (pairs.length === 0) return undefined;
  const computed = ({ clients, inFlight, tps }: SummaryRow) =>
    tps === 0 ? 0 : (clients * inFlight * 1000) / tps;
  const lines = pairs.map(({ one, many }) =>
    [
      many.system,
      String(many.alpha),
      String(many.clients * many.inFlight),
      formatInteger(one.tps),
      formatInteger(many.tps),
      ...[one, many].flatMap((row) => [latencyText(row, row.p50_ms), formatLatency(computed(row))]),
    ].join(" | "),
  );
  const header = `System | alpha | in flight | TPS off | TPS ${pairs[0]!.many.inFlight}-deep | p50 off | computed mean off | p50 deep | computed mean deep`;
  return `## One and many in flight\n\n${table(header, lines)}`;
}
