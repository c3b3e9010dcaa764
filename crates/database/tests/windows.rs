//! Subscriptions with `ORDER BY … LIMIT`: what clients hold is what the query gives, after every transaction (08 §13.7). What bounds them: `windows_at_limits.rs`.

use crate::common::publishing::publish;
use crate::common::requests::subscribe;
use crate::common::tables::sql;
use crate::common::watcher::Watcher;
use crate::common::windows::{create, identity_of, program, row};
use crate::common::OWNER;
use lightcone_types::Encode;
use lightcone_wire::ClientMessage;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

const QUERIES: &[&str] = &[
    "SELECT * FROM t ORDER BY score DESC LIMIT 5",
    "SELECT * FROM t ORDER BY score, id DESC LIMIT 3 OFFSET 2",
    "SELECT * FROM t WHERE owner = :sender ORDER BY score DESC LIMIT 4",
    "SELECT * FROM t WHERE owner = :sender ORDER BY score LIMIT 4",
    "SELECT * FROM t WHERE room = 1 ORDER BY id DESC LIMIT 4 OFFSET 3",
    "SELECT * FROM t WHERE room = 2 AND owner = :sender AND open = TRUE ORDER BY text, score DESC LIMIT 3",
    "SELECT * FROM t WHERE open = FALSE ORDER BY text DESC LIMIT 6",
    "SELECT t.* FROM t WHERE id > 20 AND id < 90 ORDER BY room, text LIMIT 10",
    "SELECT * FROM u ORDER BY a LIMIT 4",
    "SELECT * FROM u WHERE b = 1 ORDER BY a DESC LIMIT 4 OFFSET 1",
    "SELECT * FROM t ORDER BY score LIMIT 0",
    "SELECT * FROM t WHERE room = 0 AND room = 0 ORDER BY score LIMIT 2",
    "SELECT * FROM t WHERE room = 0 AND room = 1 ORDER BY score LIMIT 2",
];

fn table_of(text: &str) -> &'static str {
    match text.contains("FROM u") {
        true => "u",
        false => "t",
    }
}

const TABLES: [&str; 3] = ["t", "u", "member"];

/// Rows that are in the tables, as the test knows them.
#[derive(Default)]
struct Rows([Vec<Value>; 3]);

impl Rows {
    fn random_row(rng: &mut StdRng, table: usize, id: u32) -> Value {
        let room = rng.random_range(0..4_u32);
        let owner = identity_of(rng.random_range(1..4_u8)).to_hex().to_string();
        match table {
            0 => {}
            1 => return json!([id, room / 2]),
            _ => return json!([id, room, owner]),
        }
        let score = [0.0, -0.0, 1.5, -2.0, 7.0][rng.random_range(0..5_usize)];
        let text = ["", "a", "ab", "b"][rng.random_range(0..4_usize)];
        json!([id, room, score, owner, rng.random_bool(0.5), text])
    }

    /// A transaction that deletes, replaces and inserts a few rows of the tables, or very many.
    fn random_change(&mut self, rng: &mut StdRng) -> Value {
        let mut changes = json!({});
        for (table, name) in TABLES.into_iter().enumerate() {
            let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
            let is_large = rng.random_bool(0.15);
            // Few members, so that whole rooms come and go for a client.
            let (most, ids) = if table == 2 { (6, 12) } else { (120, 150) };
            let steps = rng.random_range(0..if is_large { most } else { 5 });
            let stays = [0.2, 0.6, 0.9][rng.random_range(0..3_usize)];
            for _ in 0..steps {
                let id = rng.random_range(0..ids);
                let rows = &mut self.0[table];
                inserts.retain(|row: &Value| row[0] != id);
                if let Some(at) = rows.iter().position(|row| row[0] == id) {
                    deletes.push(rows.remove(at));
                }
                if rng.random_bool(stays) {
                    inserts.push(Rows::random_row(rng, table, id));
                }
            }
            self.0[table].extend(inserts.iter().cloned());
            changes[name] = json!({ "deletes": deletes, "inserts": inserts });
        }
        changes
    }
}

