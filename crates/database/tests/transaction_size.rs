//! A transaction that is too large for the log is refused, and costs the other callers nothing: also if a schedule makes it again and
//! again, and after each start.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::publishing::stop;
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{caller, open, OWNER};
use lightcone_database::{CallArgs, DatabaseHandle, DatabaseOptions};
use serde_json::{json, Value};

const ROWS: u32 = 1_000;
/// The old rows and the undo log of [`ROWS`] rows are less, and with the new rows they are more.
const BYTES_MAX: usize = 40_000;
/// Intervals are negative.
const EVERY_10_MS: i64 = -10_000;

fn options(directory: &Path, bytes_max: Option<usize>) -> DatabaseOptions {
    let mut options = table_options(&directory.join("db"));
    if let Some(bytes_max) = bytes_max {
        options.limits.transaction_bytes_max = bytes_max;
    }
    options
}

async fn change(database: &DatabaseHandle, changes: &Value) {
    let args = CallArgs::Json(json!([changes.to_string()]).to_string());
    let called = database.call(caller(OWNER), "change", args).await;
    called.expect("it changes something");
}

/// How often the scheduled function was called, and how often it failed.
fn ticks(database: &DatabaseHandle) -> (u64, u64) {
    let functions = database.metrics().module.functions;
    let tick = functions.iter().find(|function| &*function.name == "tick");
    tick.map_or((0, 0), |tick| (tick.calls(), tick.traps))
}

/// `program` has a schedule whose calls are too large with less than [`BYTES_MAX`].
async fn every_call_is_refused(program: &Value, prepared: &Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(options(directory.path(), None), program).await;
    change(&database, prepared).await;
    stop(database).await;
    for start in 0..2 {
        let database = open(options(directory.path(), Some(BYTES_MAX))).await;
        if start == 0 {
            // Not before: a call under the usual bound would be let through.
            let schedule = json!({ "jobs": { "inserts": [[1, EVERY_10_MS]] } });
            change(&database, &schedule).await;
        }
        let failed = loop {
            let (calls, failed) = ticks(&database);
            if calls >= 5 {
                assert_eq!(calls, failed, "each of them is refused");
                break failed;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        // All others go on, and what they write stays.
        let text = format!("INSERT INTO others VALUES ({start})");
        sql(&database, OWNER, &text).await.expect("it is written");
        assert!(database.is_running() && database.read_only().is_none());
        while ticks(&database).1 < failed + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = sql(&database, OWNER, "SELECT COUNT(*) AS n FROM others").await;
        assert_eq!(seen.expect("rows").0, json!([[start + 1]]));
        let kept = sql(&database, OWNER, "SELECT COUNT(*) AS n FROM t WHERE n = 1").await;
        assert_eq!(kept.expect("rows").0, json!([[0]]), "nothing is half done");
        stop(database).await;
    }
}

fn program(ticks: Value, columns: &[String]) -> Value {
    let counted: Vec<[&str; 2]> = columns.iter().map(|name| [name, "U64"]).collect();
    json!({
        "tables": {
            "jobs": [["id", "U64"], ["at", "ScheduleAt"]],
            "others": [["id", "U32"]],
            "t": [["id", "U32"], ["n", "U64"]],
            "wide": counted,
        },
        "uniqueKeys": { "jobs": "id", "t": "id" },
        "autoInc": { "wide": columns },
        "schedules": "jobs",
        "ticks": ticks,
    })
}

/// Replaced rows of fixed size were counted half, so that this was let through, or made a record that the log did not take.
#[tokio::test(flavor = "multi_thread")]
async fn replacing_many_rows_is_refused() {
    let rows = |n: u64| (0..ROWS).map(|id| json!([id, n])).collect::<Vec<_>>();
    let program = program(json!({ "t": { "replaced": rows(1) } }), &["id".to_owned()]);
    every_call_is_refused(&program, &json!({ "t": { "inserts": rows(0) } })).await;
}

/// Rows of sequences are written without a limit: it is the commit that finds that the record is too large. The program, and what
/// makes such a record.
fn too_large_for_the_log() -> (Value, Value) {
    let name = |column| format!("c{column}_{}", "x".repeat(4_000));
    let columns: Vec<String> = (0..2_300).map(name).collect();
    let row = vec![0; columns.len()];
    let changes = json!({ "t": { "inserts": [[1, 1]] }, "wide": { "inserts": [row] } });
    (program(changes.clone(), &columns), changes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_too_large_is_refused_by_the_commit() {
    every_call_is_refused(&too_large_for_the_log().0, &json!({})).await;
}

/// Views were brought up to date before the record was written, and all that were in use called anew when it was too large.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_commit_concerns_no_view() {
    let (mut program, changes) = too_large_for_the_log();
    program["views"] = json!({
        "changed": { "table": "t", "query": "SELECT * FROM t" },
        "other": { "table": "others", "query": "SELECT * FROM others" },
    });
    let directory = tempfile::tempdir().expect("a directory");
    stop(create_tables(options(directory.path(), None), &program).await).await;
    let database = open(options(directory.path(), Some(BYTES_MAX))).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher.watch(1, &["changed", "other"]).await;
    let calls = || -> Vec<u64> {
        let functions = database.metrics().module.functions;
        let of = |name: &&str| functions.iter().find(|function| &*function.name == *name);
        let found = ["changed", "other"];
        found
            .iter()
            .filter_map(of)
            .map(|found| found.calls())
            .collect()
    };
    let before = calls();
    assert_eq!(before.len(), 2);
    for _ in 0..3 {
        let args = CallArgs::Json(json!([changes.to_string()]).to_string());
        let called = database.call(caller(OWNER), "change", args).await;
        assert!(called.is_err(), "{called:?}");
    }
    assert_eq!(calls(), before);
    change(&database, &json!({ "t": { "inserts": [[2, 2]] } })).await;
    watcher.settle().await;
    assert_eq!(watcher.rows(1, "changed").len(), 1);
    assert_eq!(calls(), [before[0] + 1, before[1]]);
    stop(database).await;
}

/// A call that is suspended hears at once that its transaction is refused; one that blocks its thread when it wants the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_procedure_ends_with_a_refused_commit() {
    const LONG: Duration = Duration::from_secs(100);
    let (mut program, changes) = too_large_for_the_log();
    program["procedures"] = json!(true);
    for suspends in [false, true] {
        program["suspends"] = json!(suspends);
        let directory = tempfile::tempdir().expect("a directory");
        let database = create_tables(options(directory.path(), None), &program).await;
        stop(database).await;
        let database = open(options(directory.path(), Some(BYTES_MAX))).await;
        let other = json!({ "others": { "inserts": [[1]] } });
        let sleep_us = if suspends { LONG.as_micros() } else { 0 };
        let what = json!({ "first": changes, "us": sleep_us as u64, "then": other });
        let begun = Instant::now();
        for _ in 0..2 {
            let args = CallArgs::Json(json!([what.to_string()]).to_string());
            let called = database.call(caller(OWNER), "later", args).await;
            let text = format!("{:?}", called.expect_err("it is refused"));
            assert!(text.contains("[LC0702]"), "{text}");
        }
        assert!(begun.elapsed() < LONG, "it does not sleep");
        for table in ["others", "t"] {
            let text = format!("SELECT COUNT(*) AS n FROM {table}");
            let seen = sql(&database, OWNER, &text).await.expect("rows");
            assert_eq!(seen.0, json!([[0]]), "nothing is half done");
        }
        stop(database).await;
    }
}
