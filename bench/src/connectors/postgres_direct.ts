// The bench process speaks to PostgreSQL itself: no server in between, so another class than the full stacks
// (section 13). Prepared statements; the transfer is an interactive transaction of five round trips.

import { join } from "node:path";
import type pg from "pg";
import { type Config, UsageError } from "../config";
import {
  connectDatabase,
  foundDatabase,
  placeOf,
  seedAccounts,
  settingsOf,
  startDatabase,
} from "../init/postgres_database";
import { postgresJobs } from "../rpc-servers/jobs/postgres_store";
import type { JobStore } from "../rpc-servers/jobs/store";
import { PostgresAccounts } from "../rpc-servers/postgres/accounts";
import { describeDatabase, openPool } from "../rpc-servers/postgres/pool";
import { type RetryCounter, withRetries } from "../rpc-servers/postgres/retry";
import { isNoop, type Transfer, transferArguments } from "../rpc-servers/rpc";
import {
  type Account,
  type CallArguments,
  type Connector,
  judgeTotals,
  VerificationFailure,
  type VerifyTotals,
} from "./connector";
import type { ConnectorDefinition, NativeTarget, PrepareContext, Prepared } from "./definition";

const key = "postgres_direct";

interface Row {
  id: number;
  balance: string;
}

const select = {
  name: "select",
  text: "SELECT id, balance FROM accounts WHERE id = $1 OR id = $2 ORDER BY id FOR UPDATE",
};
const update = { name: "update", text: "UPDATE accounts SET balance = $2 WHERE id = $1" };

/** Whether the transfer took place. */
async function transferOnce(client: pg.PoolClient, { from, to, amount }: Transfer): Promise<boolean> {
  await client.query("BEGIN");
  const { rows } = await client.query<Row>({ ...select, values: [from, to] });
  const source = rows.find(({ id }) => id === from);
  const target = rows.find(({ id }) => id === to);
  if (!source || !target) throw new Error("account_missing");
  const isCovered = BigInt(source.balance) >= BigInt(amount);
  if (isCovered) {
    await client.query({ ...update, values: [from, BigInt(source.balance) - BigInt(amount)] });
    await client.query({ ...update, values: [to, BigInt(target.balance) + BigInt(amount)] });
  }
  await client.query("COMMIT");
  return isCovered;
}

async function transferOnPool(pool: pg.Pool, transfer: Transfer): Promise<boolean> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await transferOnce(client, transfer);
  } catch (error) {
    await client.query("ROLLBACK").catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    // A connection that cannot even roll back is thrown away.
    client.release(broken);
  }
}

interface Opened {
  pool: pg.Pool;
  accounts: PostgresAccounts;
  counter: RetryCounter;
}

interface Options {
  url: string;
  poolMax: number;
  accounts: number;
  initialBalance: number;
}

export class PostgresDirectConnector implements Connector {
  readonly name = key;
  #opened: Opened | undefined;

  /** A worker shares the pool of its root. */
  constructor(
    private readonly options: Options,
    private readonly root?: PostgresDirectConnector,
  ) {}

