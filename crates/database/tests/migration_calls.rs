//! Programs with other schemas, published over calls that are planned or under way.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::publishing::{log_of, publish, stop, Noted};
use crate::common::requests::until;
use crate::common::tables::{create_tables, sql, table_options, TICKS};
use crate::common::watcher::Watcher;
use crate::common::{caller, OWNER};
use lightcone_database::{CallArgs, CallError, DatabaseHandle};
use lightcone_storage::sim::{HookedStorage, Hooks};
use serde_json::{json, Value};

fn scheduled(is_scheduled: bool, more: bool) -> Value {
    let mut columns = vec![json!(["id", "U64"]), json!(["at", "ScheduleAt"])];
    if more {
        columns.push(json!(["more", "U32"]));
    }
    json!({
        "tables": { "jobs": columns, "ticked": [["id", "U64"]] },
        "uniqueKeys": { "jobs": "id", "ticked": "id" },
        "defaults": { "jobs": if more { json!({ "more": 1 }) } else { json!({}) } },
        "schedules": if is_scheduled { json!("jobs") } else { json!("nothing") },
    })
}

async fn until_ticked(watcher: &mut Watcher, ids: &[u64]) {
    for _ in 0..2000 {
        let ticked = watcher.ask("SELECT * FROM ticked").await;
        if ids
            .iter()
            .all(|id| ticked.contains_key(&id.to_le_bytes()[..]))
        {
            assert_eq!(ticked.len(), ids.len(), "{ticked:?}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{ids:?} were not called");
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_come_go_and_move_with_their_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (options, noted) = (table_options(&path), Arc::new(Noted::default()));
    options.commons.set_due_notes(noted.clone());
    let database = create_tables(options, &scheduled(false, false)).await;
    assert!(!noted.is_noted(), "nothing is planned");
    let now = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_micros() as i64
    };
    let soon = || now() + 300_000;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "jobs": { "inserts": [[1, 5]] } }))
        .await;
    publish(&database, &scheduled(true, false), false)
        .await
        .expect("a schedule is no break");
    assert!(noted.is_noted(), "the server is to open it when it starts");
    until_ticked(&mut watcher, &[1]).await;
    // Planned under the old table's id, and called under the new one.
    watcher
        .change(&json!({ "jobs": { "inserts": [[2, soon()], [3, soon()]] } }))
        .await;
    publish(&database, &scheduled(true, true), true)
        .await
        .expect("a column with a default");
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    until_ticked(&mut watcher, &[1, 2, 3]).await;
    watcher
        .change(&json!({ "jobs": { "inserts": [[4, soon(), 1]] } }))
        .await;
    publish(&database, &scheduled(false, true), false)
        .await
        .expect("and it goes");
    tokio::time::sleep(Duration::from_millis(500)).await;
    until_ticked(&mut watcher, &[1, 2, 3]).await;
    assert_eq!(
        watcher.ask("SELECT * FROM jobs").await.len(),
        1,
        "the row stays"
    );
    let log = log_of(&database);
    for line in [
        "Adding schedule to table `jobs`",
        "Dropping schedule of table `jobs`",
    ] {
        assert!(log.iter().any(|logged| logged == line), "{line}: {log:?}");
    }
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_procedure_runs_once_at_a_time_over_a_move() {
    let directory = tempfile::tempdir().expect("a directory");
    let with_procedures = |more| {
        let mut program = scheduled(true, more);
        program["procedures"] = json!(true);
        program
    };
    let options = table_options(&directory.path().join("db"));
    let database = create_tables(options, &with_procedures(false)).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "jobs": { "inserts": [[1, -20_000]] } }))
        .await;
    let begun = || TICKS.begun.load(Ordering::SeqCst);
    until("it was called", || begun() >= 1).await;
    publish(&database, &with_procedures(true), true)
        .await
        .expect("a column with a default");
    let before = begun();
    until("it is called again", || begun() >= before + 2).await;
    assert_eq!(TICKS.running_max.load(Ordering::SeqCst), 1);
    stop(database).await;
}

// ---- Calls under way ----------------------------------------------------------------------------------------------------

/// Calls `later`, which inserts `first` and, after a sleep, `then`.
async fn later(database: DatabaseHandle, us: u64, first: Value, then: Value) -> Option<String> {
    let what = json!({ "first": first, "us": us, "then": then });
    let args = CallArgs::Json(json!([what.to_string()]).to_string());
    match database.call(caller(OWNER), "later", args).await {
        Ok(_) => None,
        Err(CallError::Database(text)) => Some(text),
        Err(error) => panic!("{error:?}"),
    }
}

