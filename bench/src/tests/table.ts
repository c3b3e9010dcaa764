// The table of the suite: its connectors, its tests, and which connector runs which test, how it is asked and what results
// call it. Nothing is loaded before it is used.

import type { ConnectorDefinition } from "../connectors/definition";
import type { RestStore } from "../connectors/rest";
import { type TestModule, transferModule } from "../connectors/test_module";
import type { RunOperation, Workload } from "../workloads/workload";

/** The definition of a connector; the module is that of the test. */
type LoadDefinition = (module: TestModule, key: string) => Promise<ConnectorDefinition>;

type Ops = Record<string, RunOperation>;

/** Connectors of a test that are asked in one way. */
export interface Way {
  ops: () => Promise<Ops>;
  /** The label of each in results, by key. */
  labels: Record<string, string>;
  /** Instead of the connector of that key, which is another system in the other tests. */
  definition?: (key: string) => Promise<ConnectorDefinition>;
}

export interface TestRow {
  workload: () => Promise<Workload>;
  module: TestModule;
  ways: Way[];
  /** Connectors that only run if they are named. */
  optional?: readonly string[];
}

/** An SDK's connector is made for the module of the test. */
const sdk: LoadDefinition = async (module, key) =>
  (await import("../connectors/sdk")).sdkDefinition(
    key as keyof typeof import("../connectors/sdk").sdkSystems,
    module,
  );

const rpc: LoadDefinition = async (_, key) => (await import("../connectors/rpc/systems")).rpcSystem(key);

const rest: LoadDefinition = async (_, key) =>
  (await import("../connectors/rest")).nodeRestDefinition(key.replace("node_rest_", "") as RestStore);

const httpFloor = async (key: string) =>
  (await import("../connectors/http_endpoints")).httpFloorConnectors[key]!;

const file =
  (load: () => Promise<{ definition: ConnectorDefinition }>): LoadDefinition =>
  async () =>
    (await load()).definition;

/** Every connector of the suite, those of test-1 first. */
export const connectors: Record<string, LoadDefinition> = {
  spacetimedb: sdk,
  lightcone: sdk,
  spacetimedb_rust: sdk,
  spacetimedb_ref: sdk,
  spacetimedb_ref_rust: sdk,
  spacetimedb_http: file(() => import("../connectors/spacetimedb_http")),
  sqlite_rpc: rpc,
  sqlite_batched_rpc: file(() => import("../connectors/rpc/sqlite_batched_rpc")),
  node_memory_rpc: rpc,
  postgres_rpc: rpc,
  postgres_sproc_rpc: rpc,
  postgres_direct: file(() => import("../connectors/postgres_direct")),
  bun: rpc,
  postgres_rpc_read_committed: rpc,
  postgres_sproc_rpc_read_committed: rpc,
  bun_read_committed: rpc,
  supabase_rpc: rpc,
  planetscale_pg_rpc: rpc,
  cockroach_rpc: rpc,
  convex: file(() => import("../connectors/convex")),
  mysql_direct: file(() => import("../connectors/mysql_direct")),
  mongodb_direct: file(() => import("../connectors/mongodb_direct")),
  redis_direct: file(() => import("../connectors/redis_direct")),
  node_rest_sqlite: rest,
  node_rest_postgres: rest,
  node_rest_memory: rest,
  rest_url: async () => (await import("../connectors/rest")).restUrlDefinition,
  node_http: (_, key) => httpFloor(key),
  bun_http: (_, key) => httpFloor(key),
  sqlite_direct: file(() => import("../connectors/sqlite_direct")),
  spacetimedb_sub: sdk,
  postgres_drizzle_direct: async () => (await import("../connectors/postgres_direct")).drizzleDefinition,
};

