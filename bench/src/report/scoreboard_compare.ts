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

/** The rows to beat, as section 23.6 lists them; where a load was published by another name, that is the last cell. */
const targetTable = `
test-1, alpha 1.5, 40 in flight           | test-1      | alpha=1.5 inflight=40       | rate            | spacetimedb | transfers/s
test-1, alpha 1.5, 40 in flight           | test-1      | alpha=1.5 inflight=40       | p50_ms          | spacetimedb | p50 ms
test-1, alpha 0, 40 in flight             | test-1      | alpha=0 inflight=40         | rate            | spacetimedb | transfers/s
test-1, alpha 0, 40 in flight             | test-1      | alpha=0 inflight=40         | p50_ms          | spacetimedb | p50 ms
test-1, batched SQLite                    | test-1      | alpha=0 inflight=40         | rate            | sqlite_batched_rpc | transfers/s | alpha=unknown inflight=120
test-1, stored procedure, alpha 0         | test-1      | alpha=0 inflight=40         | rate            | postgres_sproc_rpc | transfers/s | alpha=low inflight=unknown
test-1, stored procedure, alpha 1.5       | test-1      | alpha=1.5 inflight=40       | rate            | postgres_sproc_rpc | transfers/s | alpha=high inflight=unknown
YCSB A                                    | ycsb-a      | run                         | rate            | ekoDB fast + durable | operations/s
YCSB A                                    | ycsb-a      | run                         | ops_per_cpu_pct | ekoDB fast + durable | operations/s per CPU %
YCSB B                                    | ycsb-b      | run                         | rate            | ekoDB fast + durable | operations/s
YCSB B                                    | ycsb-b      | run                         | ops_per_cpu_pct | ekoDB fast + durable | operations/s per CPU %
YCSB C                                    | ycsb-c      | run                         | rate            | ekoDB fast + durable | operations/s
YCSB C                                    | ycsb-c      | run                         | rate            | PostgreSQL durable | operations/s
YCSB C                                    | ycsb-c      | run                         | ops_per_cpu_pct | ekoDB fast + durable | operations/s per CPU %
YCSB D                                    | ycsb-d      | run                         | rate            | ekoDB fast + durable | operations/s
YCSB D                                    | ycsb-d      | run                         | ops_per_cpu_pct | ekoDB fast + durable | operations/s per CPU %
YCSB F                                    | ycsb-f      | run                         | rate            | ekoDB fast + durable | operations/s
YCSB F                                    | ycsb-f      | run                         | ops_per_cpu_pct | ekoDB fast + durable | operations/s per CPU %
content-crud, 10,000 tests, 100 at a time | content-crud | tests=10000 concurrency=100 | rate           | Node.js + memory, raw run | requests/s
content-crud, 10,000 tests, 100 at a time | content-crud | tests=10000 concurrency=100 | rate           | Go + Postgres, raw run 2 | requests/s
job-queue, 16 workers                     | job-queue   | concurrency=16              | rate            | postgres_direct tuned | jobs/s
job-queue, 16 workers, not durable        | job-queue   | concurrency=16              | rate            | postgres_direct async_commit | jobs/s
job-lease, 8 workers                      | job-lease   | concurrency=8               | rate            | Atomo | jobs/s
data-layer, create                        | data-layer  | create                      | rate            | Atomo | operations/s
data-layer, create_many                   | data-layer  | create_many                 | rate            | Atomo | rows/s
data-layer, find_many, in memory          | data-layer  | find_many hot               | rate            | Atomo | operations/s
data-layer, find_unique, in memory        | data-layer  | find_unique hot             | rate            | Atomo | operations/s
data-layer, count, in memory              | data-layer  | count hot                   | rate            | Atomo | operations/s
http-floor                                | http-floor  | clients=50                  | rate            | Fastify | requests/s
authed-load, mixed                        | authed-load | mixed                       | rate            | Atomo | requests/s
authed-load, mixed                        | authed-load | mixed                       | p95_ms          | Atomo | p95 ms
`;

/** Measured rows that are comparable besides those of this repository's server. */
const systemsBeside = (load: string, published: string): string[] => {
  if (load.endsWith(" hot")) return ["spacetimedb_sub"];
  return ["sqlite_batched_rpc", "postgres_sproc_rpc"].includes(published) ? [published] : [];
};

export const targets: readonly Target[] = targetTable
  .trim()
  .split("\n")
  .map((line) => {
    const cells = line.split("|").map((cell) => cell.trim());
    const [title, test, load, metric, system, unit, publishedLoad] = cells as [
      ...[string, string, string, Metric, string, string],
      string | undefined,
    ];
    const published = { system, ...(publishedLoad && { load: publishedLoad }) };
    return { title, test, load, metric, published, unit, systems: [...ours, ...systemsBeside(load, system)] };
  });

/** Is the row of this target's durability? A published row says in its name that it is not durable. */
export const suits = (target: Target, row: MeasuredRow): boolean =>
  row.test === target.test &&
  (row.load === target.load || row.load === target.load.replace(" hot", " client-cache")) &&
  target.systems.includes(row.system) &&
  row.isDurable === !target.published.system.includes("async");
