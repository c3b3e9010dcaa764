//! Subscriptions to joins: what clients hold is what the query gives, after every transaction (08 §13, §14).

use crate::common::tables::{create_tables, row_bsatn, sql, table_options};
use crate::common::watcher::{Bag, Watcher};
use crate::common::{requests, OWNER, STRANGER};
use lightcone_database::{DatabaseHandle, HostKind};
use lightcone_types::{Encode, Identity};
use lightcone_vectors::file;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

/// One transaction.
async fn change(watcher: &mut Watcher, changes: &Value) {
    let mut args = Vec::new();
    changes.to_string().encode(&mut args);
    let failed = watcher.call("change", &args).await;
    assert_eq!(failed, None, "{changes}");
}

async fn subscribe(watcher: &mut Watcher, set: u32, text: &str) {
    watcher
        .client
        .send(&[requests::subscribe(set, vec![text])])
        .await;
    watcher.settle().await;
}

fn bag(columns: &Value, rows: &Value) -> Bag {
    let mut bag = Bag::new();
    for row in rows.as_array().expect("rows") {
        let row = row_bsatn(columns.as_array().expect("columns"), row);
        *bag.entry(row).or_default() += 1;
    }
    bag
}

/// What one bag has more than another.
fn minus(a: &Bag, b: &Bag) -> Bag {
    let more = a.iter().map(|(row, count)| {
        let other = b.get(row).copied().unwrap_or_default();
        (row.clone(), count - other)
    });
    more.filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_the_chapter() {
    let vectors = file("08-deltas.json");
    let mut cases = 0;
    for vector in vectors.as_array().expect("a list") {
        let text = vector["query"].as_str().expect("a query");
        let returned = &text[7..8];
        let mut program = json!({ "tables": {}, "indexes": {} });
        for (name, table) in vector["tables"].as_object().expect("tables") {
            program["tables"][name] = table["columns"].clone();
            program["indexes"][name] = table["indexes"].clone();
        }
        let columns = &program["tables"][returned];
        for case in vector["cases"].as_array().expect("cases") {
            let directory = tempfile::tempdir().expect("a directory");
            let database = create_tables(table_options(directory.path()), &program).await;
            let mut watcher = Watcher::connect(&database, STRANGER, 1).await;
            let mut before = json!({});
            for (name, rows) in case["before"].as_object().expect("tables") {
                before[name] = json!({ "inserts": rows });
            }
            change(&mut watcher, &before).await;
            subscribe(&mut watcher, 1, text).await;
            let held_before = watcher.rows(1, returned);
            watcher.take_updates();
            change(&mut watcher, &case["transaction"]).await;
            let held = watcher.rows(1, returned);
            let name = &case["name"];
            let sent = &case["sent"];
            assert_eq!(
                minus(&held, &held_before),
                bag(columns, &sent["inserts"]),
                "{name}"
            );
            assert_eq!(
                minus(&held_before, &held),
                bag(columns, &sent["deletes"]),
                "{name}"
            );
            let is_silent = watcher.take_updates().concat().is_empty();
            let is_nothing = bag(columns, &sent["inserts"]).is_empty()
                && bag(columns, &sent["deletes"]).is_empty();
            assert_eq!(is_silent, is_nothing, "{name}");
            cases += 1;
        }
    }
    assert!(cases > 10, "{cases}");
}

/// `m` and `x` as rooms and members, without an index on some columns.
fn program() -> Value {
    json!({
        "tables": {
            "m": [["id", "U32"], ["room", "U32"], ["score", "F64"], ["owner", "Identity"]],
            "x": [["id", "U32"], ["room", "U32"], ["score", "F64"], ["member", "Identity"], ["open", "Bool"]],
        },
        "uniqueKeys": { "m": "id", "x": "id" },
        "indexes": { "m": [["score"]], "x": [["room"]] },
    })
}

const QUERIES: &[&str] = &[
    "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.member = :sender",
    "SELECT x.* FROM m JOIN x ON m.room = x.room WHERE x.member = :sender",
    "SELECT m.* FROM m JOIN x ON m.room = x.room",
    "SELECT m.* FROM x JOIN m ON m.room = x.room WHERE x.open = TRUE AND m.room <> 3",
    "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id = 4",
    "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id = 5 AND m.room = 2",
    "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE m.id < x.id AND (m.owner = :sender OR x.open = TRUE)",
    "SELECT x.* FROM m JOIN x ON m.score = x.score",
    "SELECT a.* FROM m a JOIN m b ON a.id = b.room WHERE b.owner = :sender",
    "SELECT a.* FROM x a JOIN x b ON a.room = b.room WHERE a.open = FALSE AND b.open = TRUE",
    "SELECT m.* FROM m JOIN x ON m.room = x.room JOIN x y ON y.id = x.room WHERE y.member = :sender",
    "SELECT m.* FROM x y JOIN m ON m.room = y.room JOIN x ON m.id = x.room WHERE x.id < y.id",
    "SELECT x.* FROM m JOIN x ON m.score = x.score JOIN m n ON n.id = x.room JOIN x y ON y.room = n.room WHERE m.owner = :sender AND y.open = TRUE",
];

fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

/// Rows that are in the tables, as the test knows them.
#[derive(Default)]
struct Rows([Vec<Value>; 2]);

impl Rows {
    fn random_row(rng: &mut StdRng, table: usize, id: u32) -> Value {
        let room = rng.random_range(0..5_u32);
        let score = [0.0, -0.0, 1.5][rng.random_range(0..3_usize)];
        let identity = identity_of(rng.random_range(1..4_u8)).to_hex().to_string();
        match table {
            0 => json!([id, room, score, identity]),
            _ => json!([id, room, score, identity, rng.random_bool(0.5)]),
        }
    }

    /// A transaction that deletes, replaces and inserts some rows of both tables.
    fn random_change(&mut self, rng: &mut StdRng) -> Value {
        let mut changes = json!({});
        for (table, name) in ["m", "x"].into_iter().enumerate() {
            let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
            for _ in 0..rng.random_range(0..4_u32) {
                let id = rng.random_range(0..12_u32);
                let rows = &mut self.0[table];
                if let Some(at) = rows.iter().position(|row| row[0] == id) {
                    deletes.push(rows.remove(at));
                    if rng.random_bool(0.4) {
                        continue;
                    }
                }
                inserts.retain(|row: &Value| row[0] != id);
                inserts.push(Rows::random_row(rng, table, id));
            }
            self.0[table].extend(inserts.iter().cloned());
            changes[name] = json!({ "deletes": deletes, "inserts": inserts });
        }
        changes
    }
}

async fn random_transactions(seed: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(table_options(directory.path()), &program()).await;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rows = Rows::default();
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watchers = Vec::new();
    for number in 1..4 {
        watchers
            .push(Watcher::connect(&database, identity_of(number), 10 + u128::from(number)).await);
    }
    for step in 0..60 {
        // Queries come and go while rows change.
        let watcher = &mut watchers[rng.random_range(0..3_usize)];
        let query = rng.random_range(0..QUERIES.len());
        let set = query as u32;
        if rng.random_bool(0.4) {
            if watcher.sets().contains(&set) {
                watcher.unsubscribe(set).await;
            } else {
                subscribe(watcher, set, QUERIES[query]).await;
            }
        }
        change(&mut writer, &rows.random_change(&mut rng)).await;
        for watcher in &mut watchers {
            watcher.settle().await;
            for set in watcher.sets() {
                let text = QUERIES[set as usize];
                let expected = watcher.ask(text).await;
                let table = if text.contains(" FROM m a") || text.starts_with("SELECT m") {
                    "m"
                } else {
                    "x"
                };
                assert_eq!(
                    watcher.rows(set, table),
                    expected,
                    "seed {seed}, step {step}: {text}"
                );
            }
        }
    }
    assert!(watchers
        .iter_mut()
        .all(|watcher| watcher.take_errors().is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_hold_is_what_the_query_gives() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..12).collect(),
    };
    for seed in seeds {
        random_transactions(seed).await;
    }
}

/// One transaction that changes very many rows of both tables.
#[tokio::test(flavor = "multi_thread")]
async fn large_transactions() {
    let (_directory, database) = start(100_000, &program()).await;
    let mut rng = StdRng::seed_from_u64(7);
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    for (set, text) in QUERIES.iter().enumerate() {
        subscribe(&mut watcher, set as u32, text).await;
    }
    let mut tables: [Vec<Value>; 2] = Default::default();
    for _ in 0..3 {
        let mut changes = json!({});
        for (table, name) in ["m", "x"].into_iter().enumerate() {
            let inserts: Vec<Value> = (0..60)
                .map(|id| Rows::random_row(&mut rng, table, id))
                .collect();
            let deletes = std::mem::replace(&mut tables[table], inserts.clone());
            changes[name] = json!({ "deletes": deletes, "inserts": inserts });
        }
        change(&mut writer, &changes).await;
        watcher.settle().await;
        for (set, text) in QUERIES.iter().enumerate() {
            let expected = watcher.ask(text).await;
            let is_m = text.starts_with("SELECT m") || text.contains(" FROM m a");
            let table = if is_m { "m" } else { "x" };
            assert_eq!(watcher.rows(set as u32, table), expected, "{text}");
        }
    }
    assert!(watcher.take_errors().is_empty());
}

/// A new version of the module has joins of its own; who subscribed before and who subscribes then see the same.
#[tokio::test(flavor = "multi_thread")]
async fn joins_outlive_a_new_version_of_the_module() {
    let (_directory, database) = start(1000, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let there = json!({ "x": { "inserts": [[1, 1, 0.0, member, true]] } });
    change(&mut writer, &there).await;
    let mut before = Watcher::connect(&database, identity_of(1), 2).await;
    subscribe(&mut before, 1, QUERIES[0]).await;
    let mut program = program();
    program["version"] = json!(2);
    let program = program.to_string().into_bytes();
    let updated = database.update(program, HostKind::Wasm).await;
    assert!(updated.is_ok(), "{:?}", updated.err());
    let mut after = Watcher::connect(&database, identity_of(1), 3).await;
    subscribe(&mut after, 1, QUERIES[0]).await;
    let message = |id: u32| json!({ "m": { "inserts": [[id, 1, 0.0, member]] } });
    change(&mut writer, &message(1)).await;
    for watcher in [&mut before, &mut after] {
        watcher.settle().await;
        assert_eq!(watcher.rows(1, "m").len(), 1);
    }
    before.unsubscribe(1).await;
    change(&mut writer, &message(2)).await;
    after.settle().await;
    assert_eq!(after.rows(1, "m").len(), 2);
}

/// Indexes for joins are made for as long as they are needed, and not for all joins.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_few_indexes_for_joins() {
    let columns: Vec<_> = (0..6).map(|n| json!([format!("c{n}"), "U32"])).collect();
    let program = json!({ "tables": { "t": columns }, "indexes": { "t": [["c0"]] } });
    let (_directory, database) = start(1000, &program).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let text = |n: u32| format!("SELECT a.* FROM t a JOIN t b ON a.c0 = b.c{n}");
    for n in 1..=4 {
        subscribe(&mut watcher, n, &text(n)).await;
    }
    assert_eq!(watcher.take_errors(), []);
    subscribe(&mut watcher, 5, &text(5)).await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(5, text)] if text.ends_with("[LC0716]")),
        "{errors:?}"
    );
    watcher.unsubscribe(1).await;
    subscribe(&mut watcher, 5, &text(5)).await;
    assert_eq!(watcher.take_errors(), []);
}

