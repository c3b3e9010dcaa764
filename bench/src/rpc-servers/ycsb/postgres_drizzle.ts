// YCSB through Drizzle and a pool (section 15.4).

import { asc, eq, gte, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text, varchar } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { type YcsbField, type YcsbStore, ycsbFields } from "./store";

const field = (name: string) => text(name).notNull();
const fields = Object.fromEntries(ycsbFields.map((name) => [name, field(name)])) as Record<
  YcsbField,
  ReturnType<typeof field>
>;

const usertable = pgTable("usertable", {
  ycsb_key: varchar("ycsb_key", { length: 64 }).primaryKey(),
  ...fields,
});

// Ordered by bytes, as keys are compared everywhere else.
export const createUsertable = `CREATE TABLE IF NOT EXISTS usertable (
  ycsb_key varchar(64) COLLATE "C" PRIMARY KEY,
  ${Array.from({ length: 10 }, (_, index) => `field${index} text NOT NULL`).join(", ")}
)`;

export function postgresDrizzleYcsb(pool: pg.Pool, counter: RetryCounter): YcsbStore {
  const database = drizzle(pool);
  const byKey = (key: string) => eq(usertable.ycsb_key, key);
  return {
    async clear() {
      await database.execute(sql.raw(createUsertable));
      await database.execute(sql`TRUNCATE usertable`);
    },
    async insert(rows) {
      if (rows.length > 0) await withRetries(() => database.insert(usertable).values(rows), counter);
    },
    async read(key) {
      const rows = await withRetries(
        () => database.select().from(usertable).where(byKey(key)).limit(1),
        counter,
      );
      return rows[0];
    },
    scan: (key, count) =>
      withRetries(
        () =>
          database
            .select()
            .from(usertable)
            .where(gte(usertable.ycsb_key, key))
            .orderBy(asc(usertable.ycsb_key))
            .limit(count),
        counter,
      ),
    async update(key, name, value) {
      const statement = () =>
        database
          .update(usertable)
          .set({ [name]: value })
          .where(byKey(key));
      const { rowCount } = await withRetries(statement, counter);
      return rowCount === 1;
    },
    readModifyWrite: (key, name, value) =>
      withRetries(
        () =>
          database.transaction(async (transaction) => {
            const [row] = await transaction.select().from(usertable).where(byKey(key)).for("update");
            if (row)
              await transaction
                .update(usertable)
                .set({ [name]: value })
                .where(byKey(key));
            return row;
          }),
        counter,
      ),
    async count() {
      const [row] = await database.select({ count: sql<string>`count(*)` }).from(usertable);
      return Number(row!.count);
    },
  };
}
