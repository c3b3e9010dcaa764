// The columns of every table, in Markdown and on pages: those of section 6.4, and what single tests have besides.

import { formatBytes, formatInteger, formatLatency, formatPercent } from "./format";
import { latencyText, notesOf, type SummaryRow } from "./rows";

export interface Column {
  title: string;
  cell(row: SummaryRow): string;
  /** Text is aligned to the left. */
  isText?: boolean;
  /** Rows that have such a figure; a table without one leaves the column out. */
  has?(row: SummaryRow): boolean;
}

const orNone = <T>(value: T | null, format: (value: T) => string) => (value === null ? "–" : format(value));

const isTransfers = ({ alpha }: SummaryRow) => alpha !== null;
const isOther = ({ alpha }: SummaryRow) => alpha === null;

function rateText(row: SummaryRow): string {
  const rate = row.didNotComplete ? "did not complete" : formatInteger(row.tps);
  return row.invalid.length > 0 && !row.didNotComplete ? `invalid (${rate})` : rate;
}

function spreadText({ tpsStddev, tpsConfidence95, runs }: SummaryRow): string {
  const interval =
    tpsConfidence95 === null ? "" : ` (95 % of ${runs} runs: ±${formatInteger(tpsConfidence95)})`;
  return orNone(tpsStddev, formatInteger) + interval;
}

const kindsText = ({ ops }: SummaryRow) =>
  Object.entries(ops)
    .map(([kind, { mean_ms, p99_ms }]) => `${kind} ${formatLatency(mean_ms)} / ${formatLatency(p99_ms)}`)
    .join(", ");

const columns: readonly Column[] = [
  { title: "System", cell: (row) => row.system },
  { title: "parameters", cell: (row) => row.parameters, has: isOther, isText: true },
  { title: "clients", cell: (row) => String(row.clients) },
  { title: "pipelining", cell: (row) => (row.pipelined ? String(row.inFlight) : "off") },
  { title: "max_pool", cell: (row) => (row.poolMax === null ? "N/A" : String(row.poolMax)) },
  { title: "TPS", cell: rateText },
  { title: "TPS Stddev", cell: spreadText },
  { title: "p50 lat ms", cell: (row) => latencyText(row, row.p50_ms) },
  { title: "p99 lat ms", cell: (row) => latencyText(row, row.p99_ms) },
  { title: "max lat ms", cell: (row) => latencyText(row, row.max_ms) },
  { title: "by kind: mean / p99 ms", cell: kindsText, has: isOther, isText: true },
  { title: "failed", cell: (row) => formatPercent(row.failureShare) },
  { title: "server", cell: (row) => row.server, isText: true },
  { title: "isolation", cell: (row) => row.isolation, isText: true },
  { title: "durability", cell: (row) => row.durability, isText: true },
  { title: "round trips/tx", cell: (row) => String(row.roundTripsPerTx) },
  { title: "errors", cell: (row) => String(row.errors + row.timeouts) },
  { title: "misses", cell: (row) => String(row.misses), has: ({ misses }) => misses > 0 },
  { title: "collision rate", cell: (row) => orNone(row.collisionRate, formatPercent), has: isTransfers },
  { title: "verify", cell: (row) => row.verify },
  {
    title: "loaded rows/s",
    cell: (row) => orNone(row.loadedRowsPerSecond, formatInteger),
    has: (row) => row.loadedRowsPerSecond !== null,
  },
  { title: "server CPU s", cell: (row) => orNone(row.serverCpuSeconds, (seconds) => seconds.toFixed(2)) },
  { title: "TPS per CPU-s", cell: (row) => orNone(row.opsPerCpuSecond, formatInteger) },
  { title: "disk writes/tx", cell: (row) => orNone(row.writtenBytesPerOp, formatBytes) },
  { title: "data", cell: (row) => orNone(row.dataBytes, formatBytes), has: isOther },
  { title: "peak memory", cell: (row) => orNone(row.peakServerMemoryBytes, formatBytes) },
  { title: "client idle", cell: (row) => orNone(row.clientIdleShare, formatPercent) },
  { title: "notes", cell: (row) => notesOf(row).join("; "), isText: true },
];

/** The columns that a table of these rows has. */
export const columnsOf = (rows: readonly SummaryRow[]): Column[] =>
  columns.filter(({ has }) => has === undefined || rows.some(has));
