// What the measurements of live queries need: rooms with members, notes with owners, scores, and accounts to transfer between.
// `live-rs` is the same in Rust. Driven by `crates/loadgen/examples/live_queries.rs`.

import { schema, SenderError, t, table } from 'spacetimedb/server';

const accounts = table({ public: true }, { id: t.u32().primaryKey().index('hash'), balance: t.i64() });
const message = table(
  { name: 'message', public: true },
  { id: t.u32().primaryKey().autoInc(), room: t.u32().index('btree'), text: t.string() },
);
const membership = table(
  { name: 'membership', public: true },
  { id: t.u32().primaryKey().autoInc(), room: t.u32().index('btree'), member: t.identity().index('btree') },
);
const note = table(
  { name: 'note', public: true },
  { id: t.u32().primaryKey(), owner: t.identity().index('btree'), text: t.string() },
);
const score = table(
  { name: 'score', public: true },
  { id: t.u32().primaryKey(), score: t.u32().index('btree'), name: t.string() },
);

const spacetimedb = schema({ accounts, message, membership, note, score });
export default spacetimedb;

/** Rows of the caller, found by the module. */
export const myNotes = spacetimedb.view({ name: 'my_notes', public: true }, t.array(note.rowType), (ctx) => [
  ...ctx.db.note.owner.filter(ctx.sender),
]);

/** The same, found by the database. */
export const myNotesQuery = spacetimedb.view({ name: 'my_notes_query', public: true }, t.array(note.rowType), (ctx) =>
  ctx.from.note.where((row) => row.owner.eq(ctx.sender)),
);

/** Messages of the rooms of the caller, found by the database. */
export const myMessages = spacetimedb.view({ name: 'my_messages', public: true }, t.array(message.rowType), (ctx) =>
  ctx.from.membership
    .where((row) => row.member.eq(ctx.sender))
    .rightSemijoin(ctx.from.message, (mine, row) => mine.room.eq(row.room)),
);

/** Replaces every account by `n` new ones, ids `0..n`, each with `initialBalance`. */
export const seed = spacetimedb.reducer({ n: t.u32(), initialBalance: t.i64() }, (ctx, { n, initialBalance }) => {
  for (const account of ctx.db.accounts.iter()) ctx.db.accounts.delete(account);
  for (let id = 0; id < n; id++) ctx.db.accounts.insert({ id, balance: initialBalance });
});

/** Moves `amount` between two accounts; an error undoes everything. */
export const transfer = spacetimedb.reducer(
  { from: t.u32(), to: t.u32(), amount: t.i64() },
  (ctx, { from, to, amount }) => {
    const byId = ctx.db.accounts.id;
    const [source, destination] = [byId.find(from), byId.find(to)];
    if (!source || !destination) throw new SenderError('account_missing');
    if (from === to || amount <= 0n || source.balance < amount) throw new SenderError('refused');
    byId.update({ id: from, balance: source.balance - amount });
    byId.update({ id: to, balance: destination.balance + amount });
  },
);

export const enter = spacetimedb.reducer({ room: t.u32(), member: t.identity() }, (ctx, { room, member }) => {
  ctx.db.membership.insert({ id: 0, room, member });
});

export const say = spacetimedb.reducer({ room: t.u32(), text: t.string() }, (ctx, { room, text }) => {
  ctx.db.message.insert({ id: 0, room, text });
});

export const putNote = spacetimedb.reducer(
  { name: 'put_note' },
  { id: t.u32(), owner: t.identity(), text: t.string() },
  (ctx, row) => {
    if (ctx.db.note.id.find(row.id)) ctx.db.note.id.update(row);
    else ctx.db.note.insert(row);
  },
);

/** Adds scores with the ids `first` to `first + n - 1`: each id is its own score. */
export const addScores = spacetimedb.reducer(
  { name: 'add_scores' },
  { first: t.u32(), n: t.u32() },
  (ctx, { first, n }) => {
    for (let id = first; id < first + n; id++) ctx.db.score.insert({ id, score: id, name: `player ${id}` });
  },
);

export const setScore = spacetimedb.reducer({ name: 'set_score' }, { id: t.u32(), score: t.u32() }, (ctx, row) => {
  const found = ctx.db.score.id.find(row.id);
  if (found) ctx.db.score.id.update({ ...found, score: row.score });
});
