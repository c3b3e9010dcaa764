// `pnpm run beside <directory>`: reports of the native load generator, named native-<round>-<connections>-<in flight>-<server>-
// <module>.json, as a table of medians with the smallest and the largest.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../config";
import { median } from "../core/statistics";
import { runProgram } from "../program";
import { formatInteger, formatLatency, markdownTable } from "./format";

interface Report {
  transfers_per_second: number;
  latency_ms: { p50: number; p99: number };
  failed: Record<string, number>;
  disconnects: Record<string, number>;
  unanswered: number;
  server: { cpu_us_per_transfer: number };
}

interface Run {
  load: string;
  system: string;
  report: Report;
}

const names: Record<string, string> = { ref: "SpacetimeDB 2.8.3", ours: "Lightcone" };
const modules: Record<string, string> = { ts: "TypeScript module", rust: "Rust module" };

export function readReports(directory: string): Run[] {
  return readdirSync(directory).flatMap((name) => {
    const [, connections, inFlight, server = "", module = ""] =
      /^native-\d+-(\d+)-(\d+)-(\w+)-(\w+)\.json$/.exec(name) ?? [];
    if (connections === undefined) return [];
    const report = JSON.parse(readFileSync(join(directory, name), "utf8")) as Report;
    const system = `${names[server] ?? server}, ${modules[module] ?? module}`;
    return [{ load: `${connections} × ${inFlight}`, system, report }];
  });
}

/** `5 (4 to 7)` */
export function spread(values: readonly number[], format: (value: number) => string): string {
  return `${format(median(values))} (${format(Math.min(...values))} to ${format(Math.max(...values))})`;
}

const failuresOf = ({ failed, disconnects, unanswered }: Report) =>
  [...Object.values(failed), ...Object.values(disconnects), unanswered].reduce(
    (sum, count) => sum + count,
    0,
  );

export function besideTable(runs: readonly Run[]): string {
  const keys = [...new Set(runs.map(({ load, system }) => `${load}|${system}`))].sort(
    (a, b) => inFlightOf(b) - inFlightOf(a) || a.localeCompare(b),
  );
  const rows = keys.map((key) => {
    const [load = "", system = ""] = key.split("|");
    const reports = runs.filter((run) => `${run.load}|${run.system}` === key).map(({ report }) => report);
    const figure = (of: (report: Report) => number, format: (value: number) => string) =>
      spread(reports.map(of), format);
    return [
      load,
      system,
      String(reports.length),
      figure((report) => report.transfers_per_second, formatInteger),
      figure((report) => report.latency_ms.p50, formatLatency),
      figure((report) => report.latency_ms.p99, formatLatency),
      figure((report) => report.server.cpu_us_per_transfer, formatLatency),
      String(reports.map(failuresOf).reduce((sum, count) => sum + count, 0)),
    ];
  });
  const header = [
    ...["connections × in flight", "server and module", "runs", "transfers/s", "p50 ms", "p99 ms"],
    ...["server CPU µs per transfer", "failed"],
  ];
  return markdownTable(header, rows);
}

/** Of a key that begins with e.g. `64 × 40`. */
const inFlightOf = (key: string) => {
  const [connections = 0, inFlight = 0] = key.split("|")[0]!.split(" × ").map(Number);
  return connections * inFlight;
};

runProgram(import.meta.filename, async () => {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new UsageError("usage: pnpm run beside <directory>");
  console.log(besideTable(readReports(directory)));
  return 0;
});
