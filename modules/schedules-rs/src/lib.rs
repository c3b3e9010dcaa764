//! Scheduled reducers and a scheduled procedure. Each run leaves a row in `runs`; what a run does is in its row.

use spacetimedb::{
    procedure, reducer, table, Identity, ProcedureContext, ReducerContext, ScheduleAt, Table,
    TimeDuration, Timestamp,
};

#[table(accessor = runs, public)]
pub struct Run {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub what: String,
    pub timer: u64,
    pub timestamp: Timestamp,
    /// The database itself called, from no connection, with a time that is not before the one of its row.
    pub called_properly: bool,
    /// The row was there during the call.
    pub row_there: bool,
}

#[table(accessor = timers, public, scheduled(run_timer, at = at))]
pub struct Timer {
    pub what: String,
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub at: ScheduleAt,
}

#[table(accessor = tasks, public, scheduled(run_task))]
pub struct Task {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
    pub what: String,
}

fn after(now: Timestamp, us: i64) -> ScheduleAt {
    ScheduleAt::Time(now + TimeDuration::from_micros(us))
}

fn called_properly(sender: Identity, database: Identity, now: Timestamp, at: &ScheduleAt) -> bool {
    let in_time = match at {
        ScheduleAt::Time(at) => now >= *at,
        ScheduleAt::Interval(_) => true,
    };
    in_time && sender == database
}

#[reducer(init)]
pub fn init(ctx: &ReducerContext) {
    let at = Timestamp::UNIX_EPOCH.into();
    let what = "init".into();
    ctx.db.timers().insert(Timer { what, id: 0, at });
}

#[reducer]
pub fn run_timer(ctx: &ReducerContext, timer: Timer) -> Result<(), String> {
    let timers = ctx.db.timers();
    ctx.db.runs().insert(Run {
        id: 0,
        what: timer.what.clone(),
        timer: timer.id,
        timestamp: ctx.timestamp,
        called_properly: ctx.connection_id().is_none()
            && called_properly(
                ctx.sender(),
                ctx.database_identity(),
                ctx.timestamp,
                &timer.at,
            ),
        row_there: timers.id().find(timer.id).is_some(),
    });
    match timer.what.as_str() {
        "refuse" => return Err("refused".into()),
        "panic" => panic!("as asked"),
        "delete" => {
            timers.id().delete(timer.id);
        }
        "delay" => {
            let (what, at) = ("delayed".into(), after(ctx.timestamp, 20_000));
            timers.id().update(Timer { what, at, ..timer });
        }
        "rename" => {
            let what = "renamed".into();
            timers.id().update(Timer { what, ..timer });
        }
        "stop" => {
            let (what, at) = ("stopped".into(), after(ctx.timestamp, 0));
            timers.id().update(Timer { what, at, ..timer });
        }
        "chain" => {
            let at = Timestamp::UNIX_EPOCH.into();
            timers.insert(Timer { id: 0, at, ..timer });
        }
        _ => {}
    }
    Ok(())
}

#[procedure]
pub fn run_task(ctx: &mut ProcedureContext, task: Task) -> u64 {
    let (sender, database, now) = (ctx.sender(), ctx.database_identity(), ctx.timestamp);
    let called_properly =
        ctx.connection_id().is_none() && called_properly(sender, database, now, &task.scheduled_at);
    ctx.with_tx(|tx| {
        tx.db.runs().insert(Run {
            id: 0,
            what: task.what.clone(),
            timer: task.scheduled_id,
            timestamp: now,
            called_properly,
            row_there: tx
                .db
                .tasks()
                .scheduled_id()
                .find(task.scheduled_id)
                .is_some(),
        });
        if task.what == "again" {
            let (scheduled_at, what) = (task.scheduled_at, "last".into());
            let scheduled_id = task.scheduled_id;
            tx.db.tasks().insert(Task {
                scheduled_id,
                scheduled_at,
                what,
            });
        }
    });
    if task.what == "panic task" {
        panic!("as asked");
    }
    if task.what == "nap" {
        ctx.sleep_until(now + TimeDuration::from_micros(300_000));
    }
    if task.what == "late" {
        ctx.sleep_until(now + TimeDuration::from_micros(300_000));
        ctx.with_tx(|tx| {
            tx.db.runs().insert(Run {
                id: 0,
                what: "late end".into(),
                timer: task.scheduled_id,
                timestamp: now,
                called_properly,
                row_there: false,
            });
        });
    }
    task.scheduled_id
}

#[reducer]
pub fn set_timer(ctx: &ReducerContext, what: String, at: ScheduleAt) {
    ctx.db.timers().insert(Timer { what, id: 0, at });
}

/// `us` from now.
#[reducer]
pub fn set_timer_in(ctx: &ReducerContext, what: String, us: i64) {
    let at = after(ctx.timestamp, us);
    ctx.db.timers().insert(Timer { what, id: 0, at });
}

#[reducer]
pub fn set_task(ctx: &ReducerContext, what: String, scheduled_at: ScheduleAt) {
    let scheduled_id = 0;
    ctx.db.tasks().insert(Task {
        scheduled_id,
        scheduled_at,
        what,
    });
}

#[reducer]
pub fn set_and_refuse(ctx: &ReducerContext) -> Result<(), String> {
    set_timer(ctx, "never".into(), after(ctx.timestamp, 0));
    Err("rolled back".into())
}

/// Commits a row in one transaction, gives one up in another.
#[procedure]
pub fn set_in_transactions(ctx: &mut ProcedureContext) {
    ctx.with_tx(|tx| {
        let (what, at) = ("kept".into(), after(tx.timestamp, 0));
        tx.db.timers().insert(Timer { what, id: 0, at });
    });
    let _: Result<(), ()> = ctx.try_with_tx(|tx| {
        let (what, at) = ("never".into(), after(tx.timestamp, 0));
        tx.db.timers().insert(Timer { what, id: 0, at });
        Err(())
    });
}

/// Replaces the schedule of all rows that are to do `what`.
#[reducer]
pub fn change_timers(ctx: &ReducerContext, what: String, at: ScheduleAt) {
    let timers = ctx.db.timers();
    let found: Vec<Timer> = timers.iter().filter(|timer| timer.what == what).collect();
    for timer in found {
        timers.id().update(Timer { at, ..timer });
    }
}

#[reducer]
pub fn delete_timers(ctx: &ReducerContext, what: String) {
    let timers = ctx.db.timers();
    let found: Vec<Timer> = timers.iter().filter(|timer| timer.what == what).collect();
    for timer in found {
        timers.id().delete(timer.id);
    }
}

/// Has the rows of procedures that are to do `what` do something else at the same times.
#[reducer]
pub fn rename_tasks(ctx: &ReducerContext, what: String, to: String) {
    let tasks = ctx.db.tasks();
    let found: Vec<Task> = tasks.iter().filter(|task| task.what == what).collect();
    for task in found {
        let what = to.clone();
        tasks.scheduled_id().update(Task { what, ..task });
    }
}

#[reducer]
pub fn clear_timers(ctx: &ReducerContext) {
    ctx.db.timers().clear();
}