async fn random_transactions(seed: u64, program: &Value) {
    let database = create(program, |_| {}).await;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rows = Rows::default();
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watchers = Vec::new();
    for number in 1..4 {
        let id = 10 + u128::from(number);
        watchers.push(Watcher::connect(&database, identity_of(number), id).await);
    }
    for step in 0..60 {
        // Queries come and go while rows change.
        for watcher in &mut watchers {
            let set = rng.random_range(0..QUERIES.len()) as u32;
            match watcher.sets().contains(&set) {
                true if rng.random_bool(0.3) => watcher.unsubscribe(set).await,
                true => {}
                false => watcher.subscribe(set, QUERIES[set as usize]).await,
            }
        }
        writer.change(&rows.random_change(&mut rng)).await;
        for watcher in &mut watchers {
            watcher.settle().await;
            assert_eq!(watcher.take_errors(), []);
            for set in watcher.sets() {
                let text = QUERIES[set as usize];
                let expected = watcher.ask(text).await;
                let held = watcher.rows(set, table_of(text));
                assert_eq!(held, expected, "seed {seed}, step {step}: {text}");
            }
        }
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..8).collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_hold_is_what_the_query_gives() {
    for seed in seeds() {
        random_transactions(seed, &program()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_one_table_decide_what_is_in_a_window() {
    let mut program = program();
    program["rules"] = json!(["SELECT * FROM t WHERE owner = :sender AND room <> 3"]);
    for seed in seeds() {
        random_transactions(seed, &program).await;
    }
}

/// Several rules, and rules that join: a row is in a window once, however often they give it.
#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_several_or_join_decide_what_is_in_a_window() {
    let own = "SELECT * FROM t WHERE owner = :sender";
    let open = "SELECT * FROM t WHERE open = TRUE AND room <> 3 AND text <> 'a'";
    let of_room = "SELECT t.* FROM t JOIN member m ON t.room = m.room WHERE m.who = :sender";
    let far = "SELECT t.* FROM t JOIN u ON u.a = t.id JOIN member m ON m.id = u.a WHERE t.id < m.id OR m.who = :sender";
    let of_u = "SELECT u.* FROM u JOIN member m ON u.a = m.room WHERE m.who = :sender AND m.id < 9";
    let all_of_u = "SELECT * FROM u WHERE b = 1";
    for rules in [
        &[own, open][..],
        &[of_room],
        &[own, of_room, open, of_u],
        &[of_room, far, of_u, all_of_u],
    ] {
        let mut program = program();
        program["rules"] = json!(rules);
        for seed in seeds() {
            random_transactions(seed, &program).await;
        }
    }
}

/// The same of a query that is asked once: `LIMIT` counts rows, and not how often rules give them.
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_an_order_come_once() {
    let mut program = program();
    program["rules"] = json!([
        "SELECT * FROM t WHERE id < 5",
        "SELECT t.* FROM t JOIN u ON t.room = u.a WHERE t.id < 8",
        "SELECT * FROM t WHERE owner = :sender",
    ]);
    let database = create(&program, |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let rows: Vec<Value> = (0..20).map(|id| row(id, f64::from(id), "")).collect();
    let of_u = json!([[1, 1], [1, 2]]);
    let all = json!({ "t": { "inserts": rows }, "u": { "inserts": of_u } });
    writer.change(&all).await;
    let ids = async |text: &str| -> Vec<u64> {
        let (rows, _) = sql(&database, identity_of(1), text).await.expect("rows");
        let rows = rows.as_array().expect("rows").iter();
        rows.map(|row| row[0].as_u64().expect("an id")).collect()
    };
    let last = "SELECT * FROM t ORDER BY score DESC LIMIT 3 OFFSET 11";
    assert_eq!(ids(last).await, [8, 7, 6]);
    assert_eq!(ids("SELECT * FROM t ORDER BY id").await.len(), 20);
    assert_eq!(ids("SELECT * FROM t").await.len(), 5 + 2 * 8 + 20);
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    watcher.subscribe(1, last).await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "t"), watcher.ask(last).await);
}

/// Of few rows in a large table, those are looked for that the rule finds, and not all in the order of the window.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_found_by_its_rule_where_its_order_is_too_long() {
    let mut program = program();
    let rule = "SELECT t.* FROM t JOIN member m ON t.room = m.room WHERE m.who = :sender";
    program["rules"] = json!([rule]);
    let database = create(&program, |options| {
        options.limits.window_rows_read_max = 500;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let who = identity_of(1).to_hex().to_string();
    let room_of = |id: u32| if id < 3000 { 0 } else { 1 + id % 2 };
    let row_of = |id: u32| json!([id, room_of(id), f64::from(id), who, true, ""]);
    let rows: Vec<Value> = (0..3040).map(row_of).collect();
    let members = json!([[1, 1, who], [2, 1, who]]);
    let all = json!({ "t": { "inserts": rows }, "member": { "inserts": members } });
    writer.change(&all).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 3";
    watcher.subscribe(1, text).await;
    assert_eq!(watcher.take_errors(), []);
    let is_right = async |watcher: &mut Watcher, rows: usize| {
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), []);
        let expected = watcher.ask(text).await;
        assert_eq!(expected.len(), rows);
        assert_eq!(watcher.rows(1, "t"), expected);
    };
    is_right(&mut watcher, 3).await;
    // So many go that more have to be looked for.
    let gone: Vec<Value> = (3000..3036).map(row_of).collect();
    writer.change(&json!({ "t": { "deletes": gone } })).await;
    is_right(&mut watcher, 2).await;
    // One of two that let the same rows in, and then the other.
    let member = |id: u32| json!({ "member": { "deletes": [[id, 1, who]] } });
    writer.change(&member(1)).await;
    is_right(&mut watcher, 2).await;
    writer.change(&member(2)).await;
    is_right(&mut watcher, 0).await;
    let entered = json!({ "member": { "inserts": [[3, 2, who]] } });
    writer.change(&entered).await;
    is_right(&mut watcher, 2).await;
    // Where the rule finds too many rows, their order finds them.
    let entered = json!({ "member": { "inserts": [[4, 0, who]] } });
    writer.change(&entered).await;
    is_right(&mut watcher, 3).await;
    let gone: Vec<Value> = (0..30).map(row_of).collect();
    writer.change(&json!({ "t": { "deletes": gone } })).await;
    is_right(&mut watcher, 3).await;
}

/// Many clients whose rule is a join are one shape, and a change is sent to whom it concerns.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_a_join_sends_to_its_members_only() {
    let mut program = program();
    let rule = "SELECT t.* FROM t JOIN member m ON t.room = m.room WHERE m.who = :sender";
    program["rules"] = json!([rule]);
    let database = create(&program, |options| {
        // As much as a few shapes take: not one for each client.
        options.limits.query_steps_per_table_max = 2000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let text = "SELECT * FROM t ORDER BY score DESC LIMIT 2";
    let mut watchers = Vec::new();
    for number in 1..40 {
        let id = 10 + u128::from(number);
        let mut watcher = Watcher::connect(&database, identity_of(number), id).await;
        let who = identity_of(number).to_hex().to_string();
        let member = json!([number, u32::from(number), who]);
        writer
            .change(&json!({ "member": { "inserts": [member] } }))
            .await;
        watcher.subscribe(1, text).await;
        assert_eq!(watcher.take_errors(), []);
        watchers.push(watcher);
    }
    let owner = identity_of(1).to_hex().to_string();
    for id in 0..200_u32 {
        let row = json!([id, id % 39 + 1, f64::from(id % 7), owner, true, ""]);
        writer.change(&json!({ "t": { "inserts": [row] } })).await;
    }
    for watcher in &mut watchers {
        watcher.settle().await;
        let expected = watcher.ask(text).await;
        assert_eq!(expected.len(), 2);
        assert_eq!(watcher.rows(1, "t"), expected);
        assert!(watcher.take_updates().len() < 20);
    }
}

/// A window that has failed with its rule's join ends, and can be opened again at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_ends_with_the_join_of_its_rule() {
    let mut program = program();
    let rule = "SELECT t.* FROM t JOIN member m ON t.room = m.room WHERE m.who = :sender";
    program["rules"] = json!([rule]);
    let database = create(&program, |options| options.limits.join_partners_max = 20).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 3";
    watcher.subscribe(1, text).await;
    assert_eq!(watcher.take_errors(), []);
    let who = identity_of(1).to_hex().to_string();
    let rows: Vec<Value> = (0..100).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let entered = json!({ "member": { "inserts": [[1, 1, who]] } });
    writer.change(&entered).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0714]")),
        "{errors:?}"
    );
    watcher.forget(1);
    watcher.subscribe(1, text).await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(text).await;
    assert_eq!(expected.len(), 3);
    assert_eq!(watcher.rows(1, "t"), expected);
}

