//! Live joins of two to four relations, random ones over random tables, and some with subqueries: after every transaction, what
//! clients hold of them, with the rules of row-level security and through views, is what the query gives from scratch (08 §9,
//! §10.4, §11, §14).

use std::collections::BTreeMap;

use crate::common::tables::{create_tables, table_options};
use crate::common::watcher::{Bag, Watcher};
use crate::common::{requests, OWNER};
use lightcone_types::{Encode, Identity};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};

const COLUMNS: [(&str, &str); 6] = [
    ("id", "U32"),
    ("a", "U32"),
    ("b", "U32"),
    ("f", "F64"),
    ("owner", "Identity"),
    ("open", "Bool"),
];
/// Ordinary tables. Beside them are `e`, of events, and `c`, which has the events of the last transaction as rows.
const TABLES: [&str; 3] = ["t0", "t1", "t2"];
const STEPS: usize = 40;

fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

fn pick<'v, T>(rng: &mut StdRng, values: &'v [T]) -> &'v T {
    &values[rng.random_range(0..values.len())]
}

/// A world with its tables, rules and queries.
struct World {
    rng: StdRng,
    /// By table, the columns with an index beside the key.
    indexed: BTreeMap<&'static str, Vec<&'static str>>,
    rows: BTreeMap<&'static str, Vec<Value>>,
    has_subqueries: bool,
    /// For the aliases of subqueries.
    subqueries: usize,
}

