// Outbox tables: calls from one database to another (2.14); the same as `outbox-rs`, with our SDK, but for `withdraw`.

import { remoteReducer, SenderError, schema, t, table } from "lightcone/server";

/** Of another database that runs this module, or `outbox-rs`. */
const remoteReceive = remoteReducer("receive", { number: t.u64(), text: t.string() });

const parcels = table(
  { outbox: { reducer: remoteReceive, target: "to", params: { text: "content" } } },
  {
    id: t.u64().primaryKey().autoInc(),
    to: t.identity(),
    content: t.string(),
    number: t.u64(),
    /** Stays here. */
    note: t.string(),
  },
);

/** What has come from other databases, in this order. */
const arrivals = table(
  { public: true },
  { id: t.u64().primaryKey().autoInc(), sender: t.identity(), number: t.u64(), text: t.string() },
);

/** What this database has heard of its messages, in this order; `error` is empty if it went well. */
const outcomes = table(
  { public: true },
  { id: t.u64().primaryKey().autoInc(), number: t.u64(), error: t.string() },
);

const spacetimedb = schema({ parcels, arrivals, outcomes });
export default spacetimedb;

export const send = spacetimedb.reducer(
  { to: t.identity(), number: t.u64(), text: t.string() },
  (ctx, { to, number, text }) => {
    ctx.db.parcels.insert({ id: 0n, to, content: text, number, note: `number ${number}` });
  },
);

/** In one transaction. */
export const sendMany = spacetimedb.reducer(
  { to: t.identity(), first: t.u64(), count: t.u64() },
  (ctx, { to, first, count }) => {
    for (let number = first; number < first + count; number += 1n) {
      ctx.db.parcels.insert({ id: 0n, to, content: "", number, note: `number ${number}` });
    }
  },
);

/** Refuses, fails, or keeps what comes. */
export const receive = spacetimedb.reducer({ number: t.u64(), text: t.string() }, (ctx, { number, text }) => {
  ctx.db.arrivals.insert({ id: 0n, sender: ctx.sender, number, text });
  if (text === "refuse") throw new SenderError(`number ${number} is refused`);
  if (text === "trap") throw new Error(`number ${number} is too much`);
});

export const parcelResult = spacetimedb.reducer(
  { onResult: parcels },
  { parcel: parcels.rowType, result: t.result(t.unit(), t.string()) },
  (ctx, { parcel, result }) => {
    const error = "err" in result ? result.err : "";
    ctx.db.outcomes.insert({ id: 0n, number: parcel.number, error });
    if (parcel.content === "do not tell") throw new SenderError("it was told all the same");
  },
);
