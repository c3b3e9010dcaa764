// YCSB in PostgreSQL without an ORM: prepared statements, each committed by itself.

import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import {
  readThenUpdate,
  valuesOf,
  type YcsbField,
  type YcsbRow,
  type YcsbStore,
  ycsbColumns,
  ycsbFields,
} from "./store";

interface Statement {
  name?: string;
  text: string;
}

// Ordered by bytes, as keys are compared everywhere else.
const createUsertable = `CREATE TABLE IF NOT EXISTS usertable (
  ycsb_key varchar(64) COLLATE "C" PRIMARY KEY,
  ${ycsbFields.map((field) => `${field} text NOT NULL`).join(", ")}
)`;

const columns = ycsbColumns.join(", ");
const places = ycsbColumns.map((_, index) => `$${index + 1}`);
const select = { name: "ycsb_read", text: `SELECT ${columns} FROM usertable WHERE ycsb_key = $1` };
const scan = {
  name: "ycsb_scan",
  text: `SELECT ${columns} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2`,
};
const insert = {
  name: "ycsb_insert",
  text: `INSERT INTO usertable (${columns}) VALUES (${places.join(", ")})`,
};
const arrays = places.map((place) => `${place}::text[]`).join(", ");
const insertMany = { text: `INSERT INTO usertable (${columns}) SELECT * FROM unnest(${arrays})` };
const updates = ycsbFields.map((field) => ({
  name: `ycsb_update_${field}`,
  text: `UPDATE usertable SET ${field} = $2 WHERE ycsb_key = $1`,
}));

export function postgresYcsb(pool: pg.Pool, counter: RetryCounter): YcsbStore {
  const query = (statement: Statement, values: unknown[] = []) =>
    withRetries(() => pool.query({ ...statement, values }), counter);
  const read = async (key: string) => (await query(select, [key])).rows[0] as YcsbRow | undefined;
  const update = async (key: string, field: YcsbField, value: string) =>
    (await query(updates[ycsbFields.indexOf(field)]!, [key, value])).rowCount !== 0;
  return {
    async clear() {
      await query({ text: createUsertable });
      await query({ text: "TRUNCATE usertable" });
    },
    async insert(rows) {
      if (rows.length === 1) await query(insert, valuesOf(rows[0]!));
      else
        await query(
          insertMany,
          ycsbColumns.map((name) => rows.map((row) => row[name])),
        );
    },
    read,
    scan: async (key, count) => (await query(scan, [key, count])).rows as YcsbRow[],
    update,
    readModifyWrite: readThenUpdate(read, update),
    count: async () =>
      Number((await query({ text: "SELECT count(*) AS count FROM usertable" })).rows[0].count),
  };
}
