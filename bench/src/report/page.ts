// One self-contained HTML page per set of runs: charts, a table, and what a reader must know to judge them.

import type { Absence } from "../core/bench";
import { failureShareMost, type RunFile } from "../core/results";
import { barChart, escapeXml, lineChart, type Percentile } from "./chart";
import { formatBytes, formatInteger, formatPercent } from "./format";
import { type Column, htmlTable, machineOf, page } from "./html";
import { isOf, type Load, linesOf, loadsOf, type RunLine } from "./series";
import { latencyText, notesOf, type SummaryRow, summaryRows } from "./summary";

export interface ChartOptions {
  metric: "both" | "tps" | "latency";
  percentile: Percentile;
  exclude: readonly string[];
}

export const defaultChartOptions: ChartOptions = { metric: "both", percentile: "p99", exclude: [] };

/** The charts of one alpha, each an SVG. */
export function chartsOf(lines: readonly RunLine[], options: ChartOptions): string[] {
  const shown = lines.filter((line) => !options.exclude.includes(line.system));
  if (shown.length === 0) return [];
  const charts: string[] = [];
  if (options.metric !== "latency") {
    charts.push(
      lineChart({
        title: "Throughput",
        subtitle: "acknowledged transfers per second, log scale",
        lines: shown,
        value: (point) => point.tps,
        isLog: true,
      }),
    );
  }
  if (options.metric !== "tps") {
    const key = `${options.percentile}_ms` as const;
    charts.push(
      lineChart({
        title: `Latency, ${options.percentile}`,
        subtitle: "milliseconds from call to acknowledgement, log scale",
        lines: shown,
        value: (point) => point[key],
        isLog: true,
      }),
    );
  }
  return charts;
}

/** What a picture says of itself, wherever it is shown. */
export function originOf(files: readonly RunFile[]): string {
  const unique = (texts: string[]) => [...new Set(texts)].join(" and ");
  const commits = unique(files.map(({ software }) => software["suiteCommit"] ?? "unknown"));
  const machines = unique(files.map(({ hardware }) => `${hardware.hardwareThreads} × ${hardware.cpu}`));
  return `commit ${commits}; ${machines}, shared with the client`;
}

/** Mean throughput of the runs with its uncertainty, for one load; systems of other classes have bars of their own. */
export function barsOf(rows: readonly SummaryRow[], origin: string): string[] {
  const { comparable, others } = byClass(rows);
  const load = rows[0] ? `${loadText(rows[0])}, ${rows[0].clients} connections` : "";
  const chart = (title: string, chosen: readonly SummaryRow[]) =>
    barChart(title, [`${spreadText(chosen)}. ${load}`, origin], chosen.map(barOf));
  return [
    ...(comparable.length > 0 ? [chart("Acknowledged transfers per second, mean", comparable)] : []),
    ...(others.length > 0 ? [chart("Not to be compared with the others", others)] : []),
  ];
}

/** What the bars and the lines on them are, by the number of runs that the rows have. */
function spreadText(rows: readonly SummaryRow[]): string {
  const least = Math.min(...rows.map(({ runs }) => runs));
  const most = Math.max(...rows.map(({ runs }) => runs));
  const runs = least === most ? String(least) : `${least} to ${most}`;
  if (least >= 3) return `Mean of ${runs} runs; line: 95 % interval`;
  return most === 1 ? "One run each; line: spread of its seconds" : `Mean of ${runs} runs; line: spread`;
}

function byClass(rows: readonly SummaryRow[]): { comparable: SummaryRow[]; others: SummaryRow[] } {
  const sorted = [...rows].sort((a, b) => b.tps - a.tps);
  return {
    comparable: sorted.filter((row) => row.systemClass === "full-stack"),
    others: sorted.filter((row) => row.systemClass !== "full-stack"),
  };
}

const barOf = (row: SummaryRow) => ({
  name: row.system,
  server: row.server,
  system: row.system,
  value: row.didNotComplete ? 0 : row.tps,
  error: row.didNotComplete ? 0 : (row.tpsConfidence95 ?? row.tpsStddev),
  text: row.didNotComplete ? "did not complete" : formatInteger(row.tps),
  note: noteOf(row),
});

function noteOf(row: SummaryRow): string {
  if (row.invalid.length > 0) return "invalid";
  if (row.busy.length > 0) return "busy machine";
  if (row.failureShare > failureShareMost) return `${formatPercent(row.failureShare)} failed`;
  if (row.systemClass !== "full-stack") return row.systemClass.replace("-", " ");
  return row.clientBound ? "client-bound" : "";
}

