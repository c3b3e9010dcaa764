// The tables at the end, as Markdown (section 6.4).

import type { Absence, RunFile, SerialExtras } from "../core/result";
import { columnsOf } from "./columns";
import { formatInteger, formatLatency, markdownTable, type TextColumn } from "./format";
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

const summaryTable = (rows: readonly SummaryRow[]) =>
  markdownTable(
    rows,
    columnsOf(rows).map(({ title, cell }) => [title, cell]),
  );

/** What one client in flight and many have to do with each other: in a closed loop, latency is in flight by throughput. */
function matrixTable(rows: readonly SummaryRow[]): string | undefined {
  const pairs = rows.flatMap((row) => {
    const one = rows.find((o) => o.system === row.system && o.alpha === row.alpha && !o.pipelined);
    return row.alpha !== null && row.pipelined && one ? [{ one, many: row }] : [];
  });
  if (pairs.length === 0) return undefined;
  const computed = ({ clients, inFlight, tps }: SummaryRow) =>
    tps === 0 ? 0 : (clients * inFlight * 1000) / tps;
  const table = markdownTable(pairs, [
    ["System", ({ many }) => many.system],
    ["alpha", ({ many }) => String(many.alpha)],
    ["in flight", ({ many }) => String(many.clients * many.inFlight)],
    ["TPS off", ({ one }) => formatInteger(one.tps)],
    [`TPS ${pairs[0]!.many.inFlight}-deep`, ({ many }) => formatInteger(many.tps)],
    ["p50 off", ({ one }) => latencyText(one, one.p50_ms)],
    ["computed mean off", ({ one }) => formatLatency(computed(one))],
    ["p50 deep", ({ many }) => latencyText(many, many.p50_ms)],
    ["computed mean deep", ({ many }) => formatLatency(computed(many))],
  ]);
  return `## One and many in flight\n\n${table}`;
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
  type Operation = [kind: string, rows: number];
  const columns = serial.flatMap((file): TextColumn<Operation>[] => {
    const { system, res } = file.results[0];
    const hot = extrasOf(file).engine_hot_us ?? {};
    const isCached = file.fairness.systemClass === "client-cache";
    const mean = ([kind, rows]: Operation) => {
      const result = res.ops[kind];
      return result && result.ok > 0 ? formatLatency((result.mean_ms * 1000) / rows) : "–";
    };
    const own = [isCached ? `${system}, reads from the client-cache` : system, mean] as const;
    if (Object.keys(hot).length === 0) return [own];
    const cell = ([kind]: Operation) => (hot[kind] === undefined ? "–" : formatLatency(hot[kind]));
    return [own, [`${system}, engine-hot`, cell]];
  });
  const nameOf = ([kind, rows]: Operation) => (rows === 1 ? kind : `${kind}, per row (${rows})`);
  return markdownTable([...rowsOf], [["Mean µs", nameOf], ...columns]);
}
