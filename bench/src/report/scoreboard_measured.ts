// What the scoreboard shows as measured here: files of runs, those of the same load put together (sections 6.1 and 14.3).

import type { Hardware, OperationResult, RunFile, SerialExtras } from "../core/result";
import { failureShare, failureShareMost, type NamedRun } from "../core/results";
import { mean } from "../core/statistics";
import { formatBytes, formatInteger, formatPercent, transportNotes } from "./format";
import { summaryRows } from "./rows";

/** `rate` is the throughput, in what the test counts. */
export type Metric =
  | "rate"
  | "ops_per_cpu_pct"
  | "mean_ms"
  | "p50_ms"
  | "p95_ms"
  | "p99_ms"
  | "mean_us"
  | "p99_us";
export type Values = Partial<Record<Metric, number>>;

export interface MeasuredRow {
  test: string;
  /** Named as the `variant` of a published figure of the same load. */
  load: string;
  system: string;
  values: Values;
  runs: number;
  isDurable: boolean;
  /** What a reader must know to judge the row. */
  notes: string[];
  /** When its first run began, e.g. 2026-11-22. */
  day: string;
}

export interface Measurements {
  rows: MeasuredRow[];
  /** Runs that were left out since they are not valid, or the machine was busy. */
  invalidRuns: number;
  machines: string[];
  commits: string[];
  days: string[];
  directories: string[];
}

type Found = Pick<NamedRun, "directory" | "file">;

const parametersOf = (file: RunFile) => file.results[0].parameters;

/** How long a run took is no other load. */
const lengthParameters = ["seconds", "iterations"];

function keyOf(file: RunFile): string {
  const { test, alpha, concurrency, tag, load_generator, fairness, config } = file;
  const parameters = Object.entries(parametersOf(file)).filter(([name]) => !lengthParameters.includes(name));
  const { inflight, durability, isolation, transport } = fairness;
  const settings = [inflight, durability, isolation, transport, config.rate ?? null];
  const system = file.results[0].system;
  return JSON.stringify([test, alpha, concurrency, tag, load_generator ?? "", system, settings, parameters]);
}

/** The runs of one load and system in one directory are averaged; of several directories the newest counts. */
export function measurementsOf(runs: readonly Found[]): Measurements {
  const valid = runs.filter(
    ({ file }) => file.results[0].res.invalid.length === 0 && file.machineBusy === undefined,
  );
  const groups = new Map<string, Found[]>();
  for (const run of valid) {
    const key = keyOf(run.file);
    const group = groups.get(key);
    const newest = group?.[0];
    if (!group || !newest) groups.set(key, [run]);
    else if (newest.directory === run.directory) group.push(run);
    else if (newest.file.startedAt < run.file.startedAt) groups.set(key, [run]);
  }
  const used = [...groups.values()];
  const files = used.flat().map(({ file }) => file);
  const unique = (texts: string[]) => [...new Set(texts)].sort();
  return {
    rows: used.flatMap(rowsOf),
    invalidRuns: runs.length - valid.length,
    machines: unique(files.map(({ hardware }) => machineText(hardware))),
    commits: unique(files.flatMap(({ software }) => software["suiteCommit"] ?? [])),
    days: unique(files.map(({ startedAt }) => startedAt.slice(0, 10))),
    directories: unique(used.map(([run]) => run!.directory)),
  };
}

function machineText(hardware: Hardware): string {
  const { cpu, physicalCores, hardwareThreads, ramBytes, distribution, virtualization, fileSystem } =
    hardware;
  return [
    cpu,
    `${physicalCores} cores, ${hardwareThreads} threads`,
    formatBytes(ramBytes),
    distribution,
    virtualization,
    fileSystem,
  ].join(", ");
}

function rowsOf(group: readonly Found[]): MeasuredRow[] {
  const { file } = group[0]!;
  const { fairness } = file;
  const isDurable = fairness.systemClass !== "not-durable" && fairness.durability !== "not waited for";
  const common = {
    test: testOf(file),
    system: file.results[0].system,
    runs: group.length,
    isDurable,
    day: file.startedAt.slice(0, 10),
  };
  const files = group.map((run) => run.file);
  const notes = notesOf(files, isDurable);
  if (file.alpha !== null) {
    const row = summaryRows(files)[0]!;
    const perCpu = row.opsPerCpuSecond === null ? {} : { ops_per_cpu_pct: row.opsPerCpuSecond / 100 };
    const isLatency = row.failureShare <= failureShareMost;
    const latencies = isLatency ? { p50_ms: row.p50_ms, p99_ms: row.p99_ms } : {};
    const values: Values = { rate: row.tps, ...latencies, ...perCpu };
    if (!isLatency) notes.push(`${formatPercent(row.failureShare)} failed`);
    if (row.didNotComplete) notes.push("did not complete");
    return [{ ...common, load: transferLoad(file), values, notes }];
  }
  if (serialExtras(file).rows_per_operation) return serialRows(files, { ...common, notes });
  return [{ ...common, load: workloadLoad(file), values: workloadValues(files), notes }];
}

