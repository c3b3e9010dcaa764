// One self-contained HTML page per set of runs: charts, a table, and what a reader must know to judge them.

import type { Absence } from "../core/bench";
import type { Hardware } from "../core/hardware";
import type { RunFile } from "../core/results";
import { barChart, escapeXml, lineChart, type Percentile } from "./chart";
import { formatBytes, formatInteger, formatLatency, formatPercent } from "./format";
import { isOf, type Load, linesOf, loadsOf, type RunLine } from "./series";
import { type SummaryRow, summaryRows } from "./summary";
import { chartStyle, darkStyle } from "./theme";

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

/** Mean throughput with its spread, for one load; systems of other classes have bars of their own. */
export function barsOf(rows: readonly SummaryRow[]): string[] {
  const { comparable, others } = byClass(rows);
  const subtitle = "acknowledged transfers per second; line: spread of the seconds";
  return [
    ...(comparable.length > 0 ? [barChart("Throughput, mean", subtitle, comparable.map(barOf))] : []),
    ...(others.length > 0
      ? [barChart("Not to be compared with the others", subtitle, others.map(barOf))]
      : []),
  ];
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
  system: row.system,
  value: row.didNotComplete ? 0 : row.tps,
  error: row.didNotComplete ? 0 : (row.tpsConfidence95 ?? row.tpsStddev),
  text: row.didNotComplete ? "did not complete" : formatInteger(row.tps),
  note: noteOf(row),
});

function noteOf(row: SummaryRow): string {
  if (row.invalid.length > 0) return "invalid";
  if (row.systemClass !== "full-stack") return row.systemClass.replace("-", " ");
  return row.clientBound ? "client-bound" : "";
}

