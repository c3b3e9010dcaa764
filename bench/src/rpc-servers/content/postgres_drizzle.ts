// Content in PostgreSQL through Drizzle and a pool, as the servers of the Postgres class keep everything (section 16.3).

import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { json, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { createContentTable } from "./postgres";
import type { ContentRecord, ContentStore } from "./store";

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" }).notNull();

const content = pgTable("content", {
  id: text("id").primaryKey(),
  title: text("title").notNull(),
  body: text("body").notNull(),
  author: text("author"),
  status: text("status"),
  data: json("data"),
  created_at: instant("created_at"),
  updated_at: instant("updated_at"),
});

const recordOf = (row: typeof content.$inferSelect): ContentRecord => ({
  ...row,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

export function postgresDrizzleContent(pool: pg.Pool, counter: RetryCounter): ContentStore {
  const database = drizzle(pool);
  const byId = (id: string) => eq(content.id, id);
  return {
    async clear() {
      await database.execute(sql.raw(createContentTable));
      await database.execute(sql`TRUNCATE content`);
    },
    async create(record) {
      const row = {
        ...record,
        created_at: new Date(record.created_at),
        updated_at: new Date(record.updated_at),
      };
      await withRetries(() => database.insert(content).values(row), counter);
    },
    async read(id) {
      const [row] = await withRetries(
        () => database.select().from(content).where(byId(id)).limit(1),
        counter,
      );
      return row && recordOf(row);
    },
    async update(id, change) {
      const set = { ...change, updated_at: new Date() };
      const statement = () => database.update(content).set(set).where(byId(id)).returning();
      const [row] = await withRetries(statement, counter);
      return row && recordOf(row);
    },
    async delete(id) {
      const { rowCount } = await withRetries(() => database.delete(content).where(byId(id)), counter);
      return rowCount === 1;
    },
  };
}
