//! Programs whose migration function replaces tables (02 §14.8): rows, counters, schedules and clients afterwards; functions that
//! fail, take too long or are cancelled.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::common;
use crate::common::publishing::{publish, stop};
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{caller, open, OWNER, STRANGER};
use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, JsonRows, MigrationOutcome, MigrationPhase, UpdateError,
};
use lightcone_storage::sim::{HookedStorage, Hooks};
use serde_json::{json, Value};

async fn rows(database: &DatabaseHandle, text: &str) -> Value {
    sql(database, OWNER, text).await.expect("rows").0
}

fn first() -> Value {
    json!({
        "tables": { "t": [["id", "U64"], ["a", "U32"], ["b", "U32"]], "u": [["id", "U32"]] },
        "uniqueKeys": { "t": "id", "u": "id" },
        "autoInc": { "t": "id" },
    })
}

/// `a` goes into a table of its own, and `b` is called `c`.
fn second(migrate: Value) -> Value {
    json!({
        "tables": {
            "t": [["id", "U64"], ["c", "U32"]],
            "s": [["id", "U64"], ["a", "U32"]],
            "u": [["id", "U32"]],
            "__old_t": [["id", "U64"], ["a", "U32"], ["b", "U32"]],
        },
        "uniqueKeys": { "t": "id", "s": "id", "u": "id", "__old_t": "id" },
        "autoInc": { "t": "id", "s": "id" },
        "migrate": migrate,
        "views": { "v": { "query": "SELECT * FROM t WHERE c = 12", "table": "t" } },
        "rules": ["SELECT * FROM u WHERE id = 1"],
    })
}

fn copies() -> Value {
    json!({ "copy": [["__old_t", "t", [0, 2]], ["__old_t", "s", [0, 1]]] })
}