/// The module's own rules have places of their own among a table's indexes.
#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_hold_takes_nothing_from_rules() {
    let columns: Vec<_> = (0..6).map(|n| json!([format!("c{n}"), "U32"])).collect();
    let program = json!({
        "tables": { "t": columns, "m": [["id", "U32"], ["c", "U32"]] },
        "indexes": { "t": [["c0"]], "m": [["c"]] },
        "rules": ["SELECT m.* FROM m JOIN t ON m.c = t.c5"],
    });
    let (_directory, database) = start(1000, &program).await;
    let mut stranger = Watcher::connect(&database, identity_of(1), 2).await;
    for n in 1..=4 {
        let text = format!("SELECT a.* FROM t a JOIN t b ON a.c0 = b.c{n}");
        subscribe(&mut stranger, n, &text).await;
    }
    assert_eq!(stranger.take_errors(), []);
    let mut watcher = Watcher::connect(&database, identity_of(2), 3).await;
    subscribe(&mut watcher, 1, "SELECT * FROM m").await;
    assert_eq!(watcher.take_errors(), []);
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let rows =
        json!({ "m": { "inserts": [[1, 7], [2, 8]] }, "t": { "inserts": [[0, 0, 0, 0, 0, 7]] } });
    change(&mut writer, &rows).await;
    watcher.settle().await;
    assert_eq!(watcher.rows(1, "m").len(), 1);
}