/// What the rules took away is kept behind a window, and does not come out because the rule's join has failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_taken_away_is_not_sent_when_a_join_fails() {
    let mut program = program();
    program["rules"] = json!([
        "SELECT * FROM t WHERE open = TRUE",
        "SELECT t.* FROM t JOIN member m ON t.room = m.room WHERE m.who = :sender",
    ]);
    let database = create(&program, |options| options.limits.join_partners_max = 20).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let who = identity_of(1).to_hex().to_string();
    let row_of = |id: u32| json!([id, 1, f64::from(id), who, id < 3, ""]);
    let rows: Vec<Value> = (0..100).map(row_of).collect();
    let member = json!([[1, 1, who]]);
    let all = json!({ "t": { "inserts": rows }, "member": { "inserts": member } });
    writer.change(&all).await;
    // Three open rows come out; those behind them are the member's only.
    watcher
        .subscribe(1, "SELECT * FROM t ORDER BY score LIMIT 3")
        .await;
    assert_eq!(watcher.take_errors(), []);
    let before = watcher.rows(1, "t");
    assert_eq!(before.len(), 3);
    // The member leaves, which is too much for the join; in the same round, an open row goes too, in that transaction and the next.
    let leaves = json!({ "t": { "deletes": [row_of(0)] }, "member": { "deletes": member } });
    let next = json!({ "t": { "deletes": [row_of(1)] } });
    let args: Vec<Vec<u8>> = [leaves, next]
        .iter()
        .map(|change| {
            let mut args = Vec::new();
            change.to_string().encode(&mut args);
            args
        })
        .collect();
    let calls = args.iter().map(|args| ClientMessage::CallReducer {
        request_id: 1,
        reducer: "change",
        args,
    });
    let calls: Vec<ClientMessage> = calls.collect();
    writer.client.send(&calls).await;
    writer.settle().await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0714]")),
        "{errors:?}"
    );
    let held = watcher.rows(1, "t");
    assert!(held.keys().all(|row| before.contains_key(row)), "{held:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_enter_and_leave_and_nothing_else_is_sent() {
    let database = create(&program(), |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..100).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    watcher
        .subscribe(1, "SELECT * FROM t ORDER BY score DESC LIMIT 3")
        .await;
    let ids = |watcher: &Watcher| -> Vec<u32> {
        let rows = watcher.rows(1, "t").into_keys();
        let mut ids: Vec<u32> = rows
            .map(|row| u32::from_le_bytes(row[..4].try_into().expect("an id")))
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(&watcher), [97, 98, 99]);
    watcher.take_updates();
    // Behind the window.
    let behind = json!({ "t": { "deletes": [row(5, 5.0, "")], "inserts": [row(5, 6.5, "x")] } });
    writer.change(&behind).await;
    watcher.settle().await;
    assert_eq!(watcher.take_updates().concat(), Vec::<String>::new());
    let first = json!({ "t": { "inserts": [row(200, 200.0, "")] } });
    writer.change(&first).await;
    watcher.settle().await;
    assert_eq!(ids(&watcher), [98, 99, 200]);
    // Another place in the window: the row as it was goes, and comes as it is.
    let moved = json!({ "t": { "deletes": [row(98, 98.0, "")], "inserts": [row(98, 300.0, "")] } });
    writer.change(&moved).await;
    watcher.settle().await;
    assert_eq!(ids(&watcher), [98, 99, 200]);
    let deletes: Vec<Value> = (50..98).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "deletes": deletes } })).await;
    writer
        .change(&json!({ "t": { "deletes": [row(200, 200.0, ""), row(99, 99.0, "")] } }))
        .await;
    watcher.settle().await;
    assert_eq!(ids(&watcher), [48, 49, 98]);
}

