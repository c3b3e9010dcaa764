//! Statements that write, and the row limit (08 §12.4, §12.5, §16).

use std::time::Duration;

use crate::common::requests::{one_off, rows_of, subscribe};
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::{caller, create, open, options, Client, OWNER, STRANGER};
use lightcone_database::{DatabaseHandle, ShutdownReason};
use lightcone_types::Identity;
use lightcone_vectors::{named, Entry};
use lightcone_wire::{ServerMessage, TableUpdateRows};
use serde_json::{json, Value};

const FILE: &str = "08-execution.json";

fn identity_of(name: &str) -> Identity {
    match name {
        "owner" => OWNER,
        name => Identity::from_le_bytes([name.as_bytes()[0]; 32]),
    }
}

/// A value of the file as SQL writes it, and as rows of an answer have it.
fn value_of(value: &Value, ty: &str) -> (String, Value) {
    match (ty, value) {
        ("Identity", Value::String(name)) => {
            let hex = identity_of(name).to_hex();
            let hex = hex.to_string();
            let short = format!("0x{}", hex.trim_start_matches('0'));
            (format!("0x{hex}"), json!([short]))
        }
        (_, Value::String(text)) => (format!("'{text}'"), value.clone()),
        (_, value) => (value.to_string(), value.clone()),
    }
}

async fn fill(database: &DatabaseHandle, case: &Entry) {
    for (name, columns) in case.0["tables"].as_object().expect("tables") {
        let table = name.split('/').next().expect("a name");
        for row in case.0["rows"][table].as_array().into_iter().flatten() {
            let values = row.as_array().expect("a row").iter();
            let columns = columns.as_array().expect("columns").iter();
            let texts = values
                .zip(columns)
                .map(|(value, column)| value_of(value, column[1].as_str().expect("a type")).0);
            let texts: Vec<_> = texts.collect();
            let text = format!("INSERT INTO {table} VALUES ({})", texts.join(", "));
            sql(database, OWNER, &text).await.expect("a row");
        }
    }
}

/// Runs the steps of a case of the file.
async fn run_case(name: &str) {
    let case = named(FILE, "", name);
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &case.0).await;
    fill(&database, &case).await;
    let mut client = Client::connect(&database, identity_of("guest"), 99).await;
    for (nth, step) in case.0["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .enumerate()
    {
        let from = identity_of(step["caller"].as_str().unwrap_or("owner"));
        if let Some(texts) = step["subscribe"].as_array() {
            let texts = texts.iter().map(|text| text.as_str().expect("a text"));
            client.send(&[subscribe(nth as u32, texts.collect())]).await;
            match (client.next().await, step["error"].as_str()) {
                (ServerMessage::SubscriptionError { error, .. }, Some(expected)) => {
                    assert_eq!(error, expected);
                }
                (answer, None) => {
                    let rows = step["rows"].as_array().expect("rows");
                    assert_eq!(rows_of(answer), rows.len(), "{step}");
                }
                (answer, _) => panic!("{step}: {answer:?}"),
            }
            continue;
        }
        let text = step["sql"].as_str().expect("a text");
        let outcome = sql(&database, from, text).await;
        let (rows, stats) = match (outcome, step["error"].as_str()) {
            (Ok(outcome), None) => outcome,
            (Err(error), Some(expected)) => {
                assert_eq!(error, expected, "{step}");
                continue;
            }
            (outcome, _) => panic!("{step}: {outcome:?}"),
        };
        if let Some(expected) = step["rows"].as_array() {
            let owner_of = |row: &Value| match row[0].as_str() {
                Some(name) => json!([value_of(&json!(name), "Identity").1, row[1]]),
                None => row.clone(),
            };
            let expected: Vec<_> = expected.iter().map(owner_of).collect();
            assert_eq!(rows, json!(expected), "{step}");
        }
        if let Some(count) = step["count"].as_u64() {
            assert_eq!(
                rows.as_array().map(Vec::len),
                Some(count as usize),
                "{step}"
            );
        }
        if step["stats"].is_object() {
            let expected =
                ["inserted", "updated", "deleted"].map(|what| step["stats"][what].as_u64());
            assert_eq!(stats.map(Some), expected, "{step}");
        }
    }
}

macro_rules! cases {
    ($($test:ident: $name:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            run_case($name).await;
        }
    )*};
}

cases! {
    case_insert_update_delete: "insert, update, delete";
    case_the_caller: "the caller";
    case_row_limit: "row_limit";
    case_row_estimates: "row estimates";
    case_names_of_update_targets: "names of update targets";
}