async fn call_over_an_update(suspends: bool) {
    let program = |columns: Value, more: bool| {
        let mut tables = json!({ "t": [["id", "U32"]], "ev": columns });
        if more {
            tables["n"] = json!([["x", "U32"]]);
        }
        json!({ "tables": tables, "events": ["ev"], "procedures": true, "suspends": suspends })
    };
    let old = json!([["a", "U32"], ["b", "U32"]]);
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let database = create_tables(options, &program(old.clone(), false)).await;
    let row = |id: u32| json!({ "t": { "inserts": [[id]] } });
    #[expect(
        clippy::async_yields_async,
        reason = "the call goes on while the program is replaced"
    )]
    let begin = async |id: u32, then: Value| {
        let call = tokio::spawn(later(database.clone(), 1_500_000, row(id), then));
        let query = format!("SELECT id FROM t WHERE id = {id}");
        let is_there = async || {
            let rows = sql(&database, OWNER, &query).await.expect("rows").0;
            rows.to_string().contains(&id.to_string())
        };
        while !is_there().await {
            assert!(!call.is_finished(), "it waits");
        }
        call
    };
    // What is only added does no harm.
    let call = begin(1, row(2)).await;
    publish(&database, &program(old, true), false)
        .await
        .expect("a new table");
    assert!(!call.is_finished());
    assert_eq!(call.await.expect("no panic"), None);
    // Of its rows, others would be made.
    let call = begin(3, json!({ "ev": { "inserts": [[1, 2]] } })).await;
    publish(&database, &program(json!([["c", "U64"]]), true), true)
        .await
        .expect("an event table may change");
    assert!(!call.is_finished());
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    watcher.subscribe(1, "SELECT * FROM ev").await;
    let error = call.await.expect("no panic").expect("it is refused");
    assert!(error.contains("[LC0233]"), "{error}");
    watcher.change(&json!({ "ev": { "inserts": [[7]] } })).await;
    assert_eq!(watcher.events(), [7_u64.to_le_bytes()]);
    // New calls are of the new program.
    let then = json!({ "ev": { "inserts": [[8]] } });
    assert_eq!(later(database.clone(), 0, json!({}), then).await, None);
    watcher.settle().await;
    assert_eq!(watcher.events().len(), 2);
    let rows = sql(
        &database,
        OWNER,
        "SELECT id FROM t WHERE id < 10 ORDER BY id",
    )
    .await;
    assert_eq!(rows.expect("rows").0, json!([[1], [2], [3]]));
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_the_old_program_writes_nothing_into_changed_tables() {
    call_over_an_update(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_one_that_is_suspended() {
    call_over_an_update(true).await;
}

/// The threads that directories are synced on.
#[derive(Default)]
struct Synced(Mutex<Vec<String>>);

impl Hooks for Synced {
    fn before_sync_directory(&self, _: &Path) -> std::io::Result<()> {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        self.0.lock().expect("no panic").push(name);
        Ok(())
    }
}

/// A module with a schedule makes the server open its database after a crash, which is noted on the disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_publish_syncs_no_directory_on_the_writer() {
    let directory = tempfile::tempdir().expect("a directory");
    let synced = Arc::new(Synced::default());
    let mut options = table_options(&directory.path().join("db"));
    options.storage = Arc::new(HookedStorage::new(options.storage, synced.clone()));
    let noted = Arc::new(Noted::default());
    options.commons.set_due_notes(noted.clone());
    let mut program = json!({ "tables": { "t": [["id", "U32"]] } });
    let database = create_tables(options, &program).await;
    assert!(!noted.is_noted());
    program["tables"]["jobs"] = json!([["id", "U64"], ["at", "ScheduleAt"]]);
    program["tables"]["ticked"] = json!([["id", "U64"]]);
    program["uniqueKeys"] = json!({ "jobs": "id" });
    program["schedules"] = json!("jobs");
    synced.0.lock().expect("no panic").clear();
    publish(&database, &program, false)
        .await
        .expect("it adds tables");
    let (mut threads, synced) = (noted.threads(), synced.0.lock().expect("no panic").clone());
    assert!(!threads.is_empty());
    threads.extend(synced);
    assert!(!threads.contains(&"writer".to_owned()), "{threads:?}");
    stop(database).await;
}