/** Runs of the native load generator are another experiment (section 12, claim 8). */
const testOf = ({ test, load_generator }: RunFile): string =>
  load_generator === undefined ? test : `${test}, ${load_generator} load generator`;

const publishedClients = 64;

function transferLoad({ alpha, concurrency, fairness }: RunFile): string {
  const clients = concurrency === publishedClients ? "" : ` clients=${concurrency}`;
  return `alpha=${alpha} inflight=${fairness.inflight}${clients}`;
}

function workloadLoad(file: RunFile): string {
  const { test, concurrency } = file;
  const { tests, mode, scenario } = parametersOf(file);
  if (test === "content-crud")
    return `tests=${tests} concurrency=${concurrency}${mode === "batch" ? "" : ` ${mode}`}`;
  if (test.startsWith("ycsb")) return "run";
  if (test === "authed-load") return String(scenario);
  if (test === "http-floor") return `clients=${concurrency}`;
  return `concurrency=${concurrency}`;
}

function workloadValues(files: readonly RunFile[]): Values {
  const results = files.map((file) => file.results[0].res);
  const average = (of: (res: (typeof results)[number]) => number) => mean(results.map(of));
  const perCpu = results.flatMap((res) => res.cpu?.ops_per_cpu_pct ?? []);
  const rate = average((res) => res.repetitions.tps_mean);
  const measured = { rate, ...(perCpu.length > 0 && { ops_per_cpu_pct: mean(perCpu) }) };
  if (results.some((res) => failureShare(res) > failureShareMost)) return measured;
  return {
    ...measured,
    mean_ms: average((res) => res.mean_ms),
    p50_ms: average((res) => res.p50_ms),
    p95_ms: average((res) => res.p95_ms),
    p99_ms: average((res) => res.p99_ms),
  };
}

const serialExtras = (file: RunFile) => file.results[0].res.extras as Partial<SerialExtras>;

/** One row per kind of operation; reads inside the server and from a client's cache are loads of their own. */
function serialRows(files: readonly RunFile[], common: Omit<MeasuredRow, "load" | "values">): MeasuredRow[] {
  const first = files[0]!;
  const isCached = first.fairness.systemClass === "client-cache";
  return Object.entries(serialExtras(first).rows_per_operation!).flatMap(([kind, rowsPerOperation]) => {
    const operations = files.flatMap((file) => {
      const result = file.results[0].res.ops[kind];
      return result ? [result] : [];
    });
    const hot = files.flatMap((file) => serialExtras(file).engine_hot_us?.[kind] ?? []);
    const rows: MeasuredRow[] = [];
    if (operations.some(({ ok }) => ok > 0)) {
      const perRow = (of: (result: OperationResult) => number) =>
        mean(operations.map((result) => (of(result) * 1000) / rowsPerOperation));
      const mean_us = perRow(({ mean_ms }) => mean_ms);
      const load = `${kind}${readKinds.has(kind) ? (isCached ? " client-cache" : " cold") : ""}`;
      const values = { rate: 1e6 / mean_us, mean_us, p99_us: perRow(({ p99_ms }) => p99_ms) };
      rows.push({ ...common, load, values });
    }
    if (hot.length > 0) {
      const mean_us = mean(hot);
      rows.push({
        ...common,
        load: `${kind} hot`,
        values: { ...(mean_us > 0 && { rate: 1e6 / mean_us }), mean_us },
      });
    }
    return rows;
  });
}

/** Reads that were published as of the disk and as of memory. */
const readKinds = new Set([
  ...["find_many", "find_unique", "count"],
  ...["find_many_lead", "find_many_contact", "find_unique_contact"],
]);

function notesOf(files: readonly RunFile[], isDurable: boolean): string[] {
  const { fairness, concurrency } = files[0]!;
  const parameters = Object.entries(parametersOf(files[0]!))
    .filter(([name]) => !["mode", "scenario", "tests"].includes(name))
    .map(([name, value]) => `${typeof value === "number" ? formatInteger(value) : value} ${name}`);
  const classes = {
    "database-direct": "no server in front",
    "client-cache": "reads from the client's cache",
  };
  const classNote = classes[fairness.systemClass as keyof typeof classes];
  return [
    ...(files.length > 1 ? [`${files.length} runs`] : []),
    ...parameters,
    ...(files[0]!.test.startsWith("ycsb") ? [`${concurrency} clients`] : []),
    ...(classNote ? [classNote] : []),
    ...(isDurable ? [] : ["not durable"]),
    ...transportNotes(files[0]!.results[0].system, fairness.transport),
    ...(files.some((file) => file.results[0].res.cpu?.client_bound) ? ["client-bound"] : []),
  ];
}
