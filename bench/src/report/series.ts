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

/** A server program: its name, and its colour on every page, of hues that people with colour-blindness tell apart. */
interface Server {
  name: string;
  hue: number;
}

const lightcone: Server = { name: "Lightcone", hue: 0 };
const reference: Server = { name: "SpacetimeDB", hue: 1 };
const nodePostgres: Server = { name: "Node.js, PostgreSQL", hue: 4 };
const nodeSqlite: Server = { name: "Node.js, SQLite", hue: 5 };
const bunPostgres: Server = { name: "Bun, PostgreSQL", hue: 7 };
const postgres: Server = { name: "PostgreSQL", hue: 4 };

/** What serves each connector, and how its lines are drawn where several have the same server. */
const systems: Record<string, { server: Server; dash?: boolean }> = {
  lightcone: { server: lightcone },
  spacetimedb: { server: lightcone, dash: true },
  spacetimedb_rust: { server: lightcone, dash: true },
  spacetimedb_http: { server: lightcone, dash: true },
  spacetimedb_sub: { server: lightcone, dash: true },
  spacetimedb_ref: { server: reference },
  spacetimedb_ref_rust: { server: reference, dash: true },
  postgres_rpc: { server: nodePostgres },
  postgres_rpc_read_committed: { server: nodePostgres, dash: true },
  postgres_sproc_rpc: { server: nodePostgres },
  postgres_sproc_rpc_read_committed: { server: nodePostgres, dash: true },
  postgres_direct: { server: postgres },
  postgres_drizzle_direct: { server: postgres, dash: true },
  sqlite_rpc: { server: nodeSqlite },
  sqlite_batched_rpc: { server: { name: "Node.js, SQLite in batches", hue: 6 } },
  sqlite_direct: { server: { name: "SQLite in the client", hue: 5 } },
  bun: { server: bunPostgres },
  bun_read_committed: { server: bunPostgres, dash: true },
  node_memory_rpc: { server: { name: "Node.js, a Map", hue: 3 } },
  supabase_rpc: { server: { name: "Node.js, Supabase", hue: 2 } },
  cockroach_rpc: { server: { name: "Node.js, CockroachDB", hue: 3 } },
  planetscale_pg_rpc: { server: { name: "Node.js, PlanetScale", hue: 2 } },
  convex: { server: { name: "Convex", hue: 3 } },
};
export const hueCount = 8;

/** The colour of a system is that of its server. */
export function styleOf(system: string): { hue: number; dash: boolean } {
  const known = systems[system];
  if (known) return { hue: known.server.hue, dash: known.dash ?? false };
  // A connector of another test: some colour, always the same.
  let hash = 0;
  for (const character of system) hash = (hash * 31 + character.charCodeAt(0)) % 1009;
  return { hue: hash % hueCount, dash: hash % 2 === 1 };
}

/** Whose server a row is. A server that was found running is not known to be this repository's. */
export function serverOf(system: string, software: string | undefined): string {
  const known = systems[system]?.server;
  if (known === lightcone && software?.startsWith("found at")) return `server ${software}`;
  return known?.name ?? system;
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
