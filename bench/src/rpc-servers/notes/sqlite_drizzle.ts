// Notes in SQLite through Drizzle: a write is a transaction, executed without giving way to another.

import type Database from "better-sqlite3";
import { count, desc, eq, inArray, relations, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sqliteNotes } from "./sqlite";
import type { Note, NoteStore } from "./store";

const id = () => integer("id").primaryKey({ autoIncrement: true });
const time = (name: string) =>
  integer(name)
    .notNull()
    .$defaultFn(() => Date.now());

const note = sqliteTable("note", {
  id: id(),
  title: text("title").notNull(),
  deleted: integer("deleted", { mode: "boolean" }).notNull().default(false),
  createdAt: time("created_at"),
});
const tag = sqliteTable("tag", {
  id: id(),
  noteId: integer("note_id").notNull(),
  name: text("name").notNull(),
});
const eventLog = sqliteTable("event_log", {
  id: id(),
  model: text("model").notNull(),
  op: text("op").notNull(),
  recordId: integer("record_id").notNull(),
  payload: text("payload").notNull(),
  at: time("at"),
});
const noteRelations = relations(note, ({ many }) => ({ tags: many(tag) }));
const tagRelations = relations(tag, ({ one }) => ({
  note: one(note, { fields: [tag.noteId], references: [note.id] }),
}));

const columns = { id: note.id, title: note.title, deleted: note.deleted };
const event = (op: string, recordId: number, payload: string) => ({ model: "note", op, recordId, payload });

export function sqliteDrizzleNotes(connection: Database.Database): NoteStore {
  const database = drizzle(connection, { schema: { note, tag, noteRelations, tagRelations } });
  type Transaction = Parameters<Parameters<typeof database.transaction>[0]>[0];

  const write = <T>(body: (transaction: Transaction) => T): T =>
    database.transaction(body, { behavior: "immediate" });
  const change = (set: Partial<Note>, where: SQL, entry: ReturnType<typeof event>) =>
    write((transaction) => {
      transaction.update(note).set(set).where(where).run();
      transaction.insert(eventLog).values(entry).run();
    });
  const tagged = (name: string) =>
    inArray(note.id, database.select({ id: tag.noteId }).from(tag).where(eq(tag.name, name)));

  return {
    seed: (notes, grouped, group) => sqliteNotes(connection).seed(notes, grouped, group),
    create: (title) =>
      write((transaction) => {
        const row = transaction.insert(note).values({ title }).returning({ id: note.id }).get();
        transaction
          .insert(eventLog)
          .values(event("create", row.id, title))
          .run();
        return row.id;
      }),
    createBare(title) {
      database.insert(note).values({ title }).run();
    },
    createMany: (titles) =>
      write((transaction) => {
        const rows = transaction
          .insert(note)
          .values(titles.map((title) => ({ title })))
          .returning({ id: note.id })
          .all();
        const events = rows.map((row) => event("create", row.id, ""));
        transaction.insert(eventLog).values(events).run();
      }),
    update: (id, title) => change({ title }, eq(note.id, id), event("update", id, title)),
    delete: (id) => change({ deleted: true }, eq(note.id, id), event("delete", id, "")),
    updateMany: (name, title) => change({ title }, tagged(name), event("update_many", 0, name)),
    deleteMany: (name) => change({ deleted: true }, tagged(name), event("delete_many", 0, name)),
    findMany: (limit) =>
      database
        .select(columns)
        .from(note)
        .where(eq(note.deleted, false))
        .orderBy(desc(note.id))
        .limit(limit)
        .all(),
    get: (id) => database.select(columns).from(note).where(eq(note.id, id)).get(),
    count: () => database.select({ count: count() }).from(note).where(eq(note.deleted, false)).get()!.count,
    findInclude(limit) {
      const rows = database.query.note
        .findMany({
          columns: { id: true, title: true, deleted: true },
          where: eq(note.deleted, false),
          orderBy: desc(note.id),
          limit,
          with: { tags: { columns: { name: true }, orderBy: tag.id } },
        })
        .sync();
      return rows.map((row) => ({ ...row, tags: row.tags.map(({ name }) => name) }));
    },
    events: () => database.select({ count: count() }).from(eventLog).get()!.count,
  };
}
