// The servers of the Postgres class: what each of them is, and the RPC methods that they have (section 9).

import { availableParallelism } from "node:os";
import type pg from "pg";
import { accountMethods } from "../accounts";
import { postgresOrm } from "../drizzle";
import { drizzleTransfer } from "../drizzle_transfer";
import type { RpcService } from "../rpc";
import { drizzleStores, postgresStores, storeMethods } from "../stores";
import { type IdType, postgresAccounts } from "./accounts";
import { describeDatabase, openPool } from "./pool";
import { createTransferFunction, transferByProcedure } from "./stored_procedure";

interface PostgresServer {
  banner: string;
  applicationName: string;
  hiddenErrorText: string;
  /** Names of the variables that may hold the address of the database; the first that is set counts. */
  urlVariables: string[];
  portVariables: string[];
  defaultPort: number;
  idType: IdType;
  /** The whole transfer is one statement, and no ORM is used; otherwise it is five round trips through Drizzle. */
  isProcedure?: boolean;
}

export const postgresServers = {
  postgres_rpc: {
    banner: "pg drizzle rpc server",
    applicationName: "pg-rpc-drizzle",
    hiddenErrorText: "internal server error",
    urlVariables: ["PG_URL"],
    portVariables: ["PG_RPC_PORT"],
    defaultPort: 4101,
    idType: "integer",
  },
  postgres_sproc_rpc: {
    banner: "pg stored procedure rpc server",
    applicationName: "pg-rpc-sproc",
    hiddenErrorText: "internal server error",
    urlVariables: ["PG_URL"],
    portVariables: ["PG_SPROC_RPC_PORT"],
    defaultPort: 4108,
    idType: "integer",
    isProcedure: true,
  },
  cockroach_rpc: {
    banner: "cockroach drizzle rpc server",
    applicationName: "crdb-rpc-drizzle",
    hiddenErrorText: "internal server error",
    urlVariables: ["CRDB_URL"],
    portVariables: ["CRDB_RPC_PORT"],
    defaultPort: 4102,
    idType: "integer",
  },
  supabase_rpc: {
    // Straight to the database of the stack, not through its pooler.
    banner: "supabase drizzle rpc server",
    applicationName: "supabase-rpc-drizzle",
    hiddenErrorText: "internal error",
    urlVariables: ["SUPABASE_DB_URL", "PG_URL"],
    portVariables: ["SUPABASE_RPC_PORT", "PG_RPC_PORT"],
    defaultPort: 4106,
    idType: "bigint",
  },
  bun: {
    banner: "bun drizzle rpc server",
    applicationName: "bun-rpc-drizzle",
    hiddenErrorText: "internal error",
    urlVariables: ["BUN_PG_URL", "PG_URL"],
    portVariables: ["PORT"],
    defaultPort: 4001,
    idType: "integer",
  },
} satisfies Record<string, PostgresServer>;

export function poolMaxOfEnvironment(): number {
  // More connections than that only wait for each other.
  const raw = process.env["MAX_POOL"] || String(2 * availableParallelism());
  const poolMax = Number(raw);
  if (!Number.isSafeInteger(poolMax) || poolMax < 1) throw new Error(`invalid number for MAX_POOL: ${raw}`);
  return poolMax;
}

/** What the columns of the report say, read from the database. `runtime` is what runs the server. */
export async function describePool(pool: pg.Pool, runtime = `Node.js ${process.version}`) {
  const { version, roundTripMilliseconds, ...settings } = await describeDatabase(pool);
  const software = {
    database: version,
    databaseRoundTrip: `${roundTripMilliseconds} ms`,
    server: runtime,
  };
  return { ...settings, poolMax: pool.options.max, software };
}

/** Opens the pool of a server and makes its methods. */
export async function postgresService(
  key: keyof typeof postgresServers,
  runtime?: string,
): Promise<{ service: RpcService; pool: pg.Pool }> {
  const options: PostgresServer = postgresServers[key];
  const { applicationName, banner, hiddenErrorText, isProcedure = false } = options;
  const url = options.urlVariables.map((name) => process.env[name]).find((value) => value);
  if (!url) {
    const names = options.urlVariables.join(" or ");
    throw new Error(`${names} is not set; e.g. postgres://postgres:postgres@127.0.0.1:5432/postgres`);
  }
  const pool = openPool({ url, applicationName, poolMax: poolMaxOfEnvironment() });
  const counter = { retries: 0 };
  const orm = postgresOrm(pool, counter);
  if (isProcedure) await createTransferFunction(pool);
  const methods = {
    ...accountMethods(
      postgresAccounts(pool, options.idType, counter),
      isProcedure ? (transfer) => transferByProcedure(pool, transfer, counter) : drizzleTransfer(orm),
    ),
    ...storeMethods(drizzleStores(orm, postgresStores(pool, counter, isProcedure))),
    describe: async () => ({
      ...(await describePool(pool, runtime)),
      roundTripsPerTx: isProcedure ? 1 : 5,
      orm: isProcedure ? "none" : "Drizzle",
      retries: counter.retries,
    }),
  };
  return { service: { banner, methods, hiddenErrorText }, pool };
}
