// What a chart shows: a line per run, a colour per connector and window.

import type { RunFile } from "../core/results";
import type { SeriesPoint } from "../core/window";

export interface RunLine {
  /** Connector, and its window where it is not 1, e.g. `lightcone ×40`. */
  name: string;
  system: string;
  alpha: number;
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
      name: nameOf(entry.system, file.fairness.inflight),
      system: entry.system,
      alpha: file.alpha,
      warmupSec: file.config.warmupSec,
      points: entry.res.timeSeries.length > 0 ? entry.res.timeSeries : [entry.res.partialPoint],
    })),
  );
}

export const nameOf = (system: string, inFlight: number): string =>
  inFlight === 1 ? system : `${system} ×${inFlight}`;
