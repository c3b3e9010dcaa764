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

/** The reports of one load and system. */
interface Group {
  load: string;
  system: string;
  inFlight: number;
  reports: Report[];
}

function groupsOf(runs: readonly Run[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { load, system, report } of runs) {
    const key = `${load}|${system}`;
    const [connections = 0, inFlight = 0] = load.split(" × ").map(Number);
    const group = groups.get(key) ?? { load, system, inFlight: connections * inFlight, reports: [] };
    group.reports.push(report);
    groups.set(key, group);
  }
  const keyOf = ({ load, system }: Group) => `${load}|${system}`;
  return [...groups.values()].sort((a, b) => b.inFlight - a.inFlight || keyOf(a).localeCompare(keyOf(b)));
}

export function besideTable(runs: readonly Run[]): string {
  const figure =
    (of: (report: Report) => number, format: (value: number) => string) =>
    ({ reports }: Group) =>
      spread(reports.map(of), format);
  return markdownTable(groupsOf(runs), [
    ["connections × in flight", ({ load }) => load],
    ["server and module", ({ system }) => system],
    ["runs", ({ reports }) => String(reports.length)],
    ["transfers/s", figure((report) => report.transfers_per_second, formatInteger)],
    ["p50 ms", figure((report) => report.latency_ms.p50, formatLatency)],
    ["p99 ms", figure((report) => report.latency_ms.p99, formatLatency)],
    ["server CPU µs per transfer", figure((report) => report.server.cpu_us_per_transfer, formatLatency)],
    ["failed", ({ reports }) => String(reports.map(failuresOf).reduce((sum, count) => sum + count, 0))],
  ]);
}

runProgram(import.meta.filename, async () => {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new UsageError("usage: pnpm run beside <directory>");
  console.log(besideTable(readReports(directory)));
  return 0;
});
