//! Scheduled reducers and procedures run when their rows say (03 §11.5a). What each run found is in `modules/schedules-rs`.
//!
//! Times are a few milliseconds. Tests wait for an effect as long as it takes, and never ask how fast it came; that something
//! does not happen is seen by what comes after it.

use std::time::{Duration, Instant};

use crate::common::{bundle, caller, create, module, open, options, Client, OWNER, STRANGER};
use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, HostKind, JsonRows, ShutdownReason, UpdateOutcome,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Due, Timestamp};
use lightcone_wire::{ClientMessage, ServerMessage};
use serde_json::{json, Value};

/// A row of `runs`: id, what, timer, timestamp, called_properly, row_there.
type RunRow = (u64, String, u64, (i64,), bool, bool);

#[derive(Debug)]
struct Run(RunRow);

impl Run {
    fn timer(&self) -> u64 {
        self.0 .2
    }
    fn timestamp_us(&self) -> i64 {
        self.0 .3 .0
    }
    fn called_properly(&self) -> bool {
        self.0 .4
    }
    fn row_there(&self) -> bool {
        self.0 .5
    }
}

async fn start(directory: &tempfile::TempDir) -> DatabaseHandle {
    let database = create(options(directory.path()), "schedules").await;
    // The row that `init` made: its time is long past, so it runs at once.
    until(&database, "init", 1).await;
    database
}

async fn call(database: &DatabaseHandle, function: &str, args: Value) -> Result<(), CallError> {
    let args = CallArgs::Json(args.to_string());
    let called = database.call(caller(OWNER), function, args).await;
    called.map(drop)
}

async fn set(database: &DatabaseHandle, function: &str, what: &str, at: Value) {
    let set = call(database, function, json!([what, at])).await;
    set.expect("the row is inserted");
}

fn every(us: i64) -> Value {
    json!({ "Interval": us_value(us, "__time_duration_micros__") })
}

fn once(us: i64) -> Value {
    json!({ "Time": us_value(us, "__timestamp_micros_since_unix_epoch__") })
}

fn us_value(us: i64, field: &str) -> Value {
    json!({ field: us })
}

fn now_us() -> i64 {
    lightcone_types::Timestamp::now().0
}

async fn rows(database: &DatabaseHandle, table: &str) -> String {
    let query = format!("SELECT * FROM {table}");
    let rows = database
        .sql(caller(OWNER), query, true, JsonRows::default())
        .await;
    rows.expect("a table of the module").text()
}

/// The runs that did `what`, in order.
async fn runs(database: &DatabaseHandle, what: &str) -> Vec<Run> {
    let mut runs: Vec<RunRow> =
        serde_json::from_str(&rows(database, "runs").await).expect("rows of this form");
    runs.retain(|run| run.1 == what);
    runs.sort_by_key(|run| run.0);
    runs.into_iter().map(Run).collect()
}

