//! A database lives in the time of its environment, whatever the machine's clock says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::other_machine::OtherMachine;
use crate::common::{caller, create, open, options, OWNER};
use lightcone_database::{CallArgs, CallError, Commons, DatabaseHandle, JsonRows, ShutdownReason};
use lightcone_types::{TimeDuration, Timestamp};
use serde_json::{json, Value};

/// It leaves nothing behind that the next one would meet.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_threads_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(options(directory.path()), "schedules").await;
    database.shutdown(ShutdownReason::ServerStop).await;
    for name in ["fan-out", "log", "writer"] {
        let mut options = options(directory.path());
        let environment = OtherMachine {
            without: name,
            ..OtherMachine::current()
        };
        options.commons = Commons::new(Arc::new(environment), 1 << 30, 2);
        let opened = tokio::task::spawn_blocking(move || DatabaseHandle::open(options)).await;
        let refused = opened
            .expect("no panic")
            .err()
            .map(|error| error.to_string());
        let refused = refused.expect("there is no thread");
        assert!(refused.contains("[LC0333]"), "{refused}");
    }
    let database = open(options(directory.path())).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The year 2000 in microseconds, and the end of it.
const BEGIN_US: i64 = 946_684_800_000_000;
const END_US: i64 = BEGIN_US + 366 * 86_400_000_000;

/// All runs in the order of their times: what, and when after `BEGIN_US`, in microseconds.
async fn runs(database: &DatabaseHandle) -> Vec<(i64, String)> {
    let query = "SELECT timestamp, what FROM runs".to_owned();
    let rows = database.sql(caller(OWNER), query, true, JsonRows::default());
    let rows: Vec<((i64,), String)> =
        serde_json::from_str(&rows.await.expect("a table of the module").text())
            .expect("rows of a time and a text");
    let mut runs: Vec<_> = rows
        .into_iter()
        .map(|((time_us,), what)| (time_us - BEGIN_US, what))
        .collect();
    runs.sort();
    runs
}

const SECOND_US: i64 = 1_000_000;

/// Schedules and procedures that sleep, in the time of a test.
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_a_test_stands_until_the_test_moves_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    options.in_memory = true;
    options.test_clock = Some(options.commons.test_clock(Timestamp(BEGIN_US)));
    let database = create(options, "schedules").await;
    let advance = async |by_us: i64| {
        let time = database.advance(TimeDuration(by_us)).await;
        time.expect("it runs").expect("it is a test's").0 - BEGIN_US
    };
    assert_eq!(advance(0).await, 0);
    assert_eq!(runs(&database).await, [(0, "init".to_owned())]);

    let day = json!({ "Interval": { "__time_duration_micros__": 86_400 * SECOND_US } });
    call(&database, "set_timer", json!(["day", day]))
        .await
        .expect("planned");
    let soon = json!({ "__timestamp_micros_since_unix_epoch__": BEGIN_US + SECOND_US });
    // It sleeps for 0.3 s, and notes its end with the time at which it began.
    call(&database, "set_task", json!(["late", { "Time": soon }]))
        .await
        .expect("planned");
    assert_eq!(advance(SECOND_US - 1).await, SECOND_US - 1);
    assert_eq!(runs(&database).await.len(), 1, "nothing is due yet");
    assert_eq!(advance(1).await, SECOND_US);
    let late = (SECOND_US, "late".to_owned());
    assert_eq!(runs(&database).await[1..], *std::slice::from_ref(&late));
    assert_eq!(advance(299_999).await, SECOND_US + 299_999);
    assert_eq!(runs(&database).await.len(), 2, "it sleeps");
    assert_eq!(advance(1).await, SECOND_US + 300_000);
    assert_eq!(
        runs(&database).await[1..],
        [late, (SECOND_US, "late end".to_owned())]
    );

    let year_us = 365 * 86_400 * SECOND_US;
    let now = advance(year_us).await;
    assert_eq!(now, year_us + SECOND_US + 300_000);
    let runs = runs(&database).await;
    let days: Vec<i64> = (1..=365).map(|day| day * 86_400 * SECOND_US).collect();
    let of_days = runs.iter().filter(|(_, what)| what == "day");
    assert_eq!(of_days.map(|(time, _)| *time).collect::<Vec<_>>(), days);

    // One that sleeps does not keep the database from ending.
    let next = json!({ "__timestamp_micros_since_unix_epoch__": BEGIN_US + now });
    call(&database, "set_task", json!(["nap", { "Time": next }]))
        .await
        .expect("planned");
    assert_eq!(advance(0).await, now);
    database.shutdown(ShutdownReason::Deleted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_test_moves_the_clock_of_the_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(options(directory.path()), "schedules").await;
    let moved = database.advance(TimeDuration(SECOND_US)).await;
    assert_eq!(moved.expect("it runs"), None);
}

async fn call(database: &DatabaseHandle, function: &str, args: Value) -> Result<(), CallError> {
    let args = CallArgs::Json(args.to_string());
    let called = database.call(caller(OWNER), function, args).await;
    called.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_calls_and_schedules_are_those_of_the_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let environment = OtherMachine {
        time_of_day: Some(Timestamp(BEGIN_US)),
        ..OtherMachine::current()
    };
    options.commons = Commons::new(Arc::new(environment), 1 << 30, 2);
    let database = create(options, "schedules").await;

    let today = json!({ "__timestamp_micros_since_unix_epoch__": Timestamp::now().0 });
    let refused = call(&database, "set_timer", json!(["today", { "Time": today }])).await;
    // The module does not expect it, and panics.
    assert!(
        matches!(refused, Err(CallError::Fatal { .. })),
        "today is more than two years away: {refused:?}"
    );

    // A procedure plans a call at the time of its transaction, and that call notes its own.
    let planned = call(&database, "set_in_transactions", json!([])).await;
    planned.expect("the time of a transaction is near");
    let deadline = Instant::now() + Duration::from_secs(30);
    let runs = loop {
        let query = "SELECT timestamp FROM runs WHERE what = 'kept'".to_owned();
        let rows = database.sql(caller(OWNER), query, true, JsonRows::default());
        let rows: Vec<((i64,),)> =
            serde_json::from_str(&rows.await.expect("a table of the module").text())
                .expect("rows of one time");
        if !rows.is_empty() {
            break rows;
        }
        assert!(Instant::now() < deadline, "the planned call never ran");
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let [((run_us,),)] = runs[..] else {
        panic!("it ran once: {runs:?}");
    };
    assert!((BEGIN_US..END_US).contains(&run_us), "{run_us}");
}
