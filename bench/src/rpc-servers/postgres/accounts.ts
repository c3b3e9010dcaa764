// The transfer of test-1 through Drizzle and a pool: five round trips each (sections 9 and 10.3).

import { asc, eq, gte, inArray, sql } from "drizzle-orm";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { bigint, integer, pgTable } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type AccountStore, seedBatchRows, type Transfer } from "../accounts";
import { type RetryCounter, withRetries } from "./retry";

export type IdType = "integer" | "bigint";

const balance = bigint("balance", { mode: "bigint" }).notNull();
const accountsWithIntegerId = pgTable("accounts", { id: integer("id").primaryKey(), balance });
const accountsWithBigintId = pgTable("accounts", {
  id: bigint("id", { mode: "number" }).primaryKey(),
  balance,
});

export class PostgresAccounts implements AccountStore {
  readonly #database: NodePgDatabase;
  readonly #accounts: typeof accountsWithIntegerId;
  readonly #idType: IdType;
  readonly #counter: RetryCounter;

  constructor(pool: pg.Pool, idType: IdType, counter: RetryCounter = { retries: 0 }) {
    this.#database = drizzle(pool);
    // The two tables differ in the type of a column that both hand over as a number.
    this.#accounts = (idType === "integer"
      ? accountsWithIntegerId
      : accountsWithBigintId) as unknown as typeof accountsWithIntegerId;
    this.#idType = idType;
    this.#counter = counter;
  }

  /** Whether the transfer took place: it does not without funds. */
  transfer(transfer: Transfer): Promise<boolean> {
    return withRetries(() => this.#transferOnce(transfer, BigInt(transfer.amount)), this.#counter);
  }

  #transferOnce({ from, to }: Transfer, amount: bigint): Promise<boolean> {
    const accounts = this.#accounts;
    return this.#database.transaction(async (transaction) => {
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
  }

  async find(id: number) {
    const accounts = this.#accounts;
    const rows = await withRetries(
      () => this.#database.select().from(accounts).where(eq(accounts.id, id)).limit(1),
      this.#counter,
    );
    return rows[0];
  }

  async balances(from: number, count: number): Promise<bigint[]> {
    const { id, balance } = this.#accounts;
    const rows = await this.#database
      .select({ balance })
      .from(this.#accounts)
      .where(gte(id, from))
      .orderBy(asc(id))
      .limit(count);
    return rows.map((row) => row.balance);
  }

  async totals(initialBalance: bigint) {
    const accounts = this.#accounts;
    const rows = await this.#database
      .select({
        accounts: sql<string>`count(*)`,
        total: sql<string>`coalesce(sum(${accounts.balance}), 0)`,
        changed: sql<string>`count(*) filter (where ${accounts.balance} <> ${initialBalance})`,
      })
      .from(accounts);
    return rows[0]!;
  }

  /** In one transaction. */
  async seed(count: number, initialBalance: number): Promise<void> {
    const idType = sql.raw(this.#idType);
    await this.#database.execute(
      sql`CREATE TABLE IF NOT EXISTS accounts (id ${idType} PRIMARY KEY, balance bigint NOT NULL)`,
    );
    await this.#database.transaction(async (transaction) => {
      await transaction.delete(this.#accounts);
      for (let first = 0; first < count; first += seedBatchRows) {
        const last = Math.min(count, first + seedBatchRows) - 1;
        await transaction.execute(
          sql`INSERT INTO accounts (id, balance) SELECT id, ${BigInt(initialBalance)} FROM generate_series(${first}::bigint, ${last}::bigint) AS ids (id)`,
        );
      }
    });
  }
}
