// The page of the tests other than test-1: a section per test, with bars, lines over time and a table.

import type { Absence } from "../core/bench";
import type { WorkloadFile } from "../workloads/results";
import { type Bar, barChart, escapeXml, lineChart } from "./chart";
import { formatBytes, formatInteger, formatLatency, formatPercent } from "./format";
import { type Column, htmlTable, machineOf, page } from "./html";
import { type RunLine, serverOf } from "./series";

/** Fewer points than this make no line. */
const pointsLeast = 3;

interface Row {
  name: string;
  file: WorkloadFile;
}

const resultOf = ({ file }: Row) => file.results[0]!.res;

/** A system's name, with what its rows differ in: clients, operations in flight, parameters. */
function namedRows(files: readonly WorkloadFile[]): Row[] {
  const varies = (of: (file: WorkloadFile) => unknown) =>
    new Set(files.map((file) => String(of(file)))).size > 1;
  const parameters = Object.keys(files[0]!.results[0]!.parameters).filter((name) =>
    varies((file) => file.results[0]!.parameters[name]),
  );
  const hasClients = varies((file) => file.concurrency);
  const hasInFlight = varies((file) => file.fairness.inflight);
  return files.map((file) => {
    const { system, parameters: own } = file.results[0]!;
    const suffixes = [
      hasClients ? `${file.concurrency} clients` : "",
      hasInFlight ? `×${file.fairness.inflight}` : "",
      ...parameters.map((name) => `${name} ${own[name]}`),
    ].filter(Boolean);
    return { name: [system, suffixes.join(", ")].filter(Boolean).join(" · "), file };
  });
}

function noteOf(row: Row): string {
  if (resultOf(row).invalid.length > 0) return "invalid";
  if (row.file.machineBusy !== undefined) return "busy machine";
  const { systemClass } = row.file.fairness;
  if (systemClass !== "full-stack") return systemClass.replaceAll("-", " ");
  return resultOf(row).cpu?.client_bound ? "client-bound" : "";
}

function bars(
  title: string,
  subtitle: string,
  rows: readonly Row[],
  of: (row: Row) => [number, number] | null,
): string {
  const shown = rows.flatMap((row): Bar[] => {
    const figure = of(row);
    if (!figure) return [];
    const [value, error] = figure;
    const { system } = row.file.results[0]!;
    const server = serverOf(system, row.file.software["server"]);
    return [{ name: row.name, server, system, value, error, text: formatInteger(value), note: noteOf(row) }];
  });
  if (shown.length === 0) return "";
  return barChart(
    title,
    [subtitle],
    shown.sort((a, b) => b.value - a.value),
  );
}

function linesOf(rows: readonly Row[]): RunLine[] {
  return rows.flatMap(({ name, file }) => {
    const { system, res } = file.results[0]!;
    if (res.timeSeries.length < pointsLeast) return [];
    return [
      {
        name,
        system,
        alpha: 0,
        inFlight: file.fairness.inflight,
        warmupSec: file.config.warmupSec,
        points: res.timeSeries,
      },
    ];
  });
}

const columns: Column<Row>[] = [
  ["system", ({ name }) => name],
  ["per second", (row) => formatInteger(resultOf(row).repetitions.tps_mean)],
  [
    "±",
    (row) => {
      const { each, tps_stdev } = resultOf(row).repetitions;
      return each.length < 2 ? "–" : formatInteger(tps_stdev);
    },
  ],
  ["mean ms", (row) => formatLatency(resultOf(row).mean_ms)],
  ["p50 ms", (row) => formatLatency(resultOf(row).p50_ms)],
  ["p99 ms", (row) => formatLatency(resultOf(row).p99_ms)],
  [
    "per<br>CPU-second",
    (row) => {
      const rate = resultOf(row).cpu?.ops_per_cpu_s;
      return rate == null ? "–" : formatInteger(rate);
    },
  ],
  [
    "server CPU<br>average",
    (row) => {
      const server = resultOf(row).cpu?.server;
      return server ? formatPercent(server.cpu_avg_pct / 100) : "–";
    },
  ],
  [
    "peak<br>memory",
    (row) => {
      const server = resultOf(row).cpu?.server;
      return server ? formatBytes(server.peak_rss_bytes) : "–";
    },
  ],
  ["loaded<br>rows/s", (row) => formatInteger(resultOf(row).load?.rows_per_s ?? 0)],
  ["clients", ({ file }) => String(file.concurrency)],
  ["in flight<br>each", ({ file }) => String(file.fairness.inflight)],
  ["errors", (row) => formatInteger(resultOf(row).errors + resultOf(row).timeouts)],
  ["misses", (row) => formatInteger(resultOf(row).misses)],
  ["verified", (row) => (resultOf(row).verify.ran ? (resultOf(row).verify.ok ? "yes" : "FAILED") : "no")],
  [
    "by kind: mean / p99 ms",
    (row) =>
      Object.entries(resultOf(row).ops)
        .map(([kind, { mean_ms, p99_ms }]) => `${kind} ${formatLatency(mean_ms)} / ${formatLatency(p99_ms)}`)
        .join(", "),
    "text",
  ],
  ["durability", ({ file }) => file.fairness.durability, "text"],
  ["notes", (row) => [...resultOf(row).invalid, noteOf(row)].filter(Boolean).join("; "), "text"],
];

