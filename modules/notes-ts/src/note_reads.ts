// What is read of the notes: by procedures, one read each, and by the loop of `benchLoop`.

import type { Timestamp } from "lightcone";
import { Range, t } from "lightcone/server";
import type { Context } from "./schema";

export const NoteWithTags = t.object("NoteWithTags", {
  id: t.u64(),
  title: t.string(),
  deleted: t.bool(),
  tags: t.array(t.string()),
});

/** The newest live notes: indexes are read upwards, so this goes down in steps, which grow where few notes are alive. */
export function newest(ctx: Context, limit: number) {
  const notes: { id: bigint; title: string; deleted: boolean; createdAt: Timestamp }[] = [];
  let end = highestId(ctx);
  let idsPerStep = BigInt(limit);
  while (notes.length < limit && end > 0n) {
    const start = end > idsPerStep ? end - idsPerStep : 0n;
    const step = [
      ...ctx.db.note.byDeleted.filter([
        false,
        new Range<bigint>({ tag: "excluded", value: start }, { tag: "included", value: end }),
      ]),
    ];
    notes.push(...step.reverse().slice(0, limit - notes.length));
    end = start;
    idsPerStep *= 2n;
  }
  return notes;
}

export function lowestId(ctx: Context): bigint {
  for (const { id } of ctx.db.note.id.filter(new Range<bigint>())) return id;
  return 0n;
}

/** Ids are given out one by one, and rows are removed all at once. */
function highestId(ctx: Context): bigint {
  return lowestId(ctx) + ctx.db.note.count() - 1n;
}

export function noteById(ctx: Context, id: bigint) {
  return ctx.db.note.id.find(id) ?? undefined;
}

/** Live notes: all but the deleted ones. The database knows how many rows a table has. */
export function countLive(ctx: Context): bigint {
  let count = ctx.db.note.count();
  for (const _ of ctx.db.note.byDeleted.filter(true)) count--;
  return count;
}

export function newestWithTags(ctx: Context, limit: number) {
  return newest(ctx, limit).map(({ id, title, deleted }) => {
    const tags = [...ctx.db.tag.noteId.filter(id)].map(({ name }) => name);
    return { id, title, deleted, tags };
  });
}
