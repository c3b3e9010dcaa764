// Notes and their tags (section 18.1 of the benchmark chapter). Every write appends to the log in the same transaction; what
// returns something is a procedure.

import { SenderError, t } from "lightcone/server";
import { countLive, lowestId, NoteWithTags, newest, newestWithTags, noteById } from "./note_reads";
import spacetimedb, { type Context, log, note } from "./schema";

const TAGS_PER_NOTE = 3;

function insertNote(ctx: Context, title: string): bigint {
  return ctx.db.note.insert({ id: 0n, title, deleted: false, createdAt: ctx.timestamp }).id;
}

function create(ctx: Context, title: string): bigint {
  const id = insertNote(ctx, title);
  log(ctx, "note", "create", id, title);
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

/** The same, and returns the id. */
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
  log(ctx, "note", "update", id, title);
});

export const noteDelete = spacetimedb.reducer({ id: t.u64() }, (ctx, { id }) => {
  const byId = ctx.db.note.id;
  const found = byId.find(id);
  if (found === null) throw new SenderError("missing");
  byId.update({ ...found, deleted: true });
  log(ctx, "note", "delete", id, "");
});

export const noteUpdateMany = spacetimedb.reducer({ tag: t.string(), title: t.string() }, (ctx, args) => {
  for (const found of tagged(ctx, args.tag)) ctx.db.note.id.update({ ...found, title: args.title });
  log(ctx, "note", "update_many", 0n, args.tag);
});

export const noteDeleteMany = spacetimedb.reducer({ tag: t.string() }, (ctx, args) => {
  for (const found of tagged(ctx, args.tag)) ctx.db.note.id.update({ ...found, deleted: true });
  log(ctx, "note", "delete_many", 0n, args.tag);
});

export const noteFindMany = spacetimedb.procedure({ limit: t.u32() }, t.array(note.rowType), (ctx, { limit }) =>
  ctx.withTx((tx) => newest(tx, limit)),
);

export const noteGet = spacetimedb.procedure({ id: t.u64() }, t.option(note.rowType), (ctx, { id }) =>
  ctx.withTx((tx) => noteById(tx, id)),
);

/** Live notes. */
export const noteCount = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx(countLive));

export const noteFindInclude = spacetimedb.procedure({ limit: t.u32() }, t.array(NoteWithTags), (ctx, { limit }) =>
  ctx.withTx((tx) => newestWithTags(tx, limit)),
);

/** The lowest id: the others follow it one by one. */
export const noteFirst = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx(lowestId));

/** Entries of the log. */
export const noteEvents = spacetimedb.procedure({}, t.u64(), (ctx) => ctx.withTx((tx) => tx.db.eventLog.count()));
