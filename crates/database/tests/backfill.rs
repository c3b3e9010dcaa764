//! Rows that are migrated one by one behind the running module (02 §14.9): what it changes meanwhile, functions that fail, cancelled
//! ones, a database that is opened again, a process that is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{open, secrets, OWNER};
use lightcone_database::{
    BackfillEnd, Begun, DatabaseHandle, DatabaseOptions, EnvironmentChange, HostKind,
    MigrationOutcome, MigrationPhase, Policy, RemovedVariables, ShutdownReason, UpdateError,
};
use lightcone_schema::Step;
use lightcone_types::Due;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

async fn begin(database: &DatabaseHandle, program: &Value) -> Result<Begun, UpdateError> {
    begin_with(database, program, EnvironmentChange::default()).await
}

async fn begin_with(
    database: &DatabaseHandle,
    program: &Value,
    environment: EnvironmentChange,
) -> Result<Begun, UpdateError> {
    let program: Arc<[u8]> = program.to_string().into_bytes().into();
    let prepared = database.prepare_update(program, HostKind::Wasm).await?;
    let prepared = prepared.with_environment(environment);
    let token = database.plan_update(&prepared).token;
    let policy = Policy::BreakClients { token };
    database.begin_to_replace(prepared, policy).await
}

async fn begin_backfill(database: &DatabaseHandle, program: &Value) -> BackfillEnd {
    match begin(database, program).await {
        Ok(Begun::Backfill(end)) => end,
        Ok(Begun::Ended) => panic!("it is no backfill"),
        Err(error) => panic!("{error}"),
    }
}

async fn stop(database: DatabaseHandle) {
    database.shutdown(ShutdownReason::ServerStop).await;
}

async fn rows(database: &DatabaseHandle, text: &str) -> Value {
    sql(database, OWNER, text).await.expect("rows").0
}

/// `t` has a key, `e` has none.
fn first() -> Value {
    json!({
        "tables": {
            "t": [["id", "U32"], ["a", "U32"], ["b", "U32"]],
            "e": [["x", "U32"], ["y", "U32"]],
            "u": [["id", "U32"]],
        },
        "uniqueKeys": { "t": "id" },
    })
}

/// `a` goes into a table of its own, with a counter, and is listed in `g`; `b` is called `c`. What `x` was in `e` is listed there too.
fn second(of_t: Value) -> Value {
    let mut t = json!({ "into": [["t", [0, 2]], ["s", [-1, 0, 1]], ["g", [1]]] });
    for (key, value) in of_t.as_object().expect("settings") {
        t[key] = value.clone();
    }
    json!({
        "tables": {
            "t": [["id", "U32"], ["c", "U32"]],
            "s": [["number", "U64"], ["id", "U32"], ["a", "U32"]],
            "g": [["a", "U32"]],
            "e": [["y", "U32"], ["x", "U32"]],
            "u": [["id", "U32"]],
            "__old_t": [["id", "U32"], ["a", "U32"], ["b", "U32"]],
            "__old_e": [["x", "U32"], ["y", "U32"]],
        },
        "uniqueKeys": { "t": "id", "s": "number", "__old_t": "id" },
        "autoInc": { "s": "number" },
        "rows": { "t": t, "e": { "into": [["e", [1, 0]], ["g", [0]]] } },
    })
}

/// Rows as the old program has them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    t: BTreeMap<u64, (u64, u64)>,
    e: BTreeSet<(u64, u64)>,
}

impl Model {
    /// What the new tables have, made from scratch.
    fn expected(&self) -> [Value; 4] {
        let t = self.t.iter().map(|(id, (_, b))| json!([id, b]));
        let s = self.t.iter().map(|(id, (a, _))| json!([id, a]));
        let mut e: Vec<_> = self.e.iter().map(|(x, y)| (*y, *x)).collect();
        e.sort_unstable();
        let listed = self.t.values().map(|(a, _)| *a);
        let g: BTreeSet<u64> = listed.chain(self.e.iter().map(|(x, _)| *x)).collect();
        [
            t.collect(),
            s.collect(),
            e.iter().map(|(y, x)| json!([y, x])).collect(),
            g.iter().map(|a| json!([a])).collect(),
        ]
    }