/// A table and its alias.
type Named = (&'static str, String);

impl World {
    fn new(seed: u64, has_subqueries: bool) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut indexed = BTreeMap::new();
        for table in TABLES.into_iter().chain(["c", "e"]) {
            let columns = ["a", "b", "f"].into_iter();
            let some = columns.filter(|_| rng.random_bool(0.6)).collect();
            indexed.insert(table, some);
        }
        let rows = BTreeMap::new();
        World {
            rng,
            indexed,
            rows,
            has_subqueries,
            subqueries: 0,
        }
    }

    /// Two columns, one of which has an index. Events are not looked up.
    fn linked(&mut self, [left, right]: [(&str, &str); 2]) -> [String; 2] {
        let on = self.on([left, right]);
        let (left, right) = on[" ON ".len()..].split_once(" = ").expect("two columns");
        [left.to_owned(), right.to_owned()]
    }

    /// A condition with a subquery over some tables, which may have others in it.
    fn subquery(&mut self, around: &[Named], tables: &[&'static str], depth: usize) -> String {
        let (table, n) = (*pick(&mut self.rng, tables), self.subqueries);
        self.subqueries += 1;
        let mut own: Vec<Named> = vec![(table, format!("s{n}"))];
        let mut from = format!("{table} s{n}");
        if self.rng.random_bool(0.25) {
            let other = *pick(&mut self.rng, tables);
            let on = self.on([(table, &own[0].1), (other, &format!("u{n}"))]);
            from += &format!(" JOIN {other} u{n}{on}");
            own.push((other, format!("u{n}")));
        }
        let mut conditions = Vec::new();
        for _ in 0..self.rng.random_range(0..3) {
            let aliases: Vec<String> = own.iter().map(|(_, alias)| alias.clone()).collect();
            conditions.push(self.condition(&aliases));
        }
        if self.rng.random_bool(0.2) {
            let aliases = [&own[0].1, &around[0].1].map(String::clone);
            conditions.push(self.condition(&aliases));
        }
        let all: Vec<Named> = own.iter().chain(around).cloned().collect();
        if depth < 2 && self.rng.random_bool(0.25) {
            conditions.push(self.subquery(&all, tables, depth + 1));
        }
        let outer = pick(&mut self.rng, around).clone();
        let inner = pick(&mut self.rng, &own).clone();
        let [left, right] = self.linked([(outer.0, &outer.1), (inner.0, &inner.1)]);
        let not = *pick(&mut self.rng, &["", "NOT "]);
        let text = if self.rng.random_bool(0.4) {
            let also = match conditions.is_empty() {
                true => String::new(),
                false => format!(" WHERE {}", conditions.join(" AND ")),
            };
            format!("{left} {not}IN (SELECT {right} FROM {from}{also})")
        } else {
            conditions.push(format!("{right} = {left}"));
            format!(
                "{not}EXISTS (SELECT 1 FROM {from} WHERE {})",
                conditions.join(" AND ")
            )
        };
        match self.rng.random_bool(0.15) {
            true => {
                let aliases = [around[0].1.clone()];
                format!("({} OR {text})", self.condition(&aliases))
            }
            false => text,
        }
    }

    fn is_indexed(&self, table: &str, column: &str) -> bool {
        column == "id" || self.indexed[table].contains(&column)
    }

    /// ` ON ` two columns, one of which has an index. Events are not looked up.
    fn on(&mut self, [left, right]: [(&str, &str); 2]) -> String {
        loop {
            let columns: &[&str] = match self.rng.random_bool(0.85) {
                true => &["id", "a", "b"],
                false => &["f"],
            };
            let (x, y) = (*pick(&mut self.rng, columns), *pick(&mut self.rng, columns));
            if self.is_indexed(right.0, y) || (left.0 != "e" && self.is_indexed(left.0, x)) {
                return format!(" ON {}.{x} = {}.{y}", left.1, right.1);
            }
        }
    }

    fn condition(&mut self, aliases: &[String]) -> String {
        let [one, other] = [(); 2].map(|()| pick(&mut self.rng, aliases).clone());
        let number = self.rng.random_range(0..4_u32);
        match self.rng.random_range(0..8_u32) {
            0 | 1 => format!("{one}.owner = :sender"),
            2 => format!("{one}.a = {number}"),
            3 => format!("{one}.open = TRUE"),
            4 => format!("{one}.b <> {number}"),
            5 => format!("{one}.a <= {other}.b"),
            6 => format!("({one}.open = TRUE OR {other}.owner = :sender)"),
            _ => format!("{one}.f = 0.0"),
        }
    }

    /// A query on this table and others, by its alias.
    fn query(
        &mut self,
        returned: &'static str,
        others: &[&'static str],
        relations: usize,
    ) -> String {
        let relations = match self.has_subqueries {
            true => self.rng.random_range(1..=relations.min(2)),
            false => relations,
        };
        let mut tables = vec![returned];
        tables.extend((1..relations).map(|_| *pick(&mut self.rng, others)));
        let aliases: Vec<String> = (0..relations).map(|n| format!("r{n}")).collect();
        let mut text = format!("SELECT r0.* FROM {returned} r0");
        for n in 1..relations {
            let to = self.rng.random_range(0..n);
            let on = self.on([(tables[to], &aliases[to]), (tables[n], &aliases[n])]);
            text += &format!(" JOIN {} r{n}{on}", tables[n]);
        }
        let mut conditions: Vec<String> = (0..self.rng.random_range(0..3))
            .map(|_| self.condition(&aliases))
            .collect();
        if self.has_subqueries && !others.is_empty() {
            let named: Vec<Named> = tables.into_iter().zip(aliases).collect();
            for _ in 0..self.rng.random_range(1..3) {
                conditions.push(self.subquery(&named, others, 0));
            }
        }
        if !conditions.is_empty() {
            text += &format!(" WHERE {}", conditions.join(" AND "));
        }
        text
    }

    /// A rule reads tables behind its own, so that there is no circle.
    fn rules(&mut self) -> Vec<String> {
        let mut rules = Vec::new();
        for (number, table) in TABLES.into_iter().enumerate() {
            if self.rng.random_bool(0.5) {
                continue;
            }
            let others = &TABLES[number + 1..];
            let relations = match others {
                [] => 1,
                _ => self.rng.random_range(1..3),
            };
            let mut rule = self.query(table, others, relations);
            if !rule.contains(":sender") {
                let and = if rule.contains("WHERE") {
                    "AND"
                } else {
                    "WHERE"
                };
                rule += &format!(" {and} r0.owner = :sender");
            }
            rules.push(rule);
        }
        rules
    }

    fn row(&mut self, id: u32) -> Value {
        let rng = &mut self.rng;
        let f = *pick(rng, &[0.0, -0.0, 1.5]);
        let owner = identity_of(rng.random_range(1..4)).to_hex().to_string();
        let (a, b) = (rng.random_range(0..5_u32), rng.random_range(0..5_u32));
        json!([id, a, b, f, owner, rng.random_bool(0.5)])
    }

    /// A transaction that deletes, replaces and inserts rows of some tables.
    fn change(&mut self) -> Value {
        let mut changes = json!({});
        for table in TABLES {
            if self.rng.random_bool(0.4) {
                continue;
            }
            let (mut deletes, mut inserts) = (Vec::new(), Vec::<Value>::new());
            // Now and then many, which are not compared one by one.
            let most = if self.rng.random_bool(0.1) { 40 } else { 4 };
            for _ in 0..self.rng.random_range(0..most) {
                let id = self.rng.random_range(0..most.max(9));
                let rows = self.rows.entry(table).or_default();
                if let Some(at) = rows.iter().position(|row| row[0] == id) {
                    deletes.push(rows.remove(at));
                    if self.rng.random_bool(0.5) {
                        continue;
                    }
                }
                inserts.retain(|row| row[0] != id);
                inserts.push(self.row(id));
            }
            let rows = self.rows.entry(table).or_default();
            rows.extend(inserts.iter().cloned());
            changes[table] = json!({ "deletes": deletes, "inserts": inserts });
        }
        let count = self.rng.random_range(0..3);
        let events: Vec<Value> = (0..count).map(|id| self.row(id)).collect();
        let last = self.rows.insert("c", events.clone()).unwrap_or_default();
        changes["c"] = json!({ "deletes": last, "inserts": events });
        changes["e"] = json!({ "inserts": events });
        changes
    }
}

async fn change(watcher: &mut Watcher, changes: &Value) {
    let mut args = Vec::new();
    changes.to_string().encode(&mut args);
    let failed = watcher.call("change", &args).await;
    assert_eq!(failed, None, "{changes}");
}

async fn subscribe(watcher: &mut Watcher, set: u32, text: &str) {
    try_to_subscribe(watcher, set, text).await;
    assert!(watcher.sets().contains(&set), "{text}");
}

/// With the rules of all its tables, a query may read too many.
async fn try_to_subscribe(watcher: &mut Watcher, set: u32, text: &str) {
    watcher
        .client
        .send(&[requests::subscribe(set, vec![text])])
        .await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    let is_known = |error: &(u32, String)| error.1.contains("[LC0719]");
    assert!(errors.iter().all(is_known), "{errors:?}: {text}");
}

struct Query {
    /// What is subscribed to.
    text: String,
    /// What gives its rows from scratch.
    oracle: String,
    /// Whose rows these are.
    table: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Rules apply.
    Plain,
    /// The owner's rows, each once.
    View,
    Events,
}

async fn random_world(seed: u64, has_subqueries: bool) {
    let mut world = World::new(seed, has_subqueries);
    let mut queries = Vec::new();
    let mut views = json!({});
    for number in 0..4 {
        let returned = *pick(&mut world.rng, &TABLES);
        let relations = world.rng.random_range(2..5);
        let text = world.query(returned, &TABLES, relations);
        let name = format!("v{number}");
        views[&name] = json!({ "table": returned, "query": text.replace(":sender", "{sender}") });
        queries.push(Query {
            text: format!("SELECT * FROM {name}"),
            oracle: text,
            table: name,
            kind: Kind::View,
        });
    }
    for _ in 0..6 {
        let returned = *pick(&mut world.rng, &TABLES);
        let relations = world.rng.random_range(2..5);
        let text = world.query(returned, &TABLES, relations);
        queries.push(Query {
            oracle: text.clone(),
            text,
            table: returned.to_owned(),
            kind: Kind::Plain,
        });
    }
    for _ in 0..2 {
        let relations = world.rng.random_range(2..4);
        let text = world.query("e", &TABLES, relations);
        queries.push(Query {
            oracle: text.replace("FROM e ", "FROM c "),
            text,
            table: "e".to_owned(),
            kind: Kind::Events,
        });
    }
    let columns = json!(COLUMNS);
    let indexes = |table: &str| -> Value {
        let columns = world.indexed[table].iter();
        columns.map(|column| json!([column])).collect()
    };
    let mut program = json!({ "tables": {}, "uniqueKeys": {}, "indexes": {}, "events": ["e"] });
    for table in ["t0", "t1", "t2", "c", "e"] {
        program["tables"][table] = columns.clone();
        program["uniqueKeys"][table] = json!("id");
        program["indexes"][table] = indexes(table);
    }
    program["views"] = views;
    program["rules"] = json!(world.rules());
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.queries_per_set_max = 300;
    options.limits.queries_per_connection_max = 3000;
    // A changed row of a subquery in a subquery may lead to very many rows.
    options.limits.join_partners_max = 1 << 24;
    let database = create_tables(options, &program).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    let mut watchers = Vec::new();
    for number in 1..4_u8 {
        let id = 10 + u128::from(number);
        watchers.push(Watcher::connect(&database, identity_of(number), id).await);
    }
    for step in 0..STEPS {
        // Queries come and go while rows change.
        for _ in 0..2 {
            let watcher = pick_mut(&mut world.rng, &mut watchers);
            let query = world.rng.random_range(0..queries.len());
            let set = query as u32;
            match watcher.sets().contains(&set) {
                true if world.rng.random_bool(0.3) => watcher.unsubscribe(set).await,
                true => {}
                false => try_to_subscribe(watcher, set, &queries[query].text).await,
            }
        }
        let changes = world.change();
        change(&mut owner, &changes).await;
        for watcher in &mut watchers {
            let seen = watcher.events().len();
            watcher.settle().await;
            let mut events = Bag::new();
            for row in &watcher.events()[seen..] {
                *events.entry(row.clone()).or_default() += 1;
            }
            let mut expected_events = Bag::new();
            for set in watcher.sets() {
                let query = &queries[set as usize];
                let context = || {
                    format!(
                        "seed {seed}, step {step}: {} in {program} after {changes}",
                        query.text
                    )
                };
                let own = format!("0x{}", watcher.identity.to_hex());
                let expected = match query.kind {
                    Kind::View => {
                        let text = query.oracle.replace(":sender", &own);
                        let mut rows = owner.ask(&text).await;
                        rows.values_mut().for_each(|count| *count = 1);
                        rows
                    }
                    _ => watcher.ask(&query.oracle).await,
                };
                if query.kind == Kind::Events {
                    for (row, count) in expected {
                        *expected_events.entry(row).or_default() += count;
                    }
                    continue;
                }
                let held = watcher.rows(set, &query.table);
                assert_eq!(held, expected, "{}", context());
            }
            assert_eq!(
                events, expected_events,
                "seed {seed}, step {step}: {program}"
            );
            assert_eq!(watcher.take_errors(), []);
        }
    }
}

fn pick_mut<'v, T>(rng: &mut StdRng, values: &'v mut [T]) -> &'v mut T {
    let place = rng.random_range(0..values.len());
    &mut values[place]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_hold_is_what_queries_give() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..30).collect(),
    };
    for seed in seeds {
        random_world(seed, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_hold_of_subqueries_is_what_queries_give() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..30).collect(),
    };
    for seed in seeds {
        random_world(seed, true).await;
    }
}

