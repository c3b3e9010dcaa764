//! A job queue: workers take the lowest queued job under a lease, and acknowledge it with the lease's fencing token.
//! `jobs-ts` is the same in TypeScript. What returns something is a procedure; each is one transaction.

use spacetimedb::{
    procedure, reducer, table, ProcedureContext, ReducerContext, ScheduleAt, SpacetimeType, Table,
    TimeDuration, Timestamp,
};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const SUCCEEDED: u8 = 2;
const STATE_COUNT: usize = 4;

const MICROSECONDS_PER_MILLISECOND: i64 = 1000;
const EXPIRY_INTERVAL_MICROSECONDS: i64 = 1_000_000;
const NEVER: Timestamp = Timestamp::UNIX_EPOCH;

#[table(accessor = jobs, public, index(accessor = by_state, btree(columns = [state, id])))]
pub struct Jobs {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub kind: String,
    pub payload: String,
    /// 0 queued, 1 running, 2 succeeded, 3 failed.
    pub state: u8,
    pub attempts: u32,
    pub worker: u32,
    pub lease_until: Timestamp,
    /// The fencing token: one more at each lease.
    pub lease: u64,
    pub created_at: Timestamp,
    pub finished_at: Timestamp,
}

/// Its one row looks for leases that are over each second.
#[table(accessor = job_expiries, scheduled(job_expire_due))]
pub struct JobExpiries {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
}

#[derive(SpacetimeType)]
pub struct JobLease {
    pub id: u64,
    pub lease: u64,
    pub kind: String,
    pub payload: String,
}

/// Takes up to `max` queued jobs, the lowest first.
fn take(ctx: &ReducerContext, worker: u32, max: u32, lease_ms: u32) -> Vec<Jobs> {
    let jobs = ctx.db.jobs();
    let lease = TimeDuration::from_micros(i64::from(lease_ms) * MICROSECONDS_PER_MILLISECOND);
    let lease_until = ctx.timestamp + lease;
    let queued: Vec<Jobs> = jobs.by_state().filter(QUEUED).take(max as usize).collect();
    let taken = queued.into_iter().map(|job| {
        jobs.id().update(Jobs {
            state: RUNNING,
            worker,
            lease_until,
            attempts: job.attempts + 1,
            lease: job.lease + 1,
            ..job
        })
    });
    taken.collect()
}

/// Replaces all jobs by `n` new ones.
#[reducer]
pub fn job_seed(ctx: &ReducerContext, n: u32) {
    let jobs = ctx.db.jobs();
    jobs.clear();
    for _ in 0..n {
        jobs.insert(Jobs {
            id: 0,
            kind: "SummarizeText".into(),
            payload: r#"{"text":"lorem"}"#.into(),
            state: QUEUED,
            attempts: 0,
            worker: 0,
            lease_until: NEVER,
            lease: 0,
            created_at: ctx.timestamp,
            finished_at: NEVER,
        });
    }
}

#[procedure]
pub fn job_fetch_next(ctx: &mut ProcedureContext, worker: u32, lease_ms: u32) -> Option<JobLease> {
    let taken = ctx.with_tx(|tx| take(tx, worker, 1, lease_ms));
    taken.into_iter().next().map(|job| JobLease {
        id: job.id,
        lease: job.lease,
        kind: job.kind,
        payload: job.payload,
    })
}

#[procedure]
pub fn job_lease(ctx: &mut ProcedureContext, worker: u32, max: u32, lease_ms: u32) -> Vec<u64> {
    let taken = ctx.with_tx(|tx| take(tx, worker, max, lease_ms));
    taken.into_iter().map(|job| job.id).collect()
}

#[reducer]
pub fn job_ack(ctx: &ReducerContext, id: u64, lease: u64) -> Result<(), String> {
    let by_id = ctx.db.jobs().id();
    match by_id.find(id) {
        Some(job) if job.state == RUNNING && job.lease == lease => {
            by_id.update(Jobs {
                state: SUCCEEDED,
                finished_at: ctx.timestamp,
                ..job
            });
            Ok(())
        }
        _ => Err("stale_lease".into()),
    }
}

#[reducer(init)]
pub fn init(ctx: &ReducerContext) {
    let interval = TimeDuration::from_micros(EXPIRY_INTERVAL_MICROSECONDS);
    ctx.db.job_expiries().insert(JobExpiries {
        scheduled_id: 0,
        scheduled_at: interval.into(),
    });
}

#[reducer]
pub fn job_expire_due(ctx: &ReducerContext, _expiry: JobExpiries) {
    job_expire(ctx);
}

/// Puts jobs back whose lease is over.
#[reducer]
pub fn job_expire(ctx: &ReducerContext) {
    let jobs = ctx.db.jobs();
    let running: Vec<Jobs> = jobs.by_state().filter(RUNNING).collect();
    for job in running {
        if job.lease_until < ctx.timestamp {
            jobs.id().update(Jobs {
                state: QUEUED,
                ..job
            });
        }
    }
}

/// Jobs by state.
#[procedure]
pub fn job_counts(ctx: &mut ProcedureContext) -> Vec<u64> {
    ctx.with_tx(|tx| {
        let mut counts = vec![0; STATE_COUNT];
        for job in tx.db.jobs().iter() {
            counts[usize::from(job.state)] += 1;
        }
        counts
    })
}

/// Jobs that were not taken exactly once.
#[procedure]
pub fn job_repeated(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.jobs().iter().filter(|job| job.attempts != 1).count() as u64)
}
