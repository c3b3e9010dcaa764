// The customers in SQLite through Drizzle: a write is a transaction, executed without giving way to another.

import type Database from "better-sqlite3";
import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sqliteCrm } from "../../workloads/data_layer_crm/sqlite";
import type { CrmStore } from "../../workloads/data_layer_crm/store";

const id = () => integer("id").primaryKey({ autoIncrement: true });
const whole = (name: string) => integer(name).notNull();
const words = (name: string) => text(name).notNull();
const now = (name: string) => whole(name).$defaultFn(() => Date.now());

const companies = sqliteTable("bench_crm_company", {
  id: id(),
  name: words("name"),
  domain: words("domain"),
  industry: words("industry"),
  size: whole("size"),
  website: words("website"),
  phone: words("phone"),
  status: words("status"),
  createdAt: now("created_at"),
});
const contacts = sqliteTable("bench_crm_contact", {
  id: id(),
  firstName: words("first_name"),
  lastName: words("last_name"),
  email: words("email"),
  phone: words("phone"),
  title: words("title"),
  companyId: whole("company_id"),
  createdAt: now("created_at"),
});
const leads = sqliteTable("bench_crm_lead", {
  id: id(),
  title: words("title"),
  source: words("source"),
  status: words("status"),
  value: whole("value"),
  companyId: whole("company_id"),
  contactId: whole("contact_id"),
  createdAt: now("created_at"),
});
const deals = sqliteTable("bench_crm_deal", {
  id: id(),
  title: words("title"),
  stage: words("stage"),
  amount: whole("amount"),
  companyId: whole("company_id"),
  contactId: whole("contact_id"),
  closeAt: whole("close_at"),
  createdAt: now("created_at"),
});
const activities = sqliteTable("bench_crm_activity", {
  id: id(),
  kind: words("kind"),
  subject: words("subject"),
  body: words("body"),
  dealId: whole("deal_id"),
  contactId: whole("contact_id"),
  done: integer("done", { mode: "boolean" }).notNull(),
  createdAt: now("created_at"),
});
const events = sqliteTable("event_log", {
  id: id(),
  model: words("model"),
  op: words("op"),
  recordId: whole("record_id"),
  payload: words("payload"),
  at: now("at"),
});

const event = (model: string, recordId: number, payload: string) => ({
  model,
  op: "create",
  recordId,
  payload,
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
    createCompany: (company) =>
      write((transaction) => {
        const row = transaction.insert(companies).values(company).returning({ id: companies.id }).get();
        transaction
          .insert(events)
          .values(event("company", row.id, company.name))
          .run();
      }),
    createContact: (contact) =>
      write((transaction) => {
        const row = transaction.insert(contacts).values(contact).returning({ id: contacts.id }).get();
        transaction
          .insert(events)
          .values(event("contact", row.id, contact.email))
          .run();
      }),
    createLeads: (rows) =>
      write((transaction) => {
        const ids = transaction
          .insert(leads)
          .values(rows)
          .returning({ id: leads.id, title: leads.title })
          .all();
        transaction
          .insert(events)
          .values(ids.map(({ id, title }) => event("lead", id, title)))
          .run();
      }),
    createDeal: (deal) =>
      write((transaction) => {
        const row = transaction.insert(deals).values(deal).returning({ id: deals.id }).get();
        transaction
          .insert(events)
          .values(event("deal", row.id, deal.title))
          .run();
      }),
    createActivity: (activity) =>
      write((transaction) => {
        const row = transaction.insert(activities).values(activity).returning({ id: activities.id }).get();
        transaction
          .insert(events)
          .values(event("activity", row.id, activity.subject))
          .run();
      }),
    findLeads: (status, limit) =>
      database.select().from(leads).where(eq(leads.status, status)).orderBy(asc(leads.id)).limit(limit).all(),
    findContacts: (companyId, limit) =>
      database
        .select()
        .from(contacts)
        .where(eq(contacts.companyId, companyId))
        .orderBy(asc(contacts.id))
        .limit(limit)
        .all(),
    getContact: (id) => database.select().from(contacts).where(eq(contacts.id, id)).get(),
  };
}
