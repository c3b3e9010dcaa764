// YCSB (section 15.4). What one function may read and write is limited, so that clearing and counting go page by page.

import { v } from "convex/values";
import { type Database, mutation, query } from "./functions";

const deletedPerCall = 2_000;
const countedPerCall = 4_000;

const fieldNames = Array.from({ length: 10 }, (_, index) => `field${index}`);
const record = { key: v.string(), fields: v.array(v.string()) };
const change = { key: v.string(), field: v.number(), value: v.string() };

const recordOf = (database: Database, key: string) =>
  database
    .query("usertable")
    .withIndex("by_ycsb_key", (range) => range.eq("ycsb_key", key))
    .unique();

/** A row as every other system answers it. */
function rowOf<Row extends { _id: unknown; _creationTime: number }>(document: Row) {
  const { _id, _creationTime, ...row } = document;
  return row;
}

function rowFrom(key: string, fields: string[]) {
  if (fields.length !== fieldNames.length) throw new Error("invalid fields");
  const [field0, field1, field2, field3, field4, field5, field6, field7, field8, field9] = fields as [
    ...[string, string, string, string, string],
    ...[string, string, string, string, string],
  ];
  return { ycsb_key: key, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 };
}

function changeFrom(field: number, value: string) {
  const name = fieldNames[field];
  if (name === undefined) throw new Error("invalid field");
  return { [name]: value };
}

export const ycsb_insert = mutation({
  args: record,
  handler: async ({ db }, { key, fields }) => {
    // No index of Convex is unique: who inserts has to look.
    if (await recordOf(db, key)) throw new Error(`${key} is there already`);
    await db.insert("usertable", rowFrom(key, fields));
    return null;
  },
});

/** Loads records that are not there yet. */
export const ycsb_insert_many = mutation({
  args: { rows: v.array(v.object(record)) },
  handler: async ({ db }, { rows }) => {
    for (const { key, fields } of rows) await db.insert("usertable", rowFrom(key, fields));
    return null;
  },
});

export const ycsb_read = query({
  args: { key: v.string() },
  handler: async ({ db }, { key }) => {
    const document = await recordOf(db, key);
    return document && rowOf(document);
  },
});

export const ycsb_scan = query({
  args: { key: v.string(), count: v.number() },
  handler: async ({ db }, { key, count }) => {
    const documents = await db
      .query("usertable")
      .withIndex("by_ycsb_key", (range) => range.gte("ycsb_key", key))
      .take(count);
    return documents.map(rowOf);
  },
});

export const ycsb_update = mutation({
  args: change,
  handler: async ({ db }, { key, field, value }) => {
    const patch = changeFrom(field, value);
    const document = await recordOf(db, key);
    if (document) await db.patch(document._id, patch);
    return { found: document !== null };
  },
});

/** Answers the record as it was. */
export const ycsb_rmw = mutation({
  args: change,
  handler: async ({ db }, { key, field, value }) => {
    const patch = changeFrom(field, value);
    const document = await recordOf(db, key);
    if (document) await db.patch(document._id, patch);
    return document && rowOf(document);
  },
});

/** Counts the records behind a key: their number, and the last key among them. */
export const ycsb_count = query({
  args: { after: v.string() },
  handler: async ({ db }, { after }) => {
    const page = await db
      .query("usertable")
      .withIndex("by_ycsb_key", (range) => range.gt("ycsb_key", after))
      .take(countedPerCall);
    return { count: page.length, last: page.at(-1)?.ycsb_key ?? after };
  },
});

/** Deletes some records and answers how many: to be repeated until that is 0. */
export const ycsb_clear = mutation({
  args: {},
  handler: async ({ db }) => {
    const documents = await db.query("usertable").take(deletedPerCall);
    for (const { _id } of documents) await db.delete(_id);
    return documents.length;
  },
});
