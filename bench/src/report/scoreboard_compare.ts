// Which measured row is compared with which published one (section 23.6).

import { type PublishedFigure, publishedFigures } from "./published";
import type { MeasuredRow, Metric, Values } from "./scoreboard_measured";

/** All figures that were published for one system under one load. */
export interface PublishedRow {
  test: string;
  load: string;
  system: string;
  values: Values;
  stddev: number | undefined;
  hardware: string;
  note: string | undefined;
}

/** Tests name their throughput and their mean differently. */
const metricNames: Record<string, Metric> = {
  tps: "rate",
  req_per_s: "rate",
  jobs_per_s: "rate",
  ops_per_s: "rate",
  avg_ms: "mean_ms",
  mean_ms: "mean_ms",
  p50_ms: "p50_ms",
  p95_ms: "p95_ms",
  p99_ms: "p99_ms",
  mean_us: "mean_us",
  p99_us: "p99_us",
  ops_per_cpu_pct: "ops_per_cpu_pct",
};

export function publishedRows(figures: readonly PublishedFigure[] = publishedFigures()): PublishedRow[] {
  const rows = new Map<string, PublishedRow>();
  for (const { test, variant, system, metric, value, stddev, hardware, note } of figures) {
    const name = metricNames[metric];
    if (!name) continue;
    const key = JSON.stringify([test, variant, system]);
    const row = rows.get(key) ?? {
      test,
      load: variant,
      system,
      values: {},
      stddev: undefined,
      hardware,
      note,
    };
    rows.set(key, row);
    row.values[name] = value;
    if (name === "rate") row.stddev = stddev;
  }
  return [...rows.values()];
}

/** Systems that are this repository's server. */
export const ours = ["lightcone", "spacetimedb", "spacetimedb_rust", "spacetimedb_http"];

interface Name {
  load?: string;
  system: string;
}

/** Published rows that this one may be compared with, the first that exists counts. */
function candidates(row: MeasuredRow): Name[] {
  const { test, load, system, isDurable } = row;
  const isOurs = ours.includes(system);
  if (test === "test-1") return transferCandidates(load, system);
  if (test.startsWith("ycsb")) {
    const best = test === "ycsb-c" && isDurable ? "PostgreSQL durable" : undefined;
    if (isOurs) return [{ system: best ?? (isDurable ? "ekoDB fast + durable" : "ekoDB fast, non-durable") }];
    const database = { postgres_direct: "PostgreSQL", mysql_direct: "MySQL", mongodb_direct: "MongoDB" }[
      system
    ];
    return database ? [{ system: `${database} ${isDurable ? "durable" : "non-durable"}` }] : [];
  }
  if (test === "content-crud") {
    const store = { node_rest_sqlite: "SQLite", node_rest_postgres: "Postgres", node_rest_memory: "memory" }[
      system
    ];
    return store ? [{ system: `Node.js + ${store}` }, { system: `Node.js + ${store}, raw run` }] : [];
  }
  if (test === "job-queue" && (isOurs || system === "postgres_direct"))
    return [{ system: isDurable ? "postgres_direct tuned" : "postgres_direct async_commit" }];
  if (test === "data-layer" && system === "postgres_direct") return [{ system: "node-postgres" }];
  if (isOurs && test === "http-floor") return [{ system: "Fastify" }];
  if (isOurs) return [{ system: "Atomo" }, { system: "Atomo", load: load.replace(/ (hot|cold)$/, "") }];
  if (system === "spacetimedb_sub") return [{ system: "Atomo", load: load.replace("client-cache", "hot") }];
  return [];
}

function transferCandidates(load: string, system: string): Name[] {
  if (system === "lightcone") return [{ system: "spacetimedb" }];
  if (system === "spacetimedb_rust") return [{ system }, { system: "spacetimedb" }];
  // What third parties reported, with less said of the load.
  if (system === "sqlite_batched_rpc" && load.includes("inflight=40"))
    return [{ system, load: "alpha=unknown inflight=120" }];
  if (system === "postgres_sproc_rpc") {
    const contention = load.startsWith("alpha=0 ") ? "low" : "high";
    return [{ system, load: `alpha=${contention} inflight=unknown` }];
  }
  return [{ system }];
}

/** The published row that a measured one is compared with; undefined where none is comparable. */
export function counterpartOf(
  row: MeasuredRow,
  published: readonly PublishedRow[],
): PublishedRow | undefined {
  const ofTest = published.filter(({ test, values }) => test === row.test && values.rate !== undefined);
  // Of the CRUD runs the best under the same load, whatever it ran on.
  if (row.test === "content-crud" && ours.includes(row.system)) {
    const raw = ofTest.filter(({ load, system }) => load === row.load && system.includes("raw run"));
    return raw.sort((a, b) => b.values.rate! - a.values.rate!)[0];
  }
  for (const { load = row.load, system } of candidates(row)) {
    const found = ofTest.find((other) => other.load === load && other.system === system);
    if (found) return found;
  }
  return undefined;
}

