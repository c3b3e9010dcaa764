// Notes in PostgreSQL through Drizzle: a write is an interactive transaction.

import { count, desc, eq, inArray, relations, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, bigserial, boolean, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { seedPostgresNotes } from "./postgres";
import type { Note, NoteStore } from "./store";

const id = () => bigserial("id", { mode: "number" }).primaryKey();
const time = (name: string) => timestamp(name, { withTimezone: true }).notNull().defaultNow();

const note = pgTable("note", {
  id: id(),
  title: text("title").notNull(),
  deleted: boolean("deleted").notNull().default(false),
  createdAt: time("created_at"),
});
const tag = pgTable("tag", {
  id: id(),
  noteId: bigint("note_id", { mode: "number" }).notNull(),
  name: text("name").notNull(),
});
const eventLog = pgTable("event_log", {
  id: id(),
  model: text("model").notNull(),
  op: text("op").notNull(),
  recordId: bigint("record_id", { mode: "number" }).notNull(),
  payload: text("payload").notNull(),
  at: time("at"),
});
const noteRelations = relations(note, ({ many }) => ({ tags: many(tag) }));
const tagRelations = relations(tag, ({ one }) => ({
  note: one(note, { fields: [tag.noteId], references: [note.id] }),
}));

const columns = { id: note.id, title: note.title, deleted: note.deleted };
const event = (op: string, recordId: number, payload: string) => ({ model: "note", op, recordId, payload });

export function postgresDrizzleNotes(pool: pg.Pool, counter: RetryCounter = { retries: 0 }): NoteStore {
  const database = drizzle(pool, { schema: { note, tag, noteRelations, tagRelations } });
  type Transaction = Parameters<Parameters<typeof database.transaction>[0]>[0];

  const write = <T>(body: (transaction: Transaction) => Promise<T>): Promise<T> =>
    withRetries(() => database.transaction(body), counter);
  // A read that is serializable may be refused as well.
  const read = <T>(statement: () => PromiseLike<T>): Promise<T> => withRetries(statement, counter);
  const change = (set: Partial<Note>, where: SQL, entry: ReturnType<typeof event>) =>
    write(async (transaction) => {
      await transaction.update(note).set(set).where(where);
      await transaction.insert(eventLog).values(entry);
    });
  const tagged = (name: string) =>
    inArray(note.id, database.select({ id: tag.noteId }).from(tag).where(eq(tag.name, name)));

  return {
    seed: (notes, grouped, group) => seedPostgresNotes(pool, notes, grouped, group),
    create: (title) =>
      write(async (transaction) => {
        const [row] = await transaction.insert(note).values({ title }).returning({ id: note.id });
        await transaction.insert(eventLog).values(event("create", row!.id, title));
        return row!.id;
      }),
    async createBare(title) {
      await withRetries(() => database.insert(note).values({ title }), counter);
    },
    createMany: (titles) =>
      write(async (transaction) => {
        const rows = await transaction
          .insert(note)
          .values(titles.map((title) => ({ title })))
          .returning({ id: note.id });
        await transaction.insert(eventLog).values(rows.map((row) => event("create", row.id, "")));
      }),
    update: (id, title) => change({ title }, eq(note.id, id), event("update", id, title)),
    delete: (id) => change({ deleted: true }, eq(note.id, id), event("delete", id, "")),
    updateMany: (name, title) => change({ title }, tagged(name), event("update_many", 0, name)),
    deleteMany: (name) => change({ deleted: true }, tagged(name), event("delete_many", 0, name)),
    findMany: (limit) =>
      read(() =>
        database
          .select(columns)
          .from(note)
          .where(eq(note.deleted, false))
          .orderBy(desc(note.id))
          .limit(limit),
      ),
    async get(id) {
      const [row] = await read(() => database.select(columns).from(note).where(eq(note.id, id)).limit(1));
      return row;
    },
    count: () => read(() => database.$count(note, eq(note.deleted, false))),
    async findInclude(limit) {
      const rows = await read(() =>
        database.query.note.findMany({
          columns: { id: true, title: true, deleted: true },
          where: eq(note.deleted, false),
          orderBy: desc(note.id),
          limit,
          with: { tags: { columns: { name: true }, orderBy: tag.id } },
        }),
      );
      return rows.map((row) => ({ ...row, tags: row.tags.map(({ name }) => name) }));
    },
    async events() {
      const [row] = await read(() => database.select({ count: count() }).from(eventLog));
      return row!.count;
    },
  };
}
