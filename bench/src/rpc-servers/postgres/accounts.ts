// The accounts of test-1 in PostgreSQL, by plain statements: none of them is measured.

import type pg from "pg";
import { type AccountStore, seedBatchRows } from "../accounts";
import { type RetryCounter, withRetries } from "./retry";
import { inTransaction } from "./statements";

export type IdType = "integer" | "bigint";

export function postgresAccounts(pool: pg.Pool, idType: IdType, counter: RetryCounter): AccountStore {
  return {
    async find(id) {
      const text = "SELECT id::int, balance FROM accounts WHERE id = $1";
      const found = () => pool.query<{ id: number; balance: string }>(text, [id]);
      return (await withRetries(found, counter)).rows[0];
    },
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
