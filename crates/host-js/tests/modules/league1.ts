// What league2.ts and modules/league2-ts take the place of.
import { schema, table, t } from 'spacetimedb/server';

const spacetimedb = schema({
  player: table(
    { public: true },
    { id: t.u64().primaryKey().autoInc(), name: t.string().unique(), points: t.u32() },
  ),
  account: table(
    { public: true },
    { id: t.u32().primaryKey(), owner: t.string(), street: t.string() },
  ),
  visit: table({ public: true }, { id: t.u32().primaryKey(), note: t.string() }),
});
export default spacetimedb;

export const addPlayer = spacetimedb.reducer(
  { name: t.string(), points: t.u32() },
  (ctx, { name, points }) => {
    ctx.db.player.insert({ id: 0n, name, points });
  },
);

export const openAccount = spacetimedb.reducer({ id: t.u32(), owner: t.string() }, (ctx, { id, owner }) => {
  ctx.db.account.insert({ id, owner, street: owner + ' street' });
  ctx.db.visit.insert({ id, note: 'opened an account' });
});
