// One self-contained HTML page per set of runs, of any test: charts, tables, and what a reader must know to judge them.

import type { Absence, RunFile, SeriesPoint } from "../core/result";
import { failureShareMost } from "../core/results";
import { type Bar, barChart, escapeXml, lineChart, type Percentile } from "./chart";
import { columnsOf } from "./columns";
import { formatInteger, formatPercent } from "./format";
import { machineOf, page } from "./html";
import { type SummaryRow, summaryRows } from "./rows";
import { isOf, type Load, linesOf, loadsOf, type RunLine } from "./series";

export interface ChartOptions {
  metric: "both" | "tps" | "latency";
  percentile: Percentile;
  exclude: readonly string[];
}

export const defaultChartOptions: ChartOptions = { metric: "both", percentile: "p99", exclude: [] };

/** What the throughput of a test counts. */
const unitOf = ({ alpha }: { alpha: number | null }) => (alpha === null ? "operations" : "transfers");

/** The charts of one load, each an SVG. */
export function chartsOf(lines: readonly RunLine[], { metric, percentile, exclude }: ChartOptions): string[] {
  const shown = lines.filter((line) => !exclude.includes(line.system));
  if (shown.length === 0) return [];
  const throughput = {
    title: "Throughput",
    subtitle: `acknowledged ${unitOf(shown[0]!)} per second, log scale`,
    value: (point: SeriesPoint) => point.tps,
  };
  const latency = {
    title: `Latency, ${percentile}`,
    subtitle: "milliseconds from call to acknowledgement, log scale",
    value: (point: SeriesPoint) => point[`${percentile}_ms`],
  };
  const charts = { both: [throughput, latency], tps: [throughput], latency: [latency] }[metric];
  return charts.map((chart) => lineChart({ ...chart, lines: shown, isLog: true }));
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
  const first = rows[0];
  if (!first) return [];
  const { comparable, others } = byClass(rows);
  const load = first.alpha === null ? "" : ` ${loadText(first)}, ${first.clients} connections`;
  const nameOf = namesOf(rows);
  const chart = (title: string, chosen: readonly SummaryRow[]) => {
    const bars = chosen.map((row) => barOf(nameOf(row), row));
    return chosen.length === 0 ? [] : [barChart(title, [`${spreadText(chosen)}.${load}`, origin], bars)];
  };
  return [
    ...chart(`Acknowledged ${unitOf(first)} per second, mean`, comparable),
    ...chart("Not to be compared with the others", others),
  ];
}

/** Throughput by the processor time of the server, of those that are compared. */
function efficiencyOf(rows: readonly SummaryRow[]): string[] {
  const nameOf = namesOf(rows);
  const bars = byClass(rows).comparable.flatMap((row): Bar[] => {
    const value = row.opsPerCpuSecond;
    if (value === null || row.didNotComplete) return [];
    return [{ ...barOf(nameOf(row), row), value, error: 0, text: formatInteger(value) }];
  });
  if (bars.length === 0) return [];
  const sorted = bars.sort((a, b) => b.value - a.value);
  return [barChart("Efficiency", [`${unitOf(rows[0]!)} per second of server CPU`], sorted)];
}

type Named = Pick<SummaryRow, "system" | "clients" | "inFlight" | "parameters">;

/** A system's name, with what its rows differ in. */
function namesOf(rows: readonly Named[]): (row: Named) => string {
  const partsOf = ({ clients, inFlight, parameters }: Named) => [
    ...[`${clients} clients`, `×${inFlight}`],
    ...parameters.split(", "),
  ];
  const all = rows.map((row) => new Set(partsOf(row)));
  const nameOf = (row: Named) => partsOf(row).filter((part) => !all.every((parts) => parts.has(part)));
  return (row) => [row.system, nameOf(row).join(", ")].filter(Boolean).join(" · ");
}

/** What the bars and the lines on them are, by the number of runs that the rows have. */
function spreadText(rows: readonly SummaryRow[]): string {
  const least = Math.min(...rows.map(({ runs }) => runs));
  const most = Math.max(...rows.map(({ runs }) => runs));
  const runs = least === most ? String(least) : `${least} to ${most}`;
  if (least >= 3) return `Mean of ${runs} runs; line: 95 % interval`;
  const spread = rows.some(({ alpha }) => alpha !== null) ? "its seconds" : "its repetitions";
  return most === 1 ? `One run each; line: spread of ${spread}` : `Mean of ${runs} runs; line: spread`;
}

function byClass(rows: readonly SummaryRow[]): { comparable: SummaryRow[]; others: SummaryRow[] } {
  const sorted = [...rows].sort((a, b) => b.tps - a.tps);
  return {
    comparable: sorted.filter((row) => row.systemClass === "full-stack"),
    others: sorted.filter((row) => row.systemClass !== "full-stack"),
  };
}

