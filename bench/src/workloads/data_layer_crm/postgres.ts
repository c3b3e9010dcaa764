// The customers in PostgreSQL through node-postgres, without an ORM: a write is an interactive transaction.

import type pg from "pg";
import { postgresStatements, type Statement } from "../data_layer/postgres_statements";
import { createCrmTables, crmTables } from "./schema_sql";
import type { Contact, CrmStore, Lead } from "./store";

/** Takes one array for each column, so that one row and many are the same statement. */
function inserter(table: string, columns: Record<string, string>): Statement {
  const names = Object.keys(columns).join(", ");
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`);
  return {
    name: `crm_insert_${table}`,
    text: `INSERT INTO bench_crm_${table} (${names}, created_at)
      SELECT *, now() FROM unnest(${arrays.join(", ")}) RETURNING id`,
  };
}

const insertCompany = inserter("company", {
  name: "text",
  domain: "text",
  industry: "text",
  size: "int",
  website: "text",
  phone: "text",
  status: "text",
});
const insertContact = inserter("contact", {
  first_name: "text",
  last_name: "text",
  email: "text",
  phone: "text",
  title: "text",
  company_id: "bigint",
});
const insertLead = inserter("lead", {
  title: "text",
  source: "text",
  status: "text",
  value: "bigint",
  company_id: "bigint",
  contact_id: "bigint",
});
const insertDeal = inserter("deal", {
  title: "text",
  stage: "text",
  amount: "bigint",
  company_id: "bigint",
  contact_id: "bigint",
  close_at: "timestamptz",
});
const insertActivity = inserter("activity", {
  kind: "text",
  subject: "text",
  body: "text",
  deal_id: "bigint",
  contact_id: "bigint",
  done: "boolean",
});
const insertEvents: Statement = {
  name: "crm_insert_events",
  text: `INSERT INTO event_log (model, op, record_id, payload, at)
    SELECT $1, 'create', record_id, payload, now() FROM unnest($2::bigint[], $3::text[]) AS events (record_id, payload)`,
};

const contactColumns =
  'id, first_name AS "firstName", last_name AS "lastName", email, phone, title, company_id AS "companyId"';
const leadsByStatus: Statement = {
  name: "crm_find_leads",
  text: `SELECT id, title, source, status, value, company_id AS "companyId", contact_id AS "contactId"
    FROM bench_crm_lead WHERE status = $1 ORDER BY id LIMIT $2`,
};
const contactsByCompany: Statement = {
  name: "crm_find_contacts",
  text: `SELECT ${contactColumns} FROM bench_crm_contact WHERE company_id = $1 ORDER BY id LIMIT $2`,
};
const contactById: Statement = {
  name: "crm_get_contact",
  text: `SELECT ${contactColumns} FROM bench_crm_contact WHERE id = $1`,
};
const counts = `SELECT
  (SELECT count(*) FROM bench_crm_company)::int AS companies,
  (SELECT count(*) FROM bench_crm_contact)::int AS contacts,
  (SELECT count(*) FROM bench_crm_lead)::int AS leads,
  (SELECT count(*) FROM bench_crm_deal)::int AS deals,
  (SELECT count(*) FROM bench_crm_activity)::int AS activities,
  (SELECT count(*) FROM event_log)::int AS events`;

/** A bigint comes as text. */
type Text<T, K extends keyof T> = Omit<T, K> & Record<K, string>;
type ContactRow = Text<Contact, "id" | "companyId">;
type LeadRow = Text<Lead, "id" | "value" | "companyId" | "contactId">;

export const contactOf = (row: ContactRow): Contact => ({
  ...row,
  id: Number(row.id),
  companyId: Number(row.companyId),
});
export const leadOf = (row: LeadRow): Lead => ({
  ...row,
  id: Number(row.id),
  value: Number(row.value),
  companyId: Number(row.companyId),
  contactId: Number(row.contactId),
});

/** The properties of all rows, one array each, in the order of the columns. */
const arraysOf = <T>(rows: readonly T[], ...properties: (keyof T)[]) =>
  properties.map((property) => rows.map((row) => row[property]));

/** Empties all tables, and makes them where they are missing. */
export async function resetCrmTables(pool: pg.Pool): Promise<void> {
  await pool.query(createCrmTables("postgres"));
  await pool.query(`TRUNCATE ${[...crmTables, "event_log"].join(", ")} RESTART IDENTITY`);
}

export function postgresCrm(pool: pg.Pool): CrmStore {
  const { read, write } = postgresStatements<pg.QueryResultRow>(pool);

  /** Inserts rows with an entry of the log for each. */
  const insert = (model: string, statement: Statement, values: unknown[][], payloads: string[]) =>
    write(async (run) => {
      const { rows } = await run(statement, ...values);
      const ids = rows.map(({ id }) => id as string);
      await run(insertEvents, model, ids, payloads);
    });
  const companies = (rows: Parameters<CrmStore["createCompany"]>[0][]) =>
    arraysOf(rows, "name", "domain", "industry", "size", "website", "phone", "status");
  const contacts = (rows: Parameters<CrmStore["createContact"]>[0][]) =>
    arraysOf(rows, "firstName", "lastName", "email", "phone", "title", "companyId");
  const leads = (rows: Parameters<CrmStore["createLeads"]>[0]) =>
    arraysOf(rows, "title", "source", "status", "value", "companyId", "contactId");

  return {
    async seed(data) {
      await resetCrmTables(pool);
      await write(async (run) => {
        await run(insertCompany, ...companies(data.companies));
        await run(insertContact, ...contacts(data.contacts));
        await run(insertLead, ...leads(data.leads));
      });
    },
    createCompany: (company) => insert("company", insertCompany, companies([company]), [company.name]),
    createContact: (contact) => insert("contact", insertContact, contacts([contact]), [contact.email]),
    createLeads: (rows) =>
      insert(
        "lead",
        insertLead,
        leads(rows),
        rows.map(({ title }) => title),
      ),
    createDeal(deal) {
      const row = { ...deal, closeAt: new Date(deal.closeAt) };
      const values = arraysOf([row], "title", "stage", "amount", "companyId", "contactId", "closeAt");
      return insert("deal", insertDeal, values, [deal.title]);
    },
    createActivity(activity) {
      const values = arraysOf([activity], "kind", "subject", "body", "dealId", "contactId", "done");
      return insert("activity", insertActivity, values, [activity.subject]);
    },
    findLeads: async (status, limit) => ((await read(leadsByStatus, status, limit)) as LeadRow[]).map(leadOf),
    findContacts: async (companyId, limit) =>
      ((await read(contactsByCompany, companyId, limit)) as ContactRow[]).map(contactOf),
    async getContact(id) {
      const [row] = (await read(contactById, id)) as ContactRow[];
      return row && contactOf(row);
    },
    counts: async () => (await pool.query(counts)).rows[0],
  };
}