export interface Target {
  /** What is to be beaten. */
  title: string;
  test: string;
  /** Of the measured row. */
  load: string;
  metric: Metric;
  /** Of the published row. */
  published: Name;
  /** Measured rows that are comparable. */
  systems: readonly string[];
  unit: string;
}

const transfers = (alpha: string, metric: Metric, unit: string): Target => {
  const load = `alpha=${alpha} inflight=40`;
  const title = `test-1, alpha ${alpha}, 40 in flight`;
  return { title, test: "test-1", load, metric, published: { system: "spacetimedb" }, systems: ours, unit };
};

const ycsb = (letter: string, metric: Metric, system: string): Target => ({
  title: `YCSB ${letter.toUpperCase()}`,
  test: `ycsb-${letter}`,
  load: "run",
  metric,
  published: { system },
  systems: ours,
  unit: metric === "rate" ? "operations/s" : "operations/s per CPU %",
});

const engine = (kind: string): Target => ({
  title: `data-layer, ${kind}, in memory`,
  test: "data-layer",
  load: `${kind} hot`,
  metric: "rate",
  published: { system: "Atomo" },
  systems: [...ours, "spacetimedb_sub"],
  unit: "operations/s",
});

const atomo = (title: string, test: string, load: string, metric: Metric, unit: string): Target => ({
  ...{ title, test, load, metric, unit },
  published: { system: "Atomo" },
  systems: ours,
});

const fast = "ekoDB fast + durable";

/** The rows to beat, as section 23.6 lists them. */
export const targets: readonly Target[] = [
  ...["1.5", "0"].flatMap((alpha) => [
    transfers(alpha, "rate", "transfers/s"),
    transfers(alpha, "p50_ms", "p50 ms"),
  ]),
  {
    title: "test-1, batched SQLite",
    test: "test-1",
    load: "alpha=0 inflight=40",
    metric: "rate",
    published: { system: "sqlite_batched_rpc", load: "alpha=unknown inflight=120" },
    systems: [...ours, "sqlite_batched_rpc"],
    unit: "transfers/s",
  },
  ...(["0", "1.5"] as const).map(
    (alpha): Target => ({
      title: `test-1, stored procedure, alpha ${alpha}`,
      test: "test-1",
      load: `alpha=${alpha} inflight=40`,
      metric: "rate",
      published: {
        system: "postgres_sproc_rpc",
        load: `alpha=${alpha === "0" ? "low" : "high"} inflight=unknown`,
      },
      systems: [...ours, "postgres_sproc_rpc"],
      unit: "transfers/s",
    }),
  ),
  ...[..."abcdf"].flatMap((letter) => [
    ycsb(letter, "rate", fast),
    ...(letter === "c" ? [ycsb(letter, "rate", "PostgreSQL durable")] : []),
    ycsb(letter, "ops_per_cpu_pct", fast),
  ]),
  ...["Node.js + memory, raw run", "Go + Postgres, raw run 2"].map(
    (system): Target => ({
      title: "content-crud, 10,000 tests, 100 at a time",
      test: "content-crud",
      load: "tests=10000 concurrency=100",
      metric: "rate",
      published: { system },
      systems: ours,
      unit: "requests/s",
    }),
  ),
  ...["postgres_direct tuned", "postgres_direct async_commit"].map(
    (system): Target => ({
      title: `job-queue, 16 workers${system.includes("async") ? ", not durable" : ""}`,
      test: "job-queue",
      load: "concurrency=16",
      metric: "rate",
      published: { system },
      systems: ours,
      unit: "jobs/s",
    }),
  ),
  atomo("job-lease, 8 workers", "job-lease", "concurrency=8", "rate", "jobs/s"),
  atomo("data-layer, create", "data-layer", "create", "rate", "operations/s"),
  atomo("data-layer, create_many", "data-layer", "create_many", "rate", "rows/s"),
  ...["find_many", "find_unique", "count"].map(engine),
  {
    title: "http-floor",
    test: "http-floor",
    load: "clients=50",
    metric: "rate",
    published: { system: "Fastify" },
    systems: ours,
    unit: "requests/s",
  },
  atomo("authed-load, mixed", "authed-load", "mixed", "rate", "requests/s"),
  atomo("authed-load, mixed", "authed-load", "mixed", "p95_ms", "p95 ms"),
];

/** Is the row of this target's durability? A published row says in its name that it is not durable. */
export const suits = (target: Target, row: MeasuredRow): boolean =>
  row.test === target.test &&
  (row.load === target.load || row.load === target.load.replace(" hot", " client-cache")) &&
  target.systems.includes(row.system) &&
  row.isDurable === !target.published.system.includes("async");
