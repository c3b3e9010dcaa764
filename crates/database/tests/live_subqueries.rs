//! Subscriptions with subqueries: who is told what, and what it may cost (08 §13.8). That clients hold what queries give is
//! in `live_joins`.

use crate::common::tables::{create_tables, table_options};
use crate::common::watcher::Watcher;
use crate::common::{requests, OWNER};
use lightcone_database::DatabaseHandle;
use lightcone_types::{Encode, Identity};
use serde_json::{json, Value};

fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

fn hex(number: u8) -> String {
    identity_of(number).to_hex().to_string()
}

/// Messages of rooms (`m`), who is in which room (`x`), and who does not want to read whom (`b`).
fn rooms() -> Value {
    json!({
        "tables": {
            "m": [["id", "U32"], ["room", "U32"], ["author", "U32"]],
            "x": [["id", "U32"], ["room", "U32"], ["member", "Identity"]],
            "b": [["id", "U32"], ["author", "U32"], ["by", "Identity"]],
        },
        "uniqueKeys": { "m": "id", "x": "id", "b": "id" },
        "indexes": { "m": [["room"]], "x": [["room"]], "b": [["author"]] },
    })
}

struct World {
    database: DatabaseHandle,
    owner: Watcher,
    watchers: Vec<Watcher>,
    _directory: tempfile::TempDir,
}

impl World {
    async fn new(program: Value, partners_max: usize) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = table_options(directory.path());
        options.limits.join_partners_max = partners_max;
        let database = create_tables(options, &program).await;
        let owner = Watcher::connect(&database, OWNER, 1).await;
        World {
            database,
            owner,
            watchers: Vec::new(),
            _directory: directory,
        }
    }

    async fn watch(&mut self, number: u8, text: &str) {
        let id = 10 + self.watchers.len() as u128;
        let mut watcher = Watcher::connect(&self.database, identity_of(number), id).await;
        let subscribe = requests::subscribe(1, vec![text]);
        watcher.client.send(&[subscribe]).await;
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), [], "{text}");
        self.watchers.push(watcher);
    }

    /// One transaction. Gives who was told of it.
    async fn change(&mut self, changes: Value) -> Vec<usize> {
        let mut args = Vec::new();
        changes.to_string().encode(&mut args);
        let failed = self.owner.call("change", &args).await;
        assert_eq!(failed, None, "{changes}");
        let mut told = Vec::new();
        for (number, watcher) in self.watchers.iter_mut().enumerate() {
            watcher.settle().await;
            if watcher
                .take_updates()
                .iter()
                .any(|tables| !tables.is_empty())
            {
                told.push(number);
            }
        }
        told
    }

    /// How many rows each of them has, none of them twice.
    fn counts(&self) -> Vec<usize> {
        let count = |watcher: &Watcher| {
            let rows = watcher.rows(1, "m");
            assert!(rows.values().all(|count| *count == 1), "{rows:?}");
            rows.len()
        };
        self.watchers.iter().map(count).collect()
    }
}

const MINE: &str =
    "SELECT * FROM m WHERE EXISTS (SELECT 1 FROM x WHERE x.room = m.room AND x.member = :sender)";

