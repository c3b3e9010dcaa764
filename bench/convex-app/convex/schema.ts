import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  accounts: defineTable({ id: v.number(), balance: v.number() }).index("by_account_id", ["id"]),

  usertable: defineTable({
    ycsb_key: v.string(),
    field0: v.string(),
    field1: v.string(),
    field2: v.string(),
    field3: v.string(),
    field4: v.string(),
    field5: v.string(),
    field6: v.string(),
    field7: v.string(),
    field8: v.string(),
    field9: v.string(),
  }).index("by_ycsb_key", ["ycsb_key"]),

  content: defineTable({
    title: v.string(),
    body: v.string(),
    author: v.string(),
    status: v.string(),
    data: v.optional(v.any()),
    created_at: v.string(),
    updated_at: v.string(),
  }),

  jobs: defineTable({
    id: v.number(),
    kind: v.string(),
    payload: v.string(),
    state: v.number(),
    attempts: v.number(),
    worker: v.number(),
    lease: v.number(),
    lease_until: v.optional(v.number()),
    created_at: v.number(),
    finished_at: v.optional(v.number()),
  })
    .index("by_job_id", ["id"])
    .index("by_state", ["state", "id"]),
});
