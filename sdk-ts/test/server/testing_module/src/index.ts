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
const pulse = table(
  { name: "pulse" },
  { scheduledId: t.u64().primaryKey().autoInc(), scheduledAt: t.scheduleAt() },
);
const chore = table(
  { name: "chore" },
  { scheduledId: t.u64().primaryKey().autoInc(), scheduledAt: t.scheduleAt() },
);
const beat = table({ name: "beat", public: true }, { at: t.timestamp(), what: t.string() });

const spacetimedb = schema({ thing, secret, timer, pulse, chore, beat });
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

export const onPulse = spacetimedb.reducer({ onSchedule: pulse }, { due: pulse.rowType }, (ctx) => {
  ctx.db.beat.insert({ at: ctx.timestamp, what: "pulse" });
});
export const onChore = spacetimedb.procedure(
  { onSchedule: chore },
  { due: chore.rowType },
  t.unit(),
  (ctx) => {
    ctx.withTx((tx) => tx.db.beat.insert({ at: ctx.timestamp, what: "chore" }));
    return {};
  },
);
/** A pulse every so often, and a chore so long from now. */
export const live = spacetimedb.reducer({ everyMs: t.u32(), choreInMs: t.u32() }, (ctx, args) => {
  ctx.db.pulse.insert({ scheduledId: 0n, scheduledAt: ScheduleAt.interval(BigInt(args.everyMs) * 1000n) });
  const at = ctx.timestamp.microsSinceUnixEpoch + BigInt(args.choreInMs) * 1000n;
  ctx.db.chore.insert({ scheduledId: 0n, scheduledAt: ScheduleAt.time(at) });
});