/** What connectors are called in most tests. */
const sdkLabels = {
  lightcone: "Lightcone, TypeScript module",
  spacetimedb: "npm client, TypeScript module",
  spacetimedb_rust: "npm client, Rust module",
};
const cachedLabels = { spacetimedb_sub: "npm client, reads from its cache" };
const postgres_rpc = "Node.js + Postgres";
const bun = "Bun + Postgres";
const durableLabels = {
  sqlite_rpc: "Node.js + SQLite",
  sqlite_batched_rpc: "Node.js + SQLite, batched",
  ...{ postgres_rpc, bun },
  convex: "Convex",
};
const serverLabels = {
  ...durableLabels,
  node_memory_rpc: "Node.js, a Map, nothing on disk",
  supabase_rpc: "Node.js + Supabase",
  cockroach_rpc: "Node.js + CockroachDB",
};
const postgres_direct = "Postgres without a server in front";
const npmClient = "SpacetimeDB client (npm 2.10.1)";

const test1: TestRow = {
  workload: async () => (await import("../workloads/transfers/workload")).transferWorkload,
  module: transferModule,
  ways: [
    {
      ops: async () => ({ transfer: (await import("../scenario_recipes/reducer_single")).reducerTransfer }),
      labels: {
        lightcone: "Lightcone client and TypeScript module",
        spacetimedb: `${npmClient}, TypeScript module`,
        spacetimedb_rust: `${npmClient}, Rust module`,
        spacetimedb_ref: `${npmClient}, server of --stdb-ref-url`,
        spacetimedb_ref_rust: `${npmClient}, server of --stdb-ref-url`,
        spacetimedb_http: "HTTP call of the reducer",
      },
    },
    {
      ops: async () => ({ transfer: (await import("../scenario_recipes/rpc_single_call")).rpcTransfer }),
      labels: {
        ...serverLabels,
        postgres_rpc_read_committed: `${postgres_rpc}, READ COMMITTED`,
        postgres_sproc_rpc: `${postgres_rpc}, stored procedure`,
        postgres_sproc_rpc_read_committed: `${postgres_rpc}, stored procedure, READ COMMITTED`,
        postgres_direct: "Postgres, no server in front",
        bun_read_committed: `${bun}, READ COMMITTED`,
        planetscale_pg_rpc: "Node.js + PlanetScale",
      },
    },
  ],
};

const ycsb = (letter: "a" | "b" | "c" | "d" | "e" | "f"): TestRow => ({
  workload: async () => (await import("../workloads/ycsb/workload")).ycsbWorkload(letter),
  module: { name: "ycsb", needs: "ycsbCount", cached: ["usertable"] },
  optional: ["redis_direct"],
  ways: [
    { ops: async () => (await import("../workloads/ycsb/ops")).ycsbSdkOps, labels: sdkLabels },
    { ops: async () => (await import("../workloads/ycsb/cached_ops")).ycsbCachedOps, labels: cachedLabels },
    {
      ops: async () => (await import("../workloads/ycsb/ops")).ycsbOps,
      labels: {
        ...serverLabels,
        postgres_direct,
        mysql_direct: "MySQL or MariaDB without a server in front",
        mongodb_direct: "MongoDB without a server in front",
        // Hashes have no order, so that there are no scans.
        ...(letter !== "e" && { redis_direct: "Redis without a server in front" }),
      },
    },
  ],
});

const contentCrud: TestRow = {
  workload: async () => (await import("../workloads/content/workload")).contentWorkload,
  module: { name: "content", needs: "contentCount" },
  ways: [
    { ops: async () => (await import("../workloads/content/ops")).contentSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/content/ops")).contentRpcOps,
      labels: {
        sqlite_rpc: "Node.js, SQLite (RPC, Drizzle)",
        postgres_rpc: "Node.js, Postgres (RPC, Drizzle)",
        bun: "Bun, Postgres (RPC, Drizzle)",
        convex: "Convex",
      },
    },
    {
      ops: async () => (await import("../workloads/content/ops")).contentRestOps,
      labels: {
        node_rest_sqlite: "Node.js, SQLite",
        node_rest_postgres: "Node.js, Postgres",
        node_rest_memory: "Node.js, memory",
        rest_url: "server of --base-url",
      },
    },
    {
      ops: async () => (await import("../workloads/content/ops")).contentRoutesOps,
      labels: { spacetimedb_http: "HTTP handlers, TypeScript module" },
      definition: async () => (await import("../connectors/content_routes")).definition,
    },
  ],
};

