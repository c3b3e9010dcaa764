// The tables of data-layer-crm in SQL: enumerations and what refers to other tables are checked by the database.

import { type ColumnKind, type CrmTable, columnsOf, crmTables, enumerations } from "./store";

export const tableName = (table: CrmTable): string => `bench_crm_${table}`;

/** `company_id` for `companyId`. */
export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Of a table, in the order of every statement. */
export const columnNames = (table: CrmTable): string[] => columnsOf(table).map(([name]) => snakeCase(name));

/** What reads select of a table, named as its properties are. */
export const selectedColumns = (table: CrmTable): string =>
  ["id", ...columnsOf(table).map(([name]) => `${snakeCase(name)} AS "${name}"`)].join(", ");

/** The tables whose rows are counted, by the names of the counts. */
export const countedTables = Object.entries({
  ...{ companies: "bench_crm_company", contacts: "bench_crm_contact", leads: "bench_crm_lead" },
  ...{ deals: "bench_crm_deal", activities: "bench_crm_activity", events: "event_log" },
});

type Dialect = Record<ColumnKind, string> & {
  id: string;
  /** A time that is that of the insertion, where the database knows it. */
  now: string;
};

const dialects: Record<"postgres" | "sqlite", Dialect> = {
  postgres: {
    ...{ id: "bigserial PRIMARY KEY", text: "text", number: "integer", reference: "bigint", money: "bigint" },
    ...{ flag: "boolean", time: "timestamptz", now: "timestamptz DEFAULT now()" },
  },
  sqlite: {
    ...{ id: "INTEGER PRIMARY KEY AUTOINCREMENT", text: "text", number: "integer", reference: "INTEGER" },
    ...{ money: "INTEGER", flag: "INTEGER", time: "INTEGER", now: "INTEGER" },
  },
};

/** What is looked for besides ids: references, and leads by status. */
const indexesOf = (table: CrmTable) => [
  ...(table === "lead" ? ["status, id"] : []),
  ...columnsOf(table).flatMap(([name, kind]) => (kind === "reference" ? [snakeCase(name)] : [])),
];

/** Statements that make what is missing, what is referred to first. */
export function createCrmTables(name: keyof typeof dialects): string {
  const dialect = dialects[name];
  const columnOf = (table: CrmTable, [property, kind]: [string, ColumnKind]) => {
    const column = snakeCase(property);
    const values = enumerations[table]?.[property];
    const check = values ? ` CHECK (${column} IN (${values.map((value) => `'${value}'`).join(", ")}))` : "";
    const target =
      kind === "reference" ? ` REFERENCES ${tableName(column.replace(/_id$/, "") as CrmTable)} (id)` : "";
    return `${column} ${dialect[kind]} NOT NULL${check}${target}`;
  };
  const statements = crmTables.flatMap((table) => [
    `CREATE TABLE IF NOT EXISTS ${tableName(table)} (id ${dialect.id}, ` +
      `${columnsOf(table)
        .map((column) => columnOf(table, column))
        .join(", ")}, created_at ${dialect.now} NOT NULL)`,
    ...indexesOf(table).map((columns) => {
      const index = `${tableName(table)}_${columns.replace(", ", "_")}`;
      return `CREATE INDEX IF NOT EXISTS ${index} ON ${tableName(table)} (${columns})`;
    }),
  ]);
  const eventLog = `CREATE TABLE IF NOT EXISTS event_log (id ${dialect.id}, model text NOT NULL, op text NOT NULL,
    record_id ${dialect.reference} NOT NULL, payload text NOT NULL, at ${dialect.now} NOT NULL)`;
  return [...statements, eventLog].join(";\n");
}
