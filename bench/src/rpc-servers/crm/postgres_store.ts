// The customers in PostgreSQL through Drizzle: a write is an interactive transaction.

import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, bigserial, boolean, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type pg from "pg";
import { resetCrmTables } from "../../workloads/data_layer_crm/postgres";
import type { CrmStore } from "../../workloads/data_layer_crm/store";
import { type RetryCounter, withRetries } from "../postgres/retry";

const id = () => bigserial("id", { mode: "number" }).primaryKey();
const reference = (name: string) => bigint(name, { mode: "number" }).notNull();
const words = (name: string) => text(name).notNull();
const time = (name: string) => timestamp(name, { withTimezone: true }).notNull();
const now = (name: string) => time(name).$defaultFn(() => new Date());

const companies = pgTable("bench_crm_company", {
  id: id(),
  name: words("name"),
  domain: words("domain"),
  industry: words("industry"),
  size: integer("size").notNull(),
  website: words("website"),
  phone: words("phone"),
  status: words("status"),
  createdAt: now("created_at"),
});
const contacts = pgTable("bench_crm_contact", {
  id: id(),
  firstName: words("first_name"),
  lastName: words("last_name"),
  email: words("email"),
  phone: words("phone"),
  title: words("title"),
  companyId: reference("company_id"),
  createdAt: now("created_at"),
});
const leads = pgTable("bench_crm_lead", {
  id: id(),
  title: words("title"),
  source: words("source"),
  status: words("status"),
  value: reference("value"),
  companyId: reference("company_id"),
  contactId: reference("contact_id"),
  createdAt: now("created_at"),
});
const deals = pgTable("bench_crm_deal", {
  id: id(),
  title: words("title"),
  stage: words("stage"),
  amount: reference("amount"),
  companyId: reference("company_id"),
  contactId: reference("contact_id"),
  closeAt: time("close_at"),
  createdAt: now("created_at"),
});
const activities = pgTable("bench_crm_activity", {
  id: id(),
  kind: words("kind"),
  subject: words("subject"),
  body: words("body"),
  dealId: reference("deal_id"),
  contactId: reference("contact_id"),
  done: boolean("done").notNull(),
  createdAt: now("created_at"),
});
const events = pgTable("event_log", {
  id: id(),
  model: words("model"),
  op: words("op"),
  recordId: reference("record_id"),
  payload: words("payload"),
  at: now("at"),
});

const event = (model: string, recordId: number, payload: string) => ({
  model,
  op: "create",
  recordId,
  payload,
});

/** Rows of one INSERT: PostgreSQL allows 65,535 parameters. */
const rowsPerStatement = 2_000;

function* slices<T>(rows: readonly T[]): Generator<T[]> {
  for (let first = 0; first < rows.length; first += rowsPerStatement) {
    yield rows.slice(first, first + rowsPerStatement);
  }
}

export function postgresDrizzleCrm(pool: pg.Pool, counter: RetryCounter = { retries: 0 }): CrmStore {
  const database = drizzle(pool);
  type Transaction = Parameters<Parameters<typeof database.transaction>[0]>[0];

  const write = <T>(body: (transaction: Transaction) => Promise<T>): Promise<T> =>
    withRetries(() => database.transaction(body), counter);
  // A read that is serializable may be refused as well.
  const read = <T>(statement: () => PromiseLike<T>): Promise<T> => withRetries(statement, counter);

  return {
    async seed(data) {
      await resetCrmTables(pool);
      await write(async (transaction) => {
        for (const rows of slices(data.companies)) await transaction.insert(companies).values(rows);
        for (const rows of slices(data.contacts)) await transaction.insert(contacts).values(rows);
        for (const rows of slices(data.leads)) await transaction.insert(leads).values(rows);
      });
    },
    createCompany: (company) =>
      write(async (transaction) => {
        const [row] = await transaction.insert(companies).values(company).returning({ id: companies.id });
        await transaction.insert(events).values(event("company", row!.id, company.name));
      }),
    createContact: (contact) =>
      write(async (transaction) => {
        const [row] = await transaction.insert(contacts).values(contact).returning({ id: contacts.id });
        await transaction.insert(events).values(event("contact", row!.id, contact.email));
      }),
    createLeads: (rows) =>
      write(async (transaction) => {
        const ids = await transaction
          .insert(leads)
          .values(rows)
          .returning({ id: leads.id, title: leads.title });
        await transaction.insert(events).values(ids.map(({ id, title }) => event("lead", id, title)));
      }),
    createDeal: (deal) =>
      write(async (transaction) => {
        const values = { ...deal, closeAt: new Date(deal.closeAt) };
        const [row] = await transaction.insert(deals).values(values).returning({ id: deals.id });
        await transaction.insert(events).values(event("deal", row!.id, deal.title));
      }),
    createActivity: (activity) =>
      write(async (transaction) => {
        const [row] = await transaction.insert(activities).values(activity).returning({ id: activities.id });
        await transaction.insert(events).values(event("activity", row!.id, activity.subject));
      }),
    findLeads: (status, limit) =>
      read(() =>
        database.select().from(leads).where(eq(leads.status, status)).orderBy(asc(leads.id)).limit(limit),
      ),
    findContacts: (companyId, limit) =>
      read(() =>
        database
          .select()
          .from(contacts)
          .where(eq(contacts.companyId, companyId))
          .orderBy(asc(contacts.id))
          .limit(limit),
      ),
    async getContact(id) {
      const [row] = await read(() => database.select().from(contacts).where(eq(contacts.id, id)).limit(1));
      return row;
    },
    counts: async () => ({
      companies: await database.$count(companies),
      contacts: await database.$count(contacts),
      leads: await database.$count(leads),
      deals: await database.$count(deals),
      activities: await database.$count(activities),
      events: await database.$count(events),
    }),
  };
}
