// Published figures beside the measured ones (section 23): of other hardware, so their ratios are only a hint.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageDirectory } from "../init/commands";
import { formatInteger, formatLatency, markdownTable } from "./format";
import { latencyText, type SummaryRow } from "./rows";

export interface PublishedFigure {
  seed: string;
  test: string;
  variant: string;
  system: string;
  metric: string;
  value: number;
  stddev?: number;
  unit: string;
  hardware: string;
  note?: string;
}

/** The machines that published figures were measured on. */
export const publishedHardware: Record<string, string> = {
  H4: "Intel i9-14900K, 24 cores, 128 GB, Ubuntu 24.04, bare metal; client, server and database on one host",
  "H4-PS":
    "client and RPC server on AWS m7i.8xlarge; hosted PostgreSQL 18.3: one node of 32 vCPU and 256 GB, or a primary with 2 replicas",
  "H4-CR": "5 nodes of i9-14900K class in one zone",
  H1: "Apple M1 Max, 10 cores, 64 GB, NVMe; a million records and operations, 64 threads; PostgreSQL 15, MongoDB 6.0, MySQL 8.0",
  H2: "AMD Ryzen 7 9800X3D, 8 cores, 125 GiB, Linux 6.18, PostgreSQL 16 in a container",
  H0: "Intel i5-13400, 10 cores, 64 GB, PostgreSQL in WSL2",
  H3: "Apple M1 MacBook, local databases",
  hosted: "rented servers and databases, as the row says",
  unknown: "not stated",
};

let scoreboard: PublishedFigure[] | undefined;

export function publishedFigures(): PublishedFigure[] {
  scoreboard ??= JSON.parse(
    readFileSync(join(packageDirectory, "scoreboard.json"), "utf8"),
  ) as PublishedFigure[];
  return scoreboard;
}

/** Our own client is compared with the published figure of the system whose interface it speaks. */
const counterparts: Record<string, string> = { lightcone: "spacetimedb" };

/** The Markdown table for these rows; undefined where nothing was published for any of them. */
export function publishedTable(test: string, rows: readonly SummaryRow[]): string | undefined {
  const figures = publishedFigures().filter((figure) => figure.test === test);
  const found = rows.flatMap((row) => {
    const system = counterparts[row.system] ?? row.system;
    const variant = `alpha=${row.alpha} inflight=${row.inFlight}`;
    const find = (metric: string) =>
      figures.find(
        (figure) => figure.system === system && figure.variant === variant && figure.metric === metric,
      );
    const tps = find("tps");
    if (!tps || row.invalid.length > 0 || row.didNotComplete) return [];
    return [{ row, tps, p50: find("p50_ms") }];
  });
  if (found.length === 0) return undefined;
  const table = markdownTable(found, [
    ["System", ({ row }) => row.system],
    ["alpha", ({ row }) => String(row.alpha)],
    ["in flight", ({ row }) => String(row.inFlight)],
    [
      "published TPS",
      ({ tps: { value, stddev } }) =>
        `${formatInteger(value)}${stddev === undefined ? "" : ` ± ${formatInteger(stddev)}`}`,
    ],
    ["measured TPS", ({ row }) => formatInteger(row.tps)],
    ["ratio", ({ row, tps }) => (row.tps / tps.value).toPrecision(3)],
    ["published p50 ms", ({ p50 }) => (p50 ? formatLatency(p50.value) : "–")],
    ["measured p50 ms", ({ row }) => latencyText(row, row.p50_ms)],
    ["published on", ({ tps }) => publishedHardware[tps.hardware] ?? tps.hardware],
  ]);
  const hint = "The published figures are of other hardware (300 s, 64 clients): the ratios are only a hint.";
  return ["## Published and measured", hint, table].join("\n\n");
}