#[tokio::test(flavor = "multi_thread")]
async fn a_row_comes_with_the_first_match_and_goes_with_the_last() {
    let mut world = World::new(rooms(), 1000).await;
    for number in 1..4 {
        world.watch(number, MINE).await;
    }
    let insert = |table: &str, rows: Value| json!({ table: { "inserts": rows } });
    let delete = |table: &str, rows: Value| json!({ table: { "deletes": rows } });
    // No room has a member.
    assert!(world
        .change(insert("m", json!([[1, 7, 0], [2, 7, 0], [3, 8, 0]])))
        .await
        .is_empty());
    assert_eq!(
        world.change(insert("x", json!([[1, 7, hex(1)]]))).await,
        [0]
    );
    assert_eq!(world.counts(), [2, 0, 0]);
    // A second membership of the same is nothing new, nor is the loss of one of two.
    assert!(world
        .change(insert("x", json!([[2, 7, hex(1)]])))
        .await
        .is_empty());
    assert!(world
        .change(delete("x", json!([[1, 7, hex(1)]])))
        .await
        .is_empty());
    // The last match goes and another one comes in one transaction; a match moves to another room.
    let replaced = json!({ "x": { "deletes": [[2, 7, hex(1)]], "inserts": [[3, 7, hex(1)]] } });
    assert!(world.change(replaced).await.is_empty());
    let moved = json!({ "x": { "deletes": [[3, 7, hex(1)]], "inserts": [[3, 8, hex(1)]] } });
    assert_eq!(world.change(moved).await, [0]);
    assert_eq!(world.counts(), [1, 0, 0]);
    // Both sides at once: the row with its only match, and without it.
    let both = json!({ "m": { "inserts": [[4, 9, 0]] }, "x": { "inserts": [[4, 9, hex(2)]] } });
    assert_eq!(world.change(both).await, [1]);
    assert_eq!(world.counts(), [1, 1, 0]);
    let crossed = json!({ "m": { "inserts": [[5, 9, 0]] }, "x": { "deletes": [[4, 9, hex(2)]] } });
    assert_eq!(world.change(crossed).await, [1]);
    assert_eq!(world.counts(), [1, 0, 0]);
    // A message to a room of two.
    world.change(insert("x", json!([[5, 8, hex(3)]]))).await;
    assert_eq!(world.change(insert("m", json!([[6, 8, 0]]))).await, [0, 2]);
    assert_eq!(world.counts(), [2, 0, 2]);
    assert_eq!(
        world
            .change(delete("m", json!([[6, 8, 0], [3, 8, 0]])))
            .await,
        [0, 2]
    );
    assert_eq!(world.counts(), [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn not_in_leaves_out_only_whom_it_names() {
    let mut world = World::new(rooms(), 1000).await;
    let text = "SELECT * FROM m WHERE author NOT IN (SELECT author FROM b WHERE by = :sender)";
    for number in 1..4 {
        world.watch(number, text).await;
    }
    let block = |id: u32, author: u32, by: u8| json!([id, author, hex(by)]);
    let inserts = json!([block(1, 5, 1), block(2, 5, 2), block(3, 6, 2)]);
    assert!(world
        .change(json!({ "b": { "inserts": inserts } }))
        .await
        .is_empty());
    let messages = json!({ "m": { "inserts": [[1, 0, 5], [2, 0, 6], [3, 0, 7]] } });
    assert_eq!(world.change(messages).await, [0, 1, 2]);
    assert_eq!(world.counts(), [2, 1, 3]);
    let fewer = json!({ "b": { "deletes": [block(2, 5, 2)] } });
    assert_eq!(world.change(fewer).await, [1]);
    assert_eq!(world.counts(), [2, 2, 3]);
    let more = json!({ "b": { "inserts": [block(4, 7, 3)] }, "m": { "inserts": [[4, 0, 7]] } });
    assert_eq!(world.change(more).await, [0, 1, 2]);
    assert_eq!(world.counts(), [3, 3, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_a_subquery_gives_a_row_once() {
    let mut program = rooms();
    program["rules"] = json!([MINE, "SELECT * FROM x WHERE member = :sender"]);
    let mut world = World::new(program, 1000).await;
    for number in 1..3 {
        world.watch(number, "SELECT * FROM m").await;
    }
    // Other members are hidden from them, also in a subquery.
    let others =
        "SELECT * FROM m WHERE NOT EXISTS (SELECT 1 FROM x WHERE x.room = m.room AND x.id >= 3)";
    for number in 1..3 {
        world.watch(number, others).await;
    }
    let rows = json!({
        "m": { "inserts": [[1, 7, 0], [2, 8, 0]] },
        "x": { "inserts": [[1, 7, hex(1)], [2, 7, hex(1)], [3, 7, hex(2)], [4, 8, hex(2)]] },
    });
    assert_eq!(world.change(rows).await, [0, 1, 2]);
    assert_eq!(world.counts(), [1, 2, 1, 0]);
    for (number, expected) in [(0, 1), (1, 2)] {
        let found = world.watchers[number].ask("SELECT * FROM m").await;
        assert_eq!(found.values().sum::<i64>(), expected);
    }
    let told = world
        .change(json!({ "x": { "deletes": [[1, 7, hex(1)]] } }))
        .await;
    assert!(told.is_empty());
    let told = world
        .change(json!({ "x": { "deletes": [[2, 7, hex(1)], [4, 8, hex(2)]] } }))
        .await;
    assert_eq!(told, [0, 1, 2]);
    assert_eq!(world.counts(), [0, 1, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_in_a_subquery_has_the_rows_of_its_caller() {
    let mut program = rooms();
    let query = "SELECT * FROM x WHERE member = {sender}";
    program["views"] = json!({ "mine": { "table": "x", "query": query } });
    let mut world = World::new(program, 1000).await;
    for number in 1..3 {
        world
            .watch(
                number,
                "SELECT * FROM m WHERE room IN (SELECT room FROM mine)",
            )
            .await;
        world
            .watch(
                number,
                "SELECT * FROM m WHERE room NOT IN (SELECT room FROM mine)",
            )
            .await;
    }
    let rows = json!({
        "m": { "inserts": [[1, 7, 0], [2, 8, 0], [3, 8, 0]] },
        "x": { "inserts": [[1, 7, hex(1)], [2, 8, hex(2)]] },
    });
    world.change(rows).await;
    assert_eq!(world.counts(), [1, 2, 2, 1]);
    let moved = json!({ "x": { "deletes": [[1, 7, hex(1)]], "inserts": [[1, 8, hex(1)]] } });
    assert_eq!(world.change(moved).await, [0, 1]);
    assert_eq!(world.counts(), [2, 1, 2, 1]);
    world
        .change(json!({ "m": { "inserts": [[4, 7, 0]] } }))
        .await;
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// A view has no events to look at, so where the lack of a match says something it fails, and is not empty in silence.
#[tokio::test(flavor = "multi_thread")]
async fn views_with_event_tables_in_subqueries_fail() {
    let mut program = rooms();
    program["tables"]["e"] = json!([["room", "U32"]]);
    program["tables"]["c"] = json!([["room", "U32"], ["n", "U64"]]);
    program["events"] = json!(["e"]);
    let view = |query: &str| json!({ "table": "m", "query": query });
    let counted = |of: &str| {
        let query = format!("SELECT room, COUNT(*) AS n FROM m WHERE room NOT IN (SELECT room FROM {of}) GROUP BY room");
        json!({ "table": "c", "query": query })
    };
    program["views"] = json!({
        "quiet": view("SELECT * FROM m WHERE room NOT IN (SELECT room FROM e)"),
        "outer": view("SELECT m.* FROM m LEFT JOIN e ON m.room = e.room"),
        "plain": view("SELECT * FROM m WHERE room NOT IN (SELECT room FROM x)"),
        "counted_quiet": counted("e"),
        "counted_plain": counted("x"),
    });
    let world = World::new(program, 1000).await;
    let views = [
        ("quiet", true),
        ("outer", true),
        ("plain", false),
        ("counted_quiet", true),
        ("counted_plain", false),
    ];
    for (id, (name, fails)) in views.into_iter().enumerate() {
        let mut watcher = Watcher::connect(&world.database, identity_of(1), 20 + id as u128).await;
        watcher.subscribe(1, &format!("SELECT * FROM {name}")).await;
        let errors = watcher.take_errors();
        assert_eq!(!errors.is_empty(), fails, "{name}: {errors:?}");
        assert!(
            errors.iter().all(|(_, text)| text.ends_with("[LC0331]")),
            "{errors:?}"
        );
    }
}

/// What is too much for a transaction ends the query sets it is too much for.
#[tokio::test(flavor = "multi_thread")]
async fn a_match_that_concerns_too_many_rows_ends_its_queries() {
    let mut world = World::new(rooms(), 50).await;
    world.watch(1, MINE).await;
    world.watch(2, "SELECT * FROM m WHERE room = 1").await;
    let messages: Vec<Value> = (0..80).map(|id| json!([id, 1 + id / 70, 0])).collect();
    world.change(json!({ "m": { "inserts": messages } })).await;
    // Ten messages are not too many.
    world
        .change(json!({ "x": { "inserts": [[1, 2, hex(1)]] } }))
        .await;
    assert_eq!(world.counts(), [10, 70]);
    world
        .change(json!({ "x": { "inserts": [[2, 1, hex(1)]] } }))
        .await;
    let errors = world.watchers[0].take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0714]")),
        "{errors:?}"
    );
    world
        .change(json!({ "m": { "inserts": [[100, 1, 0]] } }))
        .await;
    assert_eq!(world.watchers[1].rows(1, "m").len(), 71);
    assert_eq!(world.watchers[1].take_errors(), []);
}

/// Queries that say for whom a row is are evaluated together; those that say for whom it is not are tried one by one, and
/// count as often.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_tried_for_each_subscriber_counts_for_each() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.query_steps_per_table_max = 400;
    let database = create_tables(options, &rooms()).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let texts = |not: &str| -> Vec<String> {
        let of = |id: u32| {
            format!("SELECT * FROM m WHERE {not} EXISTS (SELECT 1 FROM b WHERE b.author = m.author AND b.id = {id})")
        };
        (0..40).map(of).collect()
    };
    for (set, not, is_refused) in [(1, "", false), (2, "NOT", true), (3, "", false)] {
        let texts = texts(not);
        let queries = texts.iter().map(String::as_str).collect();
        watcher
            .client
            .send(&[requests::subscribe(set, queries)])
            .await;
        watcher.settle().await;
        let errors = watcher.take_errors();
        let refused = errors
            .iter()
            .any(|(of, text)| *of == set && text.contains("[LC0711]"));
        assert_eq!(refused, is_refused, "{errors:?}");
        assert_eq!(watcher.sets().contains(&set), !is_refused);
    }
}
