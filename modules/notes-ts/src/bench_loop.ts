// The cost of a read without the way to the server: a loop inside one procedure, by the module's own clock.

import { SenderError, t } from "lightcone/server";
import { contactById, contactsOfCompany, leadsByStatus, lowestIds } from "./crm_reads";
import { countLive, lowestId, newest, newestWithTags, noteById } from "./note_reads";
import spacetimedb, { type Context } from "./schema";

const PAGE_ROWS = 20;

/** One read, by the number of its iteration; answers how many rows it found. */
type Read = (iteration: number) => number;

/** Ids in turn, not always the same. */
const idsFrom = (first: bigint, count: bigint) => (iteration: number) => first + ((BigInt(iteration) * 7n) % count);

/** By number: the order is part of the interface of `benchLoop`. */
const reads: ((ctx: Context) => Read)[] = [
  // 0: nothing, to know the cost of the loop.
  () => () => 1,
  // 1: find_many
  (ctx) => () => newest(ctx, PAGE_ROWS).length,
  // 2: find_unique
  (ctx) => {
    const idOf = idsFrom(lowestId(ctx), ctx.db.note.count());
    return (iteration) => (noteById(ctx, idOf(iteration)) === undefined ? 0 : 1);
  },
  // 3: count
  (ctx) => () => Number(countLive(ctx)),
  // 4: find_many_include
  (ctx) => () => newestWithTags(ctx, PAGE_ROWS).length,
  // 5: leads with the status qualified
  (ctx) => () => leadsByStatus(ctx, "qualified", PAGE_ROWS).length,
  // 6: contacts of a company
  (ctx) => {
    const idOf = idsFrom(lowestIds(ctx).company, ctx.db.benchCrmCompany.count());
    return (iteration) => contactsOfCompany(ctx, idOf(iteration), PAGE_ROWS).length;
  },
  // 7: a contact
  (ctx) => {
    const idOf = idsFrom(lowestIds(ctx).contact, ctx.db.benchCrmContact.count());
    return (iteration) => (contactById(ctx, idOf(iteration)) === undefined ? 0 : 1);
  },
];

/**
 * Does a read `iters` times in one transaction, and answers the microseconds from the start of that transaction to the start
 * of the next: each begins with the time of the server, and `Date` has but milliseconds.
 */
export const benchLoop = spacetimedb.procedure({ op: t.u8(), iters: t.u32() }, t.u64(), (ctx, { op, iters }) => {
  const read = reads[op];
  if (read === undefined) throw new SenderError(`there are the operations 0 to ${reads.length - 1}, not ${op}`);
  const startedAt = ctx.withTx((tx) => {
    const once = read(tx);
    for (let iteration = 0; iteration < iters; iteration++) {
      if (once(iteration) === 0) throw new SenderError(`operation ${op} found nothing: is there data?`);
    }
    return tx.timestamp.microsSinceUnixEpoch;
  });
  const endedAt = ctx.withTx((tx) => tx.timestamp.microsSinceUnixEpoch);
  return endedAt - startedAt;
});
