// The table of the suite: its connectors, its tests, and which connector runs which test, how it is asked and what results
// call it. Nothing is loaded before it is used.

import type { ConnectorDefinition } from "../connectors/definition";
import { type TestModule, transferModule } from "../connectors/test_module";
import type { RunOperation, Workload } from "../workloads/workload";

/** The definition of a connector; the module is that of the test. */
type LoadDefinition = (module: TestModule) => Promise<ConnectorDefinition>;

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
const sdk =
  (key: keyof typeof import("../connectors/sdk").sdkSystems): LoadDefinition =>
  async (module) =>
    (await import("../connectors/sdk")).sdkDefinition(key, module);

const file =
  (load: () => Promise<{ definition: ConnectorDefinition }>): LoadDefinition =>
  async () =>
    (await load()).definition;

/** A system of the Postgres class once more, under READ COMMITTED. */
const readCommitted =
  (load: () => Promise<{ readCommittedDefinition: ConnectorDefinition }>): LoadDefinition =>
  async () =>
    (await load()).readCommittedDefinition;

const rest =
  (store: "sqlite" | "postgres" | "memory"): LoadDefinition =>
  async () =>
    (await import("../connectors/rest")).nodeRestDefinition(store);

/** Every connector of the suite, those of test-1 first. */
export const connectors: Record<string, LoadDefinition> = {
  spacetimedb: sdk("spacetimedb"),
  lightcone: sdk("lightcone"),
  spacetimedb_rust: sdk("spacetimedb_rust"),
  spacetimedb_ref: sdk("spacetimedb_ref"),
  spacetimedb_ref_rust: sdk("spacetimedb_ref_rust"),
  spacetimedb_http: file(() => import("../connectors/spacetimedb_http")),
  sqlite_rpc: file(() => import("../connectors/rpc/sqlite_rpc")),
  sqlite_batched_rpc: file(() => import("../connectors/rpc/sqlite_batched_rpc")),
  node_memory_rpc: file(() => import("../connectors/rpc/node_memory_rpc")),
  postgres_rpc: file(() => import("../connectors/rpc/postgres_rpc")),
  postgres_sproc_rpc: file(() => import("../connectors/rpc/postgres_sproc_rpc")),
  postgres_direct: file(() => import("../connectors/postgres_direct")),
  bun: file(() => import("../connectors/rpc/bun")),
  postgres_rpc_read_committed: readCommitted(() => import("../connectors/rpc/postgres_rpc")),
  postgres_sproc_rpc_read_committed: readCommitted(() => import("../connectors/rpc/postgres_sproc_rpc")),
  bun_read_committed: readCommitted(() => import("../connectors/rpc/bun")),
  supabase_rpc: file(() => import("../connectors/rpc/supabase_rpc")),
  planetscale_pg_rpc: file(() => import("../connectors/rpc/planetscale_pg_rpc")),
  cockroach_rpc: file(() => import("../connectors/rpc/cockroach_rpc")),
  convex: file(() => import("../connectors/convex")),
  mysql_direct: file(() => import("../connectors/mysql_direct")),
  mongodb_direct: file(() => import("../connectors/mongodb_direct")),
  redis_direct: file(() => import("../connectors/redis_direct")),
  node_rest_sqlite: rest("sqlite"),
  node_rest_postgres: rest("postgres"),
  node_rest_memory: rest("memory"),
  rest_url: async () => (await import("../connectors/rest")).restUrlDefinition,
  node_http: async () => (await import("../connectors/http_endpoints")).nodeHttp,
  bun_http: async () => (await import("../connectors/http_endpoints")).bunHttp,
  sqlite_direct: file(() => import("../connectors/sqlite_direct")),
  spacetimedb_sub: sdk("spacetimedb_sub"),
  postgres_drizzle_direct: file(() => import("../connectors/postgres_drizzle_direct")),
};

/** What the clients of the SDKs are called in all tests but test-1. */
const sdkLabels = {
  lightcone: "Lightcone, TypeScript module",
  spacetimedb: "npm client, TypeScript module",
  spacetimedb_rust: "npm client, Rust module",
};

