// Notes, their tags, and a log of what happened to them. Every write appends to the log in the same transaction; what
// returns something is a procedure.

import type { Timestamp } from "lightcone";
import { type InferSchema, Range, type ReducerCtx, SenderError, schema, t, table } from "lightcone/server";

const note = table(
  { public: true, indexes: [{ accessor: "byDeleted", algorithm: "btree", columns: ["deleted", "id"] }] },
  {
    id: t.u64().primaryKey().autoInc().index("btree"),
    title: t.string(),
    deleted: t.bool(),
    createdAt: t.timestamp(),
  },
);

const tag = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    noteId: t.u64().index("btree"),
    name: t.string().index("btree"),
  },
);

const eventLog = table(
  { public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    model: t.string(),
    op: t.string(),
    recordId: t.u64(),
    payload: t.string(),
    at: t.timestamp(),
  },
);

const spacetimedb = schema({ note, tag, eventLog });

export default spacetimedb;

type Context = ReducerCtx<InferSchema<typeof spacetimedb>>;

const NoteWithTags = t.object("NoteWithTags", {
  id: t.u64(),
  title: t.string(),
  deleted: t.bool(),
  tags: t.array(t.string()),
});

const TAGS_PER_NOTE = 3;
/** Ids are looked through from the newest down, so many at a time. */
const ID_STEP = 64n;

function insertNote(ctx: Context, title: string): bigint {
  return ctx.db.note.insert({ id: 0n, title, deleted: false, createdAt: ctx.timestamp }).id;
}

function log(ctx: Context, op: string, recordId: bigint, payload: string): void {
  ctx.db.eventLog.insert({ id: 0n, model: "note", op, recordId, payload, at: ctx.timestamp });
}

function create(ctx: Context, title: string): bigint {
  const id = insertNote(ctx, title);
  log(ctx, "create", id, title);
  return id;
}

/** The notes with a tag. */
function* tagged(ctx: Context, name: string) {
  const ids = [...ctx.db.tag.name.filter(name)].map(({ noteId }) => noteId);
  for (const id of ids) {
    const found = ctx.db.note.id.find(id);
    if (found !== null) yield found;
  }
}

/** The newest live notes: indexes are read upwards, so this goes down in steps. */
function newest(ctx: Context, limit: number) {
  const notes: { id: bigint; title: string; deleted: boolean; createdAt: Timestamp }[] = [];
  let end = highestId(ctx);
  while (notes.length < limit && end > 0n) {
    const start = end > ID_STEP ? end - ID_STEP : 0n;
    const step = [
      ...ctx.db.note.byDeleted.filter([
        false,
        new Range<bigint>({ tag: "excluded", value: start }, { tag: "included", value: end }),
      ]),
    ];
    notes.push(...step.reverse().slice(0, limit - notes.length));
    end = start;
  }
  return notes;
}

function lowestId(ctx: Context): bigint {
  for (const { id } of ctx.db.note.id.filter(new Range<bigint>())) return id;
  return 0n;
}

/** Ids are given out one by one, and rows are removed all at once. */
function highestId(ctx: Context): bigint {
  return lowestId(ctx) + ctx.db.note.count() - 1n;
}

/** Replaces everything by `notes` notes with their tags; the first `grouped` have the tag `group`. */
export const noteSeed = spacetimedb.reducer(
  { notes: t.u32(), grouped: t.u32(), group: t.string() },
  (ctx, { notes, grouped, group }) => {
    ctx.db.note.clear();
    ctx.db.tag.clear();
    ctx.db.eventLog.clear();
    for (let index = 0; index < notes; index++) {
      const id = insertNote(ctx, `note ${index}`);
      ctx.db.tag.insert({ id: 0n, noteId: id, name: index < grouped ? group : "other" });
      for (let other = 1; other < TAGS_PER_NOTE; other++) {
        ctx.db.tag.insert({ id: 0n, noteId: id, name: `tag ${other}` });
      }
    }
  },
);

export const noteCreate = spacetimedb.reducer({ title: t.string() }, (ctx, { title }) => {
  create(ctx, title);
});

/** The same, for whoever wants to know the id. */
export const noteAdd = spacetimedb.procedure({ title: t.string() }, t.u64(), (ctx, { title }) =>
  ctx.withTx((tx) => create(tx, title)),
);

/** Without the log. */
export const noteCreateBare = spacetimedb.reducer({ title: t.string() }, (ctx, { title }) => {
  insertNote(ctx, title);
});

export const noteCreateMany = spacetimedb.reducer({ n: t.u32() }, (ctx, { n }) => {
  for (let index = 0; index < n; index++) create(ctx, `one of many ${index}`);
});

export const noteUpdate = spacetimedb.reducer({ id: t.u64(), title: t.string() }, (ctx, { id, title }) => {
  const byId = ctx.db.note.id;
  const found = byId.find(id);
  if (found === null) throw new SenderError("missing");
  byId.update({ ...found, title });
  log(ctx, "update", id, title);
});

export const noteDelete = spacetimedb.reducer({ id: t.u64() }, (ctx, { id }) => {
  const byId = ctx.db.note.id;
  const found = byId.find(id);
  if (found === null) throw new SenderError("missing");
  byId.update({ ...found, deleted: true });
  log(ctx, "delete", id, "");
});

export const noteUpdateMany = spacetimedb.reducer({ tag: t.string(), title: t.string() }, (ctx, args) => {
  for (const found of tagged(ctx, args.tag)) ctx.db.note.id.update({ ...found, title: args.title });
  log(ctx, "update_many", 0n, args.tag);
});

export const noteDeleteMany = spacetimedb.reducer({ tag: t.string() }, (ctx, args) => {
  for (const found of tagged(ctx, args.tag)) ctx.db.note.id.update({ ...found, deleted: true });
  log(ctx, "delete_many", 0n, args.tag);
});

export const noteFindMany = spacetimedb.procedure({ limit: t.u32() }, t.array(note.rowType), (ctx, { limit }) =>
  ctx.withTx((tx) => newest(tx, limit)),
);

export const noteGet = spacetimedb.procedure({ id: t.u64() }, t.option(note.rowType), (ctx, { id }) =>
  ctx.withTx((tx) => tx.db.note.id.find(id) ?? undefined),
);

/** Live notes. */
export const noteCount = spacetimedb.procedure({}, t.u64(), (ctx) =>
  ctx.withTx((tx) => {
    let count = 0n;
    for (const _ of tx.db.note.byDeleted.filter(false)) count++;
    return count;
  }),
);

export const noteFindInclude = spacetimedb.procedure({ limit: t.u32() }, t.array(NoteWithTags), (ctx, { limit }) =>
  ctx.withTx((tx) =>
    newest(tx, limit).map(({ id, title, deleted }) => {
      const tags = [...tx.db.tag.noteId.filter(id)].map(({ name }) => name);
      return { id, title, deleted, tags };
    }),
  ),
);

/** The lowest id: the others follow it one by one. */
export const noteFirst = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx(lowestId));

/** Entries of the log. */
export const noteEvents = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx((tx) => tx.db.eventLog.count()));
