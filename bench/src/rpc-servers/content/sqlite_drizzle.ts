// Content in SQLite through Drizzle, as `sqlite_rpc` keeps everything (section 16.3).

import type Database from "better-sqlite3";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { createContentTable } from "./sqlite";
import type { ContentStore } from "./store";

const content = sqliteTable("content", {
  id: text("id").primaryKey(),
  title: text("title").notNull(),
  body: text("body").notNull(),
  author: text("author"),
  status: text("status"),
  data: text("data", { mode: "json" }),
  created_at: text("created_at").notNull(),
  updated_at: text("updated_at").notNull(),
});

export function sqliteDrizzleContent(connection: Database.Database): ContentStore {
  connection.exec(createContentTable);
  const database = drizzle(connection);
  return {
    clear() {
      database.delete(content).run();
    },
    create(record) {
      database.insert(content).values(record).run();
    },
    read: (id) => database.select().from(content).where(eq(content.id, id)).get(),
    update: (id, change) =>
      database
        .update(content)
        .set({ ...change, updated_at: new Date().toISOString() })
        .where(eq(content.id, id))
        .returning()
        .get(),
    delete: (id) => database.delete(content).where(eq(content.id, id)).run().changes === 1,
  };
}
