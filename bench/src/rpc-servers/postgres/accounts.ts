// The transfer of test-1 through Drizzle and a pool: five round trips each (sections 9 and 10.3).

import { asc, eq, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, integer, pgTable } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type AccountStore, seedBatchRows, type Transfer } from "../accounts";
import { type RetryCounter, withRetries } from "./retry";
import { inTransaction } from "./statements";

export type IdType = "integer" | "bigint";

const balance = bigint("balance", { mode: "bigint" }).notNull();
const accountsWithIntegerId = pgTable("accounts", { id: integer("id").primaryKey(), balance });
const accountsWithBigintId = pgTable("accounts", {
  id: bigint("id", { mode: "number" }).primaryKey(),
  balance,
});

export type PostgresAccounts = AccountStore & { transfer(transfer: Transfer): Promise<boolean> };

export function postgresAccounts(pool: pg.Pool, idType: IdType, counter: RetryCounter): PostgresAccounts {
  const database = drizzle(pool);
  // The two tables differ in the type of a column that both hand over as a number.
  const accounts = (idType === "integer"
    ? accountsWithIntegerId
    : accountsWithBigintId) as unknown as typeof accountsWithIntegerId;

  const transferOnce = ({ from, to }: Transfer, amount: bigint): Promise<boolean> =>
    database.transaction(async (transaction) => {
      const rows = await transaction
        .select()
        .from(accounts)
        .where(inArray(accounts.id, [from, to]))
        .orderBy(asc(accounts.id))
        .for("update");
      const source = rows.find((row) => row.id === from);
      const target = rows.find((row) => row.id === to);
      if (!source || !target) throw new Error("account_missing");
      if (source.balance < amount) return false;
      await transaction
        .update(accounts)
        .set({ balance: source.balance - amount })
        .where(eq(accounts.id, from));
      await transaction
        .update(accounts)
        .set({ balance: target.balance + amount })
        .where(eq(accounts.id, to));
      return true;
    });

  return {
    transfer: (transfer) => withRetries(() => transferOnce(transfer, BigInt(transfer.amount)), counter),
    async find(id) {
      const [row] = await withRetries(
        () => database.select().from(accounts).where(eq(accounts.id, id)).limit(1),
        counter,
      );
      return row;
    },
    // None of these is measured.
    async balances(from, count) {
      const text = "SELECT balance FROM accounts WHERE id >= $1 ORDER BY id LIMIT $2";
      return (await pool.query<{ balance: string }>(text, [from, count])).rows.map((row) => row.balance);
    },
    async totals(initialBalance) {
      const text = `SELECT count(*) AS accounts, coalesce(sum(balance), 0) AS total,
        count(*) FILTER (WHERE balance <> $1) AS changed FROM accounts`;
      type Totals = Record<"accounts" | "total" | "changed", string>;
      return (await pool.query<Totals>(text, [initialBalance])).rows[0]!;
    },
    async seed(count, initialBalance) {
      await pool.query(
        `CREATE TABLE IF NOT EXISTS accounts (id ${idType} PRIMARY KEY, balance bigint NOT NULL)`,
      );
      await inTransaction(pool, async (client) => {
        await client.query("DELETE FROM accounts");
        const insert = `INSERT INTO accounts (id, balance)
          SELECT id, $1::bigint FROM generate_series($2::bigint, $3::bigint) AS ids (id)`;
        for (let first = 0; first < count; first += seedBatchRows)
          await client.query(insert, [initialBalance, first, Math.min(count, first + seedBatchRows) - 1]);
      });
    },
  };
}