export function htmlPage(test: string, files: readonly RunFile[], absent: readonly Absence[]): string {
  const rows = summaryRows(files);
  const lines = linesOf(files);
  const first = files[0]!;
  const isNative = first.load_generator === "native";
  const title = `${test}${isNative ? " by the native load generator" : ""}: ${new Set(rows.map((row) => row.system)).size} systems side by side`;
  const parts = [
    `<h1>${escapeXml(title)}</h1>`,
    `<p class="soft">${escapeXml(settingsOf(first))}<br>${escapeXml(machineOf(first.hardware))}</p>`,
  ];
  for (const load of loadsOf(rows)) {
    const ofLoad = rows.filter(isOf(load));
    const linesOfLoad = lines.filter(isOf(load));
    const p50 = chartsOf(linesOfLoad, { ...defaultChartOptions, metric: "latency", percentile: "p50" });
    const charts = [
      barsOf(ofLoad, originOf(files)).join("\n"),
      ...chartsOf(linesOfLoad, defaultChartOptions),
      ...p50,
    ];
    const { comparable, others } = byClass(ofLoad);
    parts.push(
      `<h2>${escapeXml(loadText(load))}</h2>`,
      `<div class="charts">${charts.map((chart) => `<figure>${chart}</figure>`).join("\n")}</div>`,
      comparable.length > 0 ? `<div class="scroll">${table(comparable)}</div>` : "",
      others.length > 0
        ? `<h3>Not to be compared with the others</h3><div class="scroll">${table(others)}</div>`
        : "",
    );
  }
  if (absent.length > 0) {
    const items = absent.map(
      ({ system, reason }) => `<li><b>${escapeXml(system)}</b>: ${escapeXml(reason.split("\n")[0]!)}</li>`,
    );
    parts.push(`<h2>Without a result</h2><ul>${items.join("")}</ul>`);
  }
  const items = [isNative ? readingNative : readingTypeScript, ...reading];
  parts.push(`<h2>How to read this</h2><ul>${items.map((text) => `<li>${text}</li>`).join("")}</ul>`);
  return page(title, parts.join("\n"));
}

const readingTypeScript =
  "One client program in TypeScript drives every system, on this machine, with the same sequence of transfers. Only acknowledged transfers count.";
const readingNative =
  "A native load generator drives every system that it can reach, on this machine, with the same sequence of transfers. Only acknowledged transfers count. This is an experiment of its own: do not mix it with rows of the client program in TypeScript.";
const reading = [
  "A row is <b>invalid</b> if the balances were wrong after the run, and <b>client-bound</b> if the client had less than 20&nbsp;% idle time: the system can do more than the row says.",
  "TPS is the mean of whole seconds after the warm-up; ± is the spread of those seconds, or, from three runs on, the 95&nbsp;% interval of their mean. Latencies are of all runs together; what was without an answer at the end counts with its age. A row in which more than 1&nbsp;% failed is no measurement of latency.",
  "Server CPU is everything but the client: database, server in front, platform. Rows of class <b>database direct</b> or <b>not durable</b> do less than the others and are not ranked with them.",
];

const loadText = ({ alpha, inFlight }: Load) =>
  `${alpha === 0 ? "Every account equally often (alpha 0)" : `Few accounts in most transfers (alpha ${alpha})`}, ` +
  `${inFlight} in flight per connection`;

function settingsOf(file: RunFile): string {
  const warmup = file.config.warmupSec > 0 ? `, the first ${file.config.warmupSec} s left out` : "";
  return (
    `${file.startedAt.slice(0, 10)} · ${file.seconds} s per run${warmup} · ${file.concurrency} clients · ` +
    `${formatInteger(file.accounts)} accounts · commit ${file.software["suiteCommit"] ?? "unknown"}`
  );
}

const orNone = <T>(value: T | null, format: (value: T) => string) => (value === null ? "–" : format(value));

const columns: Column<SummaryRow>[] = [
  ["system", (row) => row.system],
  ["server", (row) => row.server, "text"],
  ["TPS", (row) => (row.didNotComplete ? "did not complete" : formatInteger(row.tps))],
  ["±", (row) => formatInteger(row.tpsConfidence95 ?? row.tpsStddev)],
  ["p50 ms", (row) => latencyText(row, row.p50_ms)],
  ["p99 ms", (row) => latencyText(row, row.p99_ms)],
  ["max ms", (row) => latencyText(row, row.max_ms)],
  ["failed", (row) => formatPercent(row.failureShare)],
  ["TPS per<br>CPU-second", (row) => orNone(row.opsPerCpuSecond, formatInteger)],
  ["server<br>CPU s", (row) => orNone(row.serverCpuSeconds, (seconds) => seconds.toFixed(1))],
  ["disk writes<br>per transfer", (row) => orNone(row.writtenBytesPerOp, formatBytes)],
  ["peak<br>memory", (row) => orNone(row.peakServerMemoryBytes, formatBytes)],
  ["client<br>idle", (row) => orNone(row.clientIdleShare, formatPercent)],
  ["clients", (row) => String(row.clients)],
  ["in flight<br>each", (row) => String(row.inFlight)],
  ["pool", (row) => (row.poolMax === null ? "–" : String(row.poolMax))],
  ["round<br>trips", (row) => String(row.roundTripsPerTx)],
  ["errors", (row) => formatInteger(row.errors + row.timeouts)],
  ["collisions", (row) => orNone(row.collisionRate, formatPercent)],
  ["verified", (row) => row.verify],
  ["isolation", (row) => row.isolation, "text"],
  ["durability", (row) => row.durability, "text"],
  ["notes", (row) => notesOf(row).join("; "), "text"],
];

const table = (rows: readonly SummaryRow[]) => htmlTable(columns, rows, (row) => row.invalid.length > 0);
