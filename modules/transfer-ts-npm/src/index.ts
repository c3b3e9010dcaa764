// The module transfer-ts, with the published npm package `spacetimedb`.

import { SenderError, schema, t, table } from "spacetimedb/server";

const spacetimedb = schema({
  accounts: table(
    { public: true },
    {
      id: t.u32().primaryKey().index("hash"),
      balance: t.i64(),
    },
  ),
});

export default spacetimedb;

/** Replaces every account by `n` new ones, ids `0..n`, each with `initialBalance`. */
export const seed = spacetimedb.reducer({ n: t.u32(), initialBalance: t.i64() }, (ctx, { n, initialBalance }) => {
  const { accounts } = ctx.db;
  for (const account of accounts.iter()) accounts.delete(account);
  for (let id = 0; id < n; id++) accounts.insert({ id, balance: initialBalance });
});

/** Moves `amount` between two accounts; an error undoes everything. */
export const transfer = spacetimedb.reducer(
  { from: t.u32(), to: t.u32(), amount: t.i64() },
  (ctx, { from, to, amount }) => {
    if (from === to) throw new SenderError("same_account");
    if (amount <= 0n) throw new SenderError("non_positive_amount");
    const byId = ctx.db.accounts.id;
    const source = byId.find(from);
    const destination = byId.find(to);
    if (source === null || destination === null) throw new SenderError("account_missing");
    if (source.balance < amount) throw new SenderError("insufficient_funds");
    byId.update({ id: from, balance: source.balance - amount });
    byId.update({ id: to, balance: destination.balance + amount });
  },
);
