//! Programs with other schemas, published under connected clients: what they hold goes on to be what their queries give, or they
//! are disconnected; a publish that fails changes nothing; a process that is killed leaves the old database or the new one.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use common::requests::until;
use common::tables::{create_tables, sql, table_options, TICKS};
use common::watcher::Watcher;
use common::{caller, open, OWNER, STRANGER};
use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, HostKind, Outgoing, Policy, ShutdownReason, UpdateError,
};
use lightcone_schema::Step;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

async fn publish(
    database: &DatabaseHandle,
    program: &Value,
    may_break: bool,
) -> Result<(), UpdateError> {
    let program: Arc<[u8]> = program.to_string().into_bytes().into();
    let prepared = database.prepare_update(program, HostKind::Wasm).await?;
    let token = database.plan_update(&prepared).token;
    let policy = match may_break {
        true => Policy::BreakClients { token },
        false => Policy::Compatible,
    };
    database.replace(prepared, policy).await.map(drop)
}

async fn stop(database: DatabaseHandle) {
    database.shutdown(ShutdownReason::ServerStop).await;
}

fn log_of(database: &DatabaseHandle) -> Vec<String> {
    let tail = database.logs().tail(None);
    let lines = String::from_utf8(tail).expect("text");
    let message = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["message"].as_str().expect("a text").to_owned()
    };
    lines.lines().map(message).collect()
}

fn first() -> Value {
    json!({
        "tables": {
            "t": [["id", "U32"], ["a", "U32"], ["k", "Kind2"]],
            "u": [["id", "U32"], ["t", "U32"]],
        },
        "uniqueKeys": { "t": "id", "u": "id" },
        "indexes": { "t": [["a"]], "u": [["t"]] },
        "views": { "v": { "query": "SELECT * FROM t WHERE a = 1", "table": "t" } },
    })
}

/// Enums with one variant more, other indexes, another table.
fn compatible() -> Value {
    let mut program = first();
    program["tables"]["t"] = json!([["id", "U32"], ["a", "U32"], ["k", "Kind3"]]);
    program["tables"]["n"] = json!([["x", "U32"]]);
    program["indexes"] = json!({ "t": [["k"]], "u": [] });
    program
}

const QUERIES: [&str; 6] = [
    "SELECT * FROM t",
    "SELECT * FROM t WHERE a = 1",
    "SELECT t.* FROM t JOIN u ON t.id = u.t",
    "SELECT u.* FROM u JOIN t ON u.t = t.a",
    "SELECT * FROM t ORDER BY id LIMIT 2",
    "SELECT * FROM v",
];