const barOf = (name: string, row: SummaryRow): Bar => ({
  name,
  server: row.server,
  system: row.system,
  value: row.didNotComplete ? 0 : row.tps,
  error: row.didNotComplete ? 0 : (row.tpsConfidence95 ?? row.tpsStddev ?? 0),
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

/** Fewer points than this make no line. */
const pointsLeast = 3;

export function htmlPage(files: readonly RunFile[], absent: readonly Absence[]): string {
  const first = files[0]!;
  const isNative = first.load_generator === "native";
  const tests = [...new Set(files.map((file) => file.test))];
  const systems = new Set(files.map((file) => file.results[0].system)).size;
  const title = `${tests.join(", ")}${isNative ? " by the native load generator" : ""}: ${systems} systems side by side`;
  const parts = [
    `<h1>${escapeXml(title)}</h1>`,
    `<p class="soft">${escapeXml(settingsOf(first))}<br>${escapeXml(machineOf(first.hardware))}</p>`,
    ...tests.flatMap((test) => sectionsOf(files.filter((file) => file.test === test))),
  ];
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

/** The loads of test-1 have a section each; another test has one for all of them. */
function sectionsOf(files: readonly RunFile[]): string[] {
  const first = files[0]!;
  const rows = summaryRows(files);
  const lines = linesOf(files);
  const origin = originOf(files);
  if (first.alpha === null) return section(first.test, rows, lines, origin);
  return loadsOf(rows).flatMap((load) =>
    section(loadText(load), rows.filter(isOf(load)), lines.filter(isOf(load)), origin),
  );
}

function section(
  title: string,
  rows: readonly SummaryRow[],
  lines: readonly RunLine[],
  origin: string,
): string[] {
  const { comparable, others } = byClass(rows);
  const p50 = { ...defaultChartOptions, metric: "latency", percentile: "p50" } as const;
  const nameOf = namesOf(rows);
  const named = lines.map((line) => ({ ...line, name: nameOf(line) }));
  const hasLines = lines.some(({ points }) => points.length >= pointsLeast);
  const charts = [
    barsOf(rows, origin).join("\n"),
    ...efficiencyOf(rows),
    ...(hasLines ? [...chartsOf(named, defaultChartOptions), ...chartsOf(named, p50)] : []),
  ];
  const table = (chosen: readonly SummaryRow[]) =>
    chosen.length > 0 ? `<div class="scroll">${htmlTable(chosen)}</div>` : "";
  return [
    `<h2>${escapeXml(title)}</h2>`,
    `<div class="charts">${charts.map((chart) => `<figure>${chart}</figure>`).join("\n")}</div>`,
    table(comparable),
    others.length > 0 ? `<h3>Not to be compared with the others</h3>${table(others)}` : "",
  ];
}

function htmlTable(rows: readonly SummaryRow[]): string {
  const columns = columnsOf(rows);
  const kinds = columns.map(({ isText }) => (isText ? ' class="text"' : ""));
  const head = columns.map(({ title }, i) => `<th${kinds[i]}>${escapeXml(title)}</th>`).join("");
  const body = rows.map((row) => {
    const cells = columns.map(({ cell }, i) => `<td${kinds[i]}>${escapeXml(cell(row))}</td>`).join("");
    return `<tr${row.invalid.length > 0 ? ' class="invalid"' : ""}>${cells}</tr>`;
  });
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`;
}

const readingTypeScript =
  "One client program in TypeScript drives every system, on this machine, with the same operations in the same order. Only acknowledged ones count.";
const readingNative =
  "A native load generator drives every system that it can reach, on this machine, with the same sequence of transfers. Only acknowledged transfers count. This is an experiment of its own: do not mix it with rows of the client program in TypeScript.";
const reading = [
  "A row is <b>invalid</b> if the data were wrong after the run, and <b>client-bound</b> if the client had less than 20&nbsp;% idle time: the system can do more than the row says.",
  "TPS of test-1 is the mean of whole seconds after the warm-up, with the spread of those seconds; of other tests it is the mean of their repetitions. From three runs on there is the 95&nbsp;% interval of their mean. Latencies are of all runs together; what was without an answer at the end counts with its age. A row in which more than 1&nbsp;% failed is no measurement of latency.",
  "Server CPU is everything but the client: database, server in front, platform. Rows of class <b>database direct</b> or <b>not durable</b> do less than the others and are not ranked with them.",
];

function loadText({ alpha, inFlight }: Load): string {
  const share =
    alpha === 0 ? "Every account equally often (alpha 0)" : `Few accounts in most transfers (alpha ${alpha})`;
  return `${share}, ${inFlight} in flight per connection`;
}

function settingsOf({ startedAt, seconds, config, concurrency, accounts, software }: RunFile): string {
  const warmup = config.warmupSec > 0 ? `, the first ${config.warmupSec} s left out` : "";
  return [
    startedAt.slice(0, 10),
    ...(accounts > 0
      ? [`${seconds} s per run${warmup}`, `${concurrency} clients`, `${formatInteger(accounts)} accounts`]
      : []),
    `commit ${software["suiteCommit"] ?? "unknown"}`,
  ].join(" · ");
}
