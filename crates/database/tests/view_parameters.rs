//! Views with parameters: who gets which instance, that live rows are those of an evaluation from scratch, and how many instances
//! there may be (08 §10.5). The modules `modules/latest-rs` and `modules/latest-ts` have the same views.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::publishing::{publish, stop};
use crate::common::tables::{create_tables, table_options};
use crate::common::watcher::{Bag, Watcher};
use crate::common::{caller, create_latest, open, options, OWNER, STRANGER};
use lightcone_database::{DatabaseHandle, DatabaseOptions, HostKind, JsonRows};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Identity};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

fn identity(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

fn host_options(directory: &Path) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options
}

async fn sql(database: &DatabaseHandle, who: Identity, text: &str) -> Result<String, String> {
    let rows = database
        .sql(caller(who), text.to_owned(), true, JsonRows::default())
        .await;
    rows.map(|rows| rows.text())
        .map_err(|error| format!("{error:?}"))
}

async fn refusal(database: &DatabaseHandle, text: &str) -> String {
    let refused = sql(database, STRANGER, text).await;
    refused.expect_err(text)
}

/// A row of `note`, and the arguments of `put_note`: the same bytes.
fn note(id: u32, room: u32, owner: u8, text: &str) -> Vec<u8> {
    let mut row = id.to_vec();
    room.encode(&mut row);
    identity(owner).encode(&mut row);
    text.encode(&mut row);
    row
}

fn bag(rows: &[&[u8]]) -> Bag {
    rows.iter().map(|row| (<[u8]>::to_vec(row), 1)).collect()
}

/// How often the view `notes_in` has run for a room.
fn runs(database: &DatabaseHandle, room: u32) -> usize {
    let log = String::from_utf8_lossy(&database.logs().tail(None)).into_owned();
    log.matches(&format!("notes_in({room}) runs")).count()
}