const npmClient = "SpacetimeDB client (npm 2.10.1)";
const cachedLabels = { spacetimedb_sub: "npm client, reads from its cache" };

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
        sqlite_rpc: "Node.js + SQLite",
        sqlite_batched_rpc: "Node.js + SQLite, batched",
        node_memory_rpc: "Node.js, a Map, nothing on disk",
        postgres_rpc: "Node.js + Postgres",
        postgres_rpc_read_committed: "Node.js + Postgres, READ COMMITTED",
        postgres_sproc_rpc: "Node.js + Postgres, stored procedure",
        postgres_sproc_rpc_read_committed: "Node.js + Postgres, stored procedure, READ COMMITTED",
        postgres_direct: "Postgres, no server in front",
        bun: "Bun + Postgres",
        bun_read_committed: "Bun + Postgres, READ COMMITTED",
        supabase_rpc: "Node.js + Supabase",
        planetscale_pg_rpc: "Node.js + PlanetScale",
        cockroach_rpc: "Node.js + CockroachDB",
        convex: "Convex",
      },
    },
  ],
};

const ycsb = (letter: "a" | "b" | "c" | "d" | "e" | "f"): TestRow => ({
  workload: async () => (await import("../workloads/ycsb/workload")).ycsbWorkload(letter),
  module: { name: "ycsb", needs: "ycsbCount", cached: ["usertable"] },
  optional: ["redis_direct"],
  ways: [
    { ops: async () => (await import("../workloads/ycsb/sdk_ops")).ycsbSdkOps, labels: sdkLabels },
    { ops: async () => (await import("../workloads/ycsb/cached_ops")).ycsbCachedOps, labels: cachedLabels },
    {
      ops: async () => (await import("../workloads/ycsb/rpc_ops")).ycsbRpcOps,
      labels: {
        sqlite_rpc: "Node.js + SQLite",
        sqlite_batched_rpc: "Node.js + SQLite, batched",
        node_memory_rpc: "Node.js, a Map, nothing on disk",
        postgres_rpc: "Node.js + Postgres",
        bun: "Bun + Postgres",
        supabase_rpc: "Node.js + Supabase",
        cockroach_rpc: "Node.js + CockroachDB",
        convex: "Convex",
      },
    },
    {
      ops: async () => (await import("../workloads/ycsb/postgres_direct_ops")).ycsbPostgresDirectOps,
      labels: { postgres_direct: "Postgres without a server in front" },
    },
    {
      ops: async () => (await import("../workloads/ycsb/database_ops")).ycsbDatabaseOps,
      labels: {
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
    { ops: async () => (await import("../workloads/content/sdk_ops")).contentSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/content/rpc_ops")).contentRpcOps,
      labels: {
        sqlite_rpc: "Node.js, SQLite (RPC, Drizzle)",
        postgres_rpc: "Node.js, Postgres (RPC, Drizzle)",
        bun: "Bun, Postgres (RPC, Drizzle)",
        convex: "Convex",
      },
    },
    {
      ops: async () => (await import("../workloads/content/rest_ops")).contentRestOps,
      labels: {
        node_rest_sqlite: "Node.js, SQLite",
        node_rest_postgres: "Node.js, Postgres",
        node_rest_memory: "Node.js, memory",
        rest_url: "server of --base-url",
      },
    },
    {
      ops: async () => (await import("../workloads/content/rest_ops")).contentRoutesOps,
      labels: { spacetimedb_http: "HTTP handlers, TypeScript module" },
      definition: async () => (await import("../connectors/content_routes")).definition,
    },
  ],
};

const jobs = (workload: TestRow["workload"]): TestRow => ({
  workload,
  module: { name: "jobs", needs: "jobCounts" },
  ways: [
    { ops: async () => (await import("../workloads/jobs/sdk_ops")).jobSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/jobs/ops")).jobRpcOps,
      labels: {
        sqlite_rpc: "Node.js + SQLite",
        sqlite_batched_rpc: "Node.js + SQLite, batched",
        postgres_rpc: "Node.js + Postgres",
        postgres_sproc_rpc: "Node.js + Postgres, prepared statements",
        bun: "Bun + Postgres",
        convex: "Convex",
      },
    },
    {
      ops: async () => (await import("../workloads/jobs/ops")).jobPostgresDirectOps,
      labels: { postgres_direct: "Postgres without a server in front" },
    },
  ],
});

const notesRpcLabels = {
  sqlite_rpc: "Node.js + SQLite",
  postgres_rpc: "Node.js + Postgres",
  bun: "Bun + Postgres",
};

const dataLayer: TestRow = {
  workload: async () => (await import("../workloads/data_layer/workload")).dataLayerWorkload,
  module: { name: "notes", needs: "noteEvents", cached: ["note", "tag"] },
  ways: [
    { ops: async () => (await import("../workloads/data_layer/ops")).sdkOps, labels: sdkLabels },
    { ops: async () => (await import("../workloads/data_layer/ops")).cachedOps, labels: cachedLabels },
    { ops: async () => (await import("../workloads/data_layer/ops")).rpcOps, labels: notesRpcLabels },
    {
      ops: async () => (await import("../workloads/data_layer/ops")).postgresOps,
      labels: { postgres_direct: "node-postgres" },
    },
    {
      ops: async () => (await import("../workloads/data_layer/ops")).drizzleOps,
      labels: { postgres_drizzle_direct: "Drizzle + node-postgres" },
    },
    {
      ops: async () => (await import("../workloads/data_layer/ops")).sqliteOps,
      labels: { sqlite_direct: "SQLite, in process" },
    },
  ],
};

const { lightcone: lightconeLabel, ...npmLabels } = sdkLabels;

const dataLayerCrm: TestRow = {
  workload: async () => (await import("../workloads/data_layer_crm/workload")).dataLayerCrmWorkload,
  module: { name: "notes", needs: "crmCounts" },
  ways: [
    {
      ops: async () => (await import("../workloads/data_layer_crm/ops")).lightconeOps,
      labels: { lightcone: lightconeLabel },
    },
    { ops: async () => (await import("../workloads/data_layer_crm/ops")).npmOps, labels: npmLabels },
    { ops: async () => (await import("../workloads/data_layer_crm/ops")).rpcOps, labels: notesRpcLabels },
    {
      ops: async () => (await import("../workloads/data_layer_crm/ops")).postgresOps,
      labels: { postgres_direct: "node-postgres" },
    },
    {
      ops: async () => (await import("../workloads/data_layer_crm/ops")).drizzleOps,
      labels: { postgres_drizzle_direct: "Drizzle + node-postgres" },
    },
    {
      ops: async () => (await import("../workloads/data_layer_crm/ops")).sqliteOps,
      labels: { sqlite_direct: "SQLite, in process" },
    },
  ],
};

const authedLoad: TestRow = {
  workload: async () => (await import("../workloads/authed_load/workload")).authedLoadWorkload,
  module: { name: "notes", needs: "noteEvents" },
  ways: [
    { ops: async () => (await import("../workloads/authed_load/ops")).authedSdkOps, labels: sdkLabels },
    {
      ops: async () => (await import("../workloads/authed_load/ops")).authedRpcOps,
      labels: { postgres_rpc: "Node.js + Postgres", sqlite_rpc: "Node.js + SQLite" },
      definition: async (key) => {
        const { postgresUsers, sqliteUsers } = await import("../connectors/notes_users");
        return key === "postgres_rpc" ? postgresUsers : sqliteUsers;
      },
    },
  ],
};

const httpFloor: TestRow = {
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
      definition: async (key) => {
        const { lightconeHttp, nodeHttp, bunHttp } = await import("../connectors/http_endpoints");
        return { lightcone: lightconeHttp, node_http: nodeHttp, bun_http: bunHttp }[key]!;
      },
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
  "http-floor": httpFloor,
};

/** Tests that stand for several, in the order in which they are run. */
export const suites: Record<string, readonly string[]> = {
  ycsb: ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d", "ycsb-e"],
};