async fn start(partners_max: usize, program: &Value) -> (tempfile::TempDir, DatabaseHandle) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.join_partners_max = partners_max;
    let database = create_tables(options, program).await;
    (directory, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_with_too_many_partners_ends_and_nothing_else_does() {
    let (_directory, database) = start(20, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let row = |id: u32, room: u32| json!([id, room, 0.0, member, true]);
    let rows: Vec<Value> = (0..30).map(|id| row(id, u32::from(id >= 10))).collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    subscribe(&mut watcher, 1, QUERIES[0]).await;
    subscribe(&mut watcher, 2, "SELECT * FROM m").await;
    let message = |id: u32, room: u32| json!({ "m": { "inserts": [[id, room, 0.0, member]] } });
    change(&mut writer, &message(1, 0)).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "m").into_values().sum::<i64>(), 10);
    // Twenty partners are as many as there may be.
    change(&mut writer, &message(2, 1)).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    change(&mut writer, &json!({ "x": { "inserts": [row(90, 1)] } })).await;
    change(&mut writer, &message(3, 1)).await;
    change(&mut writer, &message(4, 0)).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0714]")),
        "{errors:?}"
    );
    assert_eq!(watcher.rows(2, "m").len(), 4, "another set goes on");
    // The same set can be subscribed to again.
    watcher.forget(1);
    subscribe(&mut watcher, 1, QUERIES[0]).await;
    let expected = watcher.ask(QUERIES[0]).await;
    assert_eq!(watcher.rows(1, "m"), expected);
}

