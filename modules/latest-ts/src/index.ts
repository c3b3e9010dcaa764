// A module with each part of the interface that came after 2.10.1, with our SDK; `latest-rs`, `environment-rs` and `outbox-rs` have
// the same in Rust.

import {
  environment,
  type InferSchema,
  type ReducerCtx,
  Router,
  remoteReducer,
  ScheduleAt,
  SenderError,
  SyncResponse,
  schema,
  t,
  table,
} from "lightcone/server";

/** What was read of the environment, and where. */
const seen = table(
  { name: "seen", public: true },
  { id: t.u64().primaryKey().autoInc(), place: t.string(), value: t.option(t.string()) },
);

/** Only the views can read it. */
const note = table(
  {
    name: "note",
    indexes: [
      {
        accessor: "byRoomAndOwner",
        name: "by_room_and_owner",
        algorithm: "btree",
        columns: ["room", "owner"],
      },
    ],
  },
  {
    id: t.u32().primaryKey(),
    room: t.u32().index("btree"),
    owner: t.identity(),
    text: t.string(),
  },
);
/** Rooms that `openNotes` shows. */
const openRoom = table({ name: "open_room" }, { room: t.u32().primaryKey() });

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

/** Who called what, as the module sees it. */
const callers = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    what: t.string(),
    sender: t.identity(),
    isInternal: t.bool(),
    /** The payload of the caller's token. */
    token: t.option(t.string()),
  },
);
const wakes = table({}, { id: t.u64().primaryKey().autoInc(), at: t.scheduleAt() });

const lightcone = schema({ seen, note, openRoom, parcels, arrivals, outcomes, callers, wakes });
export default lightcone;

// Variables of the environment (2.11), read wherever a module runs.

export const env = environment({
  API_KEY: "string",
  GREETING: { optional: "string" },
  LEVEL: { optional: ["debug", "info"] },
  SWITCH: { optional: ["on"] },
});

export const init = lightcone.init((ctx) => {
  ctx.db.seen.insert({ id: 0n, place: "init", value: env.API_KEY });
});

export const look = lightcone.reducer({ key: t.string() }, (ctx, { key }) => {
  ctx.db.seen.insert({ id: 0n, place: "reducer", value: ctx.env.get(key) });
});

/** Follows the environment. */
export const greeting = lightcone.anonymousView(
  { name: "greeting", public: true },
  t.option(t.row("GreetingRow", { text: t.string() })),
  (ctx) => {
    const text = ctx.env.get("GREETING");
    if (text === "fail") throw new Error("the greeting is wrong");
    return text === undefined ? undefined : { text };
  },
);

/** Outside of a transaction, and inside of one. */
export const fetch = lightcone.procedure({ key: t.string() }, t.string(), (ctx, { key }) => {
  const outside = ctx.env.get(key);
  const inside = ctx.withTx((tx) => tx.env.get(key));
  return `${outside} ${inside} ${env.LEVEL}`;
});

export const showKey = lightcone.httpHandler((ctx) => new SyncResponse(ctx.env.get("API_KEY")));

// Views with parameters (2.13), and the reducers that change what they read.

const EchoLine = t.row("EchoLine", { text: t.string() });
/** Cannot be written in SQL. */
const Place = t.object("Place", { room: t.u32() });

/** For all callers, by an index. */
export const notesIn = lightcone.anonymousView(
  { name: "notes_in", public: true },
  { room: t.u32() },
  t.array(note.rowType),
  (ctx, { room }) => {
    console.info(`notes_in(${room}) runs`);
    return [...ctx.db.note.room.filter(room)];
  },
);

/** Of the caller, with two parameters. */
export const myNotes = lightcone.view(
  { name: "my_notes", public: true },
  { room: t.u32(), prefix: t.string() },
  t.array(note.rowType),
  (ctx, { room, prefix }) =>
    [...ctx.db.note.byRoomAndOwner.filter([room, ctx.sender])].filter(({ text }) => text.startsWith(prefix)),
);

/** A query, which the database keeps up to date. */
export const noteQuery = lightcone.anonymousView(
  { name: "note_query", public: true },
  { room: t.u32() },
  t.array(note.rowType),
  (ctx, { room }) => ctx.from.note.where((row) => row.room.eq(room)),
);

