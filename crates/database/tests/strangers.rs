//! What callers see of system tables who may not read all rows: their own, and nothing of the program.

use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{caller, OWNER, STRANGER};
use lightcone_database::{JsonRows, Rights, ShutdownReason};
use lightcone_types::Identity;
use serde_json::{json, Value};

fn identity(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

fn rows(result: &Value) -> &Vec<Value> {
    result.as_array().expect("rows")
}

/// The texts of queries that would give what is in this table, each in another way.
fn texts(table: &str, column: &str) -> Vec<String> {
    vec![
        format!("SELECT * FROM {table}"),
        format!("SELECT t.* FROM {table} t"),
        format!("SELECT {column} FROM {table}"),
        format!("SELECT {column} FROM {table} ORDER BY {column} LIMIT 5"),
        format!("SELECT DISTINCT {column} FROM {table}"),
        format!("SELECT {column}, COUNT(*) AS n FROM {table} GROUP BY {column}"),
        format!("SELECT t.* FROM {table} t JOIN st_var v"),
        format!("SELECT t.* FROM {table} t WHERE NOT EXISTS (SELECT * FROM st_table s WHERE s.table_id = 0)"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_see_their_own_rows_of_system_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = json!({
        "tables": { "note": [["id", "U32"], ["who", "Identity"]] },
        "uniqueKeys": { "note": "id" },
        "rules": ["SELECT * FROM note WHERE who = :sender"],
    });
    let database = create_tables(table_options(directory.path()), &program).await;
    // `st_var` has a row, for joins.
    sql(&database, OWNER, "SET row_limit = 1000")
        .await
        .expect("set");
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    let mut alice = Watcher::connect(&database, identity(11), 2).await;
    let mut bob = Watcher::connect(&database, identity(12), 3).await;
    for (table, column) in [
        ("st_module", "program_bytes"),
        ("st_row_level_security", "sql"),
        ("st_view_arg", "id"),
        ("st_view_sub", "identity"),
    ] {
        for text in texts(table, column) {
            let found = sql(&database, STRANGER, &text).await;
            assert_eq!(rows(&found.expect("it is a query").0).len(), 0, "{text}");
        }
        let count = format!("SELECT COUNT(*) AS n FROM {table}");
        let found = sql(&database, STRANGER, &count).await.expect("a count");
        assert_eq!(rows(&found.0), &vec![json!([0])], "{table}");
        assert_eq!(alice.ask(&format!("SELECT * FROM {table}")).await.len(), 0);
        alice.watch(1, &[table]).await;
        assert_eq!(alice.rows(1, table).len(), 0, "{table}");
        alice.unsubscribe(1).await;
        // A condition on what is hidden tells nothing either.
        let other = format!("SELECT v.name FROM st_var v WHERE EXISTS (SELECT * FROM {table} t WHERE t.{column} = t.{column})");
        if let Ok((found, _)) = sql(&database, STRANGER, &other).await {
            assert_eq!(rows(&found).len(), 0, "{other}");
        }
    }
    // The program is not in a plan.
    let explained = sql(&database, STRANGER, "EXPLAIN SELECT * FROM st_module").await;
    let explained = explained.expect("a plan").0.to_string();
    assert!(!explained.contains("looked at"), "{explained}");

    // One's own connections, those over HTTP included.
    for text in texts("st_client", "connection_id") {
        let found = sql(&database, identity(11), &text)
            .await
            .expect("a query")
            .0;
        assert_eq!(rows(&found).len(), 2, "{text}");
        let found = sql(&database, STRANGER, &text).await.expect("a query").0;
        assert_eq!(rows(&found).len(), 1, "{text}");
    }
    alice.watch(1, &["st_client"]).await;
    owner.watch(1, &["st_client"]).await;
    assert_eq!(alice.rows(1, "st_client").len(), 1);
    assert_eq!(owner.rows(1, "st_client").len(), 3);
    // In live joins too.
    let live = "SELECT t.* FROM st_table t JOIN st_row_level_security r ON t.table_id = r.table_id";
    for watcher in [&mut alice, &mut owner] {
        watcher.subscribe(2, live).await;
        assert_eq!(watcher.take_errors(), []);
    }
    assert_eq!(alice.rows(2, "st_table").len(), 0);
    let again = Watcher::connect(&database, identity(11), 4).await;
    let carol = Watcher::connect(&database, identity(13), 5).await;
    alice.settle().await;
    owner.settle().await;
    assert_eq!(alice.rows(1, "st_client").len(), 2);
    assert_eq!(owner.rows(1, "st_client").len(), 5);
    drop((again, carol));
    let own = "SELECT * FROM st_client WHERE identity = :sender";
    assert_eq!(bob.ask(own).await.len(), 1);

    // Who may read everything does.
    let mut reader = caller(STRANGER);
    reader.rights = Rights::Reads;
    for text in [
        "SELECT program_bytes FROM st_module",
        "SELECT sql FROM st_row_level_security",
    ] {
        let found = database.sql(reader.clone(), text.to_owned(), true, JsonRows::default());
        let found: Value = serde_json::from_str(&found.await.expect("rows").text()).expect("JSON");
        assert_eq!(rows(&found).len(), 1, "{text}");
        let found = sql(&database, OWNER, text).await.expect("rows").0;
        assert_eq!(rows(&found).len(), 1, "{text}");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}
