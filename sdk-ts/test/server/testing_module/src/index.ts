// The module of testing.test.ts.

import { ScheduleAt } from "lightcone";
import { SenderError, schema, t, table } from "lightcone/server";

const Shape = t.enum("Shape", { Dot: t.unit(), Circle: t.f64() });
const thing = table(
  { name: "thing", public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    owner: t.identity(),
    made: t.timestamp(),
    big: t.i128(),
    bytes: t.byteArray(),
    nick: t.option(t.string()),
    shape: Shape,
    tags: t.array(t.string()),
  },
);
const secret = table({ name: "secret" }, { id: t.u32().primaryKey(), text: t.string() });
const timer = table(
  { name: "timer" },
  { scheduledId: t.u64().primaryKey().autoInc(), scheduledAt: t.scheduleAt() },
);

const spacetimedb = schema({ thing, secret, timer });
export default spacetimedb;

export const init = spacetimedb.init((ctx) => {
  ctx.db.secret.insert({ id: 1, text: "from init" });
});

export const addThing = spacetimedb.reducer(
  {
    big: t.i128(),
    bytes: t.byteArray(),
    nick: t.option(t.string()),
    shape: Shape,
    tags: t.array(t.string()),
  },
  (ctx, values) => {
    if (values.big < 0n) throw new SenderError("not negative");
    ctx.db.thing.insert({ ...values, id: 0n, owner: ctx.sender, made: ctx.timestamp });
    console.log(`thing of ${ctx.senderAuth.jwt?.subject}`);
  },
);

export const roleOf = spacetimedb.procedure({}, t.string(), (ctx) =>
  ctx.withTx((tx) => String(tx.senderAuth.jwt?.fullPayload["role"])),
);
export const count = spacetimedb.procedure({ from: t.u64() }, t.u64(), (ctx, { from }) =>
  ctx.withTx((tx) => from + tx.db.thing.count()),
);

export const fire = spacetimedb.reducer({ onSchedule: timer }, { due: timer.rowType }, (ctx) => {
  ctx.db.secret.insert({ id: 2, text: "fired" });
});
export const plan = spacetimedb.reducer({ afterMs: t.u32() }, (ctx, { afterMs }) => {
  const at = ctx.timestamp.microsSinceUnixEpoch + BigInt(afterMs) * 1000n;
  ctx.db.timer.insert({ scheduledId: 0n, scheduledAt: ScheduleAt.time(at) });
});