/// Many clients with a window each are one shape: a change is sent to whom it concerns.
#[tokio::test(flavor = "multi_thread")]
async fn clients_with_windows_of_their_own_hear_of_their_rows_only() {
    let database = create(&program(), |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let text = "SELECT * FROM t WHERE owner = :sender ORDER BY score DESC LIMIT 2";
    let mut watchers = Vec::new();
    for number in 1..40 {
        let mut watcher =
            Watcher::connect(&database, identity_of(number), 10 + u128::from(number)).await;
        watcher.subscribe(1, text).await;
        watchers.push(watcher);
    }
    for id in 0..200_u32 {
        let owner = identity_of((id % 39) as u8 + 1).to_hex().to_string();
        let row = json!([id, 1, f64::from(id % 7), owner, true, ""]);
        writer.change(&json!({ "t": { "inserts": [row] } })).await;
    }
    for watcher in &mut watchers {
        watcher.settle().await;
        let expected = watcher.ask(text).await;
        assert_eq!(expected.len(), 2);
        assert_eq!(watcher.rows(1, "t"), expected);
        assert!(watcher.take_updates().len() < 20);
    }
}

/// A window over the catalog, which changes with the update, in a set that is compiled again.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_compiled_again_hears_of_the_update() {
    let database = create(&program(), |_| {}).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    let tables = "SELECT * FROM st_table ORDER BY table_id LIMIT 100";
    let both = vec![tables, "SELECT * FROM t"];
    watcher.client.send(&[subscribe(1, both)]).await;
    watcher.settle().await;
    let before = watcher.rows(1, "st_table").len();
    let mut other = program();
    other["tables"]["n"] = json!([["x", "U32"]]);
    other["indexes"]["t"] = json!([["room"], ["score"]]);
    publish(&database, &other, false)
        .await
        .expect("no client has to go");
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(tables).await;
    assert_eq!(watcher.rows(1, "st_table"), expected);
    assert_eq!(expected.len(), before + 1);
}