async fn filled(directory: &Path) -> (DatabaseHandle, Watcher) {
    let database = create_tables(table_options(directory), &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "t": { "inserts": [[0, 1, 11], [0, 2, 12]] }, "u": { "inserts": [[1], [2]] } }))
        .await;
    (database, watcher)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_replaces_a_table_and_clients_come_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (database, mut watcher) = filled(&path).await;
    // Its number is not given again.
    let gone = json!({ "t": { "inserts": [[0, 9, 9]] } });
    watcher.change(&gone).await;
    watcher
        .change(&json!({ "t": { "deletes": [[3, 9, 9]] } }))
        .await;
    watcher.subscribe(1, "SELECT * FROM u").await;
    let refused = publish(&database, &second(copies()), false).await;
    assert!(
        matches!(&refused, Err(UpdateError::Refused(text)) if text.contains("client-breaking")),
        "{refused:?}"
    );
    publish(&database, &second(copies()), true)
        .await
        .expect("the function can do it");
    drop(watcher);
    let check = async |database: &DatabaseHandle| {
        assert_eq!(
            rows(database, "SELECT * FROM t ORDER BY id").await,
            json!([[1, 11], [2, 12]])
        );
        assert_eq!(
            rows(database, "SELECT * FROM s ORDER BY id").await,
            json!([[1, 1], [2, 2]])
        );
        assert_eq!(rows(database, "SELECT * FROM v").await, json!([[2, 12]]));
        assert_eq!(
            rows(database, "SELECT * FROM u ORDER BY id").await,
            json!([[1], [2]])
        );
        // The rule is one of the new program.
        let seen = sql(database, STRANGER, "SELECT * FROM u")
            .await
            .expect("rows")
            .0;
        assert_eq!(seen, json!([[1]]));
        let gone = sql(database, OWNER, "SELECT * FROM __old_t").await;
        assert!(gone.is_err(), "{gone:?}");
    };
    check(&database).await;
    // A client of the old program finds the table that stayed.
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    watcher.subscribe(1, "SELECT * FROM u").await;
    assert_eq!(watcher.rows(1, "u").len(), 2);
    watcher
        .change(&json!({ "t": { "inserts": [[0, 5]] }, "s": { "inserts": [[0, 5]] } }))
        .await;
    let highest = rows(&database, "SELECT id FROM s WHERE a = 5").await;
    assert_eq!(highest, json!([[3]]), "behind what the function wrote");
    let highest = rows(&database, "SELECT id FROM t WHERE c = 5").await;
    assert_eq!(highest, json!([[4]]), "its counter goes on");
    watcher
        .change(&json!({ "t": { "deletes": [[4, 5]] }, "s": { "deletes": [[3, 5]] } }))
        .await;
    drop(watcher);
    let status = database.migration_status();
    assert!(status.running.is_none());
    assert_eq!(
        status.last.expect("there was one").outcome,
        MigrationOutcome::Committed
    );
    stop(database).await;
    let database = open(table_options(&path)).await;
    check(&database).await;
    // The same tables again: there is nothing to do for a function, and it would fail.
    let mut again = second(json!({ "fails": "it must not run" }));
    again["rules"] = json!(["SELECT * FROM u WHERE id = 1"]);
    again["tables"]["w"] = json!([["id", "U32"]]);
    publish(&database, &again, false)
        .await
        .expect("it does not run");
    // Nor does it in a new database.
    let new = create_tables(table_options(&directory.path().join("new")), &again).await;
    assert_eq!(rows(&new, "SELECT * FROM t").await, json!([]));
    stop(new).await;
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_may_call_the_function() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, watcher) = filled(&directory.path().join("db")).await;
    drop(watcher);
    publish(&database, &second(copies()), true)
        .await
        .expect("a plan");
    for identity in [OWNER, STRANGER] {
        let args = CallArgs::Json("[]".to_owned());
        let call = database
            .call(common::caller(identity), "__migrate", args)
            .await;
        let Err(CallError::Lifecycle(text)) = &call else {
            panic!("{call:?}");
        };
        assert!(text.contains("[LC0241]"), "{text}");
    }
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_fails_leaves_everything_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (database, mut watcher) = filled(&path).await;
    watcher.subscribe(1, "SELECT * FROM t").await;
    let hash = database.program_hash();
    let mut fails = copies();
    fails["changes"] = json!({ "u": { "inserts": [[7]] } });
    fails["fails"] = json!("there is no way");
    // A key that two rows would have.
    let clashes = json!({ "copy": [["__old_t", "s", [0, 1]], ["__old_t", "s", [0, 2]]] });
    for (migrate, text) in [(fails, "there is no way"), (clashes, "unique")] {
        let error = publish(&database, &second(migrate), true)
            .await
            .expect_err("it fails");
        let error = error.to_string();
        assert!(
            error.contains(text) && error.contains("[LC0239]"),
            "{error}"
        );
        let status = database.migration_status().last.expect("there was one");
        assert_eq!(status.outcome, MigrationOutcome::Failed { reason: error });
        assert_eq!(database.program_hash(), hash);
        assert_eq!(
            rows(&database, "SELECT * FROM t ORDER BY id").await,
            json!([[1, 1, 11], [2, 2, 12]])
        );
        assert_eq!(
            rows(&database, "SELECT * FROM u")
                .await
                .as_array()
                .expect("rows")
                .len(),
            2
        );
    }
    // Clients heard nothing of it, and counters go on.
    watcher
        .change(&json!({ "t": { "inserts": [[0, 3, 13]] } }))
        .await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "t").len(), 3);
    drop(watcher);
    // A shape that is not the table's.
    let mut wrong = second(copies());
    wrong["tables"]["__old_t"] = json!([["id", "U64"], ["a", "U64"], ["b", "U32"]]);
    let error = publish(&database, &wrong, true)
        .await
        .expect_err("nothing runs");
    assert!(
        matches!(&error, UpdateError::Rejected(text) if text.contains("[LC0236]")),
        "{error}"
    );
    stop(database).await;
    let database = open(table_options(&path)).await;
    assert_eq!(
        rows(&database, "SELECT id FROM t WHERE b = 13").await,
        json!([[3]])
    );
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_is_watched_and_cancelled() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, watcher) = filled(&directory.path().join("db")).await;
    drop(watcher);
    assert!(!database.cancel_migration(), "none runs");
    let mut waits = copies();
    waits["waits"] = json!(true);
    let publishing = {
        let (database, program) = (database.clone(), second(waits.clone()));
        tokio::spawn(async move { publish(&database, &program, true).await })
    };
    let running = loop {
        match database.migration_status().running {
            Some(running) if running.phase == MigrationPhase::Function => break running,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    assert_eq!(running.rows_replaced, 2);
    assert!(database.cancel_migration());
    let error = publishing
        .await
        .expect("no panic")
        .expect_err("it was cancelled");
    assert!(error.to_string().contains("[LC0240]"), "{error}");
    let status = database.migration_status();
    assert!(status.running.is_none());
    assert_eq!(
        status.last.expect("there was one").outcome,
        MigrationOutcome::Cancelled
    );
    assert_eq!(
        rows(&database, "SELECT * FROM t")
            .await
            .as_array()
            .expect("rows")
            .len(),
        2
    );
    // A database that stops does not wait for it.
    let publishing = {
        let (database, program) = (database.clone(), second(waits));
        tokio::spawn(async move { publish(&database, &program, true).await })
    };
    while database.migration_status().running.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop(database).await;
    publishing
        .await
        .expect("no panic")
        .expect_err("it was ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_the_function_does_not_read_are_not_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, watcher) = filled(&directory.path().join("db")).await;
    drop(watcher);
    let refused = publish(&database, &second(json!({})), true).await;
    assert!(
        matches!(&refused, Err(UpdateError::Refused(text)) if text.contains("`__old_t`") && text.contains("[LC0243]")),
        "{refused:?}"
    );
    assert_eq!(
        rows(&database, "SELECT * FROM t ORDER BY id").await,
        json!([[1, 1, 11], [2, 2, 12]])
    );
    // A function that asks how many there are knows what it does.
    publish(&database, &second(json!({ "counts": ["__old_t"] })), true)
        .await
        .expect("they are to go");
    assert_eq!(rows(&database, "SELECT * FROM t").await, json!([]));
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_schedules_no_calls_outside_of_its_transaction() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, watcher) = filled(&directory.path().join("db")).await;
    drop(watcher);
    let mut calls = copies();
    calls["immediate"] = json!("change");
    let error = publish(&database, &second(calls), true).await;
    let error = error.expect_err("it would be lost without a word");
    assert!(error.to_string().contains("[LC0256]"), "{error}");
    publish(&database, &second(copies()), true)
        .await
        .expect("everything is as before");
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_function_a_table_may_be_called_old() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut program = first();
    program["tables"]["__old_t"] = json!([["id", "U64"], ["a", "U32"], ["b", "U32"]]);
    let database = create_tables(table_options(&path), &program).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher.subscribe(1, "SELECT * FROM __old_t").await;
    watcher
        .change(&json!({ "__old_t": { "inserts": [[1, 2, 3]] }, "t": { "inserts": [[1, 1, 1]] } }))
        .await;
    watcher.settle().await;
    assert_eq!(watcher.rows(1, "__old_t").len(), 1);
    // It is changed like any table.
    program["indexes"] = json!({ "__old_t": [["a"]] });
    publish(&database, &program, false).await.expect("a plan");
    drop(watcher);
    stop(database).await;
    let database = open(table_options(&path)).await;
    assert_eq!(
        rows(&database, "SELECT * FROM __old_t WHERE a = 2").await,
        json!([[1, 2, 3]])
    );
    // The function would take one for the other.
    let error = publish(&database, &second(copies()), true).await;
    let error = error.expect_err("there are two of that name");
    assert!(
        matches!(&error, UpdateError::Rejected(text) if text.contains("__old_t") && text.contains("[LC0255]")),
        "{error}"
    );
    let delete = sql(&database, OWNER, "DELETE FROM __old_t").await;
    delete.expect("it is a table");
    publish(&database, &first(), true)
        .await
        .expect("it is empty");
    publish(&database, &second(copies()), true)
        .await
        .expect("now there is one");
    stop(database).await;
}

// ---- Schedules ----------------------------------------------------------------------------------------------------------

fn scheduled(migrate: Option<Value>) -> Value {
    let mut program = json!({
        "tables": { "jobs": [["id", "U64"], ["at", "ScheduleAt"]], "ticked": [["id", "U64"]] },
        "uniqueKeys": { "jobs": "id", "ticked": "id" },
        "schedules": "jobs",
    });
    if let Some(migrate) = migrate {
        program["tables"]["jobs"] = json!([["id", "U64"], ["why", "U32"], ["at", "ScheduleAt"]]);
        program["tables"]["__old_jobs"] = json!([["id", "U64"], ["at", "ScheduleAt"]]);
        program["uniqueKeys"]["__old_jobs"] = json!("id");
        program["migrate"] = migrate;
    }
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_the_function_writes_are_due_and_those_of_the_old_table_are_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let database = create_tables(table_options(&path), &scheduled(None)).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let micros = |delay: Duration| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        (now.expect("after 1970") + delay).as_micros() as u64
    };
    let at = micros(Duration::from_millis(1500));
    watcher
        .change(&json!({ "jobs": { "inserts": [[1, at], [2, at]] } }))
        .await;
    drop(watcher);
    let soon = micros(Duration::from_millis(300));
    let changes = json!({ "jobs": { "inserts": [[1, 0, soon], [3, 0, soon]] } });
    publish(
        &database,
        &scheduled(Some(
            json!({ "changes": changes, "counts": ["__old_jobs"] }),
        )),
        true,
    )
    .await
    .expect("the function can do it");
    for _ in 0..1000 {
        let ticked = rows(&database, "SELECT id FROM ticked ORDER BY id").await;
        if ticked == json!([[1], [3]]) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(1700)).await;
    assert_eq!(
        rows(&database, "SELECT id FROM ticked ORDER BY id").await,
        json!([[1], [3]]),
        "2 went with its table"
    );
    stop(database).await;
}