/// A shape that both have is looked at once. When it is too much, the set ends, and the view works again when it is evaluated anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_and_a_view_share_a_join() {
    let mut program = program();
    program["views"] = json!({ "v": { "table": "m", "query": QUERIES[2] } });
    let (_directory, database) = start(20, &program).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let row = |id: u32, room: u32| json!([id, room, 0.0, member, true]);
    let rows: Vec<Value> = (0..30).map(|id| row(id, u32::from(id >= 10))).collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    subscribe(&mut watcher, 1, QUERIES[2]).await;
    watcher.watch(2, &["v"]).await;
    let message = |id: u32, room: u32| json!({ "m": { "inserts": [[id, room, 0.0, member]] } });
    // Twenty partners are as many as there may be, and would be too many for two.
    change(&mut writer, &message(1, 1)).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "m").into_values().sum::<i64>(), 20);
    assert_eq!(watcher.rows(2, "v").len(), 1);
    // A set with another shape has no more than the view leaves, and takes nothing from it.
    let other = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id <> 900";
    subscribe(&mut watcher, 3, other).await;
    change(&mut writer, &message(2, 1)).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    let [(3, text)] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert!(text.ends_with("[LC0714]"), "{text}");
    // What both have goes on.
    assert_eq!(watcher.rows(2, "v").len(), 2);
    watcher.forget(3);
    subscribe(&mut watcher, 3, QUERIES[2]).await;
    change(&mut writer, &message(5, 0)).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(2, "v").len(), 3);
    let expected = watcher.ask(QUERIES[2]).await;
    assert_eq!(watcher.rows(1, "m"), expected);
    assert_eq!(watcher.rows(3, "m"), expected);
}

