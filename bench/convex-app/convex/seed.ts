import { v } from "convex/values";
import { mutation } from "./functions";

/** What one function may delete at most, with room to spare. */
const clearedPerCall = 4_000;

export const seed_range = mutation({
  args: { start: v.number(), count: v.number(), initial: v.number() },
  handler: async ({ db }, { start, count, initial }) => {
    for (let id = start; id < start + count; id += 1) await db.insert("accounts", { id, balance: initial });
    return null;
  },
});

/** Deletes some accounts and answers how many: to be repeated until that is 0. */
export const clear_accounts = mutation({
  args: {},
  handler: async ({ db }) => {
    const accounts = await db.query("accounts").take(clearedPerCall);
    for (const { _id } of accounts) await db.delete(_id);
    return accounts.length;
  },
});
