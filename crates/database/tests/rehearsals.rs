//! Migrations that are tried on a copy of the data (06 §5.4): what the copy holds and costs, and what ends it early.

use std::future::{pending, Future};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::common::publishing::stop;
use crate::common::tables::{create_tables, sql, table_options, WAITING};
use crate::common::watcher::Watcher;
use crate::common::OWNER;
use lightcone_database::{
    DatabaseHandle, DatabaseOptions, HostKind, ShutdownReason, StepReport, UpdateError,
};
use lightcone_schema::Step;
use serde_json::{json, Value};

/// `t` is to be replaced, and there are rows in `u` beside it.
async fn filled(options: DatabaseOptions) -> DatabaseHandle {
    let program = json!({
        "tables": { "t": [["id", "U64"], ["a", "U32"], ["b", "U32"]], "u": [["id", "U32"]] },
        "uniqueKeys": { "t": "id", "u": "id" },
        "autoInc": { "t": "id" },
    });
    let database = create_tables(options, &program).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "t": { "inserts": [[0, 1, 11], [0, 2, 12]] }, "u": { "inserts": [[1], [2]] } }))
        .await;
    database
}

async fn rehearse(
    database: &DatabaseHandle,
    migrate: Value,
    given_up: impl Future<Output = ()>,
) -> Result<Vec<StepReport>, UpdateError> {
    try_on_a_copy(database, &replacing(migrate), given_up).await
}

async fn try_on_a_copy(
    database: &DatabaseHandle,
    program: &Value,
    given_up: impl Future<Output = ()>,
) -> Result<Vec<StepReport>, UpdateError> {
    let program: Arc<[u8]> = program.to_string().into_bytes().into();
    let prepared = database.prepare_plan(program, HostKind::Wasm).await;
    let prepared = prepared.expect("a program");
    let plan = database.plan_update(&prepared).migration.expect("a plan");
    database.rehearse(prepared, &plan, given_up).await
}

fn replacing(migrate: Value) -> Value {
    json!({
        "tables": {
            "t": [["id", "U64"], ["c", "U32"]],
            "s": [["id", "U64"], ["a", "U32"]],
            "u": [["id", "U32"]],
            "w": [["id", "U32"]],
            "__old_t": [["id", "U64"], ["a", "U32"], ["b", "U32"]],
        },
        "uniqueKeys": { "t": "id", "s": "id", "u": "id", "__old_t": "id" },
        "autoInc": { "t": "id" },
        "migrate": migrate,
    })
}

fn copies() -> Value {
    json!({ "copy": [["__old_t", "t", [0, 2]], ["__old_t", "s", [0, 1]]] })
}

/// What the function wrote, by table.
fn written(reports: &[StepReport]) -> &[(String, u64)] {
    let mut reports = reports.iter();
    let function = reports.find(|report| report.step == Step::RunMigration);
    &function.expect("it ran").written
}

async fn rows(database: &DatabaseHandle, text: &str) -> Value {
    sql(database, OWNER, text).await.expect("rows").0
}

fn options(path: &Path) -> DatabaseOptions {
    table_options(&path.join("db"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_runs_on_a_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = filled(options(directory.path())).await;
    let reports = rehearse(&database, copies(), pending()).await;
    let reports = reports.expect("it would work");
    assert_eq!(
        written(&reports),
        [("s".to_owned(), 2), ("t".to_owned(), 2)]
    );
    let refused = rehearse(&database, json!({ "fails": "no way" }), pending()).await;
    let refused = refused.expect_err("it would fail").to_string();
    assert!(refused.contains("no way"), "{refused}");
    assert_eq!(
        rows(&database, "SELECT a FROM t ORDER BY a").await,
        json!([[1], [2]])
    );
    assert!(
        database.migration_status().last.is_none(),
        "nothing happened"
    );
    stop(database).await;
}

/// Tables that a function uses beside those that it replaces are found out by trying.
#[tokio::test(flavor = "multi_thread")]
async fn the_function_finds_the_rows_of_every_table() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = filled(options(directory.path())).await;
    let mut writes = copies();
    writes["changes"] = json!({ "u": { "inserts": [[3]] } });
    let mut deletes = copies();
    deletes["changes"] = json!({ "u": { "deletes": [[1], [2]] } });
    let reports = rehearse(&database, writes, pending()).await;
    let reports = reports.expect("it would work");
    assert!(written(&reports).contains(&("u".to_owned(), 1)));
    let reports = rehearse(&database, deletes, pending()).await;
    let reports = reports.expect("it would work");
    assert!(written(&reports).contains(&("u".to_owned(), 2)));
    let reads = json!({ "copy": [["__old_t", "t", [0, 2]], ["u", "w", [0]]] });
    let reports = rehearse(&database, reads, pending()).await;
    let reports = reports.expect("it would work");
    assert_eq!(
        written(&reports),
        [("t".to_owned(), 2), ("w".to_owned(), 2)]
    );
    stop(database).await;
}

/// Its bytes and those of the steps have one bound; tables that no step touches are not copied.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_bounded_and_says_that_only_it_is_too_large() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bounded = options(directory.path());
    bounded.limits.migration_bytes_max = 400 << 10;
    let database = filled(bounded).await;
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    let many: Vec<_> = (10..20_000).map(|id| json!([id])).collect();
    watcher.change(&json!({ "u": { "inserts": many } })).await;
    drop(watcher);
    let reports = rehearse(&database, copies(), pending()).await;
    reports.expect("the large table is not read");
    let mut counts = copies();
    counts["counts"] = json!(["u"]);
    let refused = rehearse(&database, counts, pending()).await;
    let refused = refused.expect_err("its index is counted too").to_string();
    assert!(
        refused.contains("was not tried")
            && refused.contains("`u`")
            && refused.contains("[LC0229]"),
        "{refused}"
    );
    stop(database).await;
}

