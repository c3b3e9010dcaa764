// Content in PostgreSQL by plain statements on a pool, without an ORM (section 16.3).

import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import type { ContentRecord, ContentStore } from "./store";

type Row = Omit<ContentRecord, "created_at" | "updated_at"> & { created_at: Date; updated_at: Date };

const createContentTable = `CREATE TABLE IF NOT EXISTS content (
  id text PRIMARY KEY, title text NOT NULL, body text NOT NULL, author text, status text, data json,
  created_at timestamptz, updated_at timestamptz
)`;

const recordOf = (row: Row): ContentRecord => ({
  ...row,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

const jsonOf = (data: unknown) => (data === null || data === undefined ? null : JSON.stringify(data));

export function postgresContent(pool: pg.Pool): ContentStore {
  const counter: RetryCounter = { retries: 0 };
  const query = (text: string, values: unknown[] = []) =>
    withRetries(() => pool.query<Row>(text, values), counter);
  return {
    async clear() {
      await query(createContentTable);
      await query("TRUNCATE content");
    },
    async create({ id, title, body, author, status, data, created_at, updated_at }) {
      await query("INSERT INTO content VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", [
        ...[id, title, body, author, status],
        ...[jsonOf(data), created_at, updated_at],
      ]);
    },
    async read(id) {
      const { rows } = await query("SELECT * FROM content WHERE id = $1", [id]);
      return rows[0] && recordOf(rows[0]);
    },
    async update(id, { title, body, author, status, data }) {
      const { rows } = await query(
        `UPDATE content SET title = coalesce($2, title), body = coalesce($3, body), author = coalesce($4, author),
         status = coalesce($5, status), data = coalesce($6, data), updated_at = now() WHERE id = $1 RETURNING *`,
        [id, title, body, author, status, jsonOf(data)],
      );
      return rows[0] && recordOf(rows[0]);
    },
    async delete(id) {
      return (await query("DELETE FROM content WHERE id = $1", [id])).rowCount === 1;
    },
  };
}
