//! Programs with other schemas, published under connected clients: what they hold goes on to be what their queries give, or they
//! are disconnected; a publish that fails changes nothing.

use std::time::Duration;

use crate::common;
use crate::common::publishing::{log_of, publish, stop};
use crate::common::requests::subscribe;
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{open, OWNER, STRANGER};
use lightcone_database::{DatabaseHandle, Outgoing, UpdateError};
use serde_json::{json, Value};

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
        .expect("no client has to go");
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
    // What it still sends means nothing any more.
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
async fn a_sequence_does_not_issue_what_rows_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = json!({ "tables": { "t": [["id", "U32"]] }, "uniqueKeys": { "t": "id" } });
    let path = directory.path().join("db");
    let database = create_tables(table_options(&path), &program).await;
    let insert = sql(&database, OWNER, "INSERT INTO t VALUES (7)").await;
    insert.expect("a free key");
    let mut counted = program;
    counted["autoInc"] = json!({ "t": "id" });
    let refused = publish(&database, &counted, true).await;
    let refused = refused.expect_err("7 is there").to_string();
    assert!(refused.contains("[LC0227]"), "{refused}");
    let delete = sql(&database, OWNER, "DELETE FROM t").await;
    delete.expect("a row");
    let published = publish(&database, &counted, true).await;
    published.expect("there are none");
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

/// What was read and checked for the old module, and comes to the writer behind the new one, is checked again.
#[tokio::test(flavor = "multi_thread")]
async fn queries_that_were_compiled_before_a_publish_are_those_of_the_new_module() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(table_options(&directory.path().join("db")), &first()).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    owner.change(&json!({ "u": { "inserts": [[1, 1]] } })).await;
    let mut strangers = Vec::new();
    for id in 2..42 {
        strangers.push(Watcher::connect(&database, STRANGER, id).await);
    }
    // The new module takes its time to start, once beside the writer and once on it. Meanwhile the old one is known.
    let mut program = compatible();
    program["private"] = json!(["u"]);
    program["starts_ms"] = json!(500);
    let publishing = {
        let database = database.clone();
        tokio::spawn(async move { publish(&database, &program, false).await })
    };
    let long = format!("SELECT * FROM t WHERE a = 1 {}", " ".repeat(5000));
    for stranger in &strangers {
        let texts = ["SELECT * FROM u", "SELECT * FROM t", &long];
        for (set, text) in (1..).zip(texts) {
            stranger.client.send(&[subscribe(set, vec![text])]).await;
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    publishing.await.expect("no panic").expect("compatible");
    // A variant that the old module does not know, and a row that strangers may not see.
    owner
        .change(&json!({ "t": { "inserts": [[1, 1, 2]] }, "u": { "inserts": [[2, 2]] } }))
        .await;
    let mut refused = 0;
    for mut stranger in strangers {
        stranger.settle().await;
        let live = stranger.sets();
        assert!(!live.contains(&1), "the table is private: {live:?}");
        let of_before = stranger.rows(1, "u").len();
        assert!(of_before < 2, "a row of a private table");
        assert_eq!(stranger.rows(2, "t").len(), 1);
        let errors = stranger.take_errors();
        refused += errors
            .iter()
            .filter(|(set, error)| *set == 3 && error.contains("LC0232"))
            .count();
    }
    assert!(refused > 0, "some came while the writer was busy");
    stop(database).await;
}