/// Waits until something has run so often.
async fn until(database: &DatabaseHandle, what: &str, count: usize) -> Vec<Run> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = runs(database, what).await;
        if found.len() >= count {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "{what} ran {found:?}, not {count} times"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until no row of a schedule table is left that is to do `what`.
async fn until_gone(database: &DatabaseHandle, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while waiting(database, what).await > 0 {
        assert!(Instant::now() < deadline, "the row of {what} stays");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn waiting(database: &DatabaseHandle, what: &str) -> usize {
    let both = [
        rows(database, "timers").await,
        rows(database, "tasks").await,
    ];
    let count = |rows: &String| {
        let rows: Vec<[Value; 3]> = serde_json::from_str(rows).expect("rows of three columns");
        rows.iter().filter(|row| row.contains(&json!(what))).count()
    };
    both.iter().map(count).sum()
}

/// Everything that was due before this has run when it returns.
async fn let_all_run(database: &DatabaseHandle) {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mark = format!("mark {count}");
    set(database, "set_timer_in", &mark, json!(30_000)).await;
    until(database, &mark, 1).await;
}

/// Sets a timer and calls `function` for it before it runs; returns what it was to do.
async fn in_time(database: &DatabaseHandle, function: &str, at: Value) -> String {
    let mut delay_us = 20_000;
    loop {
        let what = format!("{function} within {delay_us}");
        set(database, "set_timer_in", &what, json!(delay_us)).await;
        let args = match at {
            Value::Null => json!([what]),
            _ => json!([what, at]),
        };
        call(database, function, args).await.expect("called");
        if runs(database, &what).await.is_empty() {
            tokio::time::sleep(Duration::from_micros(delay_us)).await;
            return what;
        }
        // The machine is busy.
        delay_us *= 4;
    }
}

fn log_text(database: &DatabaseHandle) -> String {
    String::from_utf8_lossy(&database.logs().tail(None)).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_once_runs_once_and_its_row_goes() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let before = now_us();
    set(&database, "set_timer_in", "later", json!(20_000)).await;
    set(&database, "set_timer", "past", once(-5)).await;
    set(&database, "set_task", "task", once(i64::MIN)).await;
    for (what, row_there) in [("later", true), ("past", true), ("task", false)] {
        let found = until(&database, what, 1).await;
        assert!(found[0].called_properly(), "{what}");
        // A procedure's row goes before the call, a reducer's after it.
        assert_eq!(found[0].row_there(), row_there, "{what}");
        assert!(found[0].timestamp_us() >= before, "{what}");
        until_gone(&database, what).await;
    }
    assert!(runs(&database, "later").await[0].timestamp_us() >= before + 20_000);

    // Failures are logged, and change nothing about the row.
    for what in ["refuse", "panic"] {
        set(&database, "set_timer", what, once(0)).await;
        until_gone(&database, what).await;
        assert_eq!(
            runs(&database, what).await.len(),
            0,
            "{what} is rolled back"
        );
    }
    assert!(log_text(&database).contains("refused"));
    set(&database, "set_task", "panic task", once(0)).await;
    until(&database, "panic task", 1).await;
    let_all_run(&database).await;
    for what in ["init", "later", "past", "task", "panic task"] {
        assert_eq!(runs(&database, what).await.len(), 1, "{what}");
        assert_eq!(waiting(&database, what).await, 0, "{what}");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_run_again_on_their_grid_until_their_row_goes() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let before = now_us();
    set(&database, "set_timer", "tick", every(3_000)).await;
    set(&database, "set_timer", "tock", every(-4_000)).await;
    set(&database, "set_task", "task", every(5_000)).await;
    // Failures do not end it.
    set(&database, "set_task", "panic task", every(2_000)).await;
    for (what, us) in [
        ("tick", 3_000),
        ("tock", 4_000),
        ("task", 5_000),
        ("panic task", 2_000),
    ] {
        let found = until(&database, what, 4).await;
        assert!(found[0].timestamp_us() >= before + us, "{what}");
        assert!(
            found
                .iter()
                .all(|run| run.called_properly() && run.row_there()),
            "{what}"
        );
        // Each run is at least at its own point of the grid.
        for (n, run) in (1..).zip(&found) {
            assert!(run.timestamp_us() >= before + n * us, "{what} {n}");
        }
    }
    let deleted = call(&database, "delete_timers", json!(["tick"])).await;
    deleted.expect("deleted");
    let after = runs(&database, "tick").await.len();
    let tocks = runs(&database, "tock").await.len();
    until(&database, "tock", tocks + 3).await;
    assert_eq!(runs(&database, "tick").await.len(), after);
    call(&database, "clear_timers", json!([]))
        .await
        .expect("cleared");
    let after = runs(&database, "tock").await.len();
    let_all_run(&database).await;
    assert_eq!(runs(&database, "tock").await.len(), after);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_changes_counts_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let hour_us = 3_600_000_000;
    // Earlier, later, gone, never there.
    set(&database, "set_timer", "sooner", once(now_us() + hour_us)).await;
    set(&database, "set_timer", "often", every(hour_us)).await;
    for (what, at) in [("sooner", once(0)), ("often", every(2_000))] {
        let changed = call(&database, "change_timers", json!([what, at])).await;
        changed.expect("changed");
    }
    let put_off = in_time(&database, "change_timers", every(hour_us)).await;
    let gone = in_time(&database, "delete_timers", Value::Null).await;
    let refused = call(&database, "set_and_refuse", json!([])).await;
    assert!(matches!(refused, Err(CallError::UserError { .. })));
    let set_two = call(&database, "set_in_transactions", json!([])).await;
    set_two.expect("one is committed");
    until(&database, "sooner", 1).await;
    until(&database, "often", 3).await;
    until(&database, "kept", 1).await;
    let_all_run(&database).await;
    for (what, count) in [
        ("sooner", 1),
        ("kept", 1),
        ("never", 0),
        (&gone, 0),
        (&put_off, 0),
    ] {
        assert_eq!(runs(&database, what).await.len(), count, "{what}");
    }

    // What a call does to its own row.
    set(&database, "set_timer", "delay", once(0)).await;
    let delayed = until(&database, "delayed", 1).await;
    let delay = runs(&database, "delay").await;
    assert!(delayed[0].timestamp_us() >= delay[0].timestamp_us() + 20_000);
    assert_eq!(delayed[0].timer(), delay[0].timer(), "the same row");
    set(&database, "set_timer", "delete", every(1_000)).await;
    set(&database, "set_timer", "stop", every(1_000)).await;
    set(&database, "set_timer", "rename", once(0)).await;
    until(&database, "delete", 1).await;
    until(&database, "stopped", 1).await;
    until(&database, "rename", 1).await;
    // The procedure's row came back during the call, so it runs again.
    set(&database, "set_task", "again", once(0)).await;
    until(&database, "last", 1).await;
    let_all_run(&database).await;
    for what in [
        "delay", "delayed", "delete", "stop", "stopped", "rename", "again", "last",
    ] {
        assert_eq!(runs(&database, what).await.len(), 1, "{what}");
        assert_eq!(waiting(&database, what).await, 0, "{what}");
    }
    // Its time is the same, so it has run.
    assert_eq!(runs(&database, "renamed").await.len(), 0);
    assert_eq!(waiting(&database, "renamed").await, 0);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A row that is changed while its procedure is under way is due again, and waits until that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_one_procedure_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    set(&database, "set_task", "nap", every(1_000)).await;
    let nap = until(&database, "nap", 1).await;
    let changed = call(&database, "rename_tasks", json!(["nap", "other"])).await;
    changed.expect("changed");
    let other = until(&database, "other", 2).await;
    assert_eq!(runs(&database, "nap").await.len(), 1);
    let pause_us = other[0].timestamp_us() - nap[0].timestamp_us();
    assert!(
        pause_us >= 300_000,
        "after {pause_us} µs the first one was still asleep"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_too_far_away_leave_no_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let too_long_us = ((1_i64 << 36) - 1) * 1000;
    for at in [every(too_long_us), every(i64::MIN), once(i64::MAX)] {
        // The published crate panics on errno 13.
        let set = call(&database, "set_timer", json!(["far", at])).await;
        assert!(matches!(set, Err(CallError::Fatal { .. })), "{set:?}");
        assert!(log_text(&database).contains("Specified delay in scheduling row was too long"));
    }
    set(&database, "set_timer", "near", every(too_long_us - 1)).await;
    assert_eq!(
        (
            waiting(&database, "far").await,
            waiting(&database, "near").await
        ),
        (0, 1)
    );
    let changed = call(
        &database,
        "change_timers",
        json!(["near", every(too_long_us)]),
    )
    .await;
    assert!(matches!(changed, Err(CallError::Fatal { .. })));
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Rows that are always due must not keep others, or clients, from running.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_due_keeps_no_other_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    set(&database, "set_timer", "zero", every(0)).await;
    // Each run makes the next row, whose time is long past.
    for _ in 0..3 {
        set(&database, "set_timer", "chain", once(0)).await;
    }
    for n in 0..200 {
        set(&database, "set_timer", &format!("many {}", n % 2), once(n)).await;
    }
    set(&database, "set_timer", "tick", every(5_000)).await;
    until(&database, "tick", 3).await;
    until(&database, "chain", 100).await;
    let zero = until(&database, "zero", 10).await;
    // It counts as a millisecond.
    for pair in zero.windows(2) {
        assert!(pair[1].timestamp_us() - pair[0].timestamp_us() > 0);
    }
    assert_eq!(until(&database, "many 0", 100).await.len(), 100);
    assert_eq!(until(&database, "many 1", 100).await.len(), 100);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_see_runs_and_rows_that_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let mut client = Client::connect(&database, STRANGER, 5).await;
    let subscribe = ClientMessage::Subscribe {
        request_id: 1,
        query_set_id: 1,
        query_strings: vec!["SELECT * FROM runs", "SELECT * FROM timers"],
    };
    client.send(&[subscribe]).await;
    assert!(matches!(
        client.next().await,
        ServerMessage::SubscribeApplied { .. }
    ));
    set(&database, "set_timer", "seen", once(0)).await;
    // The row comes, it runs, it goes: three transactions.
    for _ in 0..3 {
        assert!(matches!(
            client.next().await,
            ServerMessage::TransactionUpdate { .. }
        ));
    }
    assert_eq!(waiting(&database, "seen").await, 0);
    // Nothing else makes the writer look at its schedules.
    set(&database, "set_timer", "tick", every(3_000)).await;
    for _ in 0..6 {
        assert!(matches!(
            client.next().await,
            ServerMessage::TransactionUpdate { .. }
        ));
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_live_through_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    let due = now_us() + 50_000;
    set(&database, "set_timer", "tick", every(10_000)).await;
    set(&database, "set_timer", "due meanwhile", once(due)).await;
    set(&database, "set_task", "task due meanwhile", once(due)).await;
    set(
        &database,
        "set_timer",
        "far",
        once(now_us() + 3_600_000_000),
    )
    .await;
    until(&database, "tick", 1).await;
    database.shutdown(ShutdownReason::ServerStop).await;
    while now_us() <= due {
        std::thread::sleep(Duration::from_millis(5));
    }

    let opened = now_us();
    let database = open(options(directory.path())).await;
    let before = runs(&database, "tick").await;
    let before = before
        .iter()
        .filter(|run| run.timestamp_us() < opened)
        .count();
    for what in ["due meanwhile", "task due meanwhile"] {
        let found = until(&database, what, 1).await;
        assert_eq!(found.len(), 1, "{what}");
        assert!(found[0].called_properly(), "{what}");
        until_gone(&database, what).await;
    }
    let ticks = until(&database, "tick", before + 3).await;
    // Points that were missed are not made up for; the first is one interval after the opening.
    assert!(ticks[before].timestamp_us() >= opened + 10_000);
    let_all_run(&database).await;
    assert_eq!(runs(&database, "init").await.len(), 1);
    assert_eq!(runs(&database, "far").await.len(), 0);
    assert_eq!(waiting(&database, "far").await, 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A database that stops lets a scheduled procedure end whose row is gone already.
#[tokio::test(flavor = "multi_thread")]
async fn procedures_under_way_end_before_the_database_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    set(&database, "set_task", "late", once(now_us())).await;
    until(&database, "late", 1).await;
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(options(directory.path())).await;
    assert_eq!(runs(&database, "late end").await.len(), 1);
    assert_eq!(waiting(&database, "late").await, 0);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_go_on_with_a_new_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = start(&directory).await;
    set(&database, "set_timer", "tick", every(5_000)).await;
    set(
        &database,
        "set_timer",
        "far",
        once(now_us() + 3_600_000_000),
    )
    .await;
    until(&database, "tick", 1).await;
    // The same program with an empty custom section, `x`.
    let program = [&module("schedules")[..], &[0, 2, 1, b'x']].concat();
    let updated = database.update(program, HostKind::Wasm).await;
    assert!(matches!(updated, Ok(UpdateOutcome::Updated)));
    let before = runs(&database, "tick").await.len();
    until(&database, "tick", before + 3).await;
    let changed = call(&database, "change_timers", json!(["far", once(0)])).await;
    changed.expect("changed");
    until(&database, "far", 1).await;
    let_all_run(&database).await;
    assert_eq!(runs(&database, "init").await.len(), 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A row that is to run once stays until there is a place for its procedure.
#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_place_runs_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    options.limits.procedures_max = 1;
    let database = create(options, "schedules").await;
    until(&database, "init", 1).await;
    for _ in 0..3 {
        set(&database, "set_task", "nap", once(0)).await;
    }
    assert_eq!(until(&database, "nap", 3).await.len(), 3);
    until_gone(&database, "nap").await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The job queue looks for leases that are over each second, in both languages.
async fn leases_that_are_over_go_back(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let program = match kind {
        HostKind::Wasm => module("jobs"),
        HostKind::Js => bundle("jobs-lightcone").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let created = created.await.expect("no panic");
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    call(&database, "job_seed", json!([3]))
        .await
        .expect("seeded");
    call(&database, "job_lease", json!([1, 2, 0]))
        .await
        .expect("leased");
    let deadline = Instant::now() + Duration::from_secs(30);
    while rows(&database, "jobs WHERE state = 1").await != "[]" {
        assert!(Instant::now() < deadline, "the leases stay");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_are_over_go_back_in_rust() {
    leases_that_are_over_go_back(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_are_over_go_back_in_typescript() {
    leases_that_are_over_go_back(HostKind::Js).await;
}

/// What a database says of itself: it is opened when its first call is due, and stays open for an interval.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_says_when_the_next_call_is_due() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = start(&directory).await;
    let later = now_us() + 3_600_000_000;
    let stop = |database: DatabaseHandle| async move {
        let asked = database.due().await;
        let due = database.shutdown(ShutdownReason::Idle).await;
        assert_eq!(asked, due);
        due.expect("a proper end")
    };
    for (at, due) in [
        (None, Due::Never),
        (Some(once(later + 1)), Due::At(Timestamp(later + 1))),
        (Some(once(later)), Due::At(Timestamp(later))),
        (Some(once(later + 2)), Due::At(Timestamp(later))),
        (Some(every(3_600_000_000)), Due::Open),
    ] {
        if let Some(at) = at {
            set(&database, "set_timer", "later", at).await;
        }
        assert_eq!(stop(database).await, due);
        database = open(options(directory.path())).await;
    }
    call(&database, "clear_timers", json!([]))
        .await
        .expect("cleared");
    set(&database, "set_task", "task", once(later)).await;
    assert_eq!(stop(database).await, Due::At(Timestamp(later)));
}
