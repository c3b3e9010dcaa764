// The customers in SQLite, inside the process of the benchmark, by plain statements.

import type Database from "better-sqlite3";
import { columnNames, countedTables, createCrmTables, selectedColumns, tableName } from "./schema_sql";
import {
  type Contact,
  type Counts,
  type CrmStore,
  type CrmTable,
  columnsOf,
  crmTables,
  type Lead,
  type New,
  payloadOf,
} from "./store";

export function sqliteCrm(database: Database.Database): CrmStore {
  database.pragma("foreign_keys = ON");
  database.exec(createCrmTables("sqlite"));
  const insertEvent = database.prepare(
    "INSERT INTO event_log (model, op, record_id, payload, at) VALUES (?, 'create', ?, ?, ?)",
  );
  /** Each inserts an object by its properties, and answers the id. */
  const inserters = Object.fromEntries(
    crmTables.map((table) => {
      const values = columnsOf(table).map(([name]) => `@${name}`);
      const statement = database.prepare(
        `INSERT INTO ${tableName(table)} (${columnNames(table).join(", ")}, created_at) VALUES (${values.join(", ")}, @now)`,
      );
      return [table, (row: object) => Number(statement.run({ ...row, now: Date.now() }).lastInsertRowid)];
    }),
  ) as Record<CrmTable, (row: object) => number>;
  const find = <Values extends unknown[], Row>(table: CrmTable, rest: string) =>
    database.prepare<Values, Row>(`SELECT ${selectedColumns(table)} FROM ${tableName(table)} WHERE ${rest}`);
  const leadsByStatus = find<[string, number], Lead>("lead", "status = ? ORDER BY id LIMIT ?");
  const contactsByCompany = find<[number, number], Contact>("contact", "company_id = ? ORDER BY id LIMIT ?");
  const contactById = find<[number], Contact>("contact", "id = ?");
  const count = (table: string) =>
    database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()!;

  const inTransaction = <A extends unknown[]>(body: (...args: A) => void) => {
    const transaction = database.transaction(body);
    return (...args: A): void => transaction.immediate(...args);
  };
  const insert = inTransaction((table: CrmTable, rows: readonly New<CrmTable>[]) => {
    for (const row of rows) {
      const stored = "done" in row ? { ...row, done: Number(row.done) } : row;
      insertEvent.run(table, inserters[table](stored), payloadOf(table, row), Date.now());
    }
  });

  return {
    seed: inTransaction(({ companies, contacts, leads }) => {
      // What refers to others first.
      for (const table of [...crmTables].reverse()) database.exec(`DELETE FROM ${tableName(table)}`);
      database.exec("DELETE FROM event_log");
      database.exec("DELETE FROM sqlite_sequence");
      for (const company of companies) inserters.company(company);
      for (const contact of contacts) inserters.contact(contact);
      for (const lead of leads) inserters.lead(lead);
    }),
    create: (table, row) => insert(table, [row as New<CrmTable>]),
    createLeads: (leads) => insert("lead", leads),
    findLeads: (status, limit) => leadsByStatus.all(status, limit),
    findContacts: (companyId, limit) => contactsByCompany.all(companyId, limit),
    getContact: (id) => contactById.get(id),
    counts: () =>
      Object.fromEntries(countedTables.map(([name, table]) => [name, count(table)])) as unknown as Counts,
  };
}
