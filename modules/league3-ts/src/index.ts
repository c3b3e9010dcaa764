// The module of crates/host-js/tests/modules/league3.ts with the SDK of this repository: `migrateRows` types the old rows.
import { schema, t, table } from "lightcone/server";

const spacetimedb = schema({
  player: table(
    { public: true },
    { id: t.u64().primaryKey().autoInc(), fullName: t.string().unique(), score: t.i64() },
  ),
  account: table({ public: true }, { id: t.u32().primaryKey(), owner: t.string() }),
  address: table(
    { public: true },
    { id: t.u64().primaryKey().autoInc(), account: t.u32().index("btree"), street: t.string() },
  ),
  visit: table({ public: true }, { id: t.u32().primaryKey(), note: t.string() }),
});
export default spacetimedb;

export const addPlayer = spacetimedb.reducer(
  { fullName: t.string(), score: t.i64() },
  (ctx, { fullName, score }) => {
    ctx.db.player.insert({ id: 0n, fullName, score });
  },
);

/** Tables as league1 declares them. */
const old = {
  player: table({}, { id: t.u64().primaryKey().autoInc(), name: t.string().unique(), points: t.u32() }),
  account: table({}, { id: t.u32().primaryKey(), owner: t.string(), street: t.string() }),
};

export const migrate = spacetimedb.migrateRows(old, {
  player: (ctx, { id, name, points }) => {
    ctx.db.player.insert({ id, fullName: name, score: BigInt(points) * 10n });
  },
  account: (ctx, { id, owner, street }) => {
    ctx.db.account.insert({ id, owner });
    ctx.db.address.insert({ id: 0n, account: id, street });
  },
});
