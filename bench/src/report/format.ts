// Figures as people read them.

import type { Parameters } from "../core/result";

/** 303920.4 is 303,920. */
export const formatInteger = (value: number): string => Math.round(value).toLocaleString("en-US");

/** Three significant digits, without exponents. */
export function formatLatency(milliseconds: number): string {
  if (milliseconds === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(milliseconds))));
  const rounded = Number(milliseconds.toPrecision(3));
  return rounded.toFixed(Math.min(digits, 6));
}

export const formatPercent = (share: number): string => `${(share * 100).toFixed(1)} %`;

export function formatBytes(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** What to say of a row that does not go over HTTP or a WebSocket as all of its kind do, or that could do either. */
export function transportNotes(system: string, transport: string): string[] {
  const isUsual =
    ["HTTP", "WebSocket", "WebSocket by ws"].includes(transport) && system !== "sqlite_batched_rpc";
  return isUsual ? [] : [`over ${transport}`];
}

/** `records 1,000, operations 10,000` */
export const formatParameters = (parameters: Parameters): string =>
  Object.entries(parameters)
    .map(([name, value]) => `${name} ${typeof value === "number" ? formatInteger(value) : value}`)
    .join(", ");

/** A column of a table: its title, and what it says of a row. */
export type TextColumn<Row> = readonly [title: string, cell: (row: Row) => string];

/** A table in Markdown. */
export function markdownTable<Row>(rows: readonly Row[], columns: readonly TextColumn<Row>[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "/").replaceAll("\n", " ")).join(" | ")} |`;
  return [
    line(columns.map(([title]) => title)),
    line(columns.map(() => "---")),
    ...rows.map((row) => line(columns.map(([, cell]) => cell(row)))),
  ].join("\n");
}
