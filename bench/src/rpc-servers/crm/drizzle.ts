// The customers through Drizzle: a write is an interactive transaction.

import { asc, eq } from "drizzle-orm";
import { type Columns, type Orm, step } from "../drizzle";
import { snakeCase, tableName } from "./schema_sql";
import { type CrmStore, type CrmTable, columnsOf, type Made, payloadOf } from "./store";

const tablesOf = (columns: Columns) => {
  const { table, id, text, reference, now } = columns;
  /** Its columns are those of the table of all stores. */
  const tableOf = <Table extends CrmTable>(name: Table) => {
    const own = columnsOf(name).map(([column, kind]) => [column, columns[kind](snakeCase(column))]);
    const made = Object.fromEntries(own) as Made<Columns, Table>;
    return table(tableName(name), { id: id(), ...made, createdAt: now("created_at") });
  };
  return {
    ...{ company: tableOf("company"), contact: tableOf("contact"), lead: tableOf("lead") },
    ...{ deal: tableOf("deal"), activity: tableOf("activity") },
    events: table("event_log", {
      ...{ id: id(), model: text("model"), op: text("op"), recordId: reference("record_id") },
      ...{ payload: text("payload"), at: now("at") },
    }),
  };
};

const event = (model: string, recordId: number, payload: string) => ({
  ...{ model, op: "create", recordId, payload },
});

/** `makePlain` makes the tables; its store fills them and counts: nothing of that is measured. */
export function drizzleCrm(orm: Orm, makePlain: () => Pick<CrmStore, "seed" | "counts">): CrmStore {
  const { tables, database, run, write } = orm(tablesOf);
  const { contact, lead, events } = tables;
  let made: ReturnType<typeof makePlain> | undefined;
  const plain = () => (made ??= makePlain());
  return {
    seed: (data) => plain().seed(data),
    counts: () => plain().counts(),
    create: (name, row) =>
      write(function* (transaction) {
        const table = tables[name];
        const insert = transaction.insert(table).values(row as never);
        const [added] = yield* step(insert.returning({ id: table.id }));
        yield* step(transaction.insert(events).values(event(name, added!.id, payloadOf(name, row))));
      }),
    createLeads: (rows) =>
      write(function* (transaction) {
        const insert = transaction.insert(lead).values(rows);
        const added = yield* step(insert.returning({ id: lead.id, title: lead.title }));
        const entries = added.map(({ id, title }) => event("lead", id, title));
        yield* step(transaction.insert(events).values(entries));
      }),
    findLeads: (status, limit) => {
      const found = database.select().from(lead).where(eq(lead.status, status));
      return run(found.orderBy(asc(lead.id)).limit(limit));
    },
    findContacts: (companyId, limit) => {
      const found = database.select().from(contact).where(eq(contact.companyId, companyId));
      return run(found.orderBy(asc(contact.id)).limit(limit));
    },
    getContact: async (id) =>
      (await run(database.select().from(contact).where(eq(contact.id, id)).limit(1)))[0],
  };
}
