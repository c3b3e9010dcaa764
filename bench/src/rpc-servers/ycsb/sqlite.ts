// YCSB in SQLite by prepared statements, without an ORM and without transactions of its own: for batches.

import type Database from "better-sqlite3";
import { type YcsbRow, type YcsbStore, ycsbColumns, ycsbFields } from "./store";

const createUsertable = `CREATE TABLE IF NOT EXISTS usertable (
  ycsb_key VARCHAR(64) PRIMARY KEY, ${ycsbFields.map((field) => `${field} TEXT NOT NULL`).join(", ")}
)`;

export function sqliteYcsb(database: Database.Database): YcsbStore {
  database.exec(createUsertable);
  const all = ycsbColumns.join(", ");
  const select = database.prepare<[string], YcsbRow>(`SELECT ${all} FROM usertable WHERE ycsb_key = ?`);
  const scan = database.prepare<[string, number], YcsbRow>(
    `SELECT ${all} FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?`,
  );
  const insert = database.prepare(
    `INSERT INTO usertable (${all}) VALUES (${ycsbColumns.map((column) => `@${column}`).join(", ")})`,
  );
  const updates = Object.fromEntries(
    ycsbFields.map((field) => [
      field,
      database.prepare(`UPDATE usertable SET ${field} = ? WHERE ycsb_key = ?`),
    ]),
  );
  const insertAll = database.transaction((rows: YcsbRow[]) => {
    for (const row of rows) insert.run(row);
  });
  const count = database.prepare("SELECT count(*) FROM usertable").pluck();
  const update = (key: string, field: string, value: string) => updates[field]!.run(value, key).changes === 1;
  return {
    clear: () => {
      database.exec("DELETE FROM usertable");
    },
    // One row undoes itself if it fails; of many, none may stay.
    insert: (rows) => {
      if (rows.length === 1) insert.run(rows[0]);
      else insertAll(rows);
    },
    read: (key) => select.get(key),
    scan: (key, most) => scan.all(key, most),
    update,
    readModifyWrite(key, field, value) {
      const row = select.get(key);
      if (row) update(key, field, value);
      return row;
    },
    count: () => count.get() as number,
  };
}