fn items() -> Value {
    json!({
        "tables": {
            "item": [["id", "U64"], ["name", "String"], ["at", "Timestamp"]],
            "place": [["id", "U32"], ["x", "U32"]],
            "news": [["a", "U32"], ["b", "U32"]],
            "maybe": [["id", "U32"], ["o", "Option<U64>"]],
        },
        "uniqueKeys": { "item": "id", "place": "x" },
        "autoInc": { "item": "id" },
        "events": ["news"],
    })
}

const AT: &str = "'2025-02-10T15:45:30Z'";

#[tokio::test(flavor = "multi_thread")]
async fn values_are_bound_by_name_and_generated() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    let run = |text: String| {
        let database = database.clone();
        async move { sql(&database, OWNER, &text).await }
    };
    let inserted = run(format!(
        "INSERT INTO item (name, at, id) VALUES ('a', {AT}, 0), ('b', {AT}, 0)"
    ));
    assert_eq!(inserted.await, Ok((json!([]), [2, 0, 0])));
    let inserted = run(format!("insert item values (7, 'c', {AT});")).await;
    assert_eq!(inserted, Ok((json!([]), [1, 0, 0])));
    let again = run(format!("insert into item values (7, 'c', {AT})")).await;
    assert_eq!(again, Ok((json!([]), [0, 0, 0])), "it is there");
    let (rows, _) = run("SELECT id, name FROM item".to_owned()).await.unwrap();
    assert_eq!(rows, json!([[1, "a"], [2, "b"], [7, "c"]]));
    let zero = run("UPDATE item SET id = 0 WHERE id = 7".to_owned()).await;
    assert_eq!(zero, Ok((json!([]), [0, 1, 0])));
    let (rows, _) = run("SELECT id FROM item WHERE name = 'c'".to_owned())
        .await
        .unwrap();
    assert_eq!(rows, json!([[3]]), "generated anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_statement_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    let run = |text: &'static str| {
        let database = database.clone();
        async move { sql(&database, OWNER, text).await }
    };
    run("INSERT INTO place VALUES (1, 10), (2, 20)")
        .await
        .unwrap();
    assert_eq!(
        run("INSERT INTO place VALUES (3, 30), (4, 20)").await,
        Err("IndexError: Unique constraint violation 'place_x_idx_btree' in table 'place': column(s): '[\"x\"]' value: 20".to_owned())
    );
    assert!(run("UPDATE place SET x = 5").await.is_err());
    let all = json!([[1, 10], [2, 20]]);
    let (rows, _) = run("SELECT * FROM place").await.unwrap();
    assert_eq!(rows, all);
    for (text, error) in [
        ("INSERT INTO place (id) VALUES (1)", "The number of fields (1) in the INSERT does not match the number of columns (2) of the table \"place\""),
        ("INSERT INTO place (id, id) VALUES (1, 1)", "Duplicate name `id`"),
        ("INSERT INTO place (id, y) VALUES (1, 1)", "`place` does not have a field `y`"),
        ("INSERT INTO place VALUES (1)", "Inserting a row with 1 values into `place` which has 2 fields"),
        ("INSERT INTO place VALUES (1, 'a')", "Unexpected type: (expected) String != U32 (inferred)"),
        ("INSERT INTO place VALUES (1, TRUE)", "Unexpected type: (expected) Bool != U32 (inferred)"),
        ("INSERT INTO place VALUES (1, -1)", "The literal expression `-1` cannot be parsed as type `U32`"),
        ("INSERT INTO place VALUES (1, :sender)", "Unsupported literal expression: :sender"),
        ("INSERT INTO place VALUES (1, NULL)", "Unsupported literal expression: NULL"),
        ("INSERT INTO place VALUES (1, DEFAULT)", "Unsupported INSERT value: DEFAULT"),
        ("INSERT INTO place VALUES (1, 1 + 1)", "Unsupported INSERT value: 1 + 1"),
        ("INSERT INTO place SELECT * FROM place", "Unsupported INSERT expression: SELECT * FROM place"),
        ("INSERT INTO place VALUES (1, 1) RETURNING id", "Unsupported: INSERT INTO place VALUES (1, 1) RETURNING id"),
        ("INSERT INTO maybe VALUES (1, 1)", "The literal expression `1` cannot be parsed as type `(some: U64 | none: ())`"),
        ("UPDATE place SET y = 1", "`place` does not have a field `y`"),
        ("UPDATE place SET place.x = 1", "`place` does not have a field `place.x`"),
        ("UPDATE place SET x = id", "Unsupported column/variable assignment expression: id"),
        ("UPDATE place SET x = 1 + 1", "Unsupported column/variable assignment expression: 1 + 1"),
        ("UPDATE nothing SET x = 1", "no such table: `nothing`. If the table exists, it may be marked private."),
        ("DELETE FROM place p WHERE p.x = 1", "Unsupported table expression in DELETE: place p"),
        ("DELETE FROM place, item", "Multi-table DELETE is not supported"),
        ("DELETE FROM place WHERE y = 1", "`y` is not in scope"),
        ("SET row_limit = 'a'", "Unexpected type: (expected) U64 != String (inferred)"),
        ("SET row_limit = 0x10", "Unexpected type: (expected) U64 != Array<U8> (inferred)"),
        ("SET row_limit = -1", "The literal expression `-1` cannot be parsed as type `U64`"),
        ("SHOW nothing", "nothing is not a valid system variable"),
    ] {
        assert_eq!(run(text).await, Err(error.to_owned()), "{text}");
    }
    let error = run("DELETE FROM st_table").await.unwrap_err();
    assert!(error.ends_with("[LC0407]"), "{error}");
    let (rows, _) = run("SELECT * FROM place").await.unwrap();
    assert_eq!(rows, all);
    // Only the owner, and that comes after names and types.
    let by_stranger = |text: &'static str| {
        let database = database.clone();
        async move { sql(&database, STRANGER, text).await.unwrap_err() }
    };
    for text in [
        "DELETE FROM place",
        "INSERT INTO place VALUES (9, 9)",
        "UPDATE place SET id = 1",
        "SET row_limit = 1",
        "DELETE FROM st_table",
    ] {
        let error = by_stranger(text).await;
        assert!(
            error.ends_with("is not authorized to run SQL DML statements"),
            "{text}: {error}"
        );
    }
    let error = by_stranger("DELETE FROM place WHERE y = 1").await;
    assert_eq!(error, "`y` is not in scope");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_find_their_rows_by_subqueries() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    let run = |text: &'static str| {
        let database = database.clone();
        async move { sql(&database, OWNER, text).await }
    };
    run("INSERT INTO place VALUES (1, 10), (2, 20), (3, 30), (4, 40)")
        .await
        .unwrap();
    let update = "UPDATE place SET x = 50 WHERE EXISTS (SELECT 1 FROM place p WHERE p.x = place.x AND p.id = 2)";
    assert_eq!(run(update).await.unwrap().1, [0, 1, 0]);
    // What a subquery reads is as it was before the statement.
    let delete = "DELETE FROM place WHERE id NOT IN (SELECT id FROM place p WHERE p.x >= 40)";
    assert_eq!(run(delete).await.unwrap().1, [0, 0, 2]);
    let (rows, _) = run("SELECT * FROM place ORDER BY id").await.unwrap();
    assert_eq!(rows, json!([[2, 50], [4, 40]]));
    let delete = "DELETE FROM place WHERE EXISTS (SELECT 1 FROM place p)";
    assert_eq!(run(delete).await.unwrap().1, [0, 0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_deletes_all_before_it_inserts() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    sql(
        &database,
        OWNER,
        "INSERT INTO place VALUES (1, 10), (2, 20), (3, 30)",
    )
    .await
    .unwrap();
    // The unique value moves from one row to another one.
    let moved = sql(
        &database,
        OWNER,
        "UPDATE place SET id = 4 WHERE x = 10 OR id = 3",
    )
    .await;
    assert_eq!(moved, Ok((json!([]), [0, 2, 0])));
    let (rows, _) = sql(&database, STRANGER, "SELECT * FROM place WHERE id = 4")
        .await
        .unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
}

fn rows_changed(message: ServerMessage) -> Vec<(String, usize, usize)> {
    let ServerMessage::TransactionUpdate { query_sets } = message else {
        panic!("no update: {message:?}");
    };
    let tables = query_sets.into_iter().flat_map(|set| set.tables);
    let counted = tables.map(|table| {
        let (mut inserts, mut deletes) = (0, 0);
        for rows in &table.rows {
            match rows {
                TableUpdateRows::Persistent {
                    inserts: new,
                    deletes: old,
                } => {
                    inserts += new.len();
                    deletes += old.len();
                }
                TableUpdateRows::Event { events } => inserts += events.len(),
            }
        }
        (table.table_name, inserts, deletes)
    });
    counted.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_see_one_update_per_statement() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    client
        .send(&[subscribe(
            1,
            vec!["SELECT * FROM place", "SELECT * FROM news"],
        )])
        .await;
    assert_eq!(rows_of(client.next().await), 0);
    let run = |text: &'static str| {
        let database = database.clone();
        async move { sql(&database, OWNER, text).await.unwrap().1 }
    };
    assert_eq!(
        run("INSERT INTO place VALUES (1, 1), (2, 2), (3, 3)").await,
        [3, 0, 0]
    );
    assert_eq!(
        rows_changed(client.next().await),
        [("place".to_owned(), 3, 0)]
    );
    assert_eq!(run("UPDATE place SET id = 9 WHERE x > 1").await, [0, 2, 0]);
    assert_eq!(
        rows_changed(client.next().await),
        [("place".to_owned(), 2, 2)]
    );
    // What changes nothing says nothing: the next message is that of the events.
    assert_eq!(run("UPDATE place SET id = 9 WHERE x > 1").await, [0, 2, 0]);
    assert_eq!(
        run("INSERT INTO news VALUES (1, 1), (1, 1), (2, 2)").await,
        [2, 0, 0]
    );
    assert_eq!(
        rows_changed(client.next().await),
        [("news".to_owned(), 2, 0)]
    );
    assert_eq!(run("DELETE FROM news").await, [0, 0, 0]);
    assert_eq!(run("DELETE FROM place WHERE x = 2").await, [0, 0, 1]);
    assert_eq!(
        rows_changed(client.next().await),
        [("place".to_owned(), 0, 1)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_bounded_and_undone_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = table_options(directory.path());
    options.limits.transaction_bytes_max = 100_000;
    let database = create_tables(options, &items()).await;
    for start in 0..20 {
        let rows = (0..100).map(|n| format!("({n}, {})", start * 100 + n));
        let rows: Vec<_> = rows.collect();
        let text = format!("INSERT INTO place VALUES {}", rows.join(","));
        assert_eq!(sql(&database, OWNER, &text).await.unwrap().1, [100, 0, 0]);
    }
    let error = sql(&database, OWNER, "UPDATE place SET id = 1000")
        .await
        .unwrap_err();
    assert!(error.ends_with("[LC0702]"), "{error}");
    let (rows, _) = sql(
        &database,
        OWNER,
        "SELECT COUNT(*) AS n FROM place WHERE id < 100",
    )
    .await
    .unwrap();
    assert_eq!(rows, json!([[2000]]));
    database.shutdown(ShutdownReason::ServerStop).await;

    let mut options = table_options(directory.path());
    options.limits.sql_write_time_max = Duration::ZERO;
    let database = open(options).await;
    for text in [
        "DELETE FROM place",
        "UPDATE place SET id = 7",
        "INSERT INTO place VALUES (1, 5000)",
    ] {
        let error = sql(&database, OWNER, text).await.unwrap_err();
        assert!(error.ends_with("[LC0713]"), "{text}: {error}");
    }
    let (rows, _) = sql(
        &database,
        OWNER,
        "SELECT COUNT(*) AS n FROM place WHERE id < 100",
    )
    .await
    .unwrap();
    assert_eq!(rows, json!([[2000]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_limit_is_replaced_and_holds_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let database = create_tables(table_options(directory.path()), &items()).await;
    sql(
        &database,
        OWNER,
        "INSERT INTO place VALUES (1, 1), (2, 2), (3, 3)",
    )
    .await
    .unwrap();
    let set = |text: &'static str| {
        let database = database.clone();
        async move { sql(&database, OWNER, text).await.unwrap().1 }
    };
    assert_eq!(set("SET row_limit = 1").await, [1, 0, 0]);
    assert_eq!(set("SET row_limit = 1").await, [0, 0, 0]);
    assert_eq!(set("SET row_limit TO 2").await, [1, 0, 0]);
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(table_options(directory.path())).await;
    let (rows, _) = sql(&database, STRANGER, "SHOW row_limit").await.unwrap();
    assert_eq!(rows, json!([[[8, 2]]]));
    let error = "Estimated cardinality (3 rows) exceeds limit (2 rows)";
    let refused = sql(&database, STRANGER, "SELECT * FROM place").await;
    assert_eq!(refused, Err(error.to_owned()));
    let mut client = Client::connect(&database, STRANGER, 1).await;
    client.send(&[one_off(1, "SELECT * FROM place")]).await;
    let ServerMessage::OneOffQueryResult { result, .. } = client.next().await else {
        panic!("an answer to a query");
    };
    assert_eq!(result, Err(error.to_owned()));
}

/// Since 2.12 only the module writes rows that call functions.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_schedules_are_not_written_by_sql() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "schedules").await;
    let interval = r#"["sql", {"Interval": {"__time_duration_micros__": 5000}}]"#;
    let args = lightcone_database::CallArgs::Json(interval.to_owned());
    let started = database.call(caller(OWNER), "set_timer", args).await;
    started.expect("the timer is set");
    for text in [
        "UPDATE timers SET what = 'sql2' WHERE what = 'sql'",
        "DELETE FROM timers",
    ] {
        let error = "SQL writes to scheduled tables are not supported".to_owned();
        assert_eq!(sql(&database, OWNER, text).await, Err(error), "{text}");
    }
    let args = lightcone_database::CallArgs::Json(r#"["sql"]"#.to_owned());
    let stopped = database.call(caller(OWNER), "delete_timers", args).await;
    stopped.expect("by the module");
}
