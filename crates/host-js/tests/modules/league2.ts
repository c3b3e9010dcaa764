// A module with the published package whose migration function reads the tables of league1.ts.
import { schema, table, t, SenderError } from 'spacetimedb/server';

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
  __old_player: table(
    {},
    { id: t.u64().primaryKey().autoInc(), name: t.string().unique(), points: t.u32() },
  ),
  __old_account: table({}, { id: t.u32().primaryKey(), owner: t.string(), street: t.string() }),
});
export default spacetimedb;

export const addPlayer = spacetimedb.reducer(
  { fullName: t.string(), score: t.i64() },
  (ctx, { fullName, score }) => {
    ctx.db.player.insert({ id: 0n, fullName, score });
  },
);

export const touchOld = spacetimedb.reducer((ctx) => {
  console.log(ctx.db.__old_player.count());
});

export const __migrate = spacetimedb.reducer((ctx) => {
  if (ctx.db.__old_player.name.find('refuse')) throw new SenderError('a player is called refuse');
  if (ctx.db.__old_player.name.find('throw')) throw new Error('a player is called throw');
  for (const { id, name, points } of ctx.db.__old_player.iter()) {
    ctx.db.player.insert({ id, fullName: name, score: BigInt(points) * 10n });
  }
  while (ctx.db.__old_player.name.find('wait')) {
    // Until it is cancelled.
  }
  for (const { id, owner, street } of ctx.db.__old_account.iter()) {
    ctx.db.account.insert({ id, owner });
    ctx.db.address.insert({ id: 0n, account: id, street });
  }
});
