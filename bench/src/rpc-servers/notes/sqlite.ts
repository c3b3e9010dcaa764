// Notes in SQLite, inside the process of the benchmark.

import type Database from "better-sqlite3";
import { type Note, type NoteStore, type NoteWithTags, tagsPerNote } from "./store";

const createTables = `
CREATE TABLE IF NOT EXISTS note (
  id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS tag (id INTEGER PRIMARY KEY AUTOINCREMENT, note_id INTEGER NOT NULL, name TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS tag_note ON tag (note_id);
CREATE INDEX IF NOT EXISTS tag_name ON tag (name);
CREATE TABLE IF NOT EXISTS event_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, op TEXT NOT NULL, record_id INTEGER NOT NULL,
  payload TEXT NOT NULL, at INTEGER NOT NULL
);
DELETE FROM note; DELETE FROM tag; DELETE FROM event_log;
DELETE FROM sqlite_sequence`;

type Row = Omit<Note, "deleted"> & { deleted: number };
const noteOf = (row: Row): Note => ({ ...row, deleted: row.deleted !== 0 });

export function sqliteNotes(database: Database.Database): NoteStore {
  database.exec(createTables);
  const insertNote = database.prepare("INSERT INTO note (title, created_at) VALUES (?, ?)");
  const insertTag = database.prepare("INSERT INTO tag (note_id, name) VALUES (?, ?)");
  const insertEvent = database.prepare(
    "INSERT INTO event_log (model, op, record_id, payload, at) VALUES ('note', ?, ?, ?, ?)",
  );
  const setTitle = database.prepare("UPDATE note SET title = ? WHERE id = ?");
  const setDeleted = database.prepare("UPDATE note SET deleted = 1 WHERE id = ?");
  const tagged = "id IN (SELECT note_id FROM tag WHERE name = ?)";
  const setTitles = database.prepare(`UPDATE note SET title = ? WHERE ${tagged}`);
  const setAllDeleted = database.prepare(`UPDATE note SET deleted = 1 WHERE ${tagged}`);
  const newest = database.prepare<[number], Row>(
    "SELECT id, title, deleted FROM note WHERE deleted = 0 ORDER BY id DESC LIMIT ?",
  );
  const byId = database.prepare<[number], Row>("SELECT id, title, deleted FROM note WHERE id = ?");
  const live = database.prepare<[], number>("SELECT count(*) FROM note WHERE deleted = 0").pluck();
  const tagsOf = database
    .prepare<[number], string>("SELECT name FROM tag WHERE note_id = ? ORDER BY id")
    .pluck();
  const eventCount = database.prepare<[], number>("SELECT count(*) FROM event_log").pluck();

  const event = (op: string, id: number, payload: string) => insertEvent.run(op, id, payload, Date.now());
  const insert = (title: string) => Number(insertNote.run(title, Date.now()).lastInsertRowid);
  const inTransaction = <A extends unknown[], T>(body: (...args: A) => T) => {
    const transaction = database.transaction(body);
    return (...args: A): T => transaction.immediate(...args) as T;
  };
  const change = inTransaction(
    (statement: Database.Statement, values: unknown[], op: string, id: number, payload: string) => {
      statement.run(...values);
      event(op, id, payload);
    },
  );
  const createOne = (title: string) => {
    const id = insert(title);
    event("create", id, title);
    return id;
  };
  return {
    seed: inTransaction((notes: number, grouped: number, group: string) => {
      for (let note = 0; note < notes; note++) {
        const id = insert(`note ${note}`);
        insertTag.run(id, note < grouped ? group : "other");
        for (let tag = 1; tag < tagsPerNote; tag++) insertTag.run(id, `tag ${tag}`);
      }
    }),
    create: inTransaction(createOne),
    createBare: (title) => {
      insert(title);
    },
    createMany: inTransaction((titles: string[]) => {
      for (const title of titles) createOne(title);
    }),
    update: (id, title) => change(setTitle, [title, id], "update", id, title),
    delete: (id) => change(setDeleted, [id], "delete", id, ""),
    updateMany: (tag, title) => change(setTitles, [title, tag], "update_many", 0, tag),
    deleteMany: (tag) => change(setAllDeleted, [tag], "delete_many", 0, tag),
    findMany: (limit) => newest.all(limit).map(noteOf),
    get: (id) => {
      const row = byId.get(id);
      return row && noteOf(row);
    },
    count: () => live.get()!,
    findInclude: (limit): NoteWithTags[] =>
      newest.all(limit).map((row) => ({ ...noteOf(row), tags: tagsOf.all(row.id) })),
    events: () => eventCount.get()!,
  };
}