/// Two spellings of a query are one query, but each is an entry of its own in its set.
#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_a_query_are_entries_of_their_own() {
    let database = create(&program(), |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    let texts = [
        "SELECT * FROM u WHERE a = 1",
        "SELECT * FROM u  WHERE (a = 1)",
        "SELECT * FROM u ORDER BY b LIMIT 3",
        "SELECT u.* FROM u ORDER BY u.b LIMIT 3",
    ];
    for set in 1..=3 {
        watcher.client.send(&[subscribe(set, texts.to_vec())]).await;
        watcher.settle().await;
    }
    let changes = json!({ "u": { "inserts": [[1, 5], [2, 6]] } });
    writer.change(&changes).await;
    watcher.settle().await;
    let counts = |watcher: &Watcher, set: u32| {
        let mut counts: Vec<i64> = watcher.rows(set, "u").into_values().collect();
        counts.sort_unstable();
        counts
    };
    for set in 1..=3 {
        assert_eq!(counts(&watcher, set), [2, 4]);
    }
    for set in [2, 1, 3] {
        watcher.unsubscribe(set).await;
        let next = json!({ "u": { "inserts": [[1, 10 + set]] } });
        writer.change(&next).await;
        watcher.settle().await;
        for left in watcher.sets() {
            let rows = if set == 2 {
                vec![2, 4, 4]
            } else {
                vec![2, 2, 4, 4]
            };
            assert_eq!(counts(&watcher, left), rows);
        }
    }
    assert_eq!(watcher.take_errors(), []);
}
