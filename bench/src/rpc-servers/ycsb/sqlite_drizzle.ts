// YCSB through Drizzle and better-sqlite3 (section 15.4).

import type Database from "better-sqlite3";
import { asc, eq, gte, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { type YcsbField, type YcsbStore, ycsbFields } from "./store";

const field = (name: string) => text(name).notNull();
const fields = Object.fromEntries(ycsbFields.map((name) => [name, field(name)])) as Record<
  YcsbField,
  ReturnType<typeof field>
>;

const usertable = sqliteTable("usertable", {
  ycsb_key: text("ycsb_key").primaryKey(),
  ...fields,
});

/** Rows of one INSERT: SQLite allows 32,766 parameters. */
const rowsPerStatement = 500;

export function sqliteDrizzleYcsb(connection: Database.Database): YcsbStore {
  const database = drizzle(connection);
  const byKey = (key: string) => eq(usertable.ycsb_key, key);
  const columns = Array.from({ length: 10 }, (_, index) => `field${index} TEXT NOT NULL`).join(", ");
  return {
    clear() {
      connection.exec(`CREATE TABLE IF NOT EXISTS usertable (ycsb_key VARCHAR(64) PRIMARY KEY, ${columns})`);
      connection.exec("DELETE FROM usertable");
    },
    insert(rows) {
      database.transaction((transaction) => {
        for (let first = 0; first < rows.length; first += rowsPerStatement) {
          transaction
            .insert(usertable)
            .values(rows.slice(first, first + rowsPerStatement))
            .run();
        }
      });
    },
    read: (key) => database.select().from(usertable).where(byKey(key)).get(),
    scan: (key, count) =>
      database
        .select()
        .from(usertable)
        .where(gte(usertable.ycsb_key, key))
        .orderBy(asc(usertable.ycsb_key))
        .limit(count)
        .all(),
    update: (key, name, value) =>
      database
        .update(usertable)
        .set({ [name]: value })
        .where(byKey(key))
        .run().changes === 1,
    readModifyWrite: (key, name, value) =>
      database.transaction((transaction) => {
        const row = transaction.select().from(usertable).where(byKey(key)).get();
        if (row)
          transaction
            .update(usertable)
            .set({ [name]: value })
            .where(byKey(key))
            .run();
        return row;
      }),
    count: () => database.select({ count: sql<number>`count(*)` }).from(usertable).get()!.count,
  };
}