/** A join. */
export const openNotes = lightcone.view(
  { name: "open_notes", public: true },
  { room: t.u32() },
  t.array(note.rowType),
  (ctx, { room }) =>
    ctx.from.note
      .where((row) => row.room.eq(room))
      .where((row) => row.owner.eq(ctx.sender))
      .leftSemijoin(ctx.from.openRoom, (row, open) => row.room.eq(open.room)),
);

/** What it was given. */
export const echo = lightcone.anonymousView(
  { name: "echo", public: true },
  {
    flag: t.bool(),
    small: t.i8(),
    large: t.u256(),
    text: t.string(),
    bytes: t.byteArray(),
    at: t.timestamp(),
    who: t.identity(),
    connection: t.connectionId(),
    id: t.uuid(),
  },
  t.option(EchoLine),
  (_ctx, { flag, small, large, text, bytes, at, who, connection, id }) => {
    const numbers = `${at.microsSinceUnixEpoch} ${who.toHexString()} ${BigInt(`0x${connection.toHexString()}`)}`;
    return { text: `${flag} ${small} ${large} ${text} ${bytes} ${numbers} ${id}` };
  },
);

export const notesAt = lightcone.anonymousView(
  { name: "notes_at", public: true },
  { place: Place },
  t.array(note.rowType),
  (ctx, { place }) => [...ctx.db.note.room.filter(place.room)],
);

export const putNote = lightcone.reducer(
  { name: "put_note" },
  { id: t.u32(), room: t.u32(), owner: t.identity(), text: t.string() },
  (ctx, row) => {
    if (ctx.db.note.id.find(row.id)) ctx.db.note.id.update(row);
    else ctx.db.note.insert(row);
  },
);

export const takeNote = lightcone.reducer({ name: "take_note" }, { id: t.u32() }, (ctx, { id }) => {
  ctx.db.note.id.delete(id);
});

/** Opens a room, or closes it. */
export const turnRoom = lightcone.reducer({ name: "turn_room" }, { room: t.u32() }, (ctx, { room }) => {
  if (!ctx.db.openRoom.room.delete(room)) ctx.db.openRoom.insert({ room });
});

// Outbox tables: calls from one database to another (2.14).

export const send = lightcone.reducer(
  { to: t.identity(), number: t.u64(), text: t.string() },
  (ctx, { to, number, text }) => {
    ctx.db.parcels.insert({ id: 0n, to, content: text, number, note: `number ${number}` });
  },
);

/** Refuses, fails, or keeps what comes. */
export const receive = lightcone.reducer({ number: t.u64(), text: t.string() }, (ctx, { number, text }) => {
  ctx.db.arrivals.insert({ id: 0n, sender: ctx.sender, number, text });
  if (text === "refuse") throw new SenderError(`number ${number} is refused`);
  if (text === "trap") throw new Error(`number ${number} is too much`);
});

export const parcelResult = lightcone.reducer(
  { onResult: parcels },
  { parcel: parcels.rowType, result: t.result(t.unit(), t.string()) },
  (ctx, { parcel, result }) => {
    const error = "err" in result ? result.err : "";
    ctx.db.outcomes.insert({ id: 0n, number: parcel.number, error });
    if (parcel.content === "do not tell") throw new SenderError("it was told all the same");
  },
);

// Callers as 2.13 and 2.14 changed them.

function keep(what: string, { db, sender, senderAuth }: ReducerCtx<InferSchema<typeof lightcone>>) {
  const { isInternal, jwt } = senderAuth;
  db.callers.insert({ id: 0n, what, sender, isInternal, token: jwt?.rawPayload });
}

export const called = lightcone.reducer((ctx) => {
  keep("reducer", ctx);
  ctx.db.wakes.insert({ id: 0n, at: ScheduleAt.time(ctx.timestamp.microsSinceUnixEpoch) });
});

export const wake = lightcone.reducer({ onSchedule: wakes }, { row: wakes.rowType }, (ctx) => {
  keep("schedule", ctx);
});

export const calledBeside = lightcone.procedure(t.unit(), (ctx) => {
  ctx.withTx((tx) => keep("procedure", tx));
  return {};
});

/** Tells its sender, whose token its transactions have too. */
export const who = lightcone.httpHandler((ctx) => {
  ctx.withTx((tx) => keep("handler", tx));
  return new SyncResponse(ctx.sender.toHexString());
});

export const routes = lightcone.httpRouter(new Router().get("/key", showKey).get("/who", who));
