// The tables of data-layer-crm in SQL: enumerations and what refers to other tables are checked by the database.

import { activityKinds, companyStatuses, dealStages, leadStatuses } from "./store";

export const crmTables = ["activity", "deal", "lead", "contact", "company"].map(
  (name) => `bench_crm_${name}`,
);

interface Dialect {
  id: string;
  reference: string;
  money: string;
  boolean: string;
  time: string;
  /** A time that is that of the insertion, where the database knows it. */
  now: string;
}

const dialects: Record<"postgres" | "sqlite", Dialect> = {
  postgres: {
    id: "bigserial PRIMARY KEY",
    reference: "bigint",
    money: "bigint",
    boolean: "boolean",
    time: "timestamptz",
    now: "timestamptz DEFAULT now()",
  },
  sqlite: {
    id: "INTEGER PRIMARY KEY AUTOINCREMENT",
    reference: "INTEGER",
    money: "INTEGER",
    boolean: "INTEGER",
    time: "INTEGER",
    now: "INTEGER",
  },
};

const oneOf = (column: string, values: readonly string[]) =>
  `${column} text NOT NULL CHECK (${column} IN (${values.map((value) => `'${value}'`).join(", ")}))`;

const texts = (...columns: string[]) => columns.map((column) => `${column} text NOT NULL`).join(", ");

/** Statements that make what is missing. */
export function createCrmTables(name: keyof typeof dialects): string {
  const { id, reference, money, boolean, time, now } = dialects[name];
  const refersTo = (table: string) => `${table}_id ${reference} NOT NULL REFERENCES bench_crm_${table} (id)`;
  const table = (name: string, columns: string, ...indexes: string[]) =>
    [
      `CREATE TABLE IF NOT EXISTS bench_crm_${name} (id ${id}, ${columns}, created_at ${now} NOT NULL)`,
      ...indexes.map((columns) => {
        const index = `bench_crm_${name}_${columns.replace(", ", "_")}`;
        return `CREATE INDEX IF NOT EXISTS ${index} ON bench_crm_${name} (${columns})`;
      }),
    ].join(";\n");
  return [
    table(
      "company",
      `${texts("name", "domain", "industry", "website", "phone")}, size integer NOT NULL, ${oneOf("status", companyStatuses)}`,
    ),
    table(
      "contact",
      `${texts("first_name", "last_name", "email", "phone", "title")}, ${refersTo("company")}`,
      "company_id",
    ),
    table(
      "lead",
      `${texts("title", "source")}, ${oneOf("status", leadStatuses)}, value ${money} NOT NULL,
        ${refersTo("company")}, ${refersTo("contact")}`,
      "status, id",
      "company_id",
      "contact_id",
    ),
    table(
      "deal",
      `${texts("title")}, ${oneOf("stage", dealStages)}, amount ${money} NOT NULL,
        ${refersTo("company")}, ${refersTo("contact")}, close_at ${time} NOT NULL`,
      "company_id",
      "contact_id",
    ),
    table(
      "activity",
      `${oneOf("kind", activityKinds)}, ${texts("subject", "body")}, done ${boolean} NOT NULL,
        ${refersTo("deal")}, ${refersTo("contact")}`,
      "deal_id",
      "contact_id",
    ),
    `CREATE TABLE IF NOT EXISTS event_log (id ${id}, model text NOT NULL, op text NOT NULL,
      record_id ${reference} NOT NULL, payload text NOT NULL, at ${now} NOT NULL)`,
  ].join(";\n");
}