const page = (title: string, body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeXml(title)}</title>
<style>${chartStyle}${darkStyle}
body { margin: 0 auto; padding: 24px; max-width: 1440px; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 36px 0 8px; } h2::first-letter { text-transform: uppercase; }
h3 { font-size: 14px; margin: 16px 0 4px; }
p, li { max-width: 78ch; } .soft { color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); gap: 16px; }
.charts figure { margin: 0; padding: 12px; background: var(--card); border-radius: 8px; }
.charts svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { color: var(--soft); }
tr.invalid td { color: var(--soft); }
svg [data-name] { cursor: default; } svg.picking [data-name]:not(.picked) { opacity: .15; }
</style>
</head>
<body>
${body}
<script>
// Pointing at a name or a line shows it alone.
for (const svg of document.querySelectorAll("svg")) {
  svg.addEventListener("pointerover", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    for (const other of document.querySelectorAll("svg")) {
      const parts = [...other.querySelectorAll("[data-name]")];
      const has = name !== undefined && parts.some((part) => part.dataset.name === name);
      other.classList.toggle("picking", has);
      for (const part of parts) part.classList.toggle("picked", part.dataset.name === name);
    }
  });
}
</script>
</body>
</html>
`;

export function htmlPage(test: string, files: readonly RunFile[], absent: readonly Absence[]): string {
  const rows = summaryRows(files);
  const lines = linesOf(files);
  const first = files[0]!;
  const title = `${test}: ${new Set(rows.map((row) => row.system)).size} systems side by side`;
  const parts = [
    `<h1>${escapeXml(title)}</h1>`,
    `<p class="soft">${escapeXml(settingsOf(first))}<br>${escapeXml(machineOf(first.hardware))}</p>`,
  ];
  for (const load of loadsOf(rows)) {
    const ofLoad = rows.filter(isOf(load));
    const linesOfLoad = lines.filter(isOf(load));
    const p50 = chartsOf(linesOfLoad, { ...defaultChartOptions, metric: "latency", percentile: "p50" });
    const charts = [barsOf(ofLoad).join("\n"), ...chartsOf(linesOfLoad, defaultChartOptions), ...p50];
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
  parts.push(`<h2>How to read this</h2><ul>${reading.map((text) => `<li>${text}</li>`).join("")}</ul>`);
  return page(title, parts.join("\n"));
}

const reading = [
  "One client program in TypeScript drives every system, on this machine, with the same sequence of transfers. Only acknowledged transfers count.",
  "A row is <b>invalid</b> if the balances were wrong after the run, and <b>client-bound</b> if the client had less than 20&nbsp;% idle time: the system can do more than the row says.",
  "TPS is the mean of whole seconds after the warm-up; ± is the spread of those seconds, or the 95&nbsp;% interval over runs from three runs on. Latencies are medians of the seconds' percentiles.",
  "Server CPU is everything but the client: database, server in front, platform. Rows of class <b>database direct</b> or <b>not durable</b> do less than the others and are not ranked with them.",
];

const loadText = ({ alpha, inFlight }: Load) =>
  `${alpha === 0 ? "every account equally often (alpha 0)" : `few accounts in most transfers (alpha ${alpha})`}, ` +
  `${inFlight} in flight per connection`;

function settingsOf(file: RunFile): string {
  const warmup = file.config.warmupSec > 0 ? `, the first ${file.config.warmupSec} s left out` : "";
  return (
    `${file.startedAt.slice(0, 10)} · ${file.seconds} s per run${warmup} · ${file.concurrency} clients · ` +
    `${formatInteger(file.accounts)} accounts · commit ${file.software["suiteCommit"] ?? "unknown"}`
  );
}

const machineOf = (hardware: Hardware) =>
  `${hardware.hardwareThreads} × ${hardware.cpu}, ${formatBytes(hardware.ramBytes)} memory, ${hardware.distribution}, ` +
  `kernel ${hardware.kernel}, ${hardware.virtualization}, ${hardware.fileSystem}; a sync of 4 KiB takes ` +
  `${hardware.fdatasync_p50_us} µs (p99 ${hardware.fdatasync_p99_us} µs); load average at start ${hardware.loadAverage1.toFixed(2)}`;

type Column = [header: string, cell: (row: SummaryRow) => string, kind?: "text"];

const orNone = <T>(value: T | null, format: (value: T) => string) => (value === null ? "–" : format(value));

const columns: Column[] = [
  ["system", (row) => row.system],
  ["TPS", (row) => (row.didNotComplete ? "did not complete" : formatInteger(row.tps))],
  ["±", (row) => formatInteger(row.tpsConfidence95 ?? row.tpsStddev)],
  ["p50 ms", (row) => formatLatency(row.p50_ms)],
  ["p99 ms", (row) => formatLatency(row.p99_ms)],
  ["TPS per<br>CPU-second", (row) => orNone(row.opsPerCpuSecond, formatInteger)],
  ["server<br>CPU s", (row) => orNone(row.serverCpuSeconds, (seconds) => seconds.toFixed(1))],
  ["written<br>per transfer", (row) => orNone(row.writtenBytesPerOp, formatBytes)],
  ["peak<br>memory", (row) => orNone(row.peakServerMemoryBytes, formatBytes)],
  ["client<br>idle", (row) => orNone(row.clientIdleShare, formatPercent)],
  ["clients", (row) => String(row.clients)],
  ["in flight<br>each", (row) => String(row.inFlight)],
  ["pool", (row) => (row.poolMax === null ? "–" : String(row.poolMax))],
  ["round<br>trips", (row) => String(row.roundTripsPerTx)],
  ["errors", (row) => formatInteger(row.errors + row.timeouts)],
  ["collisions", (row) => formatPercent(row.collisionRate)],
  ["verified", (row) => row.verify],
  ["isolation", (row) => row.isolation, "text"],
  ["durability", (row) => row.durability, "text"],
  ["notes", (row) => [...row.invalid, noteOf(row)].filter(Boolean).join("; "), "text"],
];

function table(rows: readonly SummaryRow[]): string {
  const kind = (column: Column) => (column[2] ? ` class="${column[2]}"` : "");
  const head = columns.map((column) => `<th${kind(column)}>${column[0]}</th>`).join("");
  const body = rows.map((row) => {
    const cells = columns.map((column) => `<td${kind(column)}>${escapeXml(column[1](row))}</td>`).join("");
    return `<tr${row.invalid.length > 0 ? ' class="invalid"' : ""}>${cells}</tr>`;
  });
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`;
}