  get #connection(): Opened {
    const opened = this.root ? this.root.#opened : this.#opened;
    if (!opened) throw new Error(`${key}: not open`);
    return opened;
  }

  async open(): Promise<void> {
    const { url, poolMax } = this.options;
    const pool = openPool({ url, applicationName: "pg-direct", poolMax });
    const counter: RetryCounter = { retries: 0 };
    this.#opened = { pool, accounts: new PostgresAccounts(pool, "integer", counter), counter };
    await pool.query("SELECT 1");
  }

  async close(): Promise<void> {
    await this.#opened?.pool.end();
    this.#opened = undefined;
  }

  async createWorker(): Promise<Connector> {
    return new PostgresDirectConnector(this.options, this);
  }

  async getAccount(id: number): Promise<Account | null> {
    return (await this.#connection.accounts.find(id)) ?? null;
  }

  async verify(): Promise<VerifyTotals> {
    if (this.root) throw new VerificationFailure(`${key}: only the root connection verifies`);
    const { initialBalance } = this.options;
    return judgeTotals(await this.#connection.accounts.totals(BigInt(initialBalance)), initialBalance);
  }

  async balances(): Promise<BigInt64Array> {
    return BigInt64Array.from(await this.#connection.accounts.balances(0, this.options.accounts));
  }

  /** The pool, for other tests than test-1. */
  get pool(): pg.Pool {
    return this.#connection.pool;
  }

  /** The job queue on the pool. */
  jobs(): JobStore {
    const { pool, counter } = this.#connection;
    return postgresJobs(pool, counter, true);
  }

  /** One statement on the pool, repeated where the database gave way to another: for other tests than test-1. */
  query(statement: { name?: string; text: string; values: unknown[] }): Promise<pg.QueryResult> {
    const { pool, counter } = this.#connection;
    return withRetries(() => pool.query(statement), counter);
  }

  async call(name: string, args: CallArguments = {}): Promise<unknown> {
    if (name !== "transfer") throw new Error(`${key}: unknown method: ${name}`);
    const transfer = transferArguments(args);
    if (isNoop(transfer)) return { applied: false };
    const { pool, counter } = this.#connection;
    return { applied: await withRetries(() => transferOnPool(pool, transfer), counter) };
  }
}

/** The pool of a connection, for other tests than test-1. */
export function poolOf(connection: Connector): pg.Pool {
  if (!(connection instanceof PostgresDirectConnector)) throw new Error(`${connection.name} has no pool`);
  return connection.pool;
}

async function prepare(context: PrepareContext): Promise<Prepared> {
  const { config, say } = context;
  const given = process.env["PG_URL"];
  if (given) say(`using the database at ${placeOf(given)} (PG_URL); its table accounts is emptied`);
  const database = given ? foundDatabase(given, settingsOf(config)) : await startDatabase(context);
  try {
    const pool = await connectDatabase(database.url);
    const reseed = async () => {
      say(`seeding ${config.accounts} accounts`);
      await seedAccounts(pool, "integer", config.accounts, config.initialBalance);
    };
    if (config.prep && context.test === "test-1") await reseed();
    const description = await describeDatabase(pool);
    const { cluster } = database;
    return {
      url: database.url,
      fairness: {
        systemClass: "database-direct",
        isolation: description.isolation,
        durability: description.durability,
        poolMax: config.poolMax,
        transport: "pg wire",
        orm: "none",
        clientLanguage: "TypeScript",
        colocated: cluster !== undefined,
        roundTripsPerTx: 5,
      },
      // Read anew each time: after a crash the database is another process.
      get serverProcesses() {
        return cluster ? [cluster.pid()] : null;
      },
      software: {
        database: description.version,
        databaseRoundTrip: `${description.roundTripMilliseconds} ms`,
      },
      ...(cluster ? { dataDirectory: join(cluster.directory, "data"), crash: () => cluster.crash() } : {}),
      reseed,
      async stop() {
        await pool.end();
        await database.stop();
      },
    };
  } catch (error) {
    await database.stop();
    throw error;
  }
}

/** `PG_DIRECT_TRANSFER`: what the native load generator sends, the connector's statements or one call of a function. */
function nativeTarget({ poolMax }: Config, { url }: Prepared): NativeTarget {
  const transfer = process.env["PG_DIRECT_TRANSFER"] ?? "statements";
  if (transfer !== "statements" && transfer !== "function") {
    throw new UsageError(`PG_DIRECT_TRANSFER is statements or function, not ${transfer}`);
  }
  return {
    kind: "postgres",
    url,
    arguments: ["--postgres-transfer", transfer],
    connectionsMax: poolMax,
    roundTripsPerTx: transfer === "function" ? 1 : 5,
  };
}

export const definition: ConnectorDefinition = {
  key,
  startCommand: "start a PostgreSQL and set PG_URL=<its address>",
  prepare,
  nativeTarget,
  create: ({ poolMax, accounts, initialBalance }, { url }) =>
    new PostgresDirectConnector({ url, poolMax, accounts, initialBalance }),
};
