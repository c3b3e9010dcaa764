//! Views that return aggregates, or the first rows of an order: after every transaction their rows are those that the query
//! gives from scratch (08 §10.4).

use crate::common::tables::{create_tables, sql, table_options};
use crate::common::watcher::Watcher;
use crate::common::OWNER;
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
    // Of joins.
    (
        "joined",
        &[("room", "U32"), ("n", "U64")],
        "SELECT t.room AS room, COUNT(*) AS n FROM t JOIN u ON t.room = u.a GROUP BY t.room",
    ),
    (
        "matches",
        &[("n", "U64")],
        "SELECT COUNT(*) AS n FROM t JOIN u ON t.room = u.a",
    ),
    (
        "joined_values",
        &[
            ("text", "String"),
            ("best", "U64"),
            ("worst", "F64"),
            ("sum", "F64"),
            ("debts", "I128"),
        ],
        "SELECT t.text AS text, MAX(u.large) AS best, MIN(t.score) AS worst, SUM(t.score) AS sum, SUM(t.debt) AS debts FROM u JOIN t ON u.a = t.room WHERE t.owner = {sender} GROUP BY t.text",
    ),
    (
        "neighbours",
        &[("room", "U32"), ("large", "U64"), ("n", "U64")],
        "SELECT a.room AS room, u.large AS large, COUNT(b.id) AS n FROM t a JOIN t b ON a.id = b.points JOIN u ON u.a = b.room WHERE a.debt < b.debt AND b.owner = {sender} GROUP BY a.room, u.large HAVING n > 1 AND MAX(b.points) > 3",
    ),
    (
        "of_matches",
        &[("low", "Option<U64>"), ("mean", "Option<F64>")],
        "SELECT MIN(u.large) AS low, AVG(t.points) AS mean FROM t JOIN u ON t.room = u.a WHERE t.owner = {sender} AND u.a > 2",
    ),
    // These are evaluated again.
    (
        "best_rooms",
        &[("room", "U32"), ("n", "U64")],
        "SELECT room, COUNT(*) AS n FROM t GROUP BY room ORDER BY n DESC, room LIMIT 2",
    ),
    (
        "beside",
        &[("room", "U32"), ("n", "U64")],
        "SELECT t.room AS room, COUNT(u.a) AS n FROM t LEFT JOIN u ON t.room = u.a GROUP BY t.room",
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
    let database = create(&program, |options| {
        options.limits.view_ms_max = 0;
        // So that the window is evaluated as a query.
        options.limits.window_rows_read_max = 1000;
    })
    .await;
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

/// Subscribes to views with a name and a query each, and looks at their rows after each of the changes.
struct Watched {
    _database: DatabaseHandle,
    writer: Watcher,
    watcher: Watcher,
    views: Vec<String>,
}

impl Watched {
    async fn new(views: Value, set: impl FnOnce(&mut DatabaseOptions)) -> Watched {
        let mut program = program();
        let names = views.as_object().expect("views").keys().cloned();
        let names: Vec<String> = names.collect();
        program["views"] = views;
        // Without an index for the order of a window.
        program["indexes"] = json!({ "t": [["room"]], "u": [["a"]] });
        let database = create(&program, set).await;
        let writer = Watcher::connect(&database, OWNER, 1).await;
        let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
        for (set, view) in (0..).zip(&names) {
            watcher
                .subscribe(set, &format!("SELECT * FROM {view}"))
                .await;
        }
        assert_eq!(watcher.take_errors(), []);
        Watched {
            _database: database,
            writer,
            watcher,
            views: names,
        }
    }

    async fn change(&mut self, changes: Value) {
        self.writer.change(&changes).await;
        self.watcher.settle().await;
    }

    /// How many rows each view has.
    fn counts(&self) -> Vec<usize> {
        let views = (0..).zip(&self.views);
        let counts = views.map(|(set, view)| self.watcher.rows(set, view).len());
        counts.collect()
    }

    /// The sets of the views that have failed.
    fn failed(&mut self) -> Vec<u32> {
        let errors = self.watcher.take_errors().into_iter();
        let failed = errors.map(|(set, text)| {
            assert!(text.ends_with("[LC0331]"), "{text}");
            set
        });
        let mut failed: Vec<u32> = failed.collect();
        failed.sort_unstable();
        failed
    }

    /// Failing views are tried again a little later.
    async fn counts_become(&mut self, expected: &[usize]) {
        for _ in 0..200 {
            self.watcher.settle().await;
            if self.counts() == expected {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("{:?} do not become {expected:?}", self.counts());
    }
}

fn random_rows(ids: std::ops::Range<u32>) -> Vec<Value> {
    let mut rng = StdRng::seed_from_u64(1);
    ids.map(|id| Rows::random_row(&mut rng, 0, id)).collect()
}

/// Matches are so many that the views would fail if they were evaluated again: they have no time for it.
#[tokio::test(flavor = "multi_thread")]
async fn aggregates_of_a_join_change_by_what_changes() {
    let columns = json!([["room", "U32"], ["n", "U64"]]);
    let views = json!({
        "v": {
            "columns": columns,
            "query": "SELECT t.room AS room, COUNT(*) AS n FROM t JOIN u ON t.room = u.a GROUP BY t.room",
        },
    });
    let mut watched = Watched::new(views, |options| options.limits.view_ms_max = 0).await;
    let of_u: Vec<Value> = (0..100).map(|n| json!([n % 5, n])).collect();
    watched.change(json!({ "u": { "inserts": of_u } })).await;
    let mut rows = random_rows(0..20_000);
    for thousand in rows.chunks(1000) {
        watched
            .change(json!({ "t": { "inserts": thousand } }))
            .await;
    }
    assert!(watched.failed().is_empty());
    assert_eq!(watched.counts(), [5]);
    let last = rows.split_off(19_990);
    watched.change(json!({ "t": { "deletes": last } })).await;
    let left = watched.watcher.rows(0, "v").into_keys();
    let counts = left.map(|row| u64::from_le_bytes(row[4..].try_into().expect("a count")));
    assert_eq!(counts.sum::<u64>(), 20 * 19_990);
    assert!(watched.failed().is_empty());
}

/// The index of a window that its table does not have is held for the view: rows are found again in no time.
#[tokio::test(flavor = "multi_thread")]
async fn windows_of_views_have_an_index() {
    let views = json!({
        "v": { "table": "t", "query": "SELECT * FROM t ORDER BY debt, id LIMIT 5" },
    });
    let mut watched = Watched::new(views, |options| {
        options.limits.view_ms_max = 0;
        options.limits.window_rows_read_max = 100;
    })
    .await;
    let row = |id: u32| json!([id, 1, 1, id, 0.5, identity_of(1).to_hex().to_string(), ""]);
    for thousand in 0..20_u32 {
        let rows: Vec<Value> = (1000 * thousand..1000 * (thousand + 1)).map(row).collect();
        watched.change(json!({ "t": { "inserts": rows } })).await;
    }
    for first in 0..5 {
        let gone: Vec<Value> = (20 * first..20 * (first + 1)).map(row).collect();
        watched.change(json!({ "t": { "deletes": gone } })).await;
        assert!(watched.failed().is_empty());
    }
    let ids = watched.watcher.rows(0, "v").into_keys();
    let ids: Vec<u32> = ids
        .map(|row| u32::from_le_bytes(row[..4].try_into().expect("an id")))
        .collect();
    assert_eq!(ids, [100, 101, 102, 103, 104]);
}

/// An index that a view wants on a large table is built beside the writer. Without it, the view has no time to find its rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_a_large_table_has_an_index_in_time() {
    let mut program = program();
    let text = "SELECT * FROM t ORDER BY debt, id LIMIT 5";
    program["views"] = json!({ "v": { "table": "t", "query": text } });
    program["indexes"] = json!({ "t": [["room"]], "u": [["a"]] });
    let database = create(&program, |options| options.limits.view_ms_max = 0).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let rows = random_rows(0..20_000);
    for thousand in rows.chunks(1000) {
        writer
            .change(&json!({ "t": { "inserts": thousand } }))
            .await;
    }
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    watcher.subscribe(1, "SELECT * FROM v").await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0331]")),
        "{errors:?}"
    );
    for _ in 0..500 {
        watcher.settle().await;
        if watcher.rows(1, "v").len() == 5 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    writer
        .change(&json!({ "t": { "deletes": rows[..10_000] } }))
        .await;
    watcher.settle().await;
    let expected = writer.ask(text).await;
    assert_eq!(watcher.rows(1, "v"), expected);
    assert_eq!(watcher.take_errors(), []);
}

/// A window that is too much to be kept up to date is evaluated as a query, each time.
#[tokio::test(flavor = "multi_thread")]
async fn windows_of_views_have_no_bounds_of_clients() {
    let text = "SELECT * FROM t ORDER BY debt, id LIMIT 5";
    let views = json!({ "v": { "table": "t", "query": text } });
    let mut watched = Watched::new(views, |options| options.limits.window_rows_max = 3).await;
    let rows = random_rows(0..40);
    for few in rows.chunks(8) {
        watched.change(json!({ "t": { "inserts": few } })).await;
    }
    for few in rows.chunks(3) {
        let expected = watched.writer.ask(text).await;
        assert_eq!(watched.watcher.rows(0, "v"), expected);
        watched.change(json!({ "t": { "deletes": few } })).await;
    }
    assert!(watched.failed().is_empty());
}

/// A function that has read rows of a view runs again when these change.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_reads_a_view_follows_it() {
    let views = json!({
        "counted": { "columns": [["n", "U64"]], "countsRows": "few" },
        "few": { "table": "t", "query": "SELECT * FROM t WHERE id < 3" },
    });
    let mut watched = Watched::new(views, |_| {}).await;
    let rows = random_rows(0..5);
    let counted = |watched: &Watched| {
        let rows = watched.watcher.rows(0, "counted").into_keys();
        rows.map(|row| row[0]).collect::<Vec<_>>()
    };
    assert_eq!(counted(&watched), [0]);
    for few in [&rows[..1], &rows[1..5]] {
        watched.change(json!({ "t": { "inserts": few } })).await;
        let count = watched.watcher.rows(1, "few").len();
        assert_eq!(usize::from(counted(&watched)[0]), count);
    }
    watched.change(json!({ "t": { "deletes": rows } })).await;
    assert_eq!(counted(&watched), [0]);
    assert!(watched.failed().is_empty());
}