/// Messages of rooms, and who is in which room.
fn rooms() -> Value {
    json!({
        "tables": {
            "m": [["id", "U32"], ["room", "U32"]],
            "x": [["id", "U32"], ["room", "U32"], ["member", "Identity"]],
        },
        "uniqueKeys": { "m": "id", "x": "id" },
        "indexes": { "m": [["room"]], "x": [["room"]] },
        "views": { "mine": {
            "table": "m",
            "query": "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.member = {sender}",
        } },
    })
}

/// What is too much for a transaction does not abort it: the view's last rows stand until it is evaluated again.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_joins_too_much_is_evaluated_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.join_partners_max = 20;
    let database = create_tables(options, &rooms()).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    let member = |id: u32| identity_of(id as u8 + 1).to_hex().to_string();
    // Thirty members of room 1, three of room 2.
    let members: Vec<Value> = (0..33)
        .map(|id| json!([id, 1 + id / 30, member(id)]))
        .collect();
    change(&mut owner, &json!({ "x": { "inserts": members } })).await;
    let mut watchers = Vec::new();
    for number in [1, 2, 31] {
        let mut watcher =
            Watcher::connect(&database, identity_of(number), 10 + u128::from(number)).await;
        subscribe(&mut watcher, 1, "SELECT * FROM mine").await;
        watchers.push(watcher);
    }
    let message = |id: u32, room: u32| json!({ "m": { "inserts": [[id, room]] } });
    change(&mut owner, &message(1, 2)).await;
    change(&mut owner, &message(2, 1)).await;
    for (watcher, messages) in watchers.iter_mut().zip([1, 1, 1]) {
        for _ in 0..200 {
            watcher.settle().await;
            if watcher.rows(1, "mine").len() == messages {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(watcher.rows(1, "mine").len(), messages);
        let errors = watcher.take_errors();
        assert!(
            matches!(&errors[..], [(1, text)] if text.ends_with("[LC0331]")),
            "{errors:?}"
        );
    }
    // What is not too much goes on as before.
    change(&mut owner, &message(3, 2)).await;
    let [.., last] = &mut watchers[..] else {
        panic!("three watchers");
    };
    last.settle().await;
    assert_eq!(last.rows(1, "mine").len(), 2);
    assert_eq!(last.take_errors(), []);
}

/// Views whose join has no index, and that there may be no more indexes for, are evaluated from scratch.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_joins_without_an_index_follows_its_tables() {
    let columns: Vec<_> = (0..7).map(|n| json!([format!("c{n}"), "U32"])).collect();
    let mut views = json!({});
    for n in 1..7 {
        let query = format!("SELECT a.* FROM t a JOIN t b ON a.c0 = b.c{n}");
        views[format!("v{n}")] = json!({ "table": "t", "query": query });
    }
    let program = json!({
        "tables": { "t": columns },
        "indexes": { "t": [["c0"]] },
        "views": views,
    });
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_tables(table_options(directory.path()), &program).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    for n in 1..7 {
        subscribe(&mut watcher, n, &format!("SELECT * FROM v{n}")).await;
    }
    let rows = json!([[1, 2, 3, 4, 5, 6, 7], [7, 1, 1, 1, 1, 1, 1]]);
    change(&mut watcher, &json!({ "t": { "inserts": rows } })).await;
    for n in 1..6 {
        assert_eq!(watcher.rows(n, &format!("v{n}")).len(), 1);
    }
    assert_eq!(watcher.rows(6, "v6").len(), 2);
    change(&mut watcher, &json!({ "t": { "deletes": [rows[1]] } })).await;
    for n in 1..7 {
        assert_eq!(watcher.rows(n, &format!("v{n}")).len(), 0);
    }
}

/// A view whose query was evaluated in vain is evaluated again when one of its tables has changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_gave_too_many_rows_is_repaired_when_there_are_fewer() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.limits.view_bytes_max = 100;
    let database = create_tables(options, &rooms()).await;
    let mut owner = Watcher::connect(&database, OWNER, 1).await;
    let member = identity_of(1).to_hex().to_string();
    let messages: Vec<Value> = (0..20).map(|id| json!([id, 1])).collect();
    let all = json!({ "m": { "inserts": messages }, "x": { "inserts": [[1, 1, member]] } });
    change(&mut owner, &all).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    watcher.watch(1, &["mine"]).await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0331]")),
        "{errors:?}"
    );
    change(&mut owner, &json!({ "m": { "deletes": messages[5..] } })).await;
    for _ in 0..200 {
        watcher.settle().await;
        if watcher.rows(1, "mine").len() == 5 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it stays as it was: {:?}", watcher.rows(1, "mine"));
}
