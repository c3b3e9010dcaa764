// The customers in PostgreSQL through Drizzle: a write is an interactive transaction.

import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, bigserial, boolean, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type pg from "pg";
import { type RetryCounter, withRetries } from "../postgres/retry";
import { resetCrmTables } from "./postgres";
import { snakeCase, tableName } from "./schema_sql";
import { type CrmStore, type CrmTable, columnsOf, type Made, payloadOf } from "./store";

const id = () => bigserial("id", { mode: "number" }).primaryKey();
const time = (name: string) => timestamp(name, { withTimezone: true }).notNull();
const now = (name: string) => time(name).$defaultFn(() => new Date());
const columns = {
  text: (name: string) => text(name).notNull(),
  number: (name: string) => integer(name).notNull(),
  reference: (name: string) => bigint(name, { mode: "number" }).notNull(),
  money: (name: string) => bigint(name, { mode: "number" }).notNull(),
  flag: (name: string) => boolean(name).notNull(),
  time,
};

/** Its columns are those of the table of all stores. */
function tableOf<Table extends CrmTable>(table: Table) {
  const own = columnsOf(table).map(([name, kind]) => [name, columns[kind](snakeCase(name))]);
  const made = Object.fromEntries(own) as Made<typeof columns, Table>;
  return pgTable(tableName(table), { id: id(), ...made, createdAt: now("created_at") });
}
const tables = {
  company: tableOf("company"),
  contact: tableOf("contact"),
  lead: tableOf("lead"),
  deal: tableOf("deal"),
  activity: tableOf("activity"),
};
const events = pgTable("event_log", {
  id: id(),
  model: columns.text("model"),
  op: columns.text("op"),
  recordId: columns.reference("record_id"),
  payload: columns.text("payload"),
  at: now("at"),
});

const event = (model: string, recordId: number, payload: string) => ({
  ...{ model, op: "create", recordId, payload },
});

/** Rows of one INSERT: PostgreSQL allows 65,535 parameters. */
const rowsPerStatement = 2_000;

export function postgresDrizzleCrm(pool: pg.Pool, counter: RetryCounter = { retries: 0 }): CrmStore {
  const database = drizzle(pool);
  type Transaction = Parameters<Parameters<typeof database.transaction>[0]>[0];

  const write = <T>(body: (transaction: Transaction) => Promise<T>): Promise<T> =>
    withRetries(() => database.transaction(body), counter);
  // A read that is serializable may be refused as well.
  const read = <T>(statement: () => PromiseLike<T>): Promise<T> => withRetries(statement, counter);
  const insertAll = async (transaction: Transaction, table: CrmTable, rows: readonly object[]) => {
    for (let first = 0; first < rows.length; first += rowsPerStatement)
      await transaction.insert(tables[table]).values(rows.slice(first, first + rowsPerStatement) as never);
  };

  return {
    async seed({ companies, contacts, leads }) {
      await resetCrmTables(pool);
      await write(async (transaction) => {
        await insertAll(transaction, "company", companies);
        await insertAll(transaction, "contact", contacts);
        await insertAll(transaction, "lead", leads);
      });
    },
    create: (name, row) =>
      write(async (transaction) => {
        const values = "closeAt" in row ? { ...row, closeAt: new Date(Number(row.closeAt)) } : row;
        const table = tables[name];
        const [added] = await transaction
          .insert(table)
          .values(values as never)
          .returning({ id: table.id });
        await transaction.insert(events).values(event(name, added!.id, payloadOf(name, row)));
      }),
    createLeads: (rows) =>
      write(async (transaction) => {
        const { lead } = tables;
        const returned = { id: lead.id, title: lead.title };
        const added = await transaction.insert(lead).values(rows).returning(returned);
        await transaction.insert(events).values(added.map(({ id, title }) => event("lead", id, title)));
      }),
    findLeads: (status, limit) => {
      const { lead } = tables;
      const found = () =>
        database.select().from(lead).where(eq(lead.status, status)).orderBy(asc(lead.id)).limit(limit);
      return read(found);
    },
    findContacts: (companyId, limit) => {
      const { contact } = tables;
      const found = () =>
        database
          .select()
          .from(contact)
          .where(eq(contact.companyId, companyId))
          .orderBy(asc(contact.id))
          .limit(limit);
      return read(found);
    },
    async getContact(id) {
      const { contact } = tables;
      const [row] = await read(() => database.select().from(contact).where(eq(contact.id, id)).limit(1));
      return row;
    },
    counts: async () => ({
      companies: await database.$count(tables.company),
      contacts: await database.$count(tables.contact),
      leads: await database.$count(tables.lead),
      deals: await database.$count(tables.deal),
      activities: await database.$count(tables.activity),
      events: await database.$count(events),
    }),
  };
}
