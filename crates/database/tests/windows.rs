//! Subscriptions with `ORDER BY … LIMIT`: what clients hold is what the query gives, after every transaction (08 §13.7).

mod common;

use common::requests::subscribe;
use common::tables::{create_tables, sql, table_options};
use common::watcher::Watcher;
use common::OWNER;
use lightcone_database::{DatabaseHandle, DatabaseOptions};
use lightcone_types::{Encode, Identity};
use lightcone_wire::ClientMessage;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

fn program() -> Value {
    json!({
        "tables": {
            "t": [["id", "U32"], ["room", "U32"], ["score", "F64"], ["owner", "Identity"], ["open", "Bool"], ["text", "String"]],
            "u": [["a", "U32"], ["b", "U32"]],
            "member": [["id", "U32"], ["room", "U32"], ["who", "Identity"]],
        },
        "uniqueKeys": { "t": "id", "member": "id" },
        "indexes": { "t": [["room"], ["owner", "score"], ["score"]], "member": [["who"], ["room"]] },
    })
}

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

fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
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
            // Few members, so that whole rooms come and go for somebody.
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

async fn create(program: &Value, set: impl FnOnce(&mut DatabaseOptions)) -> DatabaseHandle {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    set(&mut options);
    create_tables(options, program).await
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

fn row(id: u32, score: f64, text: &str) -> Value {
    let owner = identity_of(1).to_hex().to_string();
    json!([id, 1, score, owner, true, text])
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

/// Subscribes, and gives the error that is the answer.
async fn refused(watcher: &mut Watcher, text: &str) -> String {
    watcher.subscribe(9, text).await;
    let mut errors = watcher.take_errors();
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    errors.remove(0).1
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_window_or_too_many_rows_is_refused() {
    let mut program = program();
    program["tables"]["e"] = json!([["room", "U32"]]);
    program["events"] = json!(["e"]);
    program["rules"] = json!([
        "SELECT u.* FROM u JOIN member m WHERE m.who = :sender",
        "SELECT member.* FROM member JOIN e ON member.id = e.room"
    ]);
    let database = create(&program, |options| {
        options.limits.window_rows_max = 100;
        options.limits.windows_max = 2;
    })
    .await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    for (text, code) in [
        ("SELECT * FROM e ORDER BY room LIMIT 3", "[LC0415]"),
        // As without ORDER BY: rules join everything with everything, or events.
        (
            "SELECT * FROM u ORDER BY a LIMIT 3",
            "require indexes on join columns",
        ),
        (
            "SELECT * FROM member ORDER BY id LIMIT 3",
            "Event tables cannot be used as the lookup table",
        ),
        (
            "SELECT t.* FROM t JOIN t s ON t.room = s.room ORDER BY t.id LIMIT 3",
            "[LC0415]",
        ),
        ("SELECT * FROM t ORDER BY id LIMIT 90 OFFSET 11", "[LC0727]"),
        ("SELECT * FROM t ORDER BY id", "Unsupported: "),
        ("SELECT * FROM t LIMIT 3", "Unsupported: "),
        ("SELECT id FROM t ORDER BY id LIMIT 3", "Column projections"),
        ("SELECT COUNT(*) AS n FROM t", "[LC0416]"),
        (
            "SELECT room, MAX(score) AS best FROM t GROUP BY room",
            "[LC0416]",
        ),
    ] {
        let error = refused(&mut watcher, text).await;
        assert!(error.contains(code), "{text}: {error}");
    }
    for set in 1..3 {
        let text = format!("SELECT * FROM t WHERE room = {set} ORDER BY id LIMIT 3");
        watcher.subscribe(set, &text).await;
    }
    // The same as another is no more windows.
    watcher
        .subscribe(3, "SELECT * FROM t WHERE room = 2  ORDER BY id LIMIT 3")
        .await;
    assert_eq!(watcher.take_errors(), []);
    let third = "SELECT * FROM t WHERE room = 3 ORDER BY id LIMIT 3";
    let error = refused(&mut watcher, third).await;
    assert!(error.contains("limits.windows-max"), "{error}");
    watcher.unsubscribe(1).await;
    watcher.subscribe(1, third).await;
    assert_eq!(watcher.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_takes_too_much_ends_alone() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 100;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let text_of = |id: u32| if (21..900).contains(&id) { "" } else { "x" };
    let row_of = |id: u32| row(id, f64::from(id), text_of(id));
    let rows: Vec<Value> = (0..1000).map(row_of).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    // Rows that begin with others can be found, those behind cannot.
    let far = "SELECT * FROM t WHERE room = 1 AND text = 'x' ORDER BY score LIMIT 5";
    let near = "SELECT * FROM t ORDER BY score LIMIT 5";
    watcher.subscribe(1, far).await;
    watcher.subscribe(2, near).await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "t"), watcher.rows(2, "t"));
    let beyond = "SELECT * FROM t WHERE room = 1 AND text = 'x' ORDER BY score DESC, id LIMIT 90";
    let error = refused(&mut watcher, beyond).await;
    assert!(error.ends_with("[LC0728]"), "{error}");
    for id in 0..18 {
        writer
            .change(&json!({ "t": { "deletes": [row_of(id)] } }))
            .await;
    }
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0728]")),
        "{errors:?}"
    );
    let expected = watcher.ask(near).await;
    assert_eq!(watcher.rows(2, "t"), expected);
    // It may be tried again when it is less.
    watcher.forget(1);
    let error = refused(&mut watcher, far).await;
    assert!(error.ends_with("[LC0728]"), "{error}");
    let deletes: Vec<Value> = (18..895).map(row_of).collect();
    writer.change(&json!({ "t": { "deletes": deletes } })).await;
    watcher.subscribe(1, far).await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(far).await;
    assert_eq!(watcher.rows(1, "t"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_window_ends_when_all_have_too_many_bytes() {
    let database = create(&program(), |options| {
        options.limits.windows_bytes_max = 100_000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let small = "SELECT * FROM t ORDER BY score LIMIT 1";
    let large = "SELECT * FROM t ORDER BY score LIMIT 50";
    watcher.subscribe(1, small).await;
    watcher.subscribe(2, large).await;
    let text = "long ".repeat(200);
    let rows: Vec<Value> = (0..90).map(|id| row(id, f64::from(id), &text)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(2, text)] if text.ends_with("[LC0728]")),
        "{errors:?}"
    );
    let expected = watcher.ask(small).await;
    assert_eq!(watcher.rows(1, "t"), expected);
    let error = refused(&mut watcher, large).await;
    assert!(error.ends_with("[LC0727]"), "{error}");
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

/// Waits until so many connections are left.
async fn connections_become(watcher: &mut Watcher, count: usize) {
    for _ in 0..500 {
        if watcher.ask("SELECT * FROM st_client").await.len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the others do not leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_gives_its_windows_back() {
    let database = create(&program(), |options| options.limits.windows_max = 1).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 5";
    let mut gone = Watcher::connect(&database, identity_of(1), 2).await;
    gone.subscribe(1, text).await;
    assert_eq!(gone.take_errors(), []);
    drop(gone);
    connections_become(&mut writer, 1).await;
    let rows: Vec<Value> = (0..9).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let mut next = Watcher::connect(&database, identity_of(2), 3).await;
    next.subscribe(1, text).await;
    let expected = next.ask(text).await;
    assert_eq!(next.rows(1, "t"), expected);
    drop(next);
    connections_become(&mut writer, 1).await;
    // There may be one window, and there is none.
    let mut other = Watcher::connect(&database, identity_of(1), 4).await;
    other
        .subscribe(1, "SELECT * FROM t ORDER BY score LIMIT 6")
        .await;
    assert_eq!(other.take_errors(), []);
}

fn row_in(room: u32, id: u32, text: &str) -> Value {
    let owner = identity_of(1).to_hex().to_string();
    json!([room * 10_000 + id, room, f64::from(id), owner, true, text])
}

fn text_of_room(room: u32) -> String {
    format!("SELECT * FROM t WHERE room = {room} AND text = 'x' ORDER BY score LIMIT 5")
}

/// Windows of so many rooms that a few rows more have to be looked for when one more row goes from each.
async fn rooms_at_their_end(writer: &mut Watcher, watcher: &mut Watcher, rooms: u32, others: u32) {
    let rows = |range: std::ops::Range<u32>, text: &str| -> Vec<Value> {
        let of_room = |room| range.clone().map(move |id| row_in(room, id, text));
        (0..rooms).flat_map(of_room).collect()
    };
    let inserts = rows(0..40, "x");
    writer.change(&json!({ "t": { "inserts": inserts } })).await;
    for room in 0..rooms {
        watcher.subscribe(room, &text_of_room(room)).await;
    }
    // 16 rows are kept behind the five.
    let (deletes, inserts) = (rows(0..16, "x"), rows(100..100 + others, ""));
    let change = json!({ "t": { "deletes": deletes, "inserts": inserts } });
    writer.change(&change).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
}

/// One row less in each room.
fn one_less(rooms: u32) -> Value {
    let deletes: Vec<Value> = (0..rooms).map(|room| row_in(room, 16, "x")).collect();
    json!({ "t": { "deletes": deletes } })
}

/// Also when each of very many windows would take all that is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_looks_for_is_bounded_whoever_fails() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 300;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..40).map(|id| json!([id, 0])).collect();
    writer.change(&json!({ "u": { "inserts": rows } })).await;
    watcher
        .subscribe(90, "SELECT * FROM u WHERE b = 0 ORDER BY a LIMIT 5")
        .await;
    rooms_at_their_end(&mut writer, &mut watcher, 8, 600).await;
    writer
        .change(&json!({ "u": { "deletes": rows[..16] } }))
        .await;
    let mut change = one_less(8);
    change["u"] = json!({ "deletes": rows[16..17] });
    writer.change(&change).await;
    watcher.settle().await;
    let mut failed: Vec<u32> = watcher.take_errors().iter().map(|(set, _)| *set).collect();
    failed.sort_unstable();
    // The rooms took four times what is allowed in all: nothing is left for who comes last.
    assert_eq!(failed, [0, 1, 2, 3, 4, 5, 6, 7, 90]);
    watcher.forget(0);
    let deletes: Vec<Value> = (100..700).map(|id| row_in(0, id, "")).collect();
    writer.change(&json!({ "t": { "deletes": deletes } })).await;
    watcher.subscribe(0, &text_of_room(0)).await;
    assert_eq!(watcher.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_the_rows_of_a_window_that_has_just_failed() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 200;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    rooms_at_their_end(&mut writer, &mut watcher, 4, 60).await;
    // All four together are too much, each of them is not. The next subscription comes in the same round.
    let mut args = Vec::new();
    one_less(4).to_string().encode(&mut args);
    let call = ClientMessage::CallReducer {
        request_id: 1,
        reducer: "change",
        args: &args,
    };
    let texts: Vec<String> = (0..4).map(text_of_room).collect();
    let mut messages = vec![call];
    for (set, text) in (0..4).zip(&texts) {
        messages.push(subscribe(set, vec![text]));
    }
    let mut late = Watcher::connect(&database, identity_of(2), 3).await;
    late.client.send(&messages).await;
    late.settle().await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors().len(), 2, "two have ended");
    assert_eq!(late.take_errors(), []);
    for (set, text) in (0..4).zip(&texts) {
        let expected = late.ask(text).await;
        assert_eq!(expected.len(), 5);
        assert_eq!(late.rows(set, "t"), expected, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_does_not_take_all_windows() {
    let database = create(&program(), |options| {
        options.limits.windows_max = 20;
        options.limits.windows_bytes_max = 1 << 20;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut greedy = Watcher::connect(&database, identity_of(1), 2).await;
    for set in 0..30 {
        greedy.subscribe(set, &text_of_room(set)).await;
    }
    let errors = greedy.take_errors();
    assert_eq!(errors.len(), 20, "half of them are for others");
    assert!(errors.iter().all(|(_, text)| text.ends_with("[LC0727]")));
    let mut modest = Watcher::connect(&database, identity_of(2), 3).await;
    for set in 0..4 {
        modest.subscribe(set, &text_of_room(100 + set)).await;
    }
    assert_eq!(modest.take_errors(), []);
    for set in 0..30 {
        greedy.unsubscribe(set).await;
    }
    // The same of their bytes.
    let large = "long ".repeat(2000);
    let rows: Vec<Value> = (0..80).map(|id| row_in(50, id, &large)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let text = |limit: u32| format!("SELECT * FROM t WHERE room = 50 ORDER BY score LIMIT {limit}");
    greedy.take_errors();
    greedy.subscribe(40, &text(30)).await;
    assert_eq!(greedy.take_errors(), []);
    greedy.subscribe(41, &text(31)).await;
    let errors = greedy.take_errors();
    assert!(
        matches!(&errors[..], [(41, text)] if text.ends_with("[LC0727]")),
        "{errors:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_limit_counts_what_a_window_looks_at() {
    let database = create(&program(), |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..200).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    sql(&database, OWNER, "SET row_limit = 50")
        .await
        .expect("the owner may");
    watcher
        .subscribe(1, "SELECT * FROM t ORDER BY score LIMIT 5")
        .await;
    let own = "SELECT * FROM t WHERE owner = :sender ORDER BY score LIMIT 5";
    watcher.subscribe(2, own).await;
    assert_eq!(watcher.take_errors(), []);
    let filtered = "SELECT * FROM t WHERE text = 'x' AND id > 3 ORDER BY score LIMIT 5";
    let error = refused(&mut watcher, filtered).await;
    assert!(error.contains("cardinality"), "{error}");
}

/// A window's first rows are not copied, and many of one request have a bound.
#[tokio::test(flavor = "multi_thread")]
async fn many_windows_of_one_request_are_within_what_a_client_may_have() {
    let database = create(&program(), |options| {
        options.limits.client_bytes_max = 8 << 20;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let large = "long ".repeat(1000);
    let rows: Vec<Value> = (0..300).map(|id| row(id, f64::from(id), &large)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 300";
    let texts: Vec<String> = (1..100)
        .map(|n| text.replace("FROM", &format!("FROM{}", " ".repeat(n))))
        .collect();
    let texts = texts.iter().map(String::as_str).collect();
    watcher.client.send(&[subscribe(1, texts)]).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.contains("[LC0706]")),
        "{errors:?}"
    );
    // One is more than the writer copies; it is answered all the same.
    watcher.subscribe(2, text).await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(text).await;
    assert_eq!(watcher.rows(2, "t"), expected);
}
