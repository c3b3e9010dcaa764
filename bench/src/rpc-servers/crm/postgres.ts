// The customers in PostgreSQL through node-postgres, without an ORM: a write is an interactive transaction.

import type pg from "pg";
import { postgresStatements, type Statement } from "../postgres/statements";
import { columnNames, countedTables, createCrmTables, selectedColumns, tableName } from "./schema_sql";
import {
  type Contact,
  type CrmStore,
  type CrmTable,
  columnsOf,
  crmTables,
  type Lead,
  type New,
  payloadOf,
} from "./store";

const types = {
  ...{
    text: "text",
    number: "int",
    reference: "bigint",
    money: "bigint",
    time: "timestamptz",
    flag: "boolean",
  },
};

/** Takes one array for each column, so that one row and many are the same statement. */
const inserters = Object.fromEntries(
  crmTables.map((table) => {
    const arrays = columnsOf(table).map(([, kind], index) => `$${index + 1}::${types[kind]}[]`);
    const statement: Statement = {
      name: `crm_insert_${table}`,
      text: `INSERT INTO ${tableName(table)} (${columnNames(table).join(", ")}, created_at)
        SELECT *, now() FROM unnest(${arrays.join(", ")}) RETURNING id`,
    };
    return [table, statement];
  }),
) as Record<CrmTable, Statement>;

const insertEvents: Statement = {
  name: "crm_insert_events",
  text: `INSERT INTO event_log (model, op, record_id, payload, at)
    SELECT $1, 'create', record_id, payload, now() FROM unnest($2::bigint[], $3::text[]) AS events (record_id, payload)`,
};

const find = (name: string, table: CrmTable, rest: string): Statement => ({
  name,
  text: `SELECT ${selectedColumns(table)} FROM ${tableName(table)} WHERE ${rest}`,
});
const leadsByStatus = find("crm_find_leads", "lead", "status = $1 ORDER BY id LIMIT $2");
const contactsByCompany = find("crm_find_contacts", "contact", "company_id = $1 ORDER BY id LIMIT $2");
const contactById = find("crm_get_contact", "contact", "id = $1");
const count = ([name, table]: [string, string]) => `(SELECT count(*) FROM ${table})::int AS ${name}`;
const counts = `SELECT ${countedTables.map(count).join(", ")}`;

/** The values of all rows, one array for each column. */
const arraysOf = (table: CrmTable, rows: readonly object[]): unknown[][] =>
  columnsOf(table).map(([name, kind]) =>
    rows.map((row) => {
      const value = (row as Record<string, unknown>)[name];
      return kind === "time" ? new Date(value as number) : value;
    }),
  );

export function postgresCrm(pool: pg.Pool): CrmStore {
  const { read, write } = postgresStatements<pg.QueryResultRow>(pool);

  /** Inserts rows with an entry of the log for each. */
  const insert = <Table extends CrmTable>(table: Table, rows: New<Table>[]) =>
    write(async (run) => {
      const inserted = await run(inserters[table], ...arraysOf(table, rows));
      const ids = inserted.rows.map(({ id }) => id as number);
      await run(
        insertEvents,
        table,
        ids,
        rows.map((row) => payloadOf(table, row)),
      );
    });

  return {
    async seed({ companies, contacts, leads }) {
      await pool.query(createCrmTables("postgres"));
      await pool.query(`TRUNCATE ${[...crmTables.map(tableName), "event_log"].join(", ")} RESTART IDENTITY`);
      await write(async (run) => {
        await run(inserters.company, ...arraysOf("company", companies));
        await run(inserters.contact, ...arraysOf("contact", contacts));
        await run(inserters.lead, ...arraysOf("lead", leads));
      });
    },
    create: (table, row) => insert(table, [row]),
    createLeads: (leads) => insert("lead", leads),
    findLeads: async (status, limit) => (await read(leadsByStatus, status, limit)) as Lead[],
    findContacts: async (companyId, limit) => (await read(contactsByCompany, companyId, limit)) as Contact[],
    getContact: async (id) => (await read(contactById, id))[0] as Contact | undefined,
    counts: async () => (await pool.query(counts)).rows[0],
  };
}
