// Notes in PostgreSQL through node-postgres, without an ORM: a write is an interactive transaction.

import type pg from "pg";
import { postgresStatements, type Statement } from "../postgres/statements";
import { type NoteStore, type NoteWithTags, tagsPerNote } from "./store";

const createTables = `
CREATE TABLE IF NOT EXISTS note (
  id bigserial PRIMARY KEY, title text NOT NULL, deleted boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS tag (id bigserial PRIMARY KEY, note_id bigint NOT NULL, name text NOT NULL);
CREATE INDEX IF NOT EXISTS tag_note ON tag (note_id);
CREATE INDEX IF NOT EXISTS tag_name ON tag (name);
CREATE TABLE IF NOT EXISTS event_log (
  id bigserial PRIMARY KEY, model text NOT NULL, op text NOT NULL, record_id bigint NOT NULL, payload text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
TRUNCATE note, tag, event_log RESTART IDENTITY`;

const insertNotes =
  "INSERT INTO note (title) SELECT 'note ' || n FROM generate_series(1, $1::int) AS notes (n)";
const insertTags = `INSERT INTO tag (note_id, name)
  SELECT note.id, CASE WHEN t > 0 THEN 'tag ' || t WHEN note.id <= $1 THEN $2 ELSE 'other' END
  FROM note, generate_series(0, $3::int - 1) AS tags (t) ORDER BY note.id, t`;
const insertNote = { name: "note_insert", text: "INSERT INTO note (title) VALUES ($1) RETURNING id" };
const insertMany = {
  name: "note_insert_many",
  text: "INSERT INTO note (title) SELECT unnest($1::text[]) RETURNING id",
};
const insertEvent = {
  name: "event_insert",
  text: "INSERT INTO event_log (model, op, record_id, payload) VALUES ('note', $1, $2, $3)",
};
const insertEvents = {
  name: "event_insert_many",
  text: "INSERT INTO event_log (model, op, record_id, payload) SELECT 'note', 'create', unnest($1::bigint[]), ''",
};
const tagged = "id IN (SELECT note_id FROM tag WHERE name = $1)";
const setTitle = { name: "note_update", text: "UPDATE note SET title = $2 WHERE id = $1" };
const setDeleted = { name: "note_delete", text: "UPDATE note SET deleted = true WHERE id = $1" };
const setTitles = { name: "note_update_many", text: `UPDATE note SET title = $2 WHERE ${tagged}` };
const setAllDeleted = { name: "note_delete_many", text: `UPDATE note SET deleted = true WHERE ${tagged}` };
const newest = {
  name: "note_newest",
  text: "SELECT id, title, deleted FROM note WHERE NOT deleted ORDER BY id DESC LIMIT $1",
};
const byId = { name: "note_get", text: "SELECT id, title, deleted FROM note WHERE id = $1" };
const live = { name: "note_count", text: "SELECT count(*) AS count FROM note WHERE NOT deleted" };
const allEvents = { name: "event_count", text: "SELECT count(*) AS count FROM event_log" };
const include = {
  name: "note_include",
  text: `SELECT note.id, note.title, note.deleted, array_agg(tag.name ORDER BY tag.id) AS tags
    FROM (${newest.text}) AS note JOIN tag ON tag.note_id = note.id
    GROUP BY note.id, note.title, note.deleted ORDER BY note.id DESC`,
};

type Row = NoteWithTags & { count: number };

export function postgresNotes(pool: pg.Pool): NoteStore {
  const { read, write } = postgresStatements<Row>(pool);
  const change = (
    statement: Statement,
    values: unknown[],
    event: [op: string, id: number, payload: string],
  ) =>
    write(async (run) => {
      await run(statement, ...values);
      await run(insertEvent, ...event);
    });
  return {
    async seed(notes, grouped, group) {
      await pool.query(createTables);
      await pool.query(insertNotes, [notes]);
      await pool.query(insertTags, [grouped, group, tagsPerNote]);
    },
    create: (title) =>
      write(async (run) => {
        const { id } = (await run(insertNote, title)).rows[0]!;
        await run(insertEvent, "create", id, title);
        return id;
      }),
    async createBare(title) {
      await read(insertNote, title);
    },
    createMany: (titles) =>
      write(async (run) => {
        const { rows } = await run(insertMany, titles);
        await run(
          insertEvents,
          rows.map(({ id }) => id),
        );
      }),
    update: (id, title) => change(setTitle, [id, title], ["update", id, title]),
    delete: (id) => change(setDeleted, [id], ["delete", id, ""]),
    updateMany: (tag, title) => change(setTitles, [tag, title], ["update_many", 0, tag]),
    deleteMany: (tag) => change(setAllDeleted, [tag], ["delete_many", 0, tag]),
    findMany: (limit) => read(newest, limit),
    get: async (id) => (await read(byId, id))[0],
    count: async () => (await read(live))[0]!.count,
    findInclude: (limit) => read(include, limit),
    events: async () => (await read(allEvents))[0]!.count,
  };
}
