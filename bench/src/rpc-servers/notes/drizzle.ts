// Notes through Drizzle: a write is an interactive transaction.

import { count, desc, eq, inArray, relations, type SQL } from "drizzle-orm";
import { type Columns, type Orm, step } from "../drizzle";
import type { Note, NoteStore } from "./store";

const tablesOf = ({ table, id, text, flag, reference, now }: Columns) => {
  const note = table("note", {
    ...{ id: id(), title: text("title"), deleted: flag("deleted").default(false) },
    createdAt: now("created_at"),
  });
  const tag = table("tag", { id: id(), noteId: reference("note_id"), name: text("name") });
  return {
    ...{ note, tag },
    eventLog: table("event_log", {
      ...{ id: id(), model: text("model"), op: text("op"), recordId: reference("record_id") },
      ...{ payload: text("payload"), at: now("at") },
    }),
    noteRelations: relations(note, ({ many }) => ({ tags: many(tag) })),
    tagRelations: relations(tag, ({ one }) => ({
      note: one(note, { fields: [tag.noteId], references: [note.id] }),
    })),
  };
};

const event = (op: string, recordId: number, payload: string) => ({ model: "note", op, recordId, payload });

/** `plain` makes the tables and fills them. */
export function drizzleNotes(orm: Orm, plain: () => Pick<NoteStore, "seed">): NoteStore {
  const { tables, database, run, write } = orm(tablesOf);
  const { note, tag, eventLog } = tables;
  const columns = { id: note.id, title: note.title, deleted: note.deleted };
  const change = (set: Partial<Note>, where: SQL, entry: ReturnType<typeof event>) =>
    write(function* (transaction) {
      yield* step(transaction.update(note).set(set).where(where));
      yield* step(transaction.insert(eventLog).values(entry));
    });
  const tagged = (name: string) =>
    inArray(note.id, database.select({ id: tag.noteId }).from(tag).where(eq(tag.name, name)));
  const live = eq(note.deleted, false);

  return {
    seed: (notes, grouped, group) => plain().seed(notes, grouped, group),
    create: (title) =>
      write(function* (transaction) {
        const [row] = yield* step(transaction.insert(note).values({ title }).returning({ id: note.id }));
        yield* step(transaction.insert(eventLog).values(event("create", row!.id, title)));
        return row!.id;
      }),
    async createBare(title) {
      await run(database.insert(note).values({ title }));
    },
    createMany: (titles) =>
      write(function* (transaction) {
        const values = titles.map((title) => ({ title }));
        const rows = yield* step(transaction.insert(note).values(values).returning({ id: note.id }));
        yield* step(transaction.insert(eventLog).values(rows.map((row) => event("create", row.id, ""))));
      }),
    update: (id, title) => change({ title }, eq(note.id, id), event("update", id, title)),
    delete: (id) => change({ deleted: true }, eq(note.id, id), event("delete", id, "")),
    updateMany: (name, title) => change({ title }, tagged(name), event("update_many", 0, name)),
    deleteMany: (name) => change({ deleted: true }, tagged(name), event("delete_many", 0, name)),
    findMany: (limit) =>
      run(database.select(columns).from(note).where(live).orderBy(desc(note.id)).limit(limit)),
    get: async (id) => (await run(database.select(columns).from(note).where(eq(note.id, id)).limit(1)))[0],
    count: async () => (await run(database.select({ count: count() }).from(note).where(live)))[0]!.count,
    async findInclude(limit) {
      const rows = await run(
        database.query.note.findMany({
          columns: { id: true, title: true, deleted: true },
          ...{ where: live, orderBy: desc(note.id), limit },
          with: { tags: { columns: { name: true }, orderBy: tag.id } },
        }),
      );
      return rows.map((row) => ({ ...row, tags: row.tags.map(({ name }) => name) }));
    },
    events: async () => (await run(database.select({ count: count() }).from(eventLog)))[0]!.count,
  };
}