/// Changed rows count for each join that looks at them, also without partners.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_on_changed_rows_count() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.join_partners_max = 1;
    let database = create_tables(options, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    let conditions = |count: u32| -> String {
        let each = (0..count).map(|id| format!("m.id <> {}", 1_000_000 + id));
        each.collect::<Vec<_>>().join(" AND ")
    };
    for (set, count) in [(1, 5), (2, 100)] {
        let text = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE";
        subscribe(&mut watcher, set, &format!("{text} {}", conditions(count))).await;
    }
    let member = identity_of(1).to_hex().to_string();
    let rows: Vec<Value> = (0..500).map(|id| json!([id, 77, 0.0, member])).collect();
    change(&mut writer, &json!({ "m": { "inserts": rows } })).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(2, text)] if text.ends_with("[LC0714]")),
        "{errors:?}"
    );
}

/// What each transaction allows must not slow down all of them: the join ends that is dearest for each of its connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_takes_much_for_one_client_ends_in_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.live_rows_per_second = 1_000;
    let database = create_tables(options, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let row = |id: u32| json!([id, 1, 0.0, member, true]);
    let rows: Vec<Value> = (0..200).map(row).collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    // Two joins that cost the same, and one that costs next to nothing.
    let popular = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id <> 900";
    let mut members = Vec::new();
    for number in 2..5 {
        let mut watcher = Watcher::connect(&database, identity_of(1), number).await;
        subscribe(&mut watcher, 1, popular).await;
        members.push(watcher);
    }
    let cheap = "SELECT m.* FROM m JOIN x ON m.id = x.id";
    subscribe(&mut members[0], 2, cheap).await;
    let mut stranger = Watcher::connect(&database, identity_of(2), 9).await;
    let text = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id <> 901";
    subscribe(&mut stranger, 1, text).await;
    let mut errors = Vec::new();
    for id in 0..200 {
        let message = json!({ "m": { "inserts": [[id, 1, 0.0, member]] } });
        change(&mut writer, &message).await;
        stranger.settle().await;
        errors = stranger.take_errors();
        if !errors.is_empty() {
            assert!(id > 5, "some seconds' worth is saved up");
            break;
        }
    }
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0730]")),
        "{errors:?}"
    );
    for watcher in &mut members {
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), []);
        let expected = watcher.ask(popular).await;
        assert_eq!(watcher.rows(1, "m"), expected);
    }
    let expected = members[0].ask(cheap).await;
    assert_eq!(members[0].rows(2, "m"), expected);
}

