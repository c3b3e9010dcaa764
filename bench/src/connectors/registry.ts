// Every connector of the suite, by key. A definition is loaded only when it is used, with the packages that it needs.

import { UsageError } from "../config";
import type { ConnectorDefinition } from "./connector";

type Load = () => Promise<{ definition: ConnectorDefinition }>;

const readCommitted = (module: { readCommittedDefinition: ConnectorDefinition }) => ({
  definition: module.readCommittedDefinition,
});

const connectors: Record<string, Load> = {
  spacetimedb: () => import("./spacetimedb"),
  lightcone: () => import("./lightcone"),
  spacetimedb_rust: () => import("./spacetimedb_rust"),
  spacetimedb_ref: () => import("./spacetimedb_ref"),
  spacetimedb_ref_rust: () => import("./spacetimedb_ref_rust"),
  spacetimedb_http: () => import("./spacetimedb_http"),
  sqlite_rpc: () => import("./rpc/sqlite_rpc"),
  sqlite_batched_rpc: () => import("./rpc/sqlite_batched_rpc"),
  node_memory_rpc: () => import("./rpc/node_memory_rpc"),
  postgres_rpc: () => import("./rpc/postgres_rpc"),
  postgres_sproc_rpc: () => import("./rpc/postgres_sproc_rpc"),
  postgres_direct: () => import("./postgres_direct"),
  bun: () => import("./rpc/bun"),
  postgres_rpc_read_committed: async () => readCommitted(await import("./rpc/postgres_rpc")),
  postgres_sproc_rpc_read_committed: async () => readCommitted(await import("./rpc/postgres_sproc_rpc")),
  bun_read_committed: async () => readCommitted(await import("./rpc/bun")),
  supabase_rpc: () => import("./rpc/supabase_rpc"),
  planetscale_pg_rpc: () => import("./rpc/planetscale_pg_rpc"),
  cockroach_rpc: () => import("./rpc/cockroach_rpc"),
  convex: () => import("./convex"),
};

const restDefinition = async (store: "sqlite" | "postgres" | "memory") => ({
  definition: (await import("../workloads/content/rest")).nodeRestDefinition(store),
});

/** Those that other tests have besides. */
const workloadConnectors: Record<string, Load> = {
  mysql_direct: () => import("./mysql_direct"),
  mongodb_direct: () => import("./mongodb_direct"),
  redis_direct: () => import("./redis_direct"),
  node_rest_sqlite: () => restDefinition("sqlite"),
  node_rest_postgres: () => restDefinition("postgres"),
  node_rest_memory: () => restDefinition("memory"),
  rest_url: async () => ({ definition: (await import("../workloads/content/rest")).restUrlDefinition }),
};

/** The connectors of test-1. */
export const connectorKeys = Object.keys(connectors);

/** Known to single tests, whose test cases bring their own definitions. */
const ownKeys = ["node_http", "bun_http", "sqlite_direct", "spacetimedb_sub", "postgres_drizzle_direct"];

export const allConnectorKeys = [...connectorKeys, ...Object.keys(workloadConnectors), ...ownKeys];

export async function loadConnector(key: string): Promise<ConnectorDefinition> {
  const all = { ...connectors, ...workloadConnectors };
  const load = Object.hasOwn(all, key) ? all[key] : undefined;
  if (!load)
    throw new UsageError(
      `${key} is not a valid value for --connectors; there are ${allConnectorKeys.join(", ")}`,
    );
  const { definition } = await load();
  return definition;
}