    /// One transaction at random, made here and there.
    fn step(&mut self, rng: &mut StdRng) -> Value {
        let (mut inserts, mut deletes) = (Vec::new(), Vec::new());
        let (mut e_inserts, mut e_deletes) = (Vec::new(), Vec::new());
        let mut touched = BTreeSet::new();
        for _ in 0..rng.random_range(1..6) {
            let id = rng.random_range(0..400);
            if !touched.insert(id) {
                continue;
            }
            let old = self.t.remove(&id);
            deletes.extend(old.map(|(a, b)| json!([id, a, b])));
            if old.is_none() || rng.random_bool(0.6) {
                let new = (rng.random_range(0..7), rng.random_range(0..1000));
                self.t.insert(id, new);
                inserts.push(json!([id, new.0, new.1]));
            }
        }
        for _ in 0..rng.random_range(0..3) {
            let row = (rng.random_range(0..9), rng.random_range(0..40));
            if self.e.remove(&row) {
                e_deletes.push(json!([row.0, row.1]));
            } else {
                self.e.insert(row);
                e_inserts.push(json!([row.0, row.1]));
            }
        }
        // One row twice in a transaction is another matter than what is tested.
        e_inserts.retain(|row| !e_deletes.contains(row));
        let known: BTreeSet<(u64, u64)> = self.e.clone();
        e_deletes.retain(|row| {
            let row = (row[0].as_u64().expect("x"), row[1].as_u64().expect("y"));
            !known.contains(&row)
        });
        json!({
            "t": { "inserts": inserts, "deletes": deletes },
            "e": { "inserts": e_inserts, "deletes": e_deletes },
        })
    }

    async fn of_old(database: &DatabaseHandle) -> Model {
        let mut model = Model::default();
        for row in listed(&rows(database, "SELECT * FROM t").await) {
            model.t.insert(row[0], (row[1], row[2]));
        }
        for row in listed(&rows(database, "SELECT * FROM e").await) {
            model.e.insert((row[0], row[1]));
        }
        model
    }
}

fn listed(rows: &Value) -> Vec<Vec<u64>> {
    serde_json::from_value(rows.clone()).expect("rows of numbers")
}

async fn new_tables(database: &DatabaseHandle) -> [Value; 4] {
    let numbers = listed(&rows(database, "SELECT number FROM s").await);
    let distinct: BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len());
    [
        rows(database, "SELECT * FROM t ORDER BY id").await,
        rows(database, "SELECT id, a FROM s ORDER BY id").await,
        rows(database, "SELECT * FROM e ORDER BY y, x").await,
        rows(database, "SELECT * FROM g ORDER BY a").await,
    ]
}

fn slow_options(path: &Path, share_percent: usize) -> DatabaseOptions {
    let mut options = table_options(path);
    options.limits.backfill_share_percent = share_percent;
    // A busy machine may let threads wait for longer than the default.
    options.limits.backfill_transaction_time_max = Duration::from_secs(1);
    options
}

