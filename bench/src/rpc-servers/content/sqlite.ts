// Content in SQLite by prepared statements, without an ORM (section 16.3).

import type Database from "better-sqlite3";
import type { ContentRecord, ContentStore } from "./store";

type Row = Omit<ContentRecord, "data"> & { data: string | null };

const createContentTable = `CREATE TABLE IF NOT EXISTS content (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, author TEXT, status TEXT, data TEXT,
  created_at TEXT, updated_at TEXT
)`;

const rowOf = (record: ContentRecord): Row => ({
  ...record,
  data: record.data === null ? null : JSON.stringify(record.data),
});
const recordOf = (row: Row): ContentRecord => ({
  ...row,
  data: row.data === null ? null : JSON.parse(row.data),
});

export function sqliteContent(database: Database.Database): ContentStore {
  database.exec(createContentTable);
  const insert = database.prepare(
    "INSERT INTO content VALUES (@id, @title, @body, @author, @status, @data, @created_at, @updated_at)",
  );
  const select = database.prepare<[string], Row>("SELECT * FROM content WHERE id = ?");
  const update = database.prepare(
    `UPDATE content SET title = @title, body = @body, author = @author, status = @status, data = @data,
     updated_at = @updated_at WHERE id = @id`,
  );
  const remove = database.prepare("DELETE FROM content WHERE id = ?");
  const read = (id: string) => {
    const row = select.get(id);
    return row && recordOf(row);
  };
  const change = database.transaction((id: string, changed: Partial<ContentRecord>) => {
    const record = read(id);
    if (!record) return undefined;
    const updated = { ...record, ...changed, updated_at: new Date().toISOString() };
    update.run(rowOf(updated));
    return updated;
  });
  return {
    clear: () => {
      database.exec("DELETE FROM content");
    },
    create: (record) => {
      insert.run(rowOf(record));
    },
    read,
    update: (id, changed) => change.immediate(id, changed),
    delete: (id) => remove.run(id).changes === 1,
  };
}