/// Steps that would fit without the copy beside them are not what is at fault.
#[tokio::test(flavor = "multi_thread")]
async fn steps_share_the_bound_with_the_copy() {
    for (bytes_max, text) in [
        // Neither the rows twice, nor their copy.
        (20 << 10, "was not tried"),
        // The copy, and not the steps beside it.
        (300 << 10, "was not tried"),
        (2 << 20, ""),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut bounded = options(directory.path());
        bounded.limits.migration_bytes_max = bytes_max;
        let program = json!({
            "tables": { "t": [["id", "U32"], ["k", "Kind2"]] },
            "uniqueKeys": { "t": "id" },
        });
        let database = create_tables(bounded, &program).await;
        let mut watcher = Watcher::connect(&database, OWNER, 1).await;
        let many: Vec<_> = (0..6000).map(|id| json!([id, 0])).collect();
        watcher.change(&json!({ "t": { "inserts": many } })).await;
        drop(watcher);
        let mut more = program.clone();
        more["tables"]["t"] = json!([["id", "U32"], ["k", "Kind2"], ["more", "U32"]]);
        more["defaults"] = json!({ "t": { "more": 7 } });
        let tried = try_on_a_copy(&database, &more, pending()).await;
        match tried {
            Err(error) if !text.is_empty() => {
                let error = error.to_string();
                assert!(
                    error.contains(text) && error.contains("[LC0229]"),
                    "{error}"
                );
            }
            tried => assert!(text.is_empty() && tried.is_ok(), "{bytes_max}: {tried:?}"),
        }
        stop(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_its_database_and_with_who_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = filled(options(directory.path())).await;
    let mut waits = copies();
    waits["waits"] = json!(true);
    // No other test of this program waits.
    let waiting = async |count: usize| {
        let is_so = async {
            while WAITING.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let is_so = tokio::time::timeout(Duration::from_secs(60), is_so).await;
        is_so.expect("the function runs");
    };
    let ended = rehearse(&database, waits.clone(), waiting(1)).await;
    assert!(matches!(ended, Err(UpdateError::Cancelled)), "{ended:?}");
    let rehearsing = {
        let database = database.clone();
        tokio::spawn(async move { rehearse(&database, waits, pending()).await })
    };
    waiting(2).await;
    database.shutdown(ShutdownReason::Deleted).await;
    let ended = rehearsing.await.expect("no panic");
    assert!(matches!(ended, Err(UpdateError::Cancelled)), "{ended:?}");
}

/// A plan without a function, too.
#[tokio::test(flavor = "multi_thread")]
async fn steps_are_counted_and_change_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut program = json!({
        "tables": { "t": [["id", "U32"], ["a", "U32"], ["k", "Kind2"]] },
        "uniqueKeys": { "t": "id" },
        "indexes": { "t": [["a"]] },
    });
    let first = program.clone();
    let database = create_tables(options(directory.path()), &program).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let rows: Vec<Value> = (0..3000).map(|id| json!([id, id % 5, 0])).collect();
    watcher.change(&json!({ "t": { "inserts": rows } })).await;
    program["tables"]["t"] = json!([["id", "U32"], ["a", "U32"], ["k", "Kind3"], ["more", "U32"]]);
    program["tables"]["n"] = json!([["x", "U32"]]);
    program["indexes"] = json!({ "t": [["k"]] });
    program["defaults"] = json!({ "t": { "more": 7 } });
    let reports = try_on_a_copy(&database, &program, pending()).await;
    let reports = reports.expect("it would work");
    let rows_of = |is_it: fn(&Step) -> bool| {
        let report = reports.iter().find(|report| is_it(&report.step));
        report.expect("a step").rows
    };
    assert_eq!(
        rows_of(|step| matches!(step, Step::AddColumns { .. })),
        3000
    );
    assert_eq!(rows_of(|step| matches!(step, Step::AddIndex { .. })), 3000);
    assert_eq!(rows_of(|step| matches!(step, Step::AddTable { .. })), 0);
    watcher
        .change(&json!({ "t": { "inserts": [[3000, 1, 0]] } }))
        .await;
    assert!(sql(&database, OWNER, "SELECT more FROM t").await.is_err());
    let mut duplicates = first;
    duplicates["uniqueKeys"]["t"] = json!("a");
    duplicates["indexes"] = json!({});
    let refused = try_on_a_copy(&database, &duplicates, pending()).await;
    let refused = refused.expect_err("it would fail").to_string();
    assert!(refused.contains("LC0226"), "{refused}");
    stop(database).await;
}