function section(test: string, files: readonly WorkloadFile[]): string {
  const rows = namedRows(files);
  const comparable = rows.filter(({ file }) => file.fairness.systemClass === "full-stack");
  const others = rows.filter(({ file }) => file.fairness.systemClass !== "full-stack");
  const throughput = (row: Row): [number, number] => {
    const { tps_mean, tps_stdev } = resultOf(row).repetitions;
    return [tps_mean, tps_stdev];
  };
  const perCpu = (row: Row): [number, number] | null => {
    const rate = resultOf(row).cpu?.ops_per_cpu_s;
    return rate == null ? null : [rate, 0];
  };
  const spread = "line: spread of the repetitions";
  const lines = linesOf(rows);
  const charts = [
    bars("Throughput", `operations per second; ${spread}`, comparable, throughput) +
      bars("Not to be compared with the others", `operations per second; ${spread}`, others, throughput),
    bars("Efficiency", "operations per second of server CPU", comparable, perCpu),
    ...(lines.length === 0
      ? []
      : [
          lineChart({
            title: "Throughput over time",
            subtitle: "operations per second, log scale",
            lines,
            value: (point) => point.tps,
            isLog: true,
          }),
          lineChart({
            title: "Latency over time, p99",
            subtitle: "milliseconds, log scale",
            lines,
            value: (point) => point.p99_ms,
            isLog: true,
          }),
        ]),
  ].filter(Boolean);
  const order = (all: readonly Row[]) =>
    [...all].sort((a, b) => resultOf(b).repetitions.tps_mean - resultOf(a).repetitions.tps_mean);
  const table = (all: readonly Row[]) =>
    `<div class="scroll">${htmlTable(columns, order(all), (row) => resultOf(row).invalid.length > 0)}</div>`;
  return [
    `<h2>${escapeXml(test)}</h2>`,
    `<div class="charts">${charts.map((chart) => `<figure>${chart}</figure>`).join("\n")}</div>`,
    comparable.length > 0 ? table(comparable) : "",
    others.length > 0 ? `<h3>Not to be compared with the others</h3>${table(others)}` : "",
  ].join("\n");
}

export function workloadPage(files: readonly WorkloadFile[], absent: readonly Absence[]): string {
  const first = files[0]!;
  const tests = [...new Set(files.map((file) => file.test))];
  const title = `${tests.join(", ")}: systems side by side`;
  const commit = first.software["suiteCommit"] ?? "unknown";
  const parts = [
    `<h1>${escapeXml(title)}</h1>`,
    `<p class="soft">${escapeXml(`${first.startedAt.slice(0, 10)} · commit ${commit}`)}<br>${escapeXml(machineOf(first.hardware))}</p>`,
    ...tests.map((test) =>
      section(
        test,
        files.filter((file) => file.test === test),
      ),
    ),
  ];
  if (absent.length > 0) {
    const items = absent.map(
      ({ system, reason }) => `<li><b>${escapeXml(system)}</b>: ${escapeXml(reason.split("\n")[0]!)}</li>`,
    );
    parts.push(`<h2>Without a result</h2><ul>${items.join("")}</ul>`);
  }
  return page(title, parts.join("\n"));
}