/// Also when each of very many joins would take all that is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_looks_up_is_bounded_whichever_join_fails() {
    let (_directory, database) = start(20, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let rows: Vec<Value> = (0..30)
        .map(|id| json!([id, 1, 0.0, member, true]))
        .collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    // Shapes of their own, in this order.
    for set in 0..8 {
        let text = format!("SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id <> {set}");
        subscribe(&mut watcher, set, &text).await;
    }
    subscribe(
        &mut watcher,
        8,
        "SELECT x.* FROM x JOIN m ON x.id = m.id WHERE m.id > 6",
    )
    .await;
    assert_eq!(watcher.take_errors(), []);
    let message = json!({ "m": { "inserts": [[7, 1, 0.0, member]] } });
    change(&mut writer, &message).await;
    watcher.settle().await;
    let mut failed: Vec<u32> = watcher.take_errors().iter().map(|(set, _)| *set).collect();
    failed.sort_unstable();
    // What takes no more than a fair share is not among them.
    assert_eq!(failed, [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Conditions that take long to look at count as more rows.
#[tokio::test(flavor = "multi_thread")]
async fn long_conditions_count_by_what_they_take() {
    let (_directory, database) = start(20, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let rows: Vec<Value> = (0..10)
        .map(|id| json!([id, 1, 0.0, member, true]))
        .collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let long = (100..200).map(|id| format!(" AND x.id <> {id}"));
    let long = long.collect::<String>();
    let join = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.id <> 1000";
    let between = (100..200).map(|id| format!(" AND (x.id <> {id} OR m.id > 1000)"));
    let between = between.collect::<String>();
    subscribe(&mut watcher, 1, &format!("{join}{long}")).await;
    subscribe(&mut watcher, 2, &format!("{join}{between}")).await;
    subscribe(&mut watcher, 3, join).await;
    assert_eq!(watcher.take_errors(), []);
    let message = json!({ "m": { "inserts": [[7, 1, 0.0, member]] } });
    change(&mut writer, &message).await;
    watcher.settle().await;
    let mut failed: Vec<u32> = watcher.take_errors().iter().map(|(set, _)| *set).collect();
    failed.sort_unstable();
    assert_eq!(failed, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_joined_with_what_is_there_when_they_happen() {
    let program = json!({
        "tables": { "e": [["room", "U32"]], "x": [["room", "U32"], ["member", "Identity"]] },
        "indexes": { "x": [["room"]] },
        "events": ["e"],
    });
    let (_directory, database) = start(1000, &program).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let text = "SELECT e.* FROM e JOIN x ON e.room = x.room WHERE x.member = :sender";
    subscribe(&mut watcher, 1, text).await;
    let steps = [
        // The partner comes in the same transaction: the event is delivered.
        (
            json!({ "e": { "inserts": [[1]] }, "x": { "inserts": [[1, member]] } }),
            1,
        ),
        (json!({ "e": { "inserts": [[1], [2]] } }), 2),
        // The partner goes in the same transaction: it is not.
        (
            json!({ "e": { "inserts": [[1]] }, "x": { "deletes": [[1, member]] } }),
            2,
        ),
        (json!({ "x": { "inserts": [[2, member]] } }), 2),
    ];
    for (changes, events) in steps {
        change(&mut writer, &changes).await;
        watcher.settle().await;
        assert_eq!(watcher.events().len(), events, "{changes}");
    }
    assert_eq!(watcher.events(), [1_u32.to_le_bytes(), 1_u32.to_le_bytes()]);
}

/// Neither plans nor refusals tell how many rows there are that rules hide.
#[tokio::test(flavor = "multi_thread")]
async fn no_caller_learns_how_many_rows_rules_hide() {
    let mut program = program();
    program["rules"] = json!(["SELECT * FROM x WHERE member = :sender"]);
    let (_directory, database) = start(1000, &program).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let other = identity_of(2).to_hex().to_string();
    let rows: Vec<Value> = (0..37).map(|id| json!([id, 1, 0.0, other, true])).collect();
    let (stranger, member) = (identity_of(1), identity_of(2));
    let queries = [
        "SELECT * FROM x",
        "SELECT * FROM x WHERE room = 1",
        "SELECT a.* FROM x a JOIN m b ON a.id = b.id",
        "SELECT a.* FROM x a WHERE EXISTS (SELECT b.id FROM x b JOIN x c WHERE b.id > c.id)",
    ];
    let mut plans = Vec::new();
    for text in queries {
        let explain = format!("EXPLAIN {text}");
        plans.push(sql(&database, stranger, &explain).await.expect("a plan"));
    }
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    for (text, before) in queries.into_iter().zip(plans) {
        let explain = format!("EXPLAIN {text}");
        let plan = sql(&database, stranger, &explain).await.expect("a plan");
        assert_eq!(plan, before, "{text}");
        assert!(!plan.0.to_string().contains("about"), "{plan:?}");
        let (plan, _) = sql(&database, OWNER, &explain).await.expect("a plan");
        assert!(plan.to_string().contains("about"), "{plan}");
    }
    sql(&database, OWNER, "SET row_limit = 3")
        .await
        .expect("set");
    let too_many = "Estimated cardinality exceeds limit (3 rows)";
    let mut watchers = [
        Watcher::connect(&database, stranger, 2).await,
        Watcher::connect(&database, member, 3).await,
    ];
    let join = "SELECT a.* FROM x a JOIN x b ON a.room = b.room";
    for text in [
        queries[0],
        queries[1],
        join,
        "SELECT COUNT(*) AS n FROM x",
        "SELECT room, COUNT(*) AS n FROM x GROUP BY room",
    ] {
        // Who has no rows of his own is told the same as if there were none.
        let found = sql(&database, stranger, text).await;
        assert!(found.is_ok(), "{text}: {found:?}");
        let refused = sql(&database, member, text).await;
        assert_eq!(refused, Err(too_many.to_owned()), "{text}");
    }
    let few = sql(&database, member, "SELECT * FROM x LIMIT 3").await;
    assert_eq!(few.expect("three").0.as_array().map(Vec::len), Some(3));
    let windows = "SELECT * FROM x ORDER BY id LIMIT 20";
    for (set, text) in [queries[0], join, windows].into_iter().enumerate() {
        let set = set as u32;
        for watcher in &mut watchers {
            subscribe(watcher, set, text).await;
        }
        assert_eq!(watchers[0].take_errors(), [], "{text}");
        let errors = watchers[1].take_errors();
        assert!(
            matches!(&errors[..], [(of, error)] if *of == set && error.contains(too_many)),
            "{text}: {errors:?}"
        );
    }
}

/// What those leave that cost nothing is there for others.
#[tokio::test(flavor = "multi_thread")]
async fn joins_that_take_nothing_take_nothing_from_others() {
    let (_directory, database) = start(20, &program()).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let rows: Vec<Value> = (0..20)
        .map(|id| json!([id, 1, 0.0, member, true]))
        .collect();
    change(&mut writer, &json!({ "x": { "inserts": rows } })).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    for set in 0..5 {
        let text = format!(
            "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE m.id <> {}",
            100 + set
        );
        let text = match set {
            // As many partners as there may be.
            2 => text,
            _ => text.replace("m.id <>", "m.id >"),
        };
        subscribe(&mut watcher, set, &text).await;
    }
    assert_eq!(watcher.take_errors(), []);
    let message = json!({ "m": { "inserts": [[7, 1, 0.0, member]] } });
    change(&mut writer, &message).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(2, "m").into_values().sum::<i64>(), 20);
}

/// No client takes all indexes that a table may have for live queries.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_leaves_indexes_for_others() {
    let columns: Vec<_> = (0..10).map(|n| json!([format!("c{n}"), "U32"])).collect();
    let program = json!({ "tables": { "t": columns }, "indexes": { "t": [["c0"]] } });
    let (_directory, database) = start(1000, &program).await;
    let mut taken = Vec::new();
    let mut clients = Vec::new();
    let mut next = 1;
    for client in 0..4 {
        // Another connection of the same client has no places of its own.
        let mut connections = Vec::new();
        for connection in 0..2 {
            let id = 10 * (client as u128 + 1) + connection;
            connections.push(Watcher::connect(&database, identity_of(client + 1), id).await);
        }
        let mut count = 0;
        loop {
            let text = format!("SELECT a.* FROM t a JOIN t b ON a.c0 = b.c{next}");
            let watcher = &mut connections[count % 2];
            subscribe(watcher, next, &text).await;
            let errors = watcher.take_errors();
            if !errors.is_empty() {
                assert!(errors[0].1.ends_with("[LC0716]"), "{errors:?}");
                break;
            }
            (count, next) = (count + 1, next + 1);
        }
        taken.push(count);
        clients.push(connections);
    }
    assert_eq!(taken, [4, 2, 1, 0]);
    // What one client holds already is for all.
    let last = &mut clients[3][0];
    subscribe(last, 1, "SELECT a.* FROM t a JOIN t b ON a.c0 = b.c1").await;
    assert_eq!(last.take_errors(), []);
}

/// Indexes of large tables are built beside the writer, while the table goes on changing. What comes behind such a subscription
/// is not heard before it.
#[tokio::test(flavor = "multi_thread")]
async fn indexes_of_large_tables_are_built_beside_the_writer() {
    let program = json!({
        "tables": {
            "big": [["id", "U32"], ["room", "U32"], ["score", "U64"], ["text", "String"]],
            "here": [["id", "U32"], ["room", "U32"]],
        },
        "uniqueKeys": { "big": "id", "here": "id" },
        "indexes": { "here": [["room"]] },
    });
    let (_directory, database) = start(1_000_000, &program).await;
    let row = |id: u32, room: u32| json!([id, room, 1000 - u64::from(room), "x"]);
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    for first in (0..60_000).step_by(10_000) {
        let rows: Vec<Value> = (first..first + 10_000)
            .map(|id| row(id, id % 1000))
            .collect();
        change(&mut writer, &json!({ "big": { "inserts": rows } })).await;
    }
    let here = json!([[1, 5], [2, 6], [3, 2000]]);
    change(&mut writer, &json!({ "here": { "inserts": here } })).await;
    let is_done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = is_done.clone();
    let changing = tokio::spawn(async move {
        let mut round = 0_u32;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            // Rows move to other rooms, go, and come.
            let old: Vec<Value> = (0..20)
                .map(|n| (round * 20 + n) % 50_000)
                .map(|id| row(id, id % 1000))
                .collect();
            let new: Vec<Value> = (0..20)
                .map(|n| (round * 20 + n) % 50_000)
                .map(|id| row(id, (id + 5) % 7))
                .collect();
            change(
                &mut writer,
                &json!({ "big": { "deletes": old, "inserts": new } }),
            )
            .await;
            change(
                &mut writer,
                &json!({ "big": { "deletes": new, "inserts": old } }),
            )
            .await;
            round += 1;
        }
        writer
    });
    let texts = [
        "SELECT big.* FROM big JOIN here ON big.room = here.room",
        "SELECT here.* FROM big JOIN here ON big.room = here.room",
        "SELECT * FROM big ORDER BY score DESC LIMIT 50",
    ];
    let mut watchers = Vec::new();
    for client in 0..3_u8 {
        let watcher =
            Watcher::connect(&database, identity_of(client), 20 + u128::from(client)).await;
        let subscriptions = texts.iter().enumerate();
        let mut messages: Vec<_> = subscriptions
            .map(|(set, text)| requests::subscribe(set as u32, vec![*text]))
            .collect();
        // The same payload goes on with what is answered at once.
        messages.push(requests::unsubscribe(1));
        watcher.client.send(&messages).await;
        watchers.push(watcher);
    }
    for watcher in &mut watchers {
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), []);
        assert_eq!(watcher.sets(), [0, 2]);
    }
    is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut writer = changing.await.expect("no panic");
    let more = json!([[4, 999], [5, 3]]);
    change(&mut writer, &json!({ "here": { "inserts": more } })).await;
    for watcher in &mut watchers {
        watcher.settle().await;
        let expected = watcher.ask(texts[0]).await;
        assert_eq!(watcher.rows(0, "big"), expected);
        let (first, _) = sql(&database, OWNER, texts[2]).await.expect("rows");
        assert_eq!(
            watcher.rows(2, "big").len(),
            first.as_array().map_or(0, Vec::len)
        );
    }
}