/// A disk that takes no more data for the log once it is full.
#[derive(Default)]
struct Full(AtomicBool);

impl Hooks for Full {
    fn before_write(&self, path: &Path) -> io::Result<()> {
        let is_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        match is_log && self.0.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

/// What the log has not taken is taken back, and what the program may look up stays.
#[tokio::test(flavor = "multi_thread")]
async fn old_names_are_known_when_the_log_has_failed() {
    let directory = tempfile::tempdir().expect("a directory");
    let full = Arc::new(Full::default());
    let mut options = table_options(&directory.path().join("db"));
    options.storage = Arc::new(HookedStorage::new(options.storage, full.clone()));
    let database = create_tables(options, &first()).await;
    let mut program = second(copies());
    program["views"]["v"]["looksUp"] = json!("__old_t");
    publish(&database, &program, true).await.expect("a plan");
    let look = "SELECT * FROM v";
    rows(&database, "INSERT INTO t VALUES (5, 12)").await;
    assert_eq!(rows(&database, look).await, json!([[5, 12]]));
    full.0.store(true, Ordering::SeqCst);
    let insert = "INSERT INTO t VALUES (7, 12)".to_owned();
    let encoder = JsonRows::default();
    let refused = database.sql(caller(OWNER), insert, true, encoder).await;
    assert!(refused.is_err(), "the disk is full");
    assert!(database.read_only().is_some());
    // No query has looked for this one yet.
    let seen = sql(&database, STRANGER, look).await.expect("it reads on");
    assert_eq!(seen.0, json!([[5, 12]]));
    stop(database).await;
}
