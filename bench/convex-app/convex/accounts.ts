import { v } from "convex/values";
import { accountOf, query } from "./functions";

/** What one function may read at most, with room to spare. */
const pageAccountsMax = 8_000;

export const get_account = query({
  args: { id: v.number() },
  handler: async ({ db }, { id }) => {
    const account = await accountOf(db, id);
    return account && { id: account.id, balance: account.balance };
  },
});

/** Counts a page of accounts: their number, the sum of their balances, and how many differ from `initial`. */
export const get_stats = query({
  args: { start: v.optional(v.number()), count: v.optional(v.number()), initial: v.optional(v.number()) },
  handler: async ({ db }, { start = 0, count = pageAccountsMax, initial }) => {
    const accounts = await db
      .query("accounts")
      .withIndex("by_account_id", (range) => range.gte("id", start))
      .take(Math.min(count, pageAccountsMax));
    const total = accounts.reduce((sum, { balance }) => sum + balance, 0);
    const changed = accounts.filter(({ balance }) => initial !== undefined && balance !== initial).length;
    return { accounts: accounts.length, total, changed };
  },
});
