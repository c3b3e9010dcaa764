// A job queue: workers take the lowest queued job under a lease, and acknowledge it with the lease's fencing token. What
// returns something is a procedure; each is one transaction.

import { Timestamp } from "lightcone";
import {
  type InferSchema,
  Range,
  type ReducerCtx,
  ScheduleAt,
  SenderError,
  schema,
  t,
  table,
} from "lightcone/server";

const QUEUED = 0;
const RUNNING = 1;
const SUCCEEDED = 2;
const STATE_COUNT = 4;

const MICROSECONDS_PER_MILLISECOND = 1000n;
const EXPIRY_INTERVAL_MICROSECONDS = 1_000_000n;
const NEVER = new Timestamp(0n);

const jobs = table(
  { public: true, indexes: [{ accessor: "byState", algorithm: "btree", columns: ["state", "id"] }] },
  {
    id: t.u64().primaryKey().autoInc(),
    kind: t.string(),
    payload: t.string(),
    /** 0 queued, 1 running, 2 succeeded, 3 failed. */
    state: t.u8(),
    attempts: t.u32(),
    worker: t.u32(),
    leaseUntil: t.timestamp(),
    /** The fencing token: one more at each lease. */
    lease: t.u64(),
    createdAt: t.timestamp(),
    finishedAt: t.timestamp(),
  },
);

/** Its one row looks for leases that are over each second. */
const jobExpiries = table({}, { scheduledId: t.u64().primaryKey().autoInc(), scheduledAt: t.scheduleAt() });

const spacetimedb = schema({ jobs, jobExpiries });

export default spacetimedb;

type Context = ReducerCtx<InferSchema<typeof spacetimedb>>;

const JobLease = t.object("JobLease", { id: t.u64(), lease: t.u64(), kind: t.string(), payload: t.string() });

/** Takes up to `max` queued jobs, the lowest first. */
function take(ctx: Context, worker: number, max: number, leaseMs: number) {
  const { byState, id: byId } = ctx.db.jobs;
  const now = ctx.timestamp.microsSinceUnixEpoch;
  const leaseUntil = new Timestamp(now + BigInt(leaseMs) * MICROSECONDS_PER_MILLISECOND);
  const taken = [];
  for (const job of byState.filter([QUEUED, new Range<bigint>()])) {
    taken.push(job);
    if (taken.length === max) break;
  }
  return taken.map((job) =>
    byId.update({ ...job, state: RUNNING, worker, leaseUntil, attempts: job.attempts + 1, lease: job.lease + 1n }),
  );
}

/** Replaces all jobs by `n` new ones. */
export const jobSeed = spacetimedb.reducer({ n: t.u32() }, (ctx, { n }) => {
  ctx.db.jobs.clear();
  const payload = JSON.stringify({ text: "lorem" });
  for (let job = 0; job < n; job++) {
    ctx.db.jobs.insert({
      ...{ id: 0n, kind: "SummarizeText", payload, state: QUEUED, attempts: 0, worker: 0, lease: 0n },
      ...{ leaseUntil: NEVER, createdAt: ctx.timestamp, finishedAt: NEVER },
    });
  }
});

export const jobFetchNext = spacetimedb.procedure(
  { worker: t.u32(), leaseMs: t.u32() },
  t.option(JobLease),
  (ctx, { worker, leaseMs }) =>
    ctx.withTx((tx) => {
      const job = take(tx, worker, 1, leaseMs)[0];
      return job && { id: job.id, lease: job.lease, kind: job.kind, payload: job.payload };
    }),
);

export const jobLease = spacetimedb.procedure(
  { worker: t.u32(), max: t.u32(), leaseMs: t.u32() },
  t.array(t.u64()),
  (ctx, { worker, max, leaseMs }) =>
    ctx.withTx((tx) => (max === 0 ? [] : take(tx, worker, max, leaseMs).map(({ id }) => id))),
);

export const jobAck = spacetimedb.reducer({ id: t.u64(), lease: t.u64() }, (ctx, { id, lease }) => {
  const byId = ctx.db.jobs.id;
  const job = byId.find(id);
  if (job === null || job.state !== RUNNING || job.lease !== lease) throw new SenderError("stale_lease");
  byId.update({ ...job, state: SUCCEEDED, finishedAt: ctx.timestamp });
});

function expire(ctx: Context): void {
  const { byState, id: byId } = ctx.db.jobs;
  const now = ctx.timestamp.microsSinceUnixEpoch;
  const running = [...byState.filter([RUNNING, new Range<bigint>()])];
  for (const job of running) {
    if (job.leaseUntil.microsSinceUnixEpoch < now) byId.update({ ...job, state: QUEUED });
  }
}

export const init = spacetimedb.init((ctx) => {
  const scheduledAt = ScheduleAt.interval(EXPIRY_INTERVAL_MICROSECONDS);
  ctx.db.jobExpiries.insert({ scheduledId: 0n, scheduledAt });
});

export const jobExpireDue = spacetimedb.reducer(
  { onSchedule: jobExpiries },
  { expiry: jobExpiries.rowType },
  (ctx) => expire(ctx),
);

/** Puts jobs back whose lease is over. */
export const jobExpire = spacetimedb.reducer(expire);

/** Jobs by state. */
export const jobCounts = spacetimedb.procedure({}, t.array(t.u64()), (ctx) =>
  ctx.withTx((tx) => {
    const counts = new Array<bigint>(STATE_COUNT).fill(0n);
    for (const { state } of tx.db.jobs) counts[state]!++;
    return counts;
  }),
);

/** Jobs that were not taken exactly once. */
export const jobRepeated = spacetimedb.procedure({}, t.u64(), (ctx) =>
  ctx.withTx((tx) => {
    let repeated = 0n;
    for (const { attempts } of tx.db.jobs) if (attempts !== 1) repeated++;
    return repeated;
  }),
);
