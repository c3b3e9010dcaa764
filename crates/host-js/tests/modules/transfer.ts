// The transfer of `modules/transfer-rs`, written against the published npm package.
import { schema, table, t, SenderError } from 'spacetimedb/server';

const accounts = table({ name: 'accounts', public: true }, { id: t.u32().primaryKey().index('hash'), balance: t.i64() });
const spacetimedb = schema({ accounts });
export default spacetimedb;

export const seed = spacetimedb.reducer({ n: t.u32(), initial_balance: t.i64() }, (ctx, { n, initial_balance }) => {
  ctx.db.accounts.clear();
  for (let id = 0; id < n; id++) {
    ctx.db.accounts.insert({ id, balance: initial_balance });
  }
});

export const transfer = spacetimedb.reducer({ from: t.u32(), to: t.u32(), amount: t.i64() }, (ctx, { from, to, amount }) => {
  if (from === to) {
    throw new SenderError('sender and receiver are the same account');
  }
  const { id } = ctx.db.accounts;
  const sender = id.find(from);
  const receiver = id.find(to);
  if (sender === null || receiver === null) {
    throw new SenderError('no such account');
  }
  if (sender.balance < amount) {
    throw new SenderError('insufficient balance');
  }
  id.update({ id: from, balance: sender.balance - amount });
  id.update({ id: to, balance: receiver.balance + amount });
});
