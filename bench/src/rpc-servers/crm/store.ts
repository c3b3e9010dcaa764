// Companies, contacts, leads, deals and activities (section 18.2). Every write checks what it refers to and the values of
// its enumerations, and appends to the log in the same transaction. Amounts are cents, times milliseconds since 1970.

import { type Answer, BadArguments, type RpcArguments, type RpcMethods, text, whole } from "../rpc";

/** The columns of each table, in the order of every statement. A reference is the id of a row of that table. */
export const crmColumns = {
  company: {
    name: "text",
    domain: "text",
    industry: "text",
    size: "number",
    website: "text",
    phone: "text",
    status: "text",
  },
  contact: {
    firstName: "text",
    lastName: "text",
    email: "text",
    phone: "text",
    title: "text",
    companyId: "reference",
  },
  lead: {
    title: "text",
    source: "text",
    status: "text",
    value: "money",
    companyId: "reference",
    contactId: "reference",
  },
  deal: {
    title: "text",
    stage: "text",
    amount: "money",
    companyId: "reference",
    contactId: "reference",
    closeAt: "time",
  },
  activity: {
    kind: "text",
    subject: "text",
    body: "text",
    dealId: "reference",
    contactId: "reference",
    done: "flag",
  },
} as const;

type Columns = typeof crmColumns;
export type CrmTable = keyof Columns;
export const crmTables = Object.keys(crmColumns) as CrmTable[];
export type ColumnKind = "text" | "number" | "reference" | "money" | "time" | "flag";
const columnLists = Object.fromEntries(
  crmTables.map((table) => [table, Object.entries(crmColumns[table])]),
) as Record<CrmTable, [string, ColumnKind][]>;
export const columnsOf = (table: CrmTable) => columnLists[table];

type Value<Kind> = Kind extends "text" ? string : Kind extends "flag" ? boolean : number;
/** A row of a table before it has an id. */
export type New<Table extends CrmTable> = {
  -readonly [Column in keyof Columns[Table]]: Value<Columns[Table][Column]>;
};
/** What a database library has for each column of a table, made by one function for each kind. */
export type Made<Makers extends Record<ColumnKind, (name: string) => unknown>, Table extends CrmTable> = {
  -readonly [Column in keyof Columns[Table]]: ReturnType<Makers[Columns[Table][Column] & ColumnKind]>;
};
export type Contact = New<"contact"> & { id: number };
export type Lead = New<"lead"> & { id: number };

/** The values that a column may have; the database refuses others. */
export const enumerations: Partial<Record<CrmTable, Record<string, readonly string[]>>> = {
  company: { status: ["active", "inactive"] },
  lead: { status: ["new", "contacted", "qualified", "lost"] },
  deal: { stage: ["open", "won", "lost"] },
  activity: { kind: ["call", "email", "meeting", "task"] },
};

/** What the log says of a new row. */
export const payloadColumn = {
  company: "name",
  contact: "email",
  lead: "title",
  deal: "title",
  activity: "subject",
} as const;

export const payloadOf = <Table extends CrmTable>(table: Table, row: New<Table>): string =>
  String((row as Record<string, unknown>)[payloadColumn[table]]);

/** Rows of each table, and entries of the log. */
export interface Counts {
  companies: number;
  contacts: number;
  leads: number;
  deals: number;
  activities: number;
  events: number;
}

export interface CrmStore {
  /** Makes the tables if they are missing, and fills them anew, with ids from 1 on. */
  seed(data: SeedData): Answer<void>;
  create<Table extends CrmTable>(table: Table, row: New<Table>): Answer<void>;
  /** All or none, with an entry of the log for each. */
  createLeads(leads: New<"lead">[]): Answer<void>;
  /** The first ones in the order of their ids. */
  findLeads(status: string, limit: number): Answer<Lead[]>;
  findContacts(companyId: number, limit: number): Answer<Contact[]>;
  getContact(id: number): Answer<Contact | undefined>;
  counts(): Answer<Counts>;
}

export interface SeedSize {
  companies: number;
  contacts: number;
  leads: number;
}

/** Row `n` has the id `n + 1`. */
export interface SeedData {
  companies: New<"company">[];
  contacts: New<"contact">[];
  leads: New<"lead">[];
}

/** Contacts go to companies in turn, leads to contacts, and statuses to leads. The module seeds itself in the same way. */
export function seedData({ companies, contacts, leads }: SeedSize): SeedData {
  const companyOf = (contact: number) => 1 + (contact % companies);
  const statuses = enumerations.lead!["status"]!;
  return {
    companies: Array.from({ length: companies }, (_, index) => ({
      name: `Company ${index}`,
      domain: `company-${index}.example`,
      ...{ industry: "software", size: index, website: `https://company-${index}.example` },
      ...{ phone: "+1 555 0100", status: "active" },
    })),
    contacts: Array.from({ length: contacts }, (_, index) => ({
      ...{ firstName: "First", lastName: `Last ${index}`, email: `contact-${index}@company.example` },
      ...{ phone: "+1 555 0101", title: "Engineer", companyId: companyOf(index) },
    })),
    leads: Array.from({ length: leads }, (_, index) => ({
      ...{ title: `Lead ${index}`, source: "web", status: statuses[index % statuses.length]! },
      ...{ value: index * 100, companyId: companyOf(index % contacts), contactId: 1 + (index % contacts) },
    })),
  };
}

const rowsPerCallMax = 10_000;

const id = (args: RpcArguments, name: string) => {
  if (!Number.isSafeInteger(args[name])) throw new BadArguments(`invalid ${name}`);
  return args[name] as number;
};

/** A row of known columns, each of its type. */
function rowOf<Table extends CrmTable>(table: Table, value: unknown): New<Table> {
  const given = (value ?? {}) as RpcArguments;
  const row: RpcArguments = {};
  for (const [name, kind] of columnsOf(table)) {
    const property = given[name];
    const type = kind === "text" ? "string" : kind === "flag" ? "boolean" : "number";
    const isRight = type === "number" ? Number.isSafeInteger(property) : typeof property === type;
    if (!isRight) throw new BadArguments(`invalid ${name}`);
    row[name] = property;
  }
  return row as New<Table>;
}

/** The RPC methods. What refers to nothing and unknown values of enumerations are refused by the database. */
export function crmMethods(store: CrmStore): RpcMethods {
  const limit = (args: RpcArguments) => whole(args, "limit", rowsPerCallMax);
  const create = <Table extends CrmTable>(table: Table) =>
    [`crm_create_${table}`, (args: RpcArguments) => store.create(table, rowOf(table, args))] as const;
  return {
    crm_seed: (args) =>
      store.seed(
        seedData({
          companies: id(args, "companies"),
          contacts: id(args, "contacts"),
          leads: id(args, "leads"),
        }),
      ),
    ...Object.fromEntries(crmTables.map(create)),
    crm_create_leads(args) {
      const leads = args["leads"];
      if (!Array.isArray(leads) || leads.length > rowsPerCallMax) throw new BadArguments("invalid leads");
      return store.createLeads(leads.map((row) => rowOf("lead", row)));
    },
    crm_find_leads: (args) => store.findLeads(text(args, "status"), limit(args)),
    crm_find_contacts: (args) => store.findContacts(id(args, "companyId"), limit(args)),
    crm_get_contact: async (args) => (await store.getContact(id(args, "id"))) ?? null,
    crm_counts: () => store.counts(),
  };
}
