// What a chart shows: a line per run, a colour per connector.

import type { RunFile, SeriesPoint } from "../core/result";
import { formatParameters } from "./format";

export interface RunLine {
  name: string;
  system: string;
  /** Null for every test but test-1. */
  alpha: number | null;
  inFlight: number;
  clients: number;
  parameters: string;
  warmupSec: number;
  points: SeriesPoint[];
}

/**
 * A server program, its colour on every page, of hues that people with colour-blindness tell apart, and the connectors that
 * it serves: one that is drawn as a line, and those that are dashed beside it.
 */
const servers: [name: string, hue: number, line: string, dashed: string][] = [
  ["Lightcone", 0, "lightcone", "spacetimedb spacetimedb_rust spacetimedb_http spacetimedb_sub"],
  ["SpacetimeDB", 1, "spacetimedb_ref", "spacetimedb_ref_rust"],
  ["Node.js, PostgreSQL", 4, "postgres_rpc", "postgres_rpc_read_committed"],
  ["Node.js, PostgreSQL", 4, "postgres_sproc_rpc", "postgres_sproc_rpc_read_committed"],
  ["PostgreSQL", 4, "postgres_direct", "postgres_drizzle_direct"],
  ["Node.js, SQLite", 5, "sqlite_rpc", ""],
  ["Node.js, SQLite in batches", 6, "sqlite_batched_rpc", ""],
  ["SQLite in the client", 5, "sqlite_direct", ""],
  ["Bun, PostgreSQL", 7, "bun", "bun_read_committed"],
  ["Node.js, a Map", 3, "node_memory_rpc", ""],
  ["Node.js, Supabase", 2, "supabase_rpc", ""],
  ["Node.js, CockroachDB", 3, "cockroach_rpc", ""],
  ["Node.js, PlanetScale", 2, "planetscale_pg_rpc", ""],
  ["Convex", 3, "convex", ""],
];
const systems = new Map(
  servers.flatMap(([name, hue, line, dashed]) =>
    `${line} ${dashed}`
      .trim()
      .split(" ")
      .map((system) => [system, { name, hue, dash: system !== line }] as const),
  ),
);
export const hueCount = 8;

/** The colour of a system is that of its server. */
export function styleOf(system: string): { hue: number; dash: boolean } {
  const known = systems.get(system);
  if (known) return known;
  // A connector of another test: some colour, always the same.
  let hash = 0;
  for (const character of system) hash = (hash * 31 + character.charCodeAt(0)) % 1009;
  return { hue: hash % hueCount, dash: hash % 2 === 1 };
}

/** Whose server a row is. A server that was found running is not known to be this repository's. */
export function serverOf(system: string, software: string | undefined): string {
  const name = systems.get(system)?.name;
  if (name === "Lightcone" && software?.startsWith("found at")) return `server ${software}`;
  return name ?? system;
}

export function linesOf(files: readonly RunFile[]): RunLine[] {
  return files.flatMap((file) =>
    file.results.map((entry) => ({
      name: entry.system,
      system: entry.system,
      alpha: file.alpha,
      inFlight: file.fairness.inflight,
      clients: file.concurrency,
      parameters: formatParameters(entry.parameters),
      warmupSec: file.config.warmupSec,
      points: entry.res.timeSeries.length > 0 ? entry.res.timeSeries : [entry.res.partialPoint],
    })),
  );
}

/** What is shown together: the same alpha and the same number of operations in flight. */
export interface Load {
  alpha: number | null;
  inFlight: number;
}

export const isOf =
  (load: Load) =>
  (other: Load): boolean =>
    other.alpha === load.alpha && other.inFlight === load.inFlight;

/** The loads that there are, by alpha and then by operations in flight. */
export function loadsOf(all: readonly Load[]): Load[] {
  const found = new Map(all.map(({ alpha, inFlight }) => [`${alpha} ${inFlight}`, { alpha, inFlight }]));
  return [...found.values()].sort((a, b) => (a.alpha ?? 0) - (b.alpha ?? 0) || a.inFlight - b.inFlight);
}
