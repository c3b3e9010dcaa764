// A shop whose schema changes, for tests of publishing: one source of several programs. Who publishes replaces the number
// in `shape=1` in the bundle.
//
// 1: items. 2: also sales, an index on names, one more colour; breaks no client. 3: also a price with a default; breaks
// clients. 4: as 3 with another type of the key; cannot be migrated. 5: as 3 with names that are unique. 6: sales only. 7: as 1, but
// items have labels in the place of names, and a table of words: its migration function knows the items of 1.

import { schema, t, table } from 'spacetimedb/server';

const SHAPE = Number('shape=1'.slice('shape='.length));

const colors = SHAPE < 2 ? ['red', 'green'] : ['red', 'green', 'blue'];
const Color = t.enum('Color', colors as ['red', 'green', 'blue']);

const name = () => {
  if (SHAPE < 2) return t.string();
  return SHAPE === 5 ? t.string().unique() : t.string().index('btree');
};
const columns = {
  id: SHAPE === 4 ? t.u64().primaryKey() : t.u32().primaryKey(),
  name: name(),
  color: Color,
};
const withPrice = { ...columns, price: t.u32().default(5) };

const item = table({ name: 'item', public: true }, (SHAPE < 3 ? columns : withPrice) as typeof withPrice);
const sale = table({ name: 'sale', public: true }, { id: t.u32().primaryKey(), item: t.u32() });

const labelled = table({ name: 'item', public: true }, { id: t.u32().primaryKey(), label: t.string(), color: Color });
const word = table({ name: 'word', public: true }, { id: t.u64().primaryKey().autoInc(), text: t.string() });
const was = table({}, { id: t.u32().primaryKey(), name: t.string(), color: Color });

const tablesOf = () => {
  if (SHAPE === 1) return { item };
  if (SHAPE === 6) return { sale };
  return SHAPE === 7 ? { item: labelled, word, __old_item: was } : { item, sale };
};
const tables = tablesOf();
const spacetimedb = schema(tables as unknown as { item: typeof item; sale: typeof sale });
export default spacetimedb;

/** The only view: how many items there are. */
const Count = t.row('CountRow', { items: t.u64() });
export const count = spacetimedb.anonymousView({ name: 'count', public: true }, t.option(Count), (ctx) => ({
  items: SHAPE === 6 ? 0n : ctx.db.item.count(),
}));

export const addItem = spacetimedb.reducer({ id: t.u32(), name: t.string() }, (ctx, { id, name }) => {
  // The clients of shape 1 do not know the third colour.
  const called = SHAPE === 7 ? { label: name } : { name };
  const priced = SHAPE < 3 || SHAPE === 7 ? {} : { price: 9 };
  ctx.db.item.insert({ id, ...called, color: { tag: 'red' }, ...priced } as never);
});

const migrate = spacetimedb.reducer((ctx) => {
  const db = ctx.db as any;
  for (const { id, name, color } of db.__old_item.iter()) {
    db.item.insert({ id, label: name, color });
    db.word.insert({ id: 0n, text: name });
  }
});
export const migration = spacetimedb.exportGroup(SHAPE === 7 ? { __migrate: migrate } : {});

export const left = spacetimedb.clientDisconnected(() => {
  console.info(`a client left shape ${SHAPE}`);
});
