//! Random programs, published under a client that watches: what it holds is what its queries give.

use crate::common::publishing::{publish, stop};
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::{open, OWNER, STRANGER};
use lightcone_database::DatabaseHandle;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

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
