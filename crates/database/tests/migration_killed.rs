//! A process that publishes one program after the other, and is killed: there is the old database afterwards or the new one, with the
//! steps that the database takes by itself and with migration functions.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::publishing::{publish, stop};
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::{open, OWNER};
use lightcone_database::DatabaseHandle;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

async fn rows(database: &DatabaseHandle, text: &str) -> Vec<Value> {
    let rows = sql(database, OWNER, text).await.expect("rows").0;
    rows.as_array().expect("rows").clone()
}

/// The child's part: the database, if this is the child.
async fn opened_by_child(first: &Value) -> Option<DatabaseHandle> {
    let directory = std::env::var_os("LIGHTCONE_TEST_CHILD")?;
    let directory = Path::new(&directory);
    let mut options = table_options(directory);
    options.limits.snapshot_log_bytes = 2 << 10;
    Some(match directory.join("log").exists() {
        true => open(options).await,
        false => create_tables(options, first).await,
    })
}

/// What the child says when a version is acknowledged.
fn say(version: usize) {
    println!("published {version}");
    std::io::stdout().flush().expect("the other process reads");
}

/// Runs the child, which begins with the version that is there, and kills it at some moment; twelve times. `check` finds which
/// version is there then, and that all of it is.
async fn kill_and_look(
    child: &str,
    seed: u64,
    check: impl AsyncFn(&DatabaseHandle, usize) -> usize,
) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args([
                format!("migration_killed::{child}").as_str(),
                "--exact",
                "--nocapture",
            ])
            .env("LIGHTCONE_TEST_CHILD", &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let count = rng.random_range(1..4);
        let said = |line: String| {
            line.strip_prefix("published ")
                .map(|n| n.parse().expect("a number"))
        };
        let first = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(said)
            .take(count);
        let first = first.last().expect("it publishes");
        std::thread::sleep(Duration::from_micros(rng.random_range(0..8000)));
        let ended = child.try_wait().expect("it is ours");
        assert_eq!(ended, None, "it ends by nothing but this");
        child.kill().expect("it runs");
        child.wait().expect("it is gone");
        // What it had said before it was gone.
        let last = lines.map_while(Result::ok).filter_map(said).last();
        let acknowledged = last.unwrap_or(first);
        let database = open(table_options(&path)).await;
        let version = check(&database, acknowledged).await;
        assert!(
            version == acknowledged || version == acknowledged + 1,
            "{version} behind {acknowledged}"
        );
        stop(database).await;
    }
}

// ---- Steps of the database ----------------------------------------------------------------------------------------------

/// Each version has a column more; indexes and other tables come and go.
fn with_columns(version: usize) -> Value {
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

/// Publishes one version after the other, each with a row more.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_adds_columns() {
    let Some(database) = opened_by_child(&with_columns(1)).await else {
        return;
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
        let published = publish(&database, &with_columns(version), true).await;
        published.expect("a plan");
        say(version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_the_old_tables_or_the_new_ones() {
    let check = async |database: &DatabaseHandle, acknowledged: usize| {
        let version = columns_of(database);
        let rows = rows(database, "SELECT * FROM t ORDER BY id").await;
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
        version
    };
    kill_and_look("child_that_adds_columns", 11, check).await;
}

// ---- Migration functions ------------------------------------------------------------------------------------------------

/// Even versions call the column `x`, odd ones `y`; each migration adds a row.
fn with_a_function(version: usize) -> Value {
    let name = |version: usize| if version.is_multiple_of(2) { "x" } else { "y" };
    json!({
        "tables": {
            "t": [["id", "U32"], [name(version), "U32"]],
            "__old_t": [["id", "U32"], [name(version + 1), "U32"]],
        },
        "uniqueKeys": { "t": "id", "__old_t": "id" },
        "migrate": {
            "copy": [["__old_t", "t", [0, 1]]],
            "changes": { "t": { "inserts": [[version, version]] } },
        },
    })
}

/// Publishes one version after the other.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_replaces_a_table() {
    let Some(database) = opened_by_child(&with_a_function(0)).await else {
        return;
    };
    let first = rows(&database, "SELECT * FROM t").await.len();
    for version in first + 1..first + 400 {
        let published = publish(&database, &with_a_function(version), true).await;
        published.expect("a plan");
        say(version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_the_old_table_or_the_new_one() {
    let check = async |database: &DatabaseHandle, _: usize| {
        let found = rows(database, "SELECT * FROM t ORDER BY id").await;
        let version = found.len();
        let expected: Vec<Value> = (1..=version).map(|n| json!([n, n])).collect();
        assert_eq!(found, expected);
        let definition = database.module_def();
        let column = &definition.table("t").expect("it is there").columns[1].name;
        let expected = match version.is_multiple_of(2) {
            true => "x",
            false => "y",
        };
        assert_eq!(column, expected, "module and rows go together");
        let of_column = rows(database, &format!("SELECT {column} FROM t")).await;
        assert_eq!(of_column.len(), version);
        version
    };
    kill_and_look("child_that_replaces_a_table", 12, check).await;
}
