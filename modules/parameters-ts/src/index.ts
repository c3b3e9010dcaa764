// Views with parameters, and the reducers that change what they read. `latest-rs` has the same in Rust.

import { schema, t, table } from 'lightcone/server';

/** Only the views can read it. */
const note = table(
  {
    name: 'note',
    indexes: [
      { accessor: 'byRoomAndOwner', name: 'by_room_and_owner', algorithm: 'btree', columns: ['room', 'owner'] },
    ],
  },
  {
    id: t.u32().primaryKey(),
    room: t.u32().index('btree'),
    owner: t.identity(),
    text: t.string(),
  },
);
/** Rooms that `openNotes` shows. */
const openRoom = table({ name: 'open_room' }, { room: t.u32().primaryKey() });

const lightcone = schema({ note, openRoom });
export default lightcone;

const EchoLine = t.row('EchoLine', { text: t.string() });
/** Cannot be written in SQL. */
const Place = t.object('Place', { room: t.u32() });

/** For all callers, by an index. */
export const notesIn = lightcone.anonymousView(
  { name: 'notes_in', public: true },
  { room: t.u32() },
  t.array(note.rowType),
  (ctx, { room }) => {
    console.info(`notes_in(${room}) runs`);
    return [...ctx.db.note.room.filter(room)];
  },
);

/** Of the caller, with two parameters. */
export const myNotes = lightcone.view(
  { name: 'my_notes', public: true },
  { room: t.u32(), prefix: t.string() },
  t.array(note.rowType),
  (ctx, { room, prefix }) =>
    [...ctx.db.note.byRoomAndOwner.filter([room, ctx.sender])].filter(({ text }) => text.startsWith(prefix)),
);

/** A query, which the database keeps up to date. */
export const noteQuery = lightcone.anonymousView(
  { name: 'note_query', public: true },
  { room: t.u32() },
  t.array(note.rowType),
  (ctx, { room }) => ctx.from.note.where((row) => row.room.eq(room)),
);

/** A join. */
export const openNotes = lightcone.view(
  { name: 'open_notes', public: true },
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
  { name: 'echo', public: true },
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
  { name: 'notes_at', public: true },
  { place: Place },
  t.array(note.rowType),
  (ctx, { place }) => [...ctx.db.note.room.filter(place.room)],
);

export const putNote = lightcone.reducer(
  { name: 'put_note' },
  { id: t.u32(), room: t.u32(), owner: t.identity(), text: t.string() },
  (ctx, row) => {
    if (ctx.db.note.id.find(row.id)) ctx.db.note.id.update(row);
    else ctx.db.note.insert(row);
  },
);

export const takeNote = lightcone.reducer({ name: 'take_note' }, { id: t.u32() }, (ctx, { id }) => {
  ctx.db.note.id.delete(id);
});

/** Opens a room, or closes it. */
export const turnRoom = lightcone.reducer({ name: 'turn_room' }, { room: t.u32() }, (ctx, { room }) => {
  if (!ctx.db.openRoom.room.delete(room)) ctx.db.openRoom.insert({ room });
});
