// What a chart shows: a line per run, a colour per connector.

import type { RunFile } from "../core/results";
import type { SeriesPoint } from "../core/window";

export interface RunLine {
  name: string;
  system: string;
  alpha: number;
  inFlight: number;
  warmupSec: number;
  points: SeriesPoint[];
}

/**
 * A colour for each connector that stays the same on every page: hues that people with colour-blindness tell apart, strongest
 * for what is compared most. Where hues repeat, lines are dashed.
 */
const styles: Record<string, { hue: number; dash: boolean }> = {
  lightcone: { hue: 0, dash: false },
  spacetimedb: { hue: 1, dash: false },
  spacetimedb_rust: { hue: 2, dash: false },
  spacetimedb_http: { hue: 3, dash: false },
  postgres_rpc: { hue: 4, dash: false },
  sqlite_rpc: { hue: 5, dash: false },
  sqlite_batched_rpc: { hue: 6, dash: false },
  bun: { hue: 7, dash: false },
  postgres_sproc_rpc: { hue: 4, dash: true },
  node_memory_rpc: { hue: 5, dash: true },
  postgres_direct: { hue: 7, dash: true },
  spacetimedb_ref: { hue: 1, dash: true },
  supabase_rpc: { hue: 2, dash: true },
  cockroach_rpc: { hue: 3, dash: true },
  convex: { hue: 6, dash: true },
  planetscale_pg_rpc: { hue: 0, dash: true },
};
export const hueCount = 8;

export function styleOf(system: string): { hue: number; dash: boolean } {
  const known = styles[system];
  if (known) return known;
  // A connector of another test: some colour, always the same.
  let hash = 0;
  for (const character of system) hash = (hash * 31 + character.charCodeAt(0)) % 1009;
  return { hue: hash % hueCount, dash: hash % 2 === 1 };
}

export function linesOf(files: readonly RunFile[]): RunLine[] {
  return files.flatMap((file) =>
    file.results.map((entry) => ({
      name: entry.system,
      system: entry.system,
      alpha: file.alpha,
      inFlight: file.fairness.inflight,
      warmupSec: file.config.warmupSec,
      points: entry.res.timeSeries.length > 0 ? entry.res.timeSeries : [entry.res.partialPoint],
    })),
  );
}

/** What is shown together: the same alpha and the same number of operations in flight. */
export interface Load {
  alpha: number;
  inFlight: number;
}

export const isOf =
  (load: Load) =>
  (other: Load): boolean =>
    other.alpha === load.alpha && other.inFlight === load.inFlight;

/** The loads that there are, by alpha and then by operations in flight. */
export function loadsOf(all: readonly Load[]): Load[] {
  const found = new Map(all.map(({ alpha, inFlight }) => [`${alpha} ${inFlight}`, { alpha, inFlight }]));
  return [...found.values()].sort((a, b) => a.alpha - b.alpha || a.inFlight - b.inFlight);
}