/// A database with some rows, and who changes them.
async fn filled(options: DatabaseOptions, rng: &mut StdRng) -> (DatabaseHandle, Watcher, Model) {
    let database = create_tables(options, &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let mut model = Model::default();
    let mut inserts = Vec::new();
    for id in 0..300 {
        let row = (rng.random_range(0..7), rng.random_range(0..1000));
        model.t.insert(id, row);
        inserts.push(json!([id, row.0, row.1]));
    }
    watcher
        .change(&json!({ "t": { "inserts": inserts } }))
        .await;
    for _ in 0..20 {
        let change = model.step(rng);
        watcher.change(&change).await;
    }
    (database, watcher, model)
}

fn hidden_tables(rows: &Value) -> usize {
    let rows = rows.as_array().expect("rows").iter();
    let hidden = |row: &&Value| row[0].as_str().is_some_and(|name| name.starts_with('$'));
    rows.filter(hidden).count()
}

/// Also the owner finds nothing of the hidden tables, nor is he sent any when he asks for all.
async fn no_client_sees_them(database: &DatabaseHandle) {
    for table in ["$new.t", "$done.t", "$again", "$backfill"] {
        for text in [
            format!("SELECT * FROM \"{table}\""),
            format!("DELETE FROM \"{table}\""),
        ] {
            let error = sql(database, OWNER, &text).await.expect_err("it is hidden");
            assert!(error.contains(table), "{error}");
        }
    }
    let mut watcher = Watcher::connect(database, OWNER, 99).await;
    watcher.subscribe(1, "SELECT * FROM *").await;
    assert!(!watcher.rows(1, "t").is_empty());
    let tables = watcher.tables(1);
    assert!(
        !tables.iter().any(|table| table.starts_with('$')),
        "{tables:?}"
    );
}

async fn hidden(database: &DatabaseHandle) -> usize {
    hidden_tables(&rows(database, "SELECT table_name FROM st_table").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn new_tables_follow_what_the_old_module_changes() {
    for seed in 0..3 {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("db");
        let mut rng = StdRng::seed_from_u64(seed);
        let (database, mut watcher, mut model) = filled(slow_options(&path, 20), &mut rng).await;
        watcher.watch(1, &["t", "e"]).await;
        let program = second(json!({ "sleeps_us": 200 }));
        let end = begin_backfill(&database, &program).await;
        assert!(hidden(&database).await > 0);
        no_client_sees_them(&database).await;
        let mut changes = 0;
        loop {
            let Some(running) = database.migration_status().running else {
                panic!("{:?}", database.migration_status().last);
            };
            assert_eq!(running.phase, MigrationPhase::Backfill);
            // The last rows are left for when no change disturbs it.
            if running.rows + 30 > running.rows_replaced {
                break;
            }
            let change = model.step(&mut rng);
            watcher.change(&change).await;
            changes += 1;
        }
        assert!(changes > 20, "{changes}");
        watcher.settle().await;
        assert_eq!(watcher.rows(1, "t").len(), model.t.len());
        assert_eq!(watcher.rows(1, "e").len(), model.e.len());
        // What another one would do can be tried meanwhile.
        let other = second(json!({})).to_string().into_bytes();
        let prepared = database.prepare_plan(other, HostKind::Wasm).await;
        let prepared = prepared.expect("a program");
        let plan = database.plan_update(&prepared).migration.expect("a plan");
        let tried = database
            .rehearse(prepared, &plan, std::future::pending())
            .await;
        tried.expect("it would work");
        // Another program has to wait; the same one waits for the same end.
        let refused = begin(&database, &second(json!({ "sleeps_us": 1 }))).await;
        assert!(
            matches!(&refused, Err(UpdateError::Refused(text)) if text.contains("[LC0244]")),
            "{:?}",
            refused.err()
        );
        let again = begin_backfill(&database, &program).await;
        end.wait().await.expect("it is done");
        again.wait().await.expect("it is done");
        drop(watcher);
        assert_eq!(new_tables(&database).await, model.expected());
        assert_eq!(hidden(&database).await, 0);
        let status = database.migration_status();
        assert!(status.running.is_none());
        assert_eq!(
            status.last.expect("there was one").outcome,
            MigrationOutcome::Committed
        );
        let mut watcher = Watcher::connect(&database, OWNER, 2).await;
        let insert = json!({ "s": { "inserts": [[0, 999, 1]] } });
        watcher.change(&insert).await;
        let number = rows(&database, "SELECT number FROM s WHERE id = 999").await;
        let highest = listed(&rows(&database, "SELECT number FROM s").await);
        assert_eq!(
            highest.iter().map(|row| row[0]).max(),
            number[0][0].as_u64()
        );
        drop(watcher);
        let before = new_tables(&database).await;
        stop(database).await;
        let database = open(table_options(&path)).await;
        assert_eq!(new_tables(&database).await, before);
        stop(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_opened_again_goes_on() {
    for snapshot_log_bytes in [u64::MAX, 2 << 10] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("db");
        let mut rng = StdRng::seed_from_u64(7);
        let options = || {
            let mut options = slow_options(&path, 5);
            options.limits.snapshot_log_bytes = snapshot_log_bytes;
            options
        };
        let (database, mut watcher, mut model) = filled(options(), &mut rng).await;
        let program = second(json!({ "sleeps_us": 300 }));
        let end = begin_backfill(&database, &program).await;
        for _ in 0..20 {
            let change = model.step(&mut rng);
            watcher.change(&change).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let done = database.migration_status().running.expect("it runs").rows;
        assert!(done > 0);
        drop(watcher);
        let due = database.shutdown(ShutdownReason::ServerStop).await;
        let error = end.wait().await.expect_err("it was closed");
        assert!(error.to_string().contains("[LC0251]"), "{error}");
        assert_eq!(due, Some(Due::Open), "a server that starts opens it");
        let database = open(options()).await;
        let running = database.migration_status().running.expect("it goes on");
        assert!(running.rows + 40 >= done, "{} behind {done}", running.rows);
        no_client_sees_them(&database).await;
        assert!(hidden(&database).await > 0, "they are still there");
        assert_eq!(Model::of_old(&database).await, model);
        let mut watcher = Watcher::connect(&database, OWNER, 1).await;
        for _ in 0..20 {
            let change = model.step(&mut rng);
            watcher.change(&change).await;
        }
        let end = begin_backfill(&database, &program).await;
        end.wait().await.expect("it is done");
        drop(watcher);
        assert_eq!(new_tables(&database).await, model.expected());
        stop(database).await;
        let database = open(options()).await;
        assert_eq!(new_tables(&database).await, model.expected());
        assert_eq!(hidden(&database).await, 0);
        stop(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_between_a_switch_and_the_end_of_the_database_are_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(8);
    let (database, mut watcher, mut model) = filled(slow_options(&path, 100), &mut rng).await;
    let mut program = second(json!({}));
    // The switch starts an instance before it takes its steps.
    program["starts_ms"] = json!(1000);
    let end = begin_backfill(&database, &program).await;
    let is_switching = |database: &DatabaseHandle| {
        let running = database.migration_status().running.expect("it runs");
        running.phase != MigrationPhase::Backfill
    };
    while !is_switching(&database) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let deleted = model.t.pop_first().expect("a row");
    let (updated, row) = model.t.pop_first().expect("a row");
    model.t.insert(updated, (row.0 + 1, row.1 + 1));
    let change = json!({ "t": {
        "deletes": [[deleted.0, deleted.1.0, deleted.1.1], [updated, row.0, row.1]],
        "inserts": [[updated, row.0 + 1, row.1 + 1]],
    } });
    tokio::join!(watcher.change(&change), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop(database).await;
    });
    let error = end.wait().await.expect_err("it was closed").to_string();
    assert!(error.contains("[LC0251]"), "{error}");
    let database = open(slow_options(&path, 100)).await;
    for _ in 0..10_000 {
        if database.migration_status().running.is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let last = database.migration_status().last.expect("it has ended");
    assert_eq!(last.outcome, MigrationOutcome::Committed);
    assert_eq!(new_tables(&database).await, model.expected());
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_fails_harms_no_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(3);
    let (database, mut watcher, mut model) = filled(slow_options(&path, 50), &mut rng).await;
    watcher.watch(1, &["t"]).await;
    // The first column is compared by its first byte.
    model.t.retain(|id, _| *id != 200);
    let gone = rows(&database, "SELECT * FROM t WHERE id = 200").await;
    watcher.change(&json!({ "t": { "deletes": gone } })).await;
    for (settings, parts) in [
        (
            json!({ "failsAt": 7 }),
            vec!["id = 7", "`t`", "not wanted", "[LC0245]"],
        ),
        (json!({ "traps": 7 }), vec!["id = 7", "a trap", "[LC0245]"]),
        // What it makes of one row is in the way of what it makes of another.
        (
            json!({ "into": [["t", [1, 2]]] }),
            vec!["`t_id_idx_btree`", "already exists", "[LC0245]"],
        ),
        (
            json!({ "into": [["t", [1, 2]]], "goesOn": true }),
            vec!["already exists", "[LC0245]"],
        ),
        (json!({ "into": [["u", [0]]] }), vec!["[LC0247]"]),
        (json!({ "into": [["nowhere", [0]]] }), vec!["[LC0247]"]),
        (json!({ "sleeps_us": 1_100_000 }), vec!["[LC0249]"]),
    ] {
        let end = begin_backfill(&database, &second(settings)).await;
        let error = end.wait().await.expect_err("it fails").to_string();
        for part in parts {
            assert!(error.contains(part) && !error.contains('$'), "{error}");
        }
        let status = database.migration_status();
        assert!(status.running.is_none());
        let last = status.last.expect("there was one").outcome;
        assert_eq!(last, MigrationOutcome::Failed { reason: error });
        assert_eq!(hidden(&database).await, 0);
        assert_eq!(Model::of_old(&database).await, model);
    }
    // The same by what the module changes: its transaction is committed.
    for (settings, row, part) in [
        (json!({ "failsAt": 200 }), json!([200, 1, 1]), "not wanted"),
        (
            json!({ "into": [["t", [2, 1]]] }),
            json!([200, 2, 1]),
            "already exists",
        ),
    ] {
        let mut slow = settings;
        slow["sleeps_us"] = json!(5000);
        if part == "already exists" {
            // Every row has a value of its own there, but for the one that is to come.
            let all = rows(&database, "SELECT * FROM t").await;
            let with_ids = listed(&all).into_iter().enumerate();
            let with_ids: Vec<Value> = with_ids.map(|(b, row)| json!([row[0], 1, b])).collect();
            watcher
                .change(&json!({ "t": { "deletes": all, "inserts": with_ids } }))
                .await;
        }
        let end = begin_backfill(&database, &second(slow)).await;
        while database.migration_status().running.expect("it runs").rows < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        watcher
            .change(&json!({ "t": { "inserts": [row.clone()] } }))
            .await;
        let error = end.wait().await.expect_err("it fails").to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(
            rows(&database, "SELECT * FROM t WHERE id = 200").await,
            json!([row.clone()])
        );
        watcher.change(&json!({ "t": { "deletes": [row] } })).await;
        assert_eq!(hidden(&database).await, 0);
    }
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    drop(watcher);
    let model = Model::of_old(&database).await;
    stop(database).await;
    let database = open(slow_options(&path, 50)).await;
    assert!(database.migration_status().running.is_none());
    assert_eq!(Model::of_old(&database).await, model);
    assert_eq!(hidden(&database).await, 0);
    let end = begin_backfill(&database, &second(json!({}))).await;
    end.wait().await.expect("nothing is in its way");
    assert_eq!(new_tables(&database).await, model.expected());
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_transactions_up_for_too_long_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut rng = StdRng::seed_from_u64(9);
    let mut options = slow_options(&directory.path().join("db"), 10);
    options.limits.backfill_transaction_time_max = Duration::from_millis(400);
    let (database, mut watcher, _) = filled(options, &mut rng).await;
    let slow = second(json!({ "sleeps_us": 10_000 }));
    let end = begin_backfill(&database, &slow).await;
    let inserts: Vec<Value> = (1000..1200).map(|id| json!([id, 1, 1])).collect();
    let started = std::time::Instant::now();
    let change = json!({ "t": { "inserts": inserts } });
    watcher.change(&change).await;
    assert!(started.elapsed() < Duration::from_millis(1900));
    let error = end.wait().await.expect_err("it is ended").to_string();
    assert!(error.contains("[LC0249]"), "{error}");
    let inserted = rows(&database, "SELECT * FROM t WHERE id >= 1000").await;
    assert_eq!(listed(&inserted).len(), 200);
    assert_eq!(hidden(&database).await, 0);
    drop(watcher);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_makes_must_follow_from_its_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut rng = StdRng::seed_from_u64(5);
    let options = slow_options(&directory.path().join("db"), 50);
    let (database, mut watcher, model) = filled(options, &mut rng).await;
    let remembers = json!({ "into": [["g", [1]]], "remembers": true, "sleeps_us": 2000 });
    let end = begin_backfill(&database, &second(remembers)).await;
    while database.migration_status().running.expect("it runs").rows < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let all = rows(&database, "SELECT * FROM t").await;
    watcher.change(&json!({ "t": { "deletes": all } })).await;
    let error = end.wait().await.expect_err("it is found out").to_string();
    assert!(error.contains("[LC0248]"), "{error}");
    assert_eq!(rows(&database, "SELECT * FROM t").await, json!([]));
    assert!(!model.t.is_empty());
    drop(watcher);
    stop(database).await;
}

/// Variables that are published with the program are those of the running one until it goes.
#[tokio::test(flavor = "multi_thread")]
async fn the_environment_changes_with_the_program() {
    const VARIABLES: &str = "SELECT key, value FROM st_env ORDER BY key";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let options = || {
        let options = slow_options(&path, 5);
        options.commons.set_secrets(secrets(3));
        options
    };
    let variables = |[hidden, shown]: [&str; 2]| {
        let set = [("HIDDEN", hidden), ("SHOWN", shown)];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let removed = RemovedVariables::Keys(BTreeSet::from(["OLD".to_owned()]));
        let change = EnvironmentChange::new(BTreeMap::from(set), removed).expect("a change");
        let secret = BTreeSet::from(["HIDDEN".to_owned()]);
        change.with_secrets(secret).expect("it is set")
    };
    let mut rng = StdRng::seed_from_u64(8);
    let (database, watcher, model) = filled(options(), &mut rng).await;
    drop(watcher);
    let old = BTreeMap::from([("OLD".to_owned(), "one".to_owned())]);
    let old = EnvironmentChange::new(old, RemovedVariables::None).expect("a change");
    database
        .change_environment(old, None)
        .await
        .expect("changed");
    let program = second(json!({ "sleeps_us": 500 }));
    let before = json!([["OLD", "one"]]);

    let begun = begin_with(&database, &program, variables(["s3cret-value", "two"])).await;
    let Ok(Begun::Backfill(end)) = begun else {
        panic!("it is a backfill");
    };
    // Who publishes the same again waits with the others; another change is refused.
    let again = async |database: &DatabaseHandle| {
        let same = begin_with(database, &program, variables(["s3cret-value", "two"])).await;
        assert!(matches!(same, Ok(Begun::Backfill(_))));
        for other in [["s3cret-value", "three"], ["another", "two"]] {
            let other = begin_with(database, &program, variables(other)).await;
            let error = other.err().expect("refused").to_string();
            assert!(error.contains("[LC0258]"), "{error}");
        }
        assert_eq!(rows(database, VARIABLES).await, before);
    };
    again(&database).await;
    stop(database).await;
    end.wait().await.expect_err("it was closed");

    // So it is when the database is opened again, and knows the secret by what was sealed alone.
    let database = open(options()).await;
    again(&database).await;
    let end = begin_backfill(&database, &program).await;
    end.wait().await.expect("it is done");
    assert_eq!(new_tables(&database).await, model.expected());
    let after = rows(&database, VARIABLES).await;
    let sealed = after[0][1].as_str().expect("text").to_owned();
    assert!(sealed.starts_with("lightcone-sealed-1:"), "{sealed}");
    assert_eq!(after, json!([["HIDDEN", sealed], ["SHOWN", "two"]]));
    stop(database).await;
    let mut files = vec![path];
    while let Some(file) = files.pop() {
        match std::fs::read_dir(&file) {
            Ok(entries) => files.extend(entries.map(|entry| entry.expect("an entry").path())),
            Err(_) => {
                let bytes = std::fs::read(&file).expect("a file");
                // Segments are filled with zeros ahead of time.
                let end = bytes.iter().rposition(|byte| *byte != 0);
                let bytes = &bytes[..end.map_or(0, |last| last + 1)];
                let secret = b"s3cret-value";
                assert!(!bytes.windows(secret.len()).any(|bytes| bytes == secret));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_is_cancelled() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(4);
    let (database, watcher, model) = filled(slow_options(&path, 10), &mut rng).await;
    drop(watcher);
    let program = second(json!({ "sleeps_us": 3000 }));
    let end = begin_backfill(&database, &program).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(database.cancel_migration());
    let error = end.wait().await.expect_err("it was cancelled").to_string();
    assert!(error.contains("[LC0240]"), "{error}");
    let status = database.migration_status();
    assert_eq!(
        status.last.expect("there was one").outcome,
        MigrationOutcome::Cancelled
    );
    assert_eq!(hidden(&database).await, 0);
    assert!(!database.cancel_migration(), "none runs");
    // After a restart too, and if a transaction may be no more than some of the catalog's rows.
    let end = begin_backfill(&database, &program).await;
    stop(database).await;
    end.wait().await.expect_err("it was closed");
    let mut options = slow_options(&path, 10);
    options.limits.transaction_bytes_max = 1 << 10;
    let database = open(options).await;
    assert!(database.cancel_migration());
    while database.migration_status().running.is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(hidden(&database).await, 0);
    no_client_sees_them(&database).await;
    assert_eq!(Model::of_old(&database).await, model);
    stop(database).await;
    let database = open(slow_options(&path, 10)).await;
    assert!(database.migration_status().running.is_none());
    // The publisher may go away.
    let end = begin_backfill(&database, &second(json!({}))).await;
    drop(end);
    while database.migration_status().running.is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(new_tables(&database).await, model.expected());
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_migrates_the_rows_of_a_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut rng = StdRng::seed_from_u64(6);
    let options = slow_options(&directory.path().join("db"), 20);
    let (database, watcher, model) = filled(options, &mut rng).await;
    drop(watcher);
    let rehearse = async |settings: Value| {
        let bytes: Arc<[u8]> = second(settings).to_string().into_bytes().into();
        let prepared = database.prepare_plan(bytes, HostKind::Wasm).await;
        let prepared = prepared.expect("a program");
        let plan = database.plan_update(&prepared).migration.expect("a plan");
        database
            .rehearse(prepared, &plan, std::future::pending())
            .await
    };
    let reports = rehearse(json!({})).await.expect("it would work");
    let of_rows = reports.iter().find(|report| report.step == Step::Backfill);
    let written: BTreeMap<_, _> = of_rows.expect("it ran").written.iter().cloned().collect();
    let [t, s, e, g] = model
        .expected()
        .map(|rows| rows.as_array().expect("rows").len() as u64);
    let expected = [("t", t), ("s", s), ("e", e), ("g", g)];
    let expected = expected.map(|(table, rows)| (table.to_owned(), rows));
    assert_eq!(written, BTreeMap::from(expected));
    let refused = rehearse(json!({ "failsAt": 7 })).await;
    let refused = refused.expect_err("it would fail").to_string();
    assert!(refused.contains("not wanted"), "{refused}");
    assert_eq!(Model::of_old(&database).await, model);
    assert_eq!(hidden(&database).await, 0);
    stop(database).await;
}

// ---- A process that is killed -------------------------------------------------------------------------------------------

fn killed_options(path: &Path, share_percent: usize) -> DatabaseOptions {
    let mut options = slow_options(path, share_percent);
    options.limits.snapshot_log_bytes = 16 << 10;
    options
}

fn slow_program() -> Value {
    second(json!({ "sleeps_us": 100 }))
}

/// Changes rows while they are migrated, for ever.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed() {
    let Some(directory) = std::env::var_os("LIGHTCONE_TEST_CHILD") else {
        return;
    };
    let mut rng = StdRng::seed_from_u64(u64::from(std::process::id()));
    let database = open(killed_options(Path::new(&directory), 4)).await;
    let mut model = Model::of_old(&database).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let _end = begin_backfill(&database, &slow_program()).await;
    println!("begun");
    std::io::stdout().flush().expect("the other process reads");
    loop {
        let change = model.step(&mut rng);
        watcher.change(&change).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(12);
    let (database, watcher, _) = filled(killed_options(&path, 4), &mut rng).await;
    drop(watcher);
    stop(database).await;
    let mut went_on = 0;
    for _ in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args(["backfill::child_that_is_killed", "--exact", "--nocapture"])
            .env("LIGHTCONE_TEST_CHILD", &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let begun = |line: &String| line.ends_with("begun");
        let said = lines.by_ref().map_while(Result::ok).find(begun);
        std::thread::sleep(Duration::from_micros(rng.random_range(0..40_000)));
        child.kill().expect("it runs");
        child.wait().expect("it is gone");
        let database = open(killed_options(&path, 4)).await;
        let Some(running) = database.migration_status().running else {
            assert!(said.is_none(), "{:?}", database.migration_status());
            stop(database).await;
            break;
        };
        went_on = went_on.max(running.rows);
        assert!(hidden(&database).await > 0);
        stop(database).await;
    }
    assert!(went_on > 10, "{went_on}");
    let database = open(killed_options(&path, 1)).await;
    let model = Model::of_old(&database).await;
    stop(database).await;
    let database = open(killed_options(&path, 100)).await;
    while let Some(running) = database.migration_status().running {
        let is_backfill = running.phase == MigrationPhase::Backfill;
        let least = went_on.min(running.rows_replaced) / 2;
        assert!(!is_backfill || running.rows >= least, "{running:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(new_tables(&database).await, model.expected());
    assert_eq!(hidden(&database).await, 0);
    stop(database).await;
}
