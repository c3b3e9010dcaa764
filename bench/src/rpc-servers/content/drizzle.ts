// Content through Drizzle, as the servers with an ORM keep everything (section 16.3).

import { eq } from "drizzle-orm";
import { type Columns, changedRows, type Orm } from "../drizzle";
import type { ContentStore } from "./store";

const tablesOf = ({ table, text, optionalText, json, isoTime }: Columns) => ({
  content: table("content", {
    ...{ id: text("id").primaryKey(), title: text("title"), body: text("body") },
    ...{ author: optionalText("author"), status: optionalText("status"), data: json("data") },
    ...{ created_at: isoTime("created_at"), updated_at: isoTime("updated_at") },
  }),
});

/** `plain` makes the table and empties it. */
export function drizzleContent(orm: Orm, plain: () => Pick<ContentStore, "clear">): ContentStore {
  const { tables, database, run } = orm(tablesOf);
  const { content } = tables;
  const byId = (id: string) => eq(content.id, id);
  return {
    clear: () => plain().clear(),
    async create(record) {
      await run(database.insert(content).values(record));
    },
    read: async (id) => (await run(database.select().from(content).where(byId(id)).limit(1)))[0],
    async update(id, change) {
      const set = { ...change, updated_at: new Date().toISOString() };
      const [record] = await run(database.update(content).set(set).where(byId(id)).returning());
      return record;
    },
    delete: async (id) => changedRows(await run(database.delete(content).where(byId(id)))) === 1,
  };
}
