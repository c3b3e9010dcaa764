// Procedures and HTTP handlers: several transactions in one call, results, and what goes wrong. `procedures-rs` is the same in Rust.

import { Headers, type InferSchema, type ReducerCtx, Router, schema, SenderError, SyncResponse, t, table } from 'spacetimedb/server';

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

/** Status and body of the answer to a request, or why there is none; then a transaction. */
export const fetch = spacetimedb.procedure({ id: t.u32(), url: t.string() }, t.string(), (ctx, { id, url }) => {
  let text: string;
  try {
    const response = ctx.http.fetch(url);
    text = `${response.status} ${response.text()}`;
  } catch (error) {
    text = (error as Error).message;
  }
  ctx.withTx((tx) => add(tx, id, 1n));
  return text;
});

/** A transaction that never ends. */
export const hold = spacetimedb.procedure({ id: t.u32() }, t.unit(), (ctx, { id }) => {
  ctx.withTx((tx) => {
    add(tx, id, 1n);
    for (;;);
  });
  return {};
});

export const bump = spacetimedb.reducer({ id: t.u32() }, (ctx, { id }) => {
  const { counters } = ctx.db;
  const value = counters.id.find(id)?.value ?? 0n;
  counters.id.delete(id);
  counters.insert({ id, value: value + 1n });
});

/** Adds the body, a number, to counter 7, and says what it got. */
export const addBody = spacetimedb.httpHandler((ctx, request) => {
  const amount = request.text();
  if (!/^\d+$/.test(amount)) return new SyncResponse('a number, please', { status: 400 });
  const value = ctx.withTx((tx) => add(tx, 7, BigInt(amount)));
  const headers = new Headers({ 'content-type': 'text/plain', 'x-seen': request.headers.get('x-sent') ?? '' });
  headers.append('set-cookie', 'a=1');
  headers.append('set-cookie', 'b=2');
  return new SyncResponse(`${request.method} ${request.url} ${value}`, { status: 201, headers });
});

/** The body again, byte by byte. */
export const echo = spacetimedb.httpHandler((_ctx, request) => new SyncResponse(request.bytes()));

/** What was committed before stays. */
export const addAndThrow = spacetimedb.httpHandler((ctx) => {
  ctx.withTx((tx) => add(tx, 7, 1n));
  throw new TypeError('after the first transaction');
});

export const routes = spacetimedb.httpRouter(
  new Router().post('/add', addBody).any('/echo', echo).get('/fail', addAndThrow).get('', echo).get('/', echo),
);
