// The job queue (section 17). Jobs are numbered by the caller that seeds them: Convex counts nothing by itself.

import { v } from "convex/values";
import { type Database, mutation, query, type WritableDatabase } from "./functions";

const deletedPerCall = 4_000;
const countedPerCall = 4_000;

const states = { queued: 0, running: 1, succeeded: 2 };
const stateCount = 4;
const kind = "SummarizeText";
const payload = '{"text":"lorem"}';

/** The queued jobs with the lowest numbers. */
const queued = (database: Database, most: number) =>
  database
    .query("jobs")
    .withIndex("by_state", (range) => range.eq("state", states.queued))
    .take(most);

type Job = Awaited<ReturnType<typeof queued>>[number];

async function take(database: WritableDatabase, job: Job, worker: number, leaseMs: number): Promise<number> {
  const lease = job.lease + 1;
  await database.patch(job._id, {
    ...{ state: states.running, attempts: job.attempts + 1 },
    ...{ worker, lease, lease_until: Date.now() + leaseMs },
  });
  return lease;
}

export const job_seed = mutation({
  args: { first: v.number(), count: v.number() },
  handler: async ({ db }, { first, count }) => {
    const fresh = { kind, payload, state: states.queued, attempts: 0, worker: 0, lease: 0 };
    for (let id = first; id < first + count; id++)
      await db.insert("jobs", { id, ...fresh, created_at: Date.now() });
    return null;
  },
});

export const job_fetch_next = mutation({
  args: { worker: v.number(), lease_ms: v.number() },
  handler: async ({ db }, { worker, lease_ms }) => {
    const [job] = await queued(db, 1);
    if (!job) return null;
    const lease = await take(db, job, worker, lease_ms);
    return { id: job.id, lease, kind: job.kind, payload: job.payload };
  },
});

export const job_ack = mutation({
  args: { id: v.number(), lease: v.number() },
  handler: async ({ db }, { id, lease }) => {
    const job = await db
      .query("jobs")
      .withIndex("by_job_id", (range) => range.eq("id", id))
      .unique();
    if (!job || job.state !== states.running || job.lease !== lease) throw new Error("stale_lease");
    await db.patch(job._id, { state: states.succeeded, finished_at: Date.now() });
    return null;
  },
});

export const job_lease = mutation({
  args: { worker: v.number(), max: v.number(), lease_ms: v.number() },
  handler: async ({ db }, { worker, max, lease_ms }) => {
    const jobs = await queued(db, max);
    for (const job of jobs) await take(db, job, worker, lease_ms);
    return jobs.map(({ id }) => id);
  },
});

/** Puts some jobs back whose lease is over, and answers how many. */
export const job_expire = mutation({
  args: {},
  handler: async ({ db }) => {
    const running = await db
      .query("jobs")
      .withIndex("by_state", (range) => range.eq("state", states.running))
      .take(countedPerCall);
    const expired = running.filter(({ lease_until = 0 }) => lease_until < Date.now());
    for (const { _id } of expired) await db.patch(_id, { state: states.queued });
    return expired.length;
  },
});

/** Of the jobs behind a number: how many there are in each state, how many were not taken once, and the last number. */
export const job_counts = query({
  args: { after: v.number() },
  handler: async ({ db }, { after }) => {
    const jobs = await db
      .query("jobs")
      .withIndex("by_job_id", (range) => range.gt("id", after))
      .take(countedPerCall);
    const counts = new Array<number>(stateCount).fill(0);
    for (const { state } of jobs) counts[state] = counts[state]! + 1;
    const repeated = jobs.filter(({ attempts }) => attempts !== 1).length;
    return { count: jobs.length, counts, repeated, last: jobs.at(-1)?.id ?? after };
  },
});

/** Deletes some jobs and answers how many: to be repeated until that is 0. */
export const job_clear = mutation({
  args: {},
  handler: async ({ db }) => {
    const jobs = await db.query("jobs").take(deletedPerCall);
    for (const { _id } of jobs) await db.delete(_id);
    return jobs.length;
  },
});
