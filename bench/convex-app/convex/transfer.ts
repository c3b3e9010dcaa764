import { ShardedCounter } from "@convex-dev/sharded-counter";
import type { ComponentApi } from "@convex-dev/sharded-counter/_generated/component.js";
import { componentsGeneric } from "convex/server";
import { v } from "convex/values";
import { accountOf, mutation } from "./functions";

const args = { amount: v.number(), from_id: v.number(), to_id: v.number() };
const shardsPerAccount = 10_000;

const components = componentsGeneric() as unknown as { shardedCounter: ComponentApi };
const counters = new ShardedCounter<string>(components.shardedCounter, { defaultShards: shardsPerAccount });

/** Moves an amount; does nothing where an account or the funds are missing. */
export const transfer = mutation({
  args,
  handler: async ({ db }, { amount, from_id, to_id }) => {
    if (from_id === to_id || amount <= 0) return { applied: false };
    const source = await accountOf(db, from_id);
    const target = await accountOf(db, to_id);
    if (!source || !target || source.balance < amount) return { applied: false };
    await db.patch(source._id, { balance: source.balance - amount });
    await db.patch(target._id, { balance: target.balance + amount });
    return { applied: true };
  },
});

/**
 * Moves an amount between two counters that are spread over many documents, so that rivals seldom meet. Funds are not
 * checked: reading a counter would conflict with every change of it.
 */
export const transfer_sharded = mutation({
  args,
  handler: async (context, { amount, from_id, to_id }) => {
    if (from_id === to_id || amount <= 0) return { applied: false };
    await counters.subtract(context, `account:${from_id}`, amount);
    await counters.add(context, `account:${to_id}`, amount);
    return { applied: true };
  },
});
