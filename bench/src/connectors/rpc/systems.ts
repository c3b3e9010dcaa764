// Every system behind `POST /rpc` whose connector has nothing of its own: a row each (sections 10 and 13).

import { bunCommand, noBacking, nodeCommand, sqliteBacking } from "../../init/backing";
import { ownPostgres, type PostgresBackingOptions, postgresBacking } from "../../init/postgres_backing";
import type { ConnectorDefinition } from "../definition";
import { onNode, type RpcDefinitionOptions, rpcDefinition } from "./rpc_definition";
import { makeSupabaseFunctions } from "./supabase";

type Row = Omit<RpcDefinitionOptions, "key">;

/** A server in Node on PostgreSQL, by the name that it is started by. */
function nodeOnPostgres(name: string, variable: string, port: number): Row {
  const file = "postgres-rpc-server.ts";
  const startCommand = `PG_URL=<address of a PostgreSQL> pnpm tsx src/rpc-servers/${file} ${name}`;
  const row = onNode(file, variable, port, ownPostgres(startCommand));
  return { ...row, command: nodeCommand(row.serverFile, name), startCommand };
}

/** The same on a database that no registry has: the suite cannot start it, and its own isolation is what is measured. */
function onForeignDatabase(
  row: Row,
  startCommand: string,
  database: Pick<PostgresBackingOptions, "urlVariables" | "serverVariable" | "urlDefault" | "make">,
): Row {
  const back = postgresBacking({ ...database, startCommand, mayStart: false, asksForIsolation: false });
  return { ...row, startCommand, back };
}

const bunStart = "BUN_PG_URL=<address of a PostgreSQL> bun run bun/bun-server.ts";
const unchecked = { health: "skipped", checksStatusFirst: true, skippedVerifyFails: false } as const;

const rows: Record<string, Row> = {
  /** The ceiling of the HTTP path: nothing behind it is kept. */
  node_memory_rpc: {
    ...onNode("node-memory-rpc-server.ts", "NODE_MEMORY_RPC", 4105, noBacking),
    systemClass: "not-durable",
  },
  sqlite_rpc: onNode("sqlite-rpc-server.ts", "SQLITE_RPC", 4103, sqliteBacking),
  /** Node, Drizzle and PostgreSQL: five round trips to the database for each transfer. */
  postgres_rpc: nodeOnPostgres("postgres_rpc", "PG_RPC", 4101),
  /** Node and PostgreSQL: each transfer is one stored procedure, one round trip. */
  postgres_sproc_rpc: nodeOnPostgres("postgres_sproc_rpc", "PG_SPROC_RPC", 4108),
  /** The service of postgres_rpc under another runtime. */
  bun: {
    serverFile: "bun/bun-server.ts",
    command: bunCommand("bun/bun-server.ts"),
    urlVariable: "BUN_URL",
    defaultUrl: "http://127.0.0.1:4001",
    urlOfFlag: (config) => config.bunUrl,
    portVariable: "PORT",
    startCommand: bunStart,
    back: postgresBacking({
      urlVariables: ["BUN_PG_URL", "PG_URL"],
      mayStart: true,
      startCommand: bunStart,
      serverVariable: "BUN_PG_URL",
      asksForIsolation: true,
      databaseName: "bun_bench",
    }),
    connector: { ...unchecked, health: "ignored", alwaysSendsArguments: true },
  },
  cockroach_rpc: onForeignDatabase(
    nodeOnPostgres("cockroach_rpc", "CRDB_RPC", 4102),
    "start it with `cockroach start-single-node --insecure --listen-addr=127.0.0.1:26257 --http-addr=127.0.0.1:8081` " +
      "and set CRDB_URL=postgresql://root@127.0.0.1:26257/defaultdb?sslmode=disable",
    { urlVariables: ["CRDB_URL"], serverVariable: "CRDB_URL" },
  ),
  /** A cloud service. */
  planetscale_pg_rpc: onForeignDatabase(
    {
      ...nodeOnPostgres("postgres_rpc", "PG_RPC", 4104),
      urlVariable: "PLANETSCALE_RPC_URL",
      connector: unchecked,
    },
    "start it with a Postgres database at planetscale.com and set PLANETSCALE_PG_URL=<its address>, on a machine of its region",
    { urlVariables: ["PLANETSCALE_PG_URL"], serverVariable: "PG_URL" },
  ),
  /** The Postgres of Supabase's local stack, where it runs at its usual place or SUPABASE_DB_URL names it. */
  supabase_rpc: onForeignDatabase(
    { ...nodeOnPostgres("supabase_rpc", "SUPABASE_RPC", 4106), connector: unchecked },
    "start it with `npx supabase start`, or set SUPABASE_DB_URL=<address of its Postgres>",
    {
      urlVariables: ["SUPABASE_DB_URL"],
      serverVariable: "SUPABASE_DB_URL",
      urlDefault: "postgresql://postgres:postgres@127.0.0.1:54322/postgres",
      make: makeSupabaseFunctions,
    },
  ),
};

/**
 * A system of the Postgres class once more, under READ COMMITTED. All of its transfers lock both rows in the order of their
 * ids (`FOR UPDATE`), so the sums stay right without a serialization failure to repeat.
 */
const readCommitted = (row: Row): Row => ({
  ...row,
  // No variable and no usual port: those name a server whose isolation is another.
  urlVariable: `${row.urlVariable}_READ_COMMITTED`,
  urlOfFlag: undefined,
  defaultUrl: undefined,
  back: (context) => row.back({ ...context, config: { ...context.config, pgIsolation: "read-committed" } }),
});

const suffix = "_read_committed";

export function rpcSystem(key: string): ConnectorDefinition {
  const row = rows[key] ?? readCommitted(rows[key.replace(suffix, "")]!);
  return rpcDefinition({ key, ...row });
}