async fn instances_are_by_arguments(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let database = create_latest(host_options(&path), kind).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    let (one, two) = (note(1, 1, 1, "first"), note(2, 2, 2, "second"));
    for row in [&one, &two] {
        assert_eq!(alice.call("put_note", row).await, None);
    }
    // Equal arguments are one instance, however they are written; different ones are not.
    alice.subscribe(1, "SELECT * FROM notes_in(1)").await;
    bob.subscribe(1, "SELECT n.* FROM notes_in( 1.0 ) AS n")
        .await;
    bob.subscribe(2, "SELECT * FROM \"notes_in\"(2)").await;
    assert_eq!([runs(&database, 1), runs(&database, 2)], [1, 1]);
    assert_eq!(alice.rows(1, "notes_in"), bag(&[&one]));
    assert_eq!(bob.rows(1, "notes_in"), bag(&[&one]));
    assert_eq!(bob.rows(2, "notes_in"), bag(&[&two]));

    // What changes in one room concerns no one in another.
    alice.take_updates();
    bob.take_updates();
    let other = note(3, 2, 1, "other");
    assert_eq!(bob.call("put_note", &other).await, None);
    alice.settle().await;
    assert_eq!(alice.take_updates(), [[""; 0]; 0]);
    assert_eq!(bob.take_updates(), [["notes_in"]]);
    assert_eq!(bob.rows(2, "notes_in"), bag(&[&two, &other]));
    assert_eq!([runs(&database, 1), runs(&database, 2)], [1, 2]);

    // Of a sender's view, each has its own; both arguments count.
    for watcher in [&mut alice, &mut bob] {
        watcher.subscribe(3, "SELECT * FROM my_notes(2, 'o')").await;
        watcher.subscribe(4, "SELECT * FROM my_notes(2, '')").await;
    }
    assert_eq!(alice.rows(3, "my_notes"), bag(&[&other]));
    assert_eq!(bob.rows(3, "my_notes"), bag(&[]));
    assert_eq!(bob.rows(4, "my_notes"), bag(&[&two]));
    let given = note(3, 2, 2, "other");
    assert_eq!(alice.call("put_note", &given).await, None);
    bob.settle().await;
    assert_eq!(alice.rows(3, "my_notes"), bag(&[]));
    assert_eq!(bob.rows(3, "my_notes"), bag(&[&given]));
    assert_eq!(bob.rows(4, "my_notes"), bag(&[&two, &given]));

    // Two instances of one view in one query set: the rows of both are those of one table.
    let both = vec!["SELECT * FROM notes_in(1)", "SELECT * FROM notes_in(2)"];
    let both = common::requests::subscribe(5, both);
    alice.client.send(&[both]).await;
    alice.settle().await;
    assert_eq!(alice.rows(5, "notes_in"), bag(&[&one, &two, &given]));
    assert_eq!(alice.tables(5), ["notes_in"]);
    let moved = note(1, 2, 1, "moved");
    assert_eq!(alice.call("put_note", &moved).await, None);
    assert_eq!(alice.rows(5, "notes_in"), bag(&[&moved, &two, &given]));
    assert_eq!(alice.rows(1, "notes_in"), bag(&[]));
    // One that is not used any more does not run again.
    alice.unsubscribe(1).await;
    alice.unsubscribe(5).await;
    bob.unsubscribe(1).await;
    let before = runs(&database, 1);
    assert_eq!(alice.call("put_note", &one).await, None);
    assert_eq!(runs(&database, 1), before);
    assert_eq!([alice.take_errors(), bob.take_errors()], [[], []]);
    drop((alice, bob));
    stop(database).await;

    // Nothing of them is on the disk.
    let database = open(host_options(&path)).await;
    let text = "SELECT * FROM notes_in(2)";
    let rows = sql(&database, STRANGER, text).await.expect("rows");
    assert!(rows.contains("second") && rows.contains("other"), "{rows}");
    assert!(!rows.contains("first"), "{rows}");
    let mut bob = Watcher::connect(&database, identity(2), 3).await;
    bob.subscribe(1, "SELECT * FROM my_notes(2, 's')").await;
    assert_eq!(bob.rows(1, "my_notes"), bag(&[&two]));
    drop(bob);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_of_wasm_are_by_arguments() {
    instances_are_by_arguments(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_of_javascript_are_by_arguments() {
    instances_are_by_arguments(HostKind::Js).await;
}

async fn arguments_reach_the_function(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_latest(host_options(directory.path()), kind).await;
    let who = "0x".to_owned() + &identity(3).to_hex();
    let call = format!(
        "SELECT * FROM echo(true, -128, 115792089237316195423570985008687907853269984665640564039457584007913129639935, \
         'O''Neil', 0xc0ffee, '1970-01-01T00:00:01Z', {who}, 0x000000000000000000000000000000ff, \
         '0a000000-0000-4000-8000-00000000000b')"
    );
    let rows = sql(&database, STRANGER, &call).await.expect("rows");
    let bytes = match kind {
        HostKind::Wasm => "[192, 255, 238]",
        HostKind::Js => "192,255,238",
    };
    for part in [
        "true -128 1157920892",
        "O'Neil",
        bytes,
        " 1000000 ",
        &identity(3).to_hex(),
        " 255 ",
        "0a000000-0000-4000-8000-00000000000b",
    ] {
        assert!(rows.contains(part), "{part}: {rows}");
    }

    let view = "SELECT * FROM my_notes";
    for (text, expected) in [
        (view.to_owned(), "View `my_notes` takes 2 argument(s), but 0 were given"),
        (format!("{view}()"), "View `my_notes` takes 2 argument(s), but 0 were given"),
        (format!("{view}(1)"), "View `my_notes` takes 2 argument(s), but 1 were given"),
        (format!("{view}(1, 'a', 2)"), "takes 2 argument(s), but 3 were given"),
        ("SELECT * FROM notes_at(1)".to_owned(), "Parameter `place` of view `notes_at` has type "),
        ("SELECT * FROM notes_at(1)".to_owned(), ", which cannot be passed from SQL"),
        (
            "SELECT id FROM notes_in(1)".to_owned(),
            "View `notes_in` takes arguments, so it can only be queried as `SELECT * FROM notes_in(...)`",
        ),
        ("SELECT * FROM notes_in(1) WHERE id = 1".to_owned(), "can only be queried as"),
        ("SELECT * FROM notes_in(1) LIMIT 1".to_owned(), "can only be queried as"),
        ("SELECT COUNT(*) AS n FROM notes_in(1)".to_owned(), "can only be queried as"),
        ("SELECT DISTINCT * FROM notes_in(1)".to_owned(), "can only be queried as"),
        ("SELECT * FROM notes_in(1) ORDER BY id LIMIT 1".to_owned(), "can only be queried as"),
        (
            "SELECT n.* FROM notes_in(1) n JOIN note_query(1) q ON n.id = q.id".to_owned(),
            "Unsupported view call in a JOIN: `notes_in`. A view that takes arguments can only be queried by itself",
        ),
        (
            "SELECT * FROM notes_in(room)".to_owned(),
            "Unsupported view argument: room. View arguments must be literals",
        ),
        (
            "SELECT * FROM notes_in(room => 1)".to_owned(),
            "View arguments must be positional literals",
        ),
        (
            "SELECT * FROM notes_in(1 + 1)".to_owned(),
            "Unsupported view argument: 1 + 1. View arguments must be literals",
        ),
        ("SELECT * FROM notes_in('a')".to_owned(), "Unexpected type"),
        ("SELECT * FROM notes_in(-1)".to_owned(), "cannot be parsed as type `U32`"),
    ] {
        let refused = sql(&database, STRANGER, &text).await;
        let refused = refused.expect_err(&text);
        assert!(refused.contains(expected), "{text}: {refused}");
    }
    let refused = sql(&database, OWNER, "SELECT * FROM st_view(1)").await;
    let refused = refused.expect_err("a table");
    assert!(
        refused.contains("`st_view` is a table, not a view; it does not take arguments"),
        "{refused}"
    );
    let plain = sql(&database, OWNER, "SELECT * FROM open_room()").await;
    plain.expect("parentheses with nothing in them are nothing");

    // The catalog names the parameters.
    let params = "SELECT param_pos, param_name FROM st_view_param WHERE param_name = 'prefix'";
    let params = sql(&database, OWNER, params).await.expect("rows");
    assert!(params.contains(r#"[[1,"prefix"]]"#), "{params}");
    // What needs arguments is not among everything.
    let mut watcher = Watcher::connect(&database, identity(1), 1).await;
    watcher.subscribe(1, "SELECT * FROM *").await;
    assert_eq!(watcher.take_errors(), []);
    // Subscriptions are refused with the same texts.
    watcher.subscribe(2, "SELECT * FROM notes_in").await;
    let errors = watcher.take_errors();
    assert!(
        errors[0]
            .1
            .starts_with("View `notes_in` takes 1 argument(s), but 0 were given, executing: `"),
        "{errors:?}"
    );
    drop(watcher);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_a_function_of_wasm() {
    arguments_reach_the_function(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_a_function_of_javascript() {
    arguments_reach_the_function(HostKind::Js).await;
}

/// An instance that fails does not concern those with other arguments.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_fails_by_itself() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create_latest(host_options(directory.path()), HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.subscribe(1, "SELECT * FROM even_only(1)").await;
    alice.subscribe(2, "SELECT * FROM even_only(2)").await;
    let errors = alice.take_errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, 1);
    let mut two = Vec::new();
    "2".encode(&mut two);
    assert_eq!(alice.rows(2, "even_only"), bag(&[&two]));
    // However often it fails for what a stranger asks, others get their first rows.
    let started = Instant::now();
    let mut odd = 3;
    while started.elapsed() < Duration::from_secs(3) {
        let text = format!("SELECT * FROM even_only({odd})");
        sql(&database, STRANGER, &text).await.expect("no rows");
        odd += 2;
    }
    alice.subscribe(3, "SELECT * FROM even_only(4)").await;
    assert_eq!(alice.take_errors(), []);
    assert_eq!(alice.rows(3, "even_only").len(), 1);
    drop(alice);
    stop(database).await;
}

/// The notes as they are, and what each kind of view gives of them.
#[derive(Default)]
struct Model {
    notes: BTreeMap<u32, (u32, u8, String)>,
    open: Vec<u32>,
}

impl Model {
    fn rows(&self, wanted: impl Fn(u32, u8, &str) -> bool) -> Bag {
        let notes = self.notes.iter();
        let wanted = notes.filter(|(_, (room, owner, text))| wanted(*room, *owner, text));
        let row = |(id, (room, owner, text)): (&u32, &(u32, u8, String))| {
            (note(*id, *room, *owner, text), 1)
        };
        wanted.map(row).collect()
    }

    fn of(&self, query: &ViewQuery, who: u8) -> Bag {
        let ViewQuery { room, prefix, .. } = query;
        match query.view {
            "notes_in" | "note_query" => self.rows(|of, _, _| of == *room),
            "my_notes" => {
                self.rows(|of, owner, text| of == *room && owner == who && text.starts_with(prefix))
            }
            _ => {
                let is_open = self.open.contains(room);
                self.rows(|of, owner, _| is_open && of == *room && owner == who)
            }
        }
    }
}

/// An instance that a client asks for.
#[derive(Clone)]
struct ViewQuery {
    view: &'static str,
    room: u32,
    prefix: &'static str,
}

impl ViewQuery {
    fn random(random: &mut StdRng) -> ViewQuery {
        let views = ["notes_in", "my_notes", "note_query", "open_notes"];
        ViewQuery {
            view: views[random.random_range(0..views.len())],
            room: random.random_range(0..4),
            prefix: ["", "a", "it's"][random.random_range(0..3)],
        }
    }

    fn text(&self) -> String {
        let prefix = self.prefix.replace('\'', "''");
        match self.view {
            "my_notes" => format!("SELECT * FROM my_notes({}, '{prefix}')", self.room),
            view => format!("SELECT * FROM {view}({})", self.room),
        }
    }
}

/// Whatever changes, who is subscribed holds what the view gives of the tables as they are.
async fn live_rows_are_those_from_scratch(kind: HostKind, seed: u64, steps: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = host_options(directory.path());
    // Instances go while others are in use.
    options.limits.view_instances_max = 24;
    let database = create_latest(options, kind).await;
    let random = &mut StdRng::seed_from_u64(seed);
    let mut model = Model::default();
    let mut watchers = Vec::new();
    for number in [1_u8, 2, 2] {
        let id = 1 + watchers.len() as u128;
        let watcher = Watcher::connect(&database, identity(number), id).await;
        watchers.push((number, watcher, BTreeMap::<u32, ViewQuery>::new()));
    }
    for step in 0..steps {
        let one = random.random_range(0..watchers.len());
        let (who, watcher, sets) = &mut watchers[one];
        match random.random_range(0..10) {
            0..=4 => {
                let (id, room) = (random.random_range(0..12), random.random_range(0..4));
                let owner = random.random_range(1..3);
                let text = ["a", "b", "it's"][random.random_range(0..3)];
                let row = note(id, room, owner, text);
                assert_eq!(watcher.call("put_note", &row).await, None);
                model.notes.insert(id, (room, owner, text.to_owned()));
            }
            5 => {
                let id = random.random_range(0..12_u32);
                assert_eq!(watcher.call("take_note", &id.to_vec()).await, None);
                model.notes.remove(&id);
            }
            6 => {
                let room = random.random_range(0..4_u32);
                assert_eq!(watcher.call("turn_room", &room.to_vec()).await, None);
                match model.open.iter().position(|open| *open == room) {
                    Some(place) => drop(model.open.remove(place)),
                    None => model.open.push(room),
                }
            }
            7 => {
                let set = random.random_range(0..6);
                if sets.remove(&set).is_some() {
                    watcher.unsubscribe(set).await;
                }
            }
            8 => {
                let query = ViewQuery::random(random);
                let found = watcher.ask(&query.text()).await;
                assert_eq!(found, model.of(&query, *who), "{step} {}", query.text());
            }
            _ => {
                let set = random.random_range(0..6);
                if let std::collections::btree_map::Entry::Vacant(free) = sets.entry(set) {
                    let query = ViewQuery::random(random);
                    watcher.subscribe(set, &query.text()).await;
                    free.insert(query);
                }
            }
        }
        for (who, watcher, sets) in &mut watchers {
            watcher.settle().await;
            assert_eq!(watcher.take_errors(), []);
            for (set, query) in sets {
                let rows = watcher.rows(*set, query.view);
                assert_eq!(rows, model.of(query, *who), "{step} {}", query.text());
            }
        }
    }
    drop(watchers);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_rows_of_wasm_are_those_from_scratch() {
    for seed in 0..3 {
        live_rows_are_those_from_scratch(HostKind::Wasm, seed, 250).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_rows_of_javascript_are_those_from_scratch() {
    live_rows_are_those_from_scratch(HostKind::Js, 9, 150).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = host_options(directory.path());
    options.limits.view_instances_per_connection_max = 3;
    options.limits.view_instances_per_view_max = 4;
    let database = create_latest(options, HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let text = |room: u32| format!("SELECT * FROM notes_in({room})");
    for room in 0..3 {
        alice.subscribe(room, &text(room)).await;
    }
    assert_eq!(alice.take_errors(), []);
    alice.subscribe(3, &text(3)).await;
    let errors = alice.take_errors();
    let name = "limits.view-instances-per-connection-max [LC0715]";
    assert!(errors[0].1.contains(name), "{errors:?}");
    // What it has goes on, and other views are none of that.
    alice.subscribe(4, "SELECT * FROM st_view").await;
    alice.unsubscribe(0).await;
    alice.subscribe(3, &text(3)).await;
    assert_eq!(alice.take_errors(), []);
    let row = note(1, 3, 1, "a");
    assert_eq!(alice.call("put_note", &row).await, None);
    assert_eq!(alice.rows(3, "notes_in"), bag(&[&row]));

    // The unused one of the view makes room for its fourth; there is none for a fifth.
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    bob.subscribe(1, &text(7)).await;
    assert_eq!(bob.take_errors(), []);
    bob.subscribe(2, &text(8)).await;
    let errors = bob.take_errors();
    let name = "limits.view-instances-per-view-max [LC0715]";
    assert!(errors[0].1.contains(name), "{errors:?}");
    let refused = refusal(&database, &text(9)).await;
    assert!(refused.contains(name), "{refused}");
    // Those that are there already can be read.
    sql(&database, STRANGER, &text(7)).await.expect("rows");
    bob.subscribe(3, "SELECT * FROM note_query(8)").await;
    assert_eq!(bob.take_errors(), []);
    // A client that goes gives back what it had.
    drop(alice);
    let mut errors = vec![(0, String::new())];
    for set in 10..200 {
        bob.subscribe(set, &text(8)).await;
        errors = bob.take_errors();
        if errors.is_empty() {
            break;
        }
    }
    assert_eq!(errors, []);
    drop(bob);
    stop(database).await;
}

fn program(params: serde_json::Value, query: &str) -> serde_json::Value {
    json!({
        "tables": { "t": [["id", "U32"], ["a", "U32"], ["s", "String"]] },
        "uniqueKeys": { "t": "id" },
        "views": {
            "v": { "table": "t", "anonymous": true, "params": params, "query": query },
            "plain": { "table": "t", "query": "SELECT * FROM t WHERE a = 2" },
        },
    })
}

fn row(id: u32, a: u32, s: &str) -> Vec<u8> {
    let mut row = id.to_vec();
    a.encode(&mut row);
    s.encode(&mut row);
    row
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_change_with_the_module() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let first = program(json!([["n", "U32"]]), "SELECT * FROM t WHERE a = {n}");
    let database = create_tables(table_options(&path), &first).await;
    let mut watcher = Watcher::connect(&database, OWNER, 1).await;
    watcher
        .change(&json!({ "t": { "inserts": [[1, 1, "x"], [2, 2, "y"], [3, 2, "x"]] } }))
        .await;
    watcher.subscribe(1, "SELECT * FROM v(2)").await;
    watcher.subscribe(2, "SELECT * FROM plain").await;
    let (two, three) = (row(2, 2, "y"), row(3, 2, "x"));
    assert_eq!(watcher.rows(1, "v"), bag(&[&two, &three]));

    // Another query: who is subscribed goes on.
    let second = program(json!([["n", "U32"]]), "SELECT * FROM t WHERE id = {n}");
    publish(&database, &second, false)
        .await
        .expect("compatible");
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "v"), bag(&[&two]));
    assert_eq!(watcher.rows(2, "plain"), bag(&[&two, &three]));
    watcher
        .change(&json!({ "t": { "deletes": [[2, 2, "y"]] } }))
        .await;
    assert_eq!(watcher.rows(1, "v"), bag(&[]));

    // One more breaks clients, as another name does: it is another view.
    let renamed = program(json!([["m", "U32"]]), "SELECT * FROM t WHERE id = {m}");
    let refused = publish(&database, &renamed, false).await;
    assert!(refused.is_err(), "{refused:?}");
    let third = program(
        json!([["a", "U32"], ["s", "String"]]),
        "SELECT * FROM t WHERE a = {a} AND s = {s}",
    );
    let refused = publish(&database, &third, false).await;
    assert!(refused.is_err(), "{refused:?}");
    publish(&database, &third, true).await.expect("it may");
    drop(watcher);
    let mut watcher = Watcher::connect(&database, OWNER, 2).await;
    watcher.subscribe(1, "SELECT * FROM v(2)").await;
    let errors = watcher.take_errors();
    let expected = "View `v` takes 2 argument(s), but 1 were given";
    assert!(errors[0].1.starts_with(expected), "{errors:?}");
    watcher.subscribe(1, "SELECT * FROM v(2, 'x')").await;
    assert_eq!(watcher.rows(1, "v"), bag(&[&three]));
    let params = sql(&database, OWNER, "SELECT param_name FROM st_view_param").await;
    let params = params.expect("rows");
    assert!(
        params.contains(r#"["a"]"#) && !params.contains(r#"["n"]"#),
        "{params}"
    );
    drop(watcher);
    stop(database).await;
    let database = open(table_options(&path)).await;
    let rows = sql(&database, OWNER, "SELECT * FROM v(2, 'x')").await;
    assert!(rows.expect("rows").contains("[3,2,\"x\"]"));

    // Without any it is a view as all others are.
    let last = program(json!([]), "SELECT * FROM t WHERE a = 2");
    publish(&database, &last, true).await.expect("it may");
    let rows = sql(&database, OWNER, "SELECT s FROM v WHERE id = 3").await;
    assert!(rows.expect("rows").contains(r#"[["x"]]"#));
    stop(database).await;
}
