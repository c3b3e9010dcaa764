// The customers in SQLite, inside the process of the benchmark, by plain statements.

import type Database from "better-sqlite3";
import { createCrmTables, crmTables } from "./schema_sql";
import type { Contact, Counts, CrmStore, Lead, NewCompany, NewContact, NewLead } from "./store";

const contactColumns =
  "id, first_name AS firstName, last_name AS lastName, email, phone, title, company_id AS companyId";
const leadColumns = "id, title, source, status, value, company_id AS companyId, contact_id AS contactId";

export function sqliteCrm(database: Database.Database): CrmStore {
  database.pragma("foreign_keys = ON");
  database.exec(createCrmTables("sqlite"));
  const insertEvent = database.prepare(
    "INSERT INTO event_log (model, op, record_id, payload, at) VALUES (?, 'create', ?, ?, ?)",
  );
  /** Inserts an object by its properties; answers the id. */
  const inserter = (table: string, columns: string, properties: string) => {
    const values = properties.replace(/\w+/g, "@$&");
    const statement = database.prepare(
      `INSERT INTO bench_crm_${table} (${columns}, created_at) VALUES (${values}, @now)`,
    );
    return (row: object) => Number(statement.run({ ...row, now: Date.now() }).lastInsertRowid);
  };
  const insertCompany = inserter(
    "company",
    "name, domain, industry, size, website, phone, status",
    "name, domain, industry, size, website, phone, status",
  );
  const insertContact = inserter(
    "contact",
    "first_name, last_name, email, phone, title, company_id",
    "firstName, lastName, email, phone, title, companyId",
  );
  const insertLead = inserter(
    "lead",
    "title, source, status, value, company_id, contact_id",
    "title, source, status, value, companyId, contactId",
  );
  const insertDeal = inserter(
    "deal",
    "title, stage, amount, company_id, contact_id, close_at",
    "title, stage, amount, companyId, contactId, closeAt",
  );
  const insertActivity = inserter(
    "activity",
    "kind, subject, body, deal_id, contact_id, done",
    "kind, subject, body, dealId, contactId, done",
  );
  const leadsByStatus = database.prepare<[string, number], Lead>(
    `SELECT ${leadColumns} FROM bench_crm_lead WHERE status = ? ORDER BY id LIMIT ?`,
  );
  const contactsByCompany = database.prepare<[number, number], Contact>(
    `SELECT ${contactColumns} FROM bench_crm_contact WHERE company_id = ? ORDER BY id LIMIT ?`,
  );
  const contactById = database.prepare<[number], Contact>(
    `SELECT ${contactColumns} FROM bench_crm_contact WHERE id = ?`,
  );
  const count = (table: string) =>
    database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()!;

  const inTransaction = <A extends unknown[]>(body: (...args: A) => void) => {
    const transaction = database.transaction(body);
    return (...args: A): void => transaction.immediate(...args);
  };
  const event = (model: string, id: number, payload: string) =>
    insertEvent.run(model, id, payload, Date.now());

  return {
    seed: inTransaction(({ companies, contacts, leads }) => {
      for (const table of [...crmTables, "event_log"]) database.exec(`DELETE FROM ${table}`);
      database.exec("DELETE FROM sqlite_sequence");
      for (const company of companies) insertCompany(company);
      for (const contact of contacts) insertContact(contact);
      for (const lead of leads) insertLead(lead);
    }),
    createCompany: inTransaction((company: NewCompany) => {
      event("company", insertCompany(company), company.name);
    }),
    createContact: inTransaction((contact: NewContact) => {
      event("contact", insertContact(contact), contact.email);
    }),
    createLeads: inTransaction((leads: NewLead[]) => {
      for (const lead of leads) event("lead", insertLead(lead), lead.title);
    }),
    createDeal: inTransaction((deal) => {
      event("deal", insertDeal(deal), deal.title);
    }),
    createActivity: inTransaction((activity) => {
      event("activity", insertActivity({ ...activity, done: Number(activity.done) }), activity.subject);
    }),
    findLeads: (status, limit) => leadsByStatus.all(status, limit),
    findContacts: (companyId, limit) => contactsByCompany.all(companyId, limit),
    getContact: (id) => contactById.get(id),
    counts: (): Counts => ({
      companies: count("bench_crm_company"),
      contacts: count("bench_crm_contact"),
      leads: count("bench_crm_lead"),
      deals: count("bench_crm_deal"),
      activities: count("bench_crm_activity"),
      events: count("event_log"),
    }),
  };
}
