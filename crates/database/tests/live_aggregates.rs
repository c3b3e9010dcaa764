//! Views that return aggregates, or the first rows of an order: after every transaction their rows are those that the query
//! gives from scratch (08 §10.4).

mod common;

use common::tables::{create_tables, sql, table_options};
use common::watcher::Watcher;
use common::OWNER;
use lightcone_database::{DatabaseHandle, DatabaseOptions};
use lightcone_types::Identity;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

const COLUMNS: [(&str, &str); 7] = [
    ("id", "U32"),
    ("room", "U32"),
    ("points", "U32"),
    ("debt", "I32"),
    ("score", "F64"),
    ("owner", "Identity"),
    ("text", "String"),
];

/// The name of a view, its columns with their types, and its query.
type View = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const VIEWS: &[View] = &[
    (
        "by_room",
        &[
            ("room", "U32"),
            ("n", "U64"),
            ("total", "U128"),
            ("debts", "I128"),
            ("best", "F64"),
            ("worst", "F64"),
            ("mean", "F64"),
            ("sum", "F64"),
        ],
        "SELECT room, COUNT(*) AS n, SUM(points) AS total, SUM(debt) AS debts, MAX(score) AS best, MIN(score) AS worst, AVG(score) AS mean, SUM(score) AS sum FROM t GROUP BY room",
    ),
    (
        "mine",
        &[("n", "U64")],
        "SELECT COUNT(*) AS n FROM t WHERE owner = {sender}",
    ),
    (
        "of_all",
        &[
            ("sum", "Option<F64>"),
            ("debts", "Option<I128>"),
            ("first", "Option<String>"),
            ("last", "Option<String>"),
            ("mean", "Option<F64>"),
            ("n", "U64"),
        ],
        "SELECT SUM(score) AS sum, SUM(debt) AS debts, MIN(text) AS first, MAX(text) AS last, AVG(points) AS mean, COUNT(id) AS n FROM t WHERE owner = {sender} AND room < 3",
    ),
    (
        "large_rooms",
        &[("n", "U64"), ("room", "U32")],
        "SELECT COUNT(*) AS n, room FROM t GROUP BY room HAVING MAX(points) > 40 AND n < 30",
    ),
    // Several groups have one row.
    (
        "sizes",
        &[("n", "U64")],
        "SELECT COUNT(*) AS n FROM t GROUP BY room, text",
    ),
    (
        "by_score",
        &[("score", "F64"), ("ids", "U32")],
        "SELECT score, MAX(id) AS ids FROM t GROUP BY score",
    ),
    (
        "ids",
        &[("low", "Option<U64>"), ("high", "Option<U64>")],
        "SELECT MIN(large) AS low, MAX(large) AS high FROM u",
    ),
    // These are evaluated again.
    (
        "best_rooms",
        &[("room", "U32"), ("n", "U64")],
        "SELECT room, COUNT(*) AS n FROM t GROUP BY room ORDER BY n DESC, room LIMIT 2",
    ),
    (
        "joined",
        &[("room", "U32"), ("n", "U64")],
        "SELECT t.room AS room, COUNT(*) AS n FROM t JOIN u ON t.room = u.a GROUP BY t.room",
    ),
    (
        "top",
        &COLUMNS,
        "SELECT * FROM t ORDER BY score DESC LIMIT 3 OFFSET 1",
    ),
    (
        "my_top",
        &COLUMNS,
        "SELECT * FROM t WHERE owner = {sender} ORDER BY text LIMIT 4",
    ),
    (
        "my_best",
        &COLUMNS,
        "SELECT * FROM t WHERE owner = {sender} AND room <> 1 ORDER BY score DESC, debt LIMIT 4",
    ),
];

fn program() -> Value {
    let mut program = json!({
        "tables": {
            "t": COLUMNS,
            "u": [["a", "U32"], ["large", "U64"]],
        },
        "uniqueKeys": { "t": "id" },
        "indexes": { "t": [["room"], ["owner", "score"]], "u": [["a"]] },
        "views": {},
    });
    for (name, columns, query) in VIEWS {
        program["views"][*name] = json!({ "columns": columns, "query": query });
    }
    program
}

fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

async fn create(program: &Value, set: impl FnOnce(&mut DatabaseOptions)) -> DatabaseHandle {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    set(&mut options);
    create_tables(options, program).await
}

/// Rows that are in the tables, as the test knows them.
#[derive(Default)]
struct Rows([Vec<Value>; 2]);

impl Rows {
    fn random_row(rng: &mut StdRng, table: usize, id: u32) -> Value {
        let room = rng.random_range(0..5_u32);
        if table == 1 {
            return json!([id % 7, u64::from(id) << 33]);
        }
        let points = rng.random_range(0..50_u32);
        let debt = rng.random_range(-9..9_i32);
        let scores = [0.0, -0.0, 0.1, 0.2, 0.3, -1e300, 1e300, 2.5];
        let score = scores[rng.random_range(0..scores.len())];
        let owner = identity_of(rng.random_range(1..4_u8)).to_hex().to_string();
        let text = ["", "a", "ab", "b"][rng.random_range(0..4_usize)];
        json!([id, room, points, debt, score, owner, text])
    }

    /// A transaction that deletes, replaces and inserts a few rows of both tables, or very many.
    fn random_change(&mut self, rng: &mut StdRng) -> Value {
        let mut changes = json!({});
        for (table, name) in ["t", "u"].into_iter().enumerate() {
            let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
            let is_large = rng.random_bool(0.2);
            let steps = rng.random_range(0..if is_large { 400_u32 } else { 5 });
            let stays = [0.1, 0.6, 1.0][rng.random_range(0..3_usize)];
            // Now and then, all that is there goes from one end.
            let ids = match rng.random_bool(0.1) {
                true => 0..1,
                false => 0..300_u32,
            };
            for step in 0..steps {
                let id = rng.random_range(ids.clone()) + if ids.end == 1 { step } else { 0 };
                let row = Rows::random_row(rng, table, id);
                let rows = &mut self.0[table];
                let is_it = |known: &Value| match table {
                    0 => known[0] == row[0],
                    _ => known == &row,
                };
                inserts.retain(|row: &Value| !is_it(row));
                if let Some(at) = rows.iter().position(is_it) {
                    deletes.push(rows.remove(at));
                }
                if rng.random_bool(stays) {
                    inserts.push(row);
                }
            }
            // What goes and comes again does not change.
            self.0[table].extend(inserts.iter().cloned());
            changes[name] = json!({ "deletes": deletes, "inserts": inserts });
        }
        changes
    }
}

/// The rows of a query, in an order of their own and without duplicates, as views have them.
async fn rows_of(database: &DatabaseHandle, identity: Identity, text: &str) -> Vec<String> {
    let answer = sql(database, identity, text).await;
    let (answer, _) = answer.unwrap_or_else(|error| panic!("{text}: {error}"));
    let rows = answer.as_array().expect("rows");
    let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows.dedup();
    rows
}

