// Views of all kinds, and the reducers that change what they read. `views-rs` is the same in Rust.

import { type InferSchema, Range, type ReducerCtx, schema, t, table } from 'spacetimedb/server';
import type { Identity } from 'spacetimedb';

/** Only the views can read it. */
const message = table(
  {
    name: 'message',
    indexes: [{ accessor: 'byOwnerAndScore', name: 'by_owner_and_score', algorithm: 'btree', columns: ['owner', 'score'] }],
  },
  {
    id: t.u32().primaryKey(),
    owner: t.identity().index('btree'),
    room: t.u32().index('btree'),
    score: t.u32(),
    text: t.string(),
  },
);
/** How the view `fragile` fails. */
const mode = table({ name: 'mode' }, { id: t.u32().primaryKey(), value: t.u32() });
const audit = table({ name: 'audit', public: true }, { line: t.string() });

const spacetimedb = schema({ message, mode, audit });
export default spacetimedb;

const Total = t.row('TotalRow', { messages: t.u64() });
const Line = t.row('FragileLine', { key: t.u32().primaryKey(), text: t.string() });

/** Rows of the caller. */
export const myMessages = spacetimedb.view({ name: 'my_messages', public: true }, t.array(message.rowType), (ctx) => [
  ...ctx.db.message.owner.filter(ctx.sender),
]);

/** A range of an index: the message with the highest score from 10 on. */
export const myBest = spacetimedb.view({ name: 'my_best', public: true }, t.option(message.rowType), (ctx) => {
  console.info('my_best runs');
  const from = { tag: 'included' as const, value: 10 };
  return [...ctx.db.message.byOwnerAndScore.filter([ctx.sender, new Range(from, { tag: 'unbounded' })])].pop();
});

/** One row for all callers. */
export const total = spacetimedb.anonymousView({ name: 'total', public: true }, t.option(Total), (ctx) => ({
  messages: ctx.db.message.count(),
}));

/** A query for all callers, which the database keeps up to date. */
export const roomOne = spacetimedb.anonymousView({ name: 'room_one', public: true }, t.array(message.rowType), (ctx) =>
  ctx.from.message.where((row) => row.room.eq(1)),
);

/** A query for the caller. */
export const myQuery = spacetimedb.view({ name: 'my_query', public: true }, t.array(message.rowType), (ctx) =>
  ctx.from.message.where((row) => row.owner.eq(ctx.sender)),
);

/** A join for all callers: the messages whose id is one of a mode. */
export const withMode = spacetimedb.anonymousView({ name: 'with_mode', public: true }, t.array(message.rowType), (ctx) =>
  ctx.from.message.leftSemijoin(ctx.from.mode, (row, other) => row.id.eq(other.id)),
);

/** Fails as `mode` says: 1 throws, 2 never ends, 3 gives one key twice, 4 is too much. */
export const fragile = spacetimedb.view({ name: 'fragile', public: true }, t.array(Line), (ctx) => {
  const messages = [...ctx.db.message.owner.filter(ctx.sender)];
  switch (ctx.db.mode.id.find(0)?.value) {
    case 1:
      throw new Error('as it was told');
    case 2:
      for (;;);
    case 3:
      return [
        { key: 0, text: 'a' },
        { key: 0, text: 'b' },
      ];
    case 4:
      return [{ key: 0, text: 'x'.repeat(20 << 20) }];
    default:
      return messages.map(({ id, text }) => ({ key: id, text }));
  }
});

type Ctx = ReducerCtx<InferSchema<typeof spacetimedb>>;

function set(ctx: Ctx, id: number, owner: Identity, room: number, score: number, text: string) {
  const row = { id, owner, room, score, text };
  if (ctx.db.message.id.find(id)) ctx.db.message.id.update(row);
  else ctx.db.message.insert(row);
}

export const put = spacetimedb.reducer(
  { id: t.u32(), owner: t.identity(), room: t.u32(), score: t.u32(), text: t.string() },
  (ctx, { id, owner, room, score, text }) => set(ctx, id, owner, room, score, text),
);

export const take = spacetimedb.reducer({ id: t.u32() }, (ctx, { id }) => {
  ctx.db.message.id.delete(id);
});

export const setMode = spacetimedb.reducer({ name: 'set_mode' }, { value: t.u32() }, (ctx, { value }) => {
  ctx.db.mode.id.delete(0);
  ctx.db.mode.insert({ id: 0, value });
  ctx.db.audit.insert({ line: `mode ${value}` });
});

export const putByProcedure = spacetimedb.procedure(
  { name: 'put_by_procedure' },
  { id: t.u32(), owner: t.identity() },
  t.u64(),
  (ctx, { id, owner }) =>
    ctx.withTx((tx) => {
      set(tx, id, owner, 1, 50, 'by a procedure');
      return tx.db.message.count();
    }),
);
