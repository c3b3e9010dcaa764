// Procedures: several transactions in one call, results, and what goes wrong. `procedures-rs` is the same in Rust.

import { type InferSchema, type ReducerCtx, schema, SenderError, t, table } from 'spacetimedb/server';

const spacetimedb = schema({
  counters: table({ name: 'counters', public: true }, { id: t.u32().primaryKey(), value: t.u64() }),
});
export default spacetimedb;

function add(tx: ReducerCtx<InferSchema<typeof spacetimedb>>, id: number, amount: bigint): bigint {
  const { counters } = tx.db;
  const counter = counters.id.find(id);
  const value = (counter?.value ?? 0n) + amount;
  if (counter) counters.id.update({ id, value });
  else counters.insert({ id, value });
  return value;
}

/** Two transactions. */
export const addTwice = spacetimedb.procedure({ id: t.u32(), amount: t.u64() }, t.u64(), (ctx, { id, amount }) => {
  ctx.withTx((tx) => add(tx, id, amount));
  return ctx.withTx((tx) => add(tx, id, amount));
});

/** One transaction that changes nothing. */
export const peek = spacetimedb.procedure({ id: t.u32() }, t.option(t.u64()), (ctx, { id }) =>
  ctx.withTx((tx) => tx.db.counters.id.find(id)?.value),
);

/** A transaction that is given up. */
export const giveUp = spacetimedb.procedure({ id: t.u32() }, t.string(), (ctx, { id }) => {
  try {
    ctx.withTx((tx) => {
      throw new Error(`gave up at ${add(tx, id, 1000n)}`);
    });
  } catch (error) {
    return (error as Error).message;
  }
  return 'not given up';
});

/** What was committed before stays. */
export const addAndFail = spacetimedb.procedure({ id: t.u32() }, t.unit(), (ctx, { id }) => {
  ctx.withTx((tx) => add(tx, id, 1n));
  throw new SenderError('after the first transaction');
});

export const failInside = spacetimedb.procedure({ id: t.u32() }, t.unit(), (ctx, { id }) => {
  ctx.withTx((tx) => {
    add(tx, id, 1n);
    throw new TypeError('inside of a transaction');
  });
  return {};
});

export const loopForEver = spacetimedb.procedure(t.unit(), () => {
  for (;;);
});

/** Needs what the server cannot do yet. */
export const waitOutside = spacetimedb.procedure(t.unit(), (ctx) => {
  ctx.http.fetch('http://127.0.0.1:1/');
  return {};
});
