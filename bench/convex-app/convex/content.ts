// content-crud (section 16). The id of a record is that of its document.

import { v } from "convex/values";
import { type Database, mutation, query } from "./functions";

const deletedPerCall = 4_000;

const textFields = { title: v.string(), body: v.string(), author: v.string(), status: v.string() };
const change = {
  title: v.optional(v.string()),
  body: v.optional(v.string()),
  author: v.optional(v.string()),
  status: v.optional(v.string()),
  data: v.optional(v.any()),
};

async function find(database: Database, text: string) {
  const id = database.normalizeId("content", text);
  return id && database.get(id);
}

export const content_create = mutation({
  args: { ...textFields, data: v.optional(v.any()) },
  handler: async ({ db }, fields) => {
    const now = new Date().toISOString();
    const record = { ...fields, created_at: now, updated_at: now };
    return { id: await db.insert("content", record), ...record };
  },
});

export const content_get = query({
  args: { id: v.string() },
  handler: async ({ db }, { id }) => {
    const document = await find(db, id);
    if (!document) return null;
    const { _id, _creationTime, ...record } = document;
    return { id: _id, ...record };
  },
});

export const content_update = mutation({
  args: { id: v.string(), ...change },
  handler: async ({ db }, { id, ...fields }) => {
    const document = await find(db, id);
    if (!document) return null;
    await db.patch(document._id, { ...fields, updated_at: new Date().toISOString() });
    return { id };
  },
});

/** Whether there was such a record. */
export const content_delete = mutation({
  args: { id: v.string() },
  handler: async ({ db }, { id }) => {
    const document = await find(db, id);
    if (document) await db.delete(document._id);
    return document !== null;
  },
});

/** Deletes some records and answers how many: to be repeated until that is 0. */
export const content_clear = mutation({
  args: {},
  handler: async ({ db }) => {
    const documents = await db.query("content").take(deletedPerCall);
    for (const { _id } of documents) await db.delete(_id);
    return documents.length;
  },
});