async fn random_transactions(seed: u64) {
    let database = create(&program(), |_| {}).await;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rows = Rows::default();
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watchers = Vec::new();
    for number in 1..3 {
        let id = 10 + u128::from(number);
        watchers.push(Watcher::connect(&database, identity_of(number), id).await);
    }
    for step in 0..30 {
        for watcher in &mut watchers {
            let set = rng.random_range(0..VIEWS.len());
            match watcher.sets().contains(&(set as u32)) {
                true if rng.random_bool(0.2) => watcher.unsubscribe(set as u32).await,
                true => {}
                false => {
                    let text = format!("SELECT * FROM {}", VIEWS[set].0);
                    watcher.subscribe(set as u32, &text).await;
                }
            }
        }
        writer.change(&rows.random_change(&mut rng)).await;
        for watcher in &mut watchers {
            watcher.settle().await;
            assert_eq!(watcher.take_errors(), []);
            for set in watcher.sets() {
                let (view, _, query) = VIEWS[set as usize];
                let sender = format!("0x{}", watcher.identity.to_hex());
                let query = query.replace("{sender}", &sender);
                let text = format!("SELECT * FROM {view}");
                let expected = rows_of(&database, watcher.identity, &query).await;
                let found = rows_of(&database, watcher.identity, &text).await;
                assert_eq!(found, expected, "seed {seed}, step {step}: {query}");
                let expected = watcher.ask(&text).await;
                assert_eq!(watcher.rows(set, view), expected, "seed {seed}: {view}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_views_are_what_their_queries_give() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..4).collect(),
    };
    for seed in seeds {
        random_transactions(seed).await;
    }
}

/// Subscribes to the only view of a program, and gives what is told of it.
async fn told_of(columns: &[(&str, &str)], query: &str) -> (DatabaseHandle, Watcher) {
    let mut program = program();
    program["views"] = json!({ "v": { "columns": columns, "query": query } });
    let database = create(&program, |options| {
        options.limits.view_bytes_max = 20_000;
    })
    .await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    watcher.subscribe(1, "SELECT * FROM v").await;
    (database, watcher)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_whose_type_is_not_that_of_its_query_fails() {
    let query = "SELECT room, COUNT(*) AS n FROM t GROUP BY room";
    for columns in [
        &[("room", "U32"), ("n", "U32")][..],
        &[("n", "U64"), ("room", "U32")],
        &[("room", "U32"), ("count", "U64")],
        &[("room", "U32")],
    ] {
        let (_database, mut watcher) = told_of(columns, query).await;
        let errors = watcher.take_errors();
        assert!(
            matches!(&errors[..], [(1, text)] if text.ends_with("[LC0331]")),
            "{errors:?}"
        );
    }
    let (_database, mut watcher) = told_of(&[("room", "U32"), ("n", "U64")], query).await;
    assert_eq!(watcher.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_with_too_many_groups_fails_alone_and_works_again() {
    let query = "SELECT id, COUNT(*) AS n FROM t GROUP BY id";
    let (database, mut watcher) = told_of(&[("id", "U32"), ("n", "U64")], query).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut rng = StdRng::seed_from_u64(1);
    let rows: Vec<Value> = (0..200)
        .map(|id| Rows::random_row(&mut rng, 0, id))
        .collect();
    let few = json!({ "t": { "inserts": rows[..10] } });
    writer.change(&few).await;
    watcher.settle().await;
    assert_eq!(watcher.rows(1, "v").len(), 10);
    let many = json!({ "t": { "inserts": rows[10..] } });
    writer.change(&many).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0331]")),
        "{errors:?}"
    );
    assert_eq!(watcher.rows(1, "v").len(), 10, "its last rows stand");
    let gone = json!({ "t": { "deletes": rows[5..] } });
    writer.change(&gone).await;
    // Failing views are tried again a little later.
    for _ in 0..200 {
        watcher.settle().await;
        if watcher.rows(1, "v").len() == 5 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it does not work again");
}

/// Rows that are looked at take time, also if they are none of the view's.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_looks_at_rows_for_too_long_fails_alone() {
    let mut program = program();
    let none = "SELECT * FROM t WHERE text = 'none'";
    program["views"] = json!({
        "first": { "table": "t", "query": format!("{none} ORDER BY score LIMIT 5") },
        "all": { "table": "t", "query": none },
        "counted": {
            "columns": [["room", "U32"], ["n", "U64"]],
            "query": "SELECT room, COUNT(*) AS n FROM t WHERE text = 'none' GROUP BY room",
        },
    });
    let database = create(&program, |options| options.limits.view_ms_max = 0).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut rng = StdRng::seed_from_u64(1);
    for thousand in 0..20_u32 {
        let ids = thousand * 1000..(thousand + 1) * 1000;
        let rows: Vec<Value> = ids.map(|id| Rows::random_row(&mut rng, 0, id)).collect();
        writer.change(&json!({ "t": { "inserts": rows } })).await;
    }
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    for (set, view) in [(1, "first"), (2, "all"), (3, "counted")] {
        watcher
            .subscribe(set, &format!("SELECT * FROM {view}"))
            .await;
        let errors = watcher.take_errors();
        assert!(
            matches!(&errors[..], [(of, text)] if *of == set && text.ends_with("[LC0331]")),
            "{view}: {errors:?}"
        );
    }
}