async fn check(watcher: &mut Watcher) {
    watcher.settle().await;
    for (set, text) in (1..).zip(QUERIES) {
        let table = if text.contains("FROM v") {
            "v"
        } else {
            &text[7..8]
        };
        let table = if table == "*" { "t" } else { table };
        let expected = watcher.ask(text).await;
        assert_eq!(watcher.rows(set, table), expected, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_go_on_through_a_compatible_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let database = create_tables(options.clone(), &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let mut other = Watcher::connect(&database, STRANGER, 2).await;
    watcher
        .change(&json!({ "t": { "inserts": [[1, 1, 0], [2, 1, 1], [3, 2, 0]] }, "u": { "inserts": [[1, 1], [2, 2]] } }))
        .await;
    for (set, text) in (1..).zip(QUERIES) {
        watcher.subscribe(set, text).await;
        other.subscribe(set, text).await;
    }
    check(&mut watcher).await;
    publish(&database, &compatible(), false)
        .await
        .expect("nobody has to go");
    // The new variant, through every query.
    watcher
        .change(&json!({ "t": { "inserts": [[4, 1, 2], [0, 1, 2]], "deletes": [[3, 2, 0]] }, "u": { "inserts": [[3, 4], [4, 0]] }, "n": { "inserts": [[1]] } }))
        .await;
    check(&mut watcher).await;
    check(&mut other).await;
    assert_eq!(watcher.take_errors(), []);
    watcher
        .change(&json!({ "t": { "deletes": [[1, 1, 0], [4, 1, 2]] } }))
        .await;
    check(&mut watcher).await;
    check(&mut other).await;
    assert_eq!(watcher.sets().len(), QUERIES.len());
    // And back again, as far as that goes: the index that joins need is the module's again.
    let mut again = compatible();
    again["indexes"] = first()["indexes"].clone();
    publish(&database, &again, false)
        .await
        .expect("indexes come and go");
    watcher
        .change(&json!({ "t": { "inserts": [[9, 1, 2]] }, "u": { "inserts": [[9, 9]] } }))
        .await;
    check(&mut watcher).await;
    watcher.unsubscribe(3).await;
    let log = log_of(&database);
    for line in [
        "Changing columns of table `t`",
        "Creating table `n`",
        "Dropping index `t_a_idx_btree` on table `t`",
        "Database updated",
    ] {
        assert!(log.iter().any(|logged| logged == line), "{line}: {log:?}");
    }
    let rows = |database: &DatabaseHandle| {
        let database = database.clone();
        async move {
            sql(&database, OWNER, "SELECT * FROM t ORDER BY id")
                .await
                .expect("rows")
                .0
        }
    };
    let before = rows(&database).await;
    drop((watcher, other));
    stop(database).await;
    let database = open(options).await;
    assert_eq!(rows(&database).await, before);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_go_when_the_change_breaks_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let database = create_tables(options.clone(), &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "t": { "inserts": [[1, 1, 0], [2, 1, 1]] } }))
        .await;
    for (set, text) in (1..).zip(QUERIES) {
        watcher.subscribe(set, text).await;
    }
    let mut program = first();
    program["tables"]["t"] = json!([["id", "U32"], ["a", "U32"], ["k", "Kind2"], ["more", "U32"]]);
    program["defaults"] = json!({ "t": { "more": 7 } });
    let refused = publish(&database, &program, false).await;
    assert!(
        matches!(refused, Err(UpdateError::Refused(_))),
        "{refused:?}"
    );
    check(&mut watcher).await;
    publish(&database, &program, true)
        .await
        .expect("it may break them");
    let mut client = watcher.client;
    let close = loop {
        match client.connection.outgoing.recv().await {
            Some(Outgoing::Messages(_)) => {}
            Some(Outgoing::Close { code, reason }) => break (code, reason),
            None => panic!("cut without a Close"),
        }
    };
    assert_eq!(close, (1001, "module exited".to_owned()));
    // What it still sends means nothing to anybody.
    client
        .send(&[common::requests::one_off(5, "SELECT * FROM t")])
        .await;
    drop(client);
    let clients = sql(&database, OWNER, "SELECT * FROM st_client")
        .await
        .expect("rows")
        .0;
    // The one that asks.
    assert_eq!(clients.as_array().expect("rows").len(), 1, "{clients}");
    let mut watcher = Watcher::connect(&database, OWNER, 3).await;
    for (set, text) in (1..).zip(QUERIES) {
        watcher.subscribe(set, text).await;
    }
    watcher
        .change(&json!({ "t": { "inserts": [[3, 1, 0, 8]] }, "u": { "inserts": [[3, 3]] } }))
        .await;
    check(&mut watcher).await;
    assert!(log_of(&database)
        .iter()
        .any(|line| line == "Disconnecting all users"));
    stop(database).await;
    let database = open(options).await;
    let more = sql(&database, OWNER, "SELECT more FROM t ORDER BY id")
        .await
        .expect("rows")
        .0;
    assert!(more.to_string().contains("[[7],[7],[8]]"), "{more}");
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_fails_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let database = create_tables(options.clone(), &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher.change(&json!({ "t": { "inserts": [[1, 1, 0], [2, 1, 1]] }, "u": { "inserts": [[1, 1], [2, 2]] } })).await;
    for (set, text) in (1..).zip(QUERIES) {
        watcher.subscribe(set, text).await;
    }
    // The key moves to a column with duplicates, behind other steps.
    let mut duplicates = compatible();
    duplicates["uniqueKeys"]["t"] = json!("a");
    let mut removed = first();
    removed["tables"]
        .as_object_mut()
        .expect("tables")
        .remove("u");
    for (program, code) in [(&duplicates, "LC0226"), (&removed, "LC0225")] {
        let refused = publish(&database, program, true).await;
        let Err(UpdateError::Refused(text)) = refused else {
            panic!("{refused:?}");
        };
        assert!(text.contains(code), "{text}");
        check(&mut watcher).await;
        let failed =
            |line: &String| line.starts_with("Database update failed: ") && line.contains(code);
        assert!(log_of(&database).iter().any(failed));
    }
    watcher.change(&json!({ "t": { "inserts": [[3, 1, 0]], "deletes": [[1, 1, 0]] }, "u": { "inserts": [[3, 3]] } })).await;
    check(&mut watcher).await;
    assert_eq!(watcher.take_errors(), []);
    stop(database).await;
    let database = open(options).await;
    let ids = sql(&database, OWNER, "SELECT id FROM t ORDER BY id")
        .await
        .expect("rows")
        .0;
    assert!(ids.to_string().contains("[[2],[3]]"), "{ids}");
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_none_of_the_new_program_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(table_options(&directory.path().join("db")), &first()).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    let mut stranger = Watcher::connect(&database, STRANGER, 2).await;
    for watcher in [&mut owner, &mut stranger] {
        watcher.subscribe(1, QUERIES[0]).await;
        watcher.subscribe(2, "SELECT * FROM u").await;
    }
    let mut private = first();
    private["private"] = json!(["t"]);
    publish(&database, &private, false)
        .await
        .expect("access is no break");
    owner
        .change(&json!({ "t": { "inserts": [[1, 1, 0]] }, "u": { "inserts": [[1, 1]] } }))
        .await;
    stranger.settle().await;
    let errors = stranger.take_errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, 1);
    assert_eq!(stranger.sets(), [2]);
    assert_eq!(stranger.rows(2, "u").len(), 1);
    assert!(stranger.rows(1, "t").is_empty(), "rows of a private table");
    owner.settle().await;
    assert_eq!(owner.rows(1, "t").len(), 1, "the owner may see it");
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_counts_rows_and_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(table_options(&directory.path().join("db")), &first()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let rows: Vec<Value> = (0..3000).map(|id| json!([id, id % 5, 0])).collect();
    watcher.change(&json!({ "t": { "inserts": rows } })).await;
    let mut program = compatible();
    program["tables"]["t"] = json!([["id", "U32"], ["a", "U32"], ["k", "Kind3"], ["more", "U32"]]);
    program["defaults"] = json!({ "t": { "more": 7 } });
    let bytes: Arc<[u8]> = program.to_string().into_bytes().into();
    let prepared = database
        .prepare_update(bytes, HostKind::Wasm)
        .await
        .expect("a program");
    let plan = database.plan_update(&prepared).migration.expect("a plan");
    let reports = database
        .rehearse(prepared, &plan)
        .await
        .expect("it would work");
    let steps: Vec<&Step> = reports.iter().map(|report| &report.step).collect();
    assert!(steps.into_iter().eq(&plan.steps));
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
    let mut duplicates = first();
    duplicates["uniqueKeys"]["t"] = json!("a");
    duplicates["indexes"] = json!({});
    let bytes: Arc<[u8]> = duplicates.to_string().into_bytes().into();
    let prepared = database
        .prepare_update(bytes, HostKind::Wasm)
        .await
        .expect("a program");
    let plan = database.plan_update(&prepared).migration.expect("a plan");
    let refused = database
        .rehearse(prepared, &plan)
        .await
        .expect_err("it would fail");
    assert!(refused.to_string().contains("LC0226"), "{refused}");
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_come_and_go_with_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let with_rule = |rule: &str| {
        let mut program = first();
        program["rules"] = json!([rule]);
        program
    };
    let (old, new) = ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t WHERE a = 2");
    let database = create_tables(options.clone(), &with_rule(old)).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    owner
        .change(&json!({ "t": { "inserts": [[1, 1, 0], [2, 2, 0], [3, 2, 0]] } }))
        .await;
    let refused = publish(&database, &with_rule(new), false).await;
    assert!(matches!(refused, Err(UpdateError::Refused(_))));
    // With columns too, so that the rule's table has another id.
    let mut program = with_rule(new);
    program["tables"]["t"] = json!([["id", "U32"], ["a", "U32"], ["k", "Kind2"], ["more", "U32"]]);
    program["defaults"] = json!({ "t": { "more": 7 } });
    publish(&database, &program, true).await.expect("a plan");
    let seen = |database: &DatabaseHandle| {
        let database = database.clone();
        async move {
            sql(&database, STRANGER, "SELECT id FROM t")
                .await
                .expect("rows")
                .0
        }
    };
    assert_eq!(seen(&database).await.as_array().expect("rows").len(), 2);
    let log = log_of(&database);
    for line in [
        format!("Creating row level security `{old}`"),
        format!("Removing row-level security `{old}`"),
        format!("Adding row-level security `{new}`"),
    ] {
        assert!(log.contains(&line), "{line}: {log:?}");
    }
    stop(database).await;
    let database = open(options).await;
    assert_eq!(seen(&database).await.as_array().expect("rows").len(), 2);
    let rules = sql(&database, OWNER, "SELECT * FROM st_row_level_security").await;
    assert_eq!(rules.expect("rows").0.as_array().expect("rows").len(), 1);
    stop(database).await;
}

// ---- Schedules ----------------------------------------------------------------------------------------------------------

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
    let database = create_tables(table_options(&path), &scheduled(false, false)).await;
    let is_marked = || path.join("no-schedules").exists();
    assert!(is_marked(), "nothing is planned");
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
    assert!(!is_marked(), "the server is to open it when it starts");
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

async fn call_over_an_update(runs_on_writer: bool) {
    let program = |columns: Value, more: bool| {
        let mut tables = json!({ "t": [["id", "U32"]], "ev": columns });
        if more {
            tables["n"] = json!([["x", "U32"]]);
        }
        json!({ "tables": tables, "events": ["ev"], "procedures": true })
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
        // As often as it takes to be known as brief.
        for n in 0..if runs_on_writer { 12 } else { 0 } {
            let id = 100 * id + n;
            let brief = later(database.clone(), 0, row(id), json!({})).await;
            assert_eq!(brief, None);
        }
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
async fn nor_does_one_that_waits_on_the_writer() {
    call_over_an_update(true).await;
}

// ---- Names that change hands --------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_does_not_move_to_another_table_with_its_name() {
    let columns = json!([["id", "U32"]]);
    let directory = tempfile::tempdir().expect("a directory");
    let options = table_options(&directory.path().join("db"));
    let old = json!({ "tables": { "a_tbl/x": columns, "c_tbl/z": columns } });
    let database = create_tables(options, &old).await;
    let mut watcher = Watcher::connect(&database, STRANGER, 1).await;
    watcher
        .change(&json!({ "a_tbl/x": { "inserts": [[1]] } }))
        .await;
    let texts = [
        "SELECT * FROM x",
        "SELECT * FROM a_tbl",
        "SELECT * FROM x ORDER BY id LIMIT 1",
        "SELECT * FROM z",
    ];
    for (set, text) in (1..).zip(texts) {
        watcher.subscribe(set, text).await;
    }
    let new = json!({ "tables": { "a_tbl/y": columns, "b_tbl/x": columns, "c_tbl/w": columns } });
    publish(&database, &new, false)
        .await
        .expect("names are no break");
    watcher
        .change(&json!({ "a_tbl/y": { "inserts": [[2]] }, "b_tbl/x": { "inserts": [[3]] } }))
        .await;
    watcher.settle().await;
    let mut errors = watcher.take_errors();
    errors.sort();
    let reasons: Vec<(u32, bool)> = errors
        .iter()
        .map(|(set, error)| {
            (
                *set,
                error.contains("`a_tbl` means `b_tbl` now") && error.ends_with("[LC0234]"),
            )
        })
        .collect();
    // A name that means nothing any more is an error of its own.
    assert_eq!(reasons, [(1, true), (3, true), (4, false)], "{errors:?}");
    assert_eq!(watcher.sets(), [2]);
    assert_eq!(watcher.rows(2, "a_tbl").len(), 2);
    for (set, table) in [(1, "b_tbl"), (1, "x"), (3, "b_tbl"), (3, "x")] {
        assert!(watcher.rows(set, table).is_empty(), "rows of another table");
    }
    watcher.subscribe(5, "SELECT * FROM x").await;
    assert_eq!(watcher.sets(), [2, 5]);
    stop(database).await;
}

// ---- Random programs ----------------------------------------------------------------------------------------------------

/// Tables with columns that are added, and indexes that come and go.
struct RandomProgram {
    rng: StdRng,
    columns: [usize; 2],
    indexed: [Vec<usize>; 2],
    next_id: u32,
}

const RANDOM_QUERIES: [&str; 6] = [
    "SELECT * FROM p",
    "SELECT * FROM q WHERE c1 = 1",
    "SELECT p.* FROM p JOIN q ON p.c1 = q.c1",
    "SELECT q.* FROM q JOIN p ON q.c2 = p.id WHERE p.c2 = 1",
    "SELECT * FROM p WHERE c2 = 1 ORDER BY id LIMIT 3",
    "SELECT * FROM w",
];

impl RandomProgram {
    fn program(&self) -> Value {
        let columns = |count: usize| {
            let mut columns = vec![json!(["id", "U32"])];
            columns.extend((1..count).map(|n| json!([format!("c{n}"), "U32"])));
            columns
        };
        let indexes = |columns: &[usize]| -> Vec<Value> {
            columns.iter().map(|n| json!([format!("c{n}")])).collect()
        };
        let defaults = |count: usize| {
            let columns = (3..count).map(|n| (format!("c{n}"), json!(n)));
            columns.collect::<serde_json::Map<_, _>>()
        };
        json!({
            "tables": { "p": columns(self.columns[0]), "q": columns(self.columns[1]) },
            "uniqueKeys": { "p": "id", "q": "id" },
            "indexes": { "p": indexes(&self.indexed[0]), "q": indexes(&self.indexed[1]) },
            "defaults": { "p": defaults(self.columns[0]), "q": defaults(self.columns[1]) },
            "views": { "w": { "query": "SELECT p.* FROM p JOIN q ON p.c1 = q.id", "table": "p" } },
        })
    }

    /// Whether clients have to go.
    fn mutate(&mut self) -> bool {
        let mut breaks = false;
        for _ in 0..self.rng.random_range(1..4) {
            let table = self.rng.random_range(0..2);
            if self.rng.random_bool(0.2) && self.columns[table] < 8 {
                self.columns[table] += 1;
                breaks = true;
                continue;
            }
            let column = self.rng.random_range(1..self.columns[table]);
            match self.indexed[table].iter().position(|of| *of == column) {
                Some(place) => drop(self.indexed[table].remove(place)),
                None => self.indexed[table].push(column),
            }
        }
        breaks
    }

    fn rows(&mut self) -> Value {
        let mut changes = serde_json::Map::new();
        for (table, name) in ["p", "q"].into_iter().enumerate() {
            let rows: Vec<Value> = (0..self.rng.random_range(0..4))
                .map(|_| {
                    self.next_id += 1;
                    let mut row = vec![json!(self.next_id)];
                    row.extend(
                        (1..self.columns[table]).map(|_| json!(self.rng.random_range(0..4_u32))),
                    );
                    Value::Array(row)
                })
                .collect();
            changes.insert(name.to_owned(), json!({ "inserts": rows }));
        }
        Value::Object(changes)
    }
}

async fn random_world(seed: u64) {
    let mut world = RandomProgram {
        rng: StdRng::seed_from_u64(seed),
        columns: [3, 3],
        indexed: [vec![1], vec![1, 2]],
        next_id: 0,
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(&directory.path().join("db"));
    options.limits.snapshot_log_bytes = 4 << 10;
    let mut database = create_tables(options.clone(), &world.program()).await;
    let mut watcher = Watcher::connect(&database, STRANGER, 1).await;
    // A new subscription to a join needs an index of the module, one that goes on does not.
    let subscribe = async |watcher: &mut Watcher| {
        for (set, text) in (1..).zip(RANDOM_QUERIES) {
            watcher.subscribe(set, text).await;
        }
        for (_, error) in watcher.take_errors() {
            assert!(error.contains("require indexes"), "{error}");
        }
    };
    subscribe(&mut watcher).await;
    for step in 0..12_u128 {
        for _ in 0..3 {
            watcher.change(&world.rows()).await;
        }
        let breaks = world.mutate();
        let published = publish(&database, &world.program(), breaks).await;
        published.unwrap_or_else(|error| panic!("{seed}: {error}"));
        if breaks || world.rng.random_bool(0.2) {
            drop(watcher);
            if world.rng.random_bool(0.5) {
                stop(database).await;
                database = open(options.clone()).await;
            }
            watcher = Watcher::connect(&database, STRANGER, 2 + step).await;
            subscribe(&mut watcher).await;
        }
        watcher.change(&world.rows()).await;
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), [], "{seed} {step}");
        let sets = watcher.sets();
        for (set, text) in (1..).zip(RANDOM_QUERIES) {
            if !sets.contains(&set) {
                continue;
            }
            let expected = watcher.ask(text).await;
            assert_eq!(
                watcher.rows(set, &text_table(text)),
                expected,
                "{seed} {step}: {text}"
            );
        }
    }
    let all = |database: DatabaseHandle| async move {
        let mut rows = Vec::new();
        for table in ["p", "q"] {
            let text = format!("SELECT * FROM {table} ORDER BY id");
            rows.push(sql(&database, OWNER, &text).await.expect("rows").0);
        }
        rows
    };
    let before = all(database.clone()).await;
    drop(watcher);
    stop(database).await;
    let database = open(options).await;
    assert_eq!(all(database.clone()).await, before, "{seed}");
    stop(database).await;
}

fn text_table(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    words[3].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_hold_is_what_their_queries_give_whatever_is_published() {
    for seed in 0..8 {
        random_world(seed).await;
    }
}

// ---- A process that is killed -------------------------------------------------------------------------------------------

fn program_of(version: usize) -> Value {
    let mut columns = vec![json!(["id", "U32"])];
    columns.extend((1..=version).map(|n| json!([format!("c{n}"), "U32"])));
    let defaults: serde_json::Map<_, _> =
        (1..=version).map(|n| (format!("c{n}"), json!(n))).collect();
    json!({
        "tables": { "t": columns, format!("extra{}", version % 3): [["x", "U32"]] },
        "uniqueKeys": { "t": "id" },
        "indexes": { "t": if version.is_multiple_of(2) { json!([]) } else { json!([["c1"]]) } },
        "defaults": { "t": defaults },
    })
}

fn columns_of(database: &DatabaseHandle) -> usize {
    database
        .module_def()
        .table("t")
        .expect("it is there")
        .columns
        .len()
        - 1
}

/// Publishes one version after the other, each with a row more, and says when it is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed() {
    let Some(directory) = std::env::var_os("LIGHTCONE_TEST_CHILD") else {
        return;
    };
    let mut options = table_options(Path::new(&directory));
    options.limits.snapshot_log_bytes = 2 << 10;
    let database = match Path::new(&directory).join("log").exists() {
        true => open(options).await,
        false => create_tables(options, &program_of(1)).await,
    };
    let first = columns_of(&database);
    for version in first + 1..first + 200 {
        let row = (1..version)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(", ");
        let insert = format!("INSERT INTO t VALUES ({version}, {row})");
        // It is there if the last child was killed between this and the publish.
        let _ = sql(&database, OWNER, &insert).await;
        publish(&database, &program_of(version), true)
            .await
            .expect("a plan");
        println!("published {version}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_the_old_tables_or_the_new_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(11);
    let mut acknowledged = 1;
    for _ in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args(["child_that_is_killed", "--exact", "--nocapture"])
            .env("LIGHTCONE_TEST_CHILD", &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let count = rng.random_range(1..4);
        for line in lines
            .by_ref()
            .map_while(Result::ok)
            .filter(|line| line.starts_with("published "))
            .take(count)
        {
            acknowledged = line["published ".len()..].parse().expect("a number");
        }
        std::thread::sleep(Duration::from_micros(rng.random_range(0..8000)));
        child.kill().expect("it runs");
        child.wait().expect("it is gone");
        // What it had said before it was gone.
        for line in lines.map_while(Result::ok) {
            if let Some(version) = line.strip_prefix("published ") {
                acknowledged = version.parse().expect("a number");
            }
        }
        let database = open(table_options(&path)).await;
        let version = columns_of(&database);
        assert!(
            version == acknowledged || version == acknowledged + 1,
            "{version} behind {acknowledged}"
        );
        let rows = sql(&database, OWNER, "SELECT * FROM t ORDER BY id")
            .await
            .expect("rows")
            .0;
        let rows = rows.as_array().expect("rows").clone();
        // Each with the values it was inserted with, or the defaults, which are the same.
        for (place, row) in rows.iter().enumerate() {
            let id = place + 2;
            let expected: Vec<usize> = std::iter::once(id).chain(1..=version).collect();
            assert_eq!(row, &json!(expected));
        }
        assert!(
            rows.len() + 1 >= acknowledged,
            "{} rows, {acknowledged}",
            rows.len()
        );
        stop(database).await;
        acknowledged = version;
    }
}
