// A module with the published package that has a function for the rows of each table of league1.ts.
import { schema, table, t, SenderError } from 'spacetimedb/server';

const oldPlayer = table(
  {},
  { id: t.u64().primaryKey().autoInc(), name: t.string().unique(), points: t.u32() },
);
const oldAccount = table({}, { id: t.u32().primaryKey(), owner: t.string(), street: t.string() });

const spacetimedb = schema({
  player: table(
    { public: true },
    { id: t.u64().primaryKey().autoInc(), fullName: t.string().unique(), score: t.i64() },
  ),
  account: table({ public: true }, { id: t.u32().primaryKey(), owner: t.string() }),
  address: table(
    { public: true },
    { id: t.u64().primaryKey().autoInc(), account: t.u32().index('btree'), street: t.string() },
  ),
  visit: table({ public: true }, { id: t.u32().primaryKey(), note: t.string() }),
  __old_player: oldPlayer,
  __old_account: oldAccount,
});
export default spacetimedb;

export const addPlayer = spacetimedb.reducer(
  { fullName: t.string(), score: t.i64() },
  (ctx, { fullName, score }) => {
    ctx.db.player.insert({ id: 0n, fullName, score });
  },
);

export const __migrate_player = spacetimedb.reducer({ old: oldPlayer.rowType }, (ctx, { old }) => {
  if (old.name === 'refuse') throw new SenderError('a player is called refuse');
  if (old.name === 'throw') throw new Error('a player is called throw');
  if (old.name === 'read') console.log(ctx.db.visit.count());
  if (old.name === 'write') ctx.db.visit.insert({ id: 999, note: 'must not be' });
  ctx.db.player.insert({ id: old.id, fullName: old.name, score: BigInt(old.points) * 10n });
});

export const __migrate_account = spacetimedb.reducer({ old: oldAccount.rowType }, (ctx, { old }) => {
  ctx.db.account.insert({ id: old.id, owner: old.owner });
  ctx.db.address.insert({ id: 0n, account: old.id, street: old.street });
});