/// Rows that come one by one are as many in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_grows_beyond_its_bytes_fails_alone_and_works_again() {
    let views = json!({
        "joined": { "table": "t", "query": "SELECT t.* FROM t JOIN u ON t.room = u.a" },
        "plain": { "table": "t", "query": "SELECT * FROM t WHERE id < 1000" },
    });
    let mut watched = Watched::new(views, |options| options.limits.view_bytes_max = 5000).await;
    let rooms: Vec<Value> = (0..5).map(|room| json!([room, 1])).collect();
    watched.change(json!({ "u": { "inserts": rooms } })).await;
    let rows = random_rows(0..200);
    let mut most = 0;
    for ten in rows.chunks(10) {
        watched.change(json!({ "t": { "inserts": ten } })).await;
        let failed = watched.failed();
        if failed.is_empty() {
            most += 10;
            assert_eq!(watched.counts(), [most, most]);
            continue;
        }
        assert_eq!(failed, [0_u32, 1]);
        assert_eq!(watched.counts(), [most, most], "their last rows stand");
        break;
    }
    assert!((40..100).contains(&most), "{most}");
    watched
        .change(json!({ "t": { "deletes": rows[20..most] } }))
        .await;
    watched.counts_become(&[30, 30]).await;
    assert!(watched.failed().is_empty());
    // Rows that go make room for others.
    for ten in rows[most + 10..].chunks(10) {
        watched.change(json!({ "t": { "inserts": ten } })).await;
        watched.change(json!({ "t": { "deletes": ten } })).await;
    }
    assert!(watched.failed().is_empty());
    assert_eq!(watched.counts(), [30, 30]);
}
