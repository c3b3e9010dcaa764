// The customers in SQLite through Drizzle: a write is a transaction, executed without giving way to another.

import type Database from "better-sqlite3";
import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { snakeCase, tableName } from "./schema_sql";
import { sqliteCrm } from "./sqlite";
import { type CrmStore, type CrmTable, columnsOf, type Made, payloadOf } from "./store";

const id = () => integer("id").primaryKey({ autoIncrement: true });
const whole = (name: string) => integer(name).notNull();
const words = (name: string) => text(name).notNull();
const now = (name: string) => whole(name).$defaultFn(() => Date.now());
const flag = (name: string) => integer(name, { mode: "boolean" }).notNull();
const columns = { text: words, number: whole, reference: whole, money: whole, time: whole, flag };

/** Its columns are those of the table of all stores. */
function tableOf<Table extends CrmTable>(table: Table) {
  const own = columnsOf(table).map(([name, kind]) => [name, columns[kind](snakeCase(name))]);
  const made = Object.fromEntries(own) as Made<typeof columns, Table>;
  return sqliteTable(tableName(table), { id: id(), ...made, createdAt: now("created_at") });
}
const tables = {
  company: tableOf("company"),
  contact: tableOf("contact"),
  lead: tableOf("lead"),
  deal: tableOf("deal"),
  activity: tableOf("activity"),
};
const events = sqliteTable("event_log", {
  id: id(),
  model: words("model"),
  op: words("op"),
  recordId: whole("record_id"),
  payload: words("payload"),
  at: now("at"),
});

const event = (model: string, recordId: number, payload: string) => ({
  ...{ model, op: "create", recordId, payload },
});

export function sqliteDrizzleCrm(connection: Database.Database): CrmStore {
  const database = drizzle(connection);
  type Transaction = Parameters<Parameters<typeof database.transaction>[0]>[0];

  const write = (body: (transaction: Transaction) => void): void =>
    database.transaction(body, { behavior: "immediate" });
  // Makes the tables and fills them, when it is asked to; nothing of it is measured.
  let made: CrmStore | undefined;
  const plain = () => (made ??= sqliteCrm(connection));

  return {
    seed: (data) => plain().seed(data),
    counts: () => plain().counts(),
    create: (name, row) =>
      write((transaction) => {
        const table = tables[name];
        const added = transaction
          .insert(table)
          .values(row as never)
          .returning({ id: table.id })
          .get();
        transaction
          .insert(events)
          .values(event(name, added.id, payloadOf(name, row)))
          .run();
      }),
    createLeads: (rows) =>
      write((transaction) => {
        const { lead } = tables;
        const returned = { id: lead.id, title: lead.title };
        const added = transaction.insert(lead).values(rows).returning(returned).all();
        const entries = added.map(({ id, title }) => event("lead", id, title));
        transaction.insert(events).values(entries).run();
      }),
    findLeads: (status, limit) => {
      const { lead } = tables;
      const found = database.select().from(lead).where(eq(lead.status, status)).orderBy(asc(lead.id));
      return found.limit(limit).all();
    },
    findContacts: (companyId, limit) => {
      const { contact } = tables;
      const found = database.select().from(contact).where(eq(contact.companyId, companyId));
      return found.orderBy(asc(contact.id)).limit(limit).all();
    },
    getContact: (id) => database.select().from(tables.contact).where(eq(tables.contact.id, id)).get(),
  };
}
