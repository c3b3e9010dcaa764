// The tables at the end, as Markdown (section 6.4).

import type { Absence, RunFile, SerialExtras } from "../core/result";
import { columnsOf } from "./columns";
import { formatInteger, formatLatency, markdownTable } from "./format";
import { publishedTable } from "./published";
import { latencyText, type SummaryRow, summaryRows } from "./rows";

/** Systems of other classes get tables of their own: they are not compared with full stacks (section 12, claim 2). */
const classTitles: Record<string, string> = {
  "full-stack": " – full stacks: client, server and database",
  "database-direct": " – database without a server in front",
  "client-cache": " – answered from the client's cache",
  "not-durable": " – not durable",
};

/** The Markdown of everything. */
export function summaryMarkdown(files: readonly RunFile[], absent: readonly Absence[]): string {
  const parts: string[] = [];
  for (const test of new Set(files.map((file) => file.test))) {
    // The native load generator is another experiment (section 12, claim 8): tables of its own.
    for (const generator of [undefined, "native"] as const) {
      const own = files.filter((file) => file.test === test && file.load_generator === generator);
      parts.push(...tablesOf(`${test}${generator ? " by the native load generator" : ""}`, own));
    }
  }
  if (absent.length > 0) {
    const lines = absent.map(({ system, reason }) => `- ${system}: ${reason.split("\n")[0]}`);
    parts.push(`Without a result:\n\n${lines.join("\n")}`);
  }
  return `${parts.join("\n\n")}\n`;
}

function tablesOf(heading: string, files: readonly RunFile[]): string[] {
  const rows = summaryRows(files);
  const parts: string[] = [];
  for (const alpha of new Set(rows.map((row) => row.alpha))) {
    for (const [systemClass, title] of Object.entries(classTitles)) {
      const chosen = rows.filter((row) => row.alpha === alpha && row.systemClass === systemClass);
      if (chosen.length === 0) continue;
      const load = alpha === null ? "" : `, alpha ${alpha}`;
      parts.push(`## ${heading}${load}${title}\n\n${summaryTable(chosen)}`);
      const operations = operationTable(files.filter((file) => file.fairness.systemClass === systemClass));
      if (operations) parts.push(operations);
    }
  }
  const matrix = matrixTable(rows);
  if (matrix) parts.push(matrix);
  const published = publishedTable(heading, rows);
  if (published) parts.push(published);
  return parts;
}

function summaryTable(rows: readonly SummaryRow[]): string {
  const columns = columnsOf(rows);
  return markdownTable(
    columns.map(({ title }) => title),
    rows.map((row) => columns.map(({ cell }) => cell(row))),
  );
}

/** What one client in flight and many have to do with each other: in a closed loop, latency is in flight by throughput. */
function matrixTable(rows: readonly SummaryRow[]): string | undefined {
  const pairs = rows.flatMap((row) => {
    const one = rows.find((o) => o.system === row.system && o.alpha === row.alpha && !o.pipelined);
    return row.alpha !== null && row.pipelined && one ? [{ one, many: row }] : [];
  });
  if (pairs.length === 0) return undefined;
  const computed = ({ clients, inFlight, tps }: SummaryRow) =>
    tps === 0 ? 0 : (clients * inFlight * 1000) / tps;
  const lines = pairs.map(({ one, many }) => [
    many.system,
    String(many.alpha),
    String(many.clients * many.inFlight),
    formatInteger(one.tps),
    formatInteger(many.tps),
    ...[one, many].flatMap((row) => [latencyText(row, row.p50_ms), formatLatency(computed(row))]),
  ]);
  const deep = `TPS ${pairs[0]!.many.inFlight}-deep`;
  const header = ["System", "alpha", "in flight", "TPS off", deep, "p50 off", "computed mean off"];
  return `## One and many in flight\n\n${markdownTable([...header, "p50 deep", "computed mean deep"], lines)}`;
}

const extrasOf = (file: RunFile) => file.results[0].res.extras as Partial<SerialExtras>;

/**
 * Operations of serial tests side by side (section 18.1): microseconds per row, a column per system, and one more for reads
 * inside the server. Empty for tests that are not serial.
 */
export function operationTable(files: readonly RunFile[]): string {
  const serial = files.filter((file) => extrasOf(file).rows_per_operation !== undefined);
  if (serial.length === 0) return "";
  const rowsOf = new Map(serial.flatMap((file) => Object.entries(extrasOf(file).rows_per_operation!)));
  const columns = serial.flatMap((file) => {
    const { system, res } = file.results[0];
    const hot = extrasOf(file).engine_hot_us ?? {};
    const isCached = file.fairness.systemClass === "client-cache";
    const own = {
      title: isCached ? `${system}, reads from the client-cache` : system,
      cell: (kind: string, rows: number) => {
        const result = res.ops[kind];
        return result && result.ok > 0 ? formatLatency((result.mean_ms * 1000) / rows) : "–";
      },
    };
    if (Object.keys(hot).length === 0) return [own];
    const cell = (kind: string) => (hot[kind] === undefined ? "–" : formatLatency(hot[kind]));
    return [own, { title: `${system}, engine-hot`, cell }];
  });
  const lines = [...rowsOf].map(([kind, rows]) => [
    rows === 1 ? kind : `${kind}, per row (${rows})`,
    ...columns.map(({ cell }) => cell(kind, rows)),
  ]);
  return markdownTable(["Mean µs", ...columns.map(({ title }) => title)], lines);
}
