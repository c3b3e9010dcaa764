// The tables of the module: notes with their tags, the five tables of data-layer-crm, and the log of both.

import { type InferSchema, type ReducerCtx, schema, t, table } from "lightcone/server";

export const note = table(
  { public: true, indexes: [{ accessor: "byDeleted", algorithm: "btree", columns: ["deleted", "id"] }] },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    title: t.string(),
    deleted: t.bool(),
    createdAt: t.timestamp(),
  },
);

export const tag = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    noteId: t.u64().index("btree"),
    name: t.string().index("btree"),
  },
);

export const eventLog = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    model: t.string(),
    op: t.string(),
    recordId: t.u64(),
    payload: t.string(),
    at: t.timestamp(),
  },
);

// Ids that refer to another table have an index, and the functions that write check them. Money is in cents.

export const benchCrmCompany = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    name: t.string(),
    domain: t.string(),
    industry: t.string(),
    size: t.u32(),
    website: t.string(),
    phone: t.string(),
    status: t.string(),
    createdAt: t.timestamp(),
  },
);

export const benchCrmContact = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    firstName: t.string(),
    lastName: t.string(),
    email: t.string(),
    phone: t.string(),
    title: t.string(),
    companyId: t.u64().index("btree"),
    createdAt: t.timestamp(),
  },
);

export const benchCrmLead = table(
  { public: true, indexes: [{ accessor: "byStatus", algorithm: "btree", columns: ["status", "id"] }] },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    title: t.string(),
    source: t.string(),
    status: t.string(),
    value: t.u64(),
    companyId: t.u64().index("btree"),
    contactId: t.u64().index("btree"),
    createdAt: t.timestamp(),
  },
);

export const benchCrmDeal = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    title: t.string(),
    stage: t.string(),
    amount: t.u64(),
    companyId: t.u64().index("btree"),
    contactId: t.u64().index("btree"),
    closeAt: t.timestamp(),
    createdAt: t.timestamp(),
  },
);

export const benchCrmActivity = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    kind: t.string(),
    subject: t.string(),
    body: t.string(),
    dealId: t.u64().index("btree"),
    contactId: t.u64().index("btree"),
    done: t.bool(),
    createdAt: t.timestamp(),
  },
);

const spacetimedb = schema({
  note,
  tag,
  eventLog,
  benchCrmCompany,
  benchCrmContact,
  benchCrmLead,
  benchCrmDeal,
  benchCrmActivity,
});

export default spacetimedb;

export type Context = ReducerCtx<InferSchema<typeof spacetimedb>>;

/** Appends to the log; belongs to every write. */
export function log(ctx: Context, model: string, op: string, recordId: bigint, payload: string): void {
  ctx.db.eventLog.insert({ id: 0n, model, op, recordId, payload, at: ctx.timestamp });
}