const jobs = (workload: TestRow["workload"]): TestRow => ({
  workload,
  module: { name: "jobs", needs: "jobCounts" },
  ways: [
    { ops: async () => (await import("../workloads/jobs/ops")).jobSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/jobs/ops")).jobOps,
      labels: {
        ...durableLabels,
        postgres_direct,
        postgres_sproc_rpc: `${postgres_rpc}, prepared statements`,
      },
    },
  ],
});

/** Of data-layer and data-layer-crm. */
const serialLabels = {
  sqlite_rpc: durableLabels.sqlite_rpc,
  ...{ postgres_rpc, bun },
  postgres_direct: "node-postgres",
  postgres_drizzle_direct: "Drizzle + node-postgres",
  sqlite_direct: "SQLite, in process",
};

const dataLayer: TestRow = {
  workload: async () => (await import("../workloads/data_layer/workload")).dataLayerWorkload,
  module: { name: "notes", needs: "noteEvents", cached: ["note", "tag"] },
  ways: [
    { ops: async () => (await import("../workloads/data_layer/ops")).noteSdkOps, labels: sdkLabels },
    { ops: async () => (await import("../workloads/data_layer/ops")).noteCachedOps, labels: cachedLabels },
    { ops: async () => (await import("../workloads/data_layer/ops")).noteRpcOps, labels: serialLabels },
  ],
};

const dataLayerCrm: TestRow = {
  workload: async () => (await import("../workloads/data_layer_crm/workload")).dataLayerCrmWorkload,
  module: { name: "notes", needs: "crmCounts" },
  ways: [
    { ops: async () => (await import("../workloads/data_layer_crm/ops")).crmSdkOps, labels: sdkLabels },
    { ops: async () => (await import("../workloads/data_layer_crm/ops")).crmRpcOps, labels: serialLabels },
  ],
};

const authedLoad: TestRow = {
  workload: async () => (await import("../workloads/authed_load/workload")).authedLoadWorkload,
  module: { name: "notes", needs: "noteEvents" },
  ways: [
    { ops: async () => (await import("../workloads/authed_load/ops")).authedSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/authed_load/ops")).authedRpcOps,
      labels: { postgres_rpc, sqlite_rpc: durableLabels.sqlite_rpc },
      definition: async (key) => (await import("../connectors/notes_users")).notesUsers[key]!,
    },
  ],
};

const httpFloorTest: TestRow = {
  workload: async () => (await import("../workloads/http_floor/workload")).httpFloorWorkload,
  module: transferModule,
  ways: [
    {
      ops: async () => (await import("../workloads/http_floor/workload")).floorOps,
      labels: {
        lightcone: "Lightcone, /v1/ping",
        node_http: "Node.js, built-in HTTP server",
        bun_http: "Bun",
      },
      definition: httpFloor,
    },
  ],
};

export const tests: Record<string, TestRow> = {
  "test-1": test1,
  "ycsb-a": ycsb("a"),
  "ycsb-b": ycsb("b"),
  "ycsb-c": ycsb("c"),
  "ycsb-d": ycsb("d"),
  "ycsb-e": ycsb("e"),
  "ycsb-f": ycsb("f"),
  "content-crud": contentCrud,
  "job-queue": jobs(async () => (await import("../workloads/jobs/workload")).jobQueueWorkload),
  "job-lease": jobs(async () => (await import("../workloads/jobs/workload")).jobLeaseWorkload),
  "data-layer": dataLayer,
  "data-layer-crm": dataLayerCrm,
  "authed-load": authedLoad,
  "http-floor": httpFloorTest,
};

/** Tests that stand for several, in the order in which they are run. */
export const suites: Record<string, readonly string[]> = {
  ycsb: ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d", "ycsb-e"],
};
