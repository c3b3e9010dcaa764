// PostgreSQL without a server in front. Prepared statements; the transfer is an interactive transaction of five round trips.

import type pg from "pg";
import { type Config, UsageError } from "../config";
import { ownPostgres } from "../init/postgres_backing";
import { accountMethods, type Transfer } from "../rpc-servers/accounts";
import { postgresOrm } from "../rpc-servers/drizzle";
import { postgresAccounts } from "../rpc-servers/postgres/accounts";
import { openPool } from "../rpc-servers/postgres/pool";
import { withRetries } from "../rpc-servers/postgres/retry";
import { describePool } from "../rpc-servers/postgres/service";
import { inTransaction } from "../rpc-servers/postgres/statements";
import { drizzleStores, postgresStores, storeMethods } from "../rpc-servers/stores";
import type { NativeTarget, Prepared } from "./definition";
import { type DirectClient, directDefinition } from "./direct_connector";

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
async function transferOn(client: pg.PoolClient, { from, to, amount }: Transfer): Promise<boolean> {
  const { rows } = await client.query<Row>({ ...select, values: [from, to] });
  const source = rows.find(({ id }) => id === from);
  const target = rows.find(({ id }) => id === to);
  if (!source || !target) throw new Error("account_missing");
  const isCovered = BigInt(source.balance) >= BigInt(amount);
  if (isCovered) {
    await client.query({ ...update, values: [from, BigInt(source.balance) - BigInt(amount)] });
    await client.query({ ...update, values: [to, BigInt(target.balance) + BigInt(amount)] });
  }
  return isCovered;
}

async function connect(
  url: string,
  { poolMax, initialBalance }: Pick<Config, "poolMax" | "initialBalance">,
  orm: "none" | "Drizzle",
): Promise<DirectClient> {
  const pool = openPool({ url, applicationName: "pg-direct", poolMax });
  const counter = { retries: 0 };
  const transfer = (wanted: Transfer) =>
    withRetries(() => inTransaction(pool, (client) => transferOn(client, wanted)), counter);
  await pool.query("SELECT 1");
  // With an ORM only for data-layer and data-layer-crm, whose rows say so.
  const plain = postgresStores(pool, counter, true);
  const { notes, crm } = orm === "none" ? plain : drizzleStores(postgresOrm(pool), plain);
  return {
    methods: {
      ...accountMethods(postgresAccounts(pool, "integer", counter), transfer, BigInt(initialBalance)),
      ...storeMethods({ ...plain, notes, crm }),
      async describe() {
        const { software, ...described } = await describePool(pool);
        const { server: _, ...ofDatabase } = software;
        return { ...described, roundTripsPerTx: 5, orm, software: ofDatabase };
      },
    },
    close: () => pool.end(),
  };
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

const postgresDefinition = (key: string, orm: "none" | "Drizzle") =>
  directDefinition({
    ...{ key, nativeTarget, isShared: true, columns: { transport: "pg wire" } },
    startCommand: "start a PostgreSQL and set PG_URL=<its address>",
    async start(context) {
      const { environment, ...backing } = await ownPostgres()(context);
      return { ...backing, url: environment["PG_URL"]! };
    },
    connect: (url, config) => connect(url, config, orm),
  });

export const definition = postgresDefinition("postgres_direct", "none");
export const drizzleDefinition = postgresDefinition("postgres_drizzle_direct", "Drizzle");
