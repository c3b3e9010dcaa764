//! Views where something ends: events that no table keeps, failures that strangers ask for or that pass, and the bound of instances.

use std::time::Duration;

use crate::common::requests::subscribe;
use crate::common::watcher::{Bag, Watcher};
use crate::common::{bundle, caller, module, options, Client};
use lightcone_database::{
    DatabaseHandle, DatabaseOptions, HostKind, JsonRows, Limits, ShutdownReason,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Identity};
use lightcone_wire::ServerMessage;

fn with_limits(directory: &std::path::Path, limits: impl FnOnce(&mut Limits)) -> DatabaseOptions {
    let mut options = options(directory);
    limits(&mut options.limits);
    options
}

async fn create(options: DatabaseOptions) -> DatabaseHandle {
    let created = tokio::task::spawn_blocking(move || {
        DatabaseHandle::create(options, module("views"), HostKind::Wasm)
    });
    let created = created.await.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

fn identity(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

/// A row of `message`, and the arguments of `put`: the same bytes.
fn message(id: u32, owner: Identity, room: u32, score: u32, text: &str) -> Vec<u8> {
    let mut row = id.to_vec();
    owner.encode(&mut row);
    room.encode(&mut row);
    score.encode(&mut row);
    text.encode(&mut row);
    row
}

fn bag(rows: &[&[u8]]) -> Bag {
    rows.iter().map(|row| (<[u8]>::to_vec(row), 1)).collect()
}

async fn sql(database: &DatabaseHandle, identity: Identity, text: &str) -> Result<String, String> {
    let rows = database
        .sql(caller(identity), text.to_owned(), true, JsonRows::default())
        .await;
    match rows {
        Ok(rows) => Ok(rows.text()),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// Looks again and again, as long as a slow machine may take.
async fn becomes(watcher: &mut Watcher, view: &str, expected: &Bag) {
    for _ in 0..600 {
        watcher.settle().await;
        if watcher.rows(1, view) == *expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(&watcher.rows(1, view), expected, "{view}");
}

/// Functions and queries, alone and joined, for all callers and for one: in the transaction of the events, and after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_never_sees_rows_of_event_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = bundle("views");
    let events = program.replace(
        "    name: \"message\",\n",
        "    name: \"message\",\n    event: true,\n",
    );
    assert_ne!(events, program);
    let mut options = options(directory.path());
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let created = tokio::task::spawn_blocking(move || {
        DatabaseHandle::create(options, events.into_bytes(), HostKind::Js)
    });
    let database = created.await.expect("no panic");
    let database = database.unwrap_or_else(|error| panic!("{error}"));
    let views = [
        "my_messages",
        "my_best",
        "room_one",
        "my_query",
        "with_mode",
        "fragile",
        "total",
    ];
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.watch(1, &views).await;
    let none = bag(&[&0_u64.to_vec()]);
    assert_eq!(alice.rows(1, "total"), none);
    // What a mode is joined with, and one more evaluation of those that read it.
    assert_eq!(alice.call("set_mode", &0_u32.to_vec()).await, None);
    for id in [0, 1, 0] {
        let row = message(id, alice.identity, 1, 15, "an event");
        assert_eq!(alice.call("put", &row).await, None);
        for view in &views[..6] {
            assert_eq!(alice.rows(1, view), bag(&[]), "{view}");
        }
        assert_eq!(alice.rows(1, "total"), none);
    }
    assert_eq!(alice.call("set_mode", &0_u32.to_vec()).await, None);
    for view in &views[..6] {
        assert_eq!(alice.rows(1, view), bag(&[]), "{view}");
        let rows = sql(&database, identity(2), &format!("SELECT * FROM {view}")).await;
        assert_eq!(rows.as_deref(), Ok("[]"), "{view}");
    }
    assert_eq!(alice.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Each stranger would be one more evaluation that never ends. Their first ones are held back when they have taken a second.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_run_a_view_that_fails_without_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = with_limits(directory.path(), |limits| limits.view_ms_max = 100);
    let database = create(options).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 1, "a");
    assert_eq!(alice.call("put", &row).await, None);
    assert_eq!(alice.call("set_mode", &2_u32.to_vec()).await, None);
    // Each has no rows, in time or at once.
    for number in 100..160 {
        let answer = sql(&database, identity(number), "SELECT * FROM fragile").await;
        assert_eq!(answer.as_deref(), Ok("[]"));
    }
    // A second in vain, in evaluations of a tenth at least.
    let log = String::from_utf8_lossy(&database.logs().tail(None)).into_owned();
    let tried = log.matches("Error materializing view `fragile`").count();
    assert!((1..30).contains(&tried), "{tried} have run");
    // Who subscribes gets his rows once it works, and the strangers then too.
    alice.watch(1, &["fragile"]).await;
    assert_eq!(alice.call("set_mode", &0_u32.to_vec()).await, None);
    let mut line = 1_u32.to_vec();
    "a".encode(&mut line);
    becomes(&mut alice, "fragile", &bag(&[&line])).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The rows of the view do not fit beside those of the change, and nothing changes any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_for_what_passes_is_tried_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = with_limits(directory.path(), |limits| {
        limits.transaction_bytes_max = 4 << 20;
    });
    let database = create(options).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.watch(1, &["my_messages"]).await;
    let row = message(1, alice.identity, 1, 1, &"x".repeat(2_500_000));
    assert_eq!(alice.call("put", &row).await, None);
    becomes(&mut alice, "my_messages", &bag(&[&row])).await;
    let errors = alice.take_errors();
    assert_eq!(errors.len(), 1, "it did fail: {errors:?}");
    assert!(errors[0].1.contains("[LC0331]"), "{errors:?}");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_two_views_has_the_rows_of_both_or_is_refused() {
    let both = "SELECT m.* FROM my_messages m JOIN my_best b ON m.id = b.id";
    for instances_max in 1..=3 {
        let directory = tempfile::tempdir().expect("a directory");
        let options = with_limits(directory.path(), |limits| {
            limits.view_instances_max = instances_max;
        });
        let database = create(options).await;
        let mut alice = Watcher::connect(&database, identity(1), 1).await;
        for (id, score) in [(1, 5), (2, 15)] {
            let row = message(id, alice.identity, 1, score, "a");
            assert_eq!(alice.call("put", &row).await, None);
        }
        for round in 0..4 {
            // Others leave instances behind that no client uses.
            let other = identity(10 + round);
            let seen = sql(&database, other, "SELECT * FROM my_messages").await;
            assert_eq!(seen.as_deref(), Ok("[]"));
            let found = sql(&database, identity(1), both).await;
            match instances_max {
                1 => assert!(
                    found
                        .as_ref()
                        .is_err_and(|error| error.contains("[LC0715]")),
                    "{found:?}"
                ),
                _ => {
                    let rows = found.expect("both views");
                    assert_eq!(rows.matches("[2,").count(), 1, "{rows}");
                    assert_eq!(rows.matches("\"a\"").count(), 1, "{rows}");
                }
            }
        }
        database.shutdown(ShutdownReason::ServerStop).await;
    }
}

/// A view's table without rows has no entry among first rows (05 §7.1); so one sees whether there are rows for any client.
async fn any_client_has_rows(database: &DatabaseHandle, view: &str) -> bool {
    let mut client = Client::connect(database, identity(99), 99).await;
    let text = format!("SELECT * FROM {view}");
    client.send(&[subscribe(1, vec![&text])]).await;
    match client.next().await {
        ServerMessage::SubscribeApplied { rows, .. } => !rows.tables.is_empty(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_unused_views_go_also_when_a_program_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let program = bundle("views");
    let first = program.clone().into_bytes();
    let create = move || DatabaseHandle::create(options, first, HostKind::Js);
    let created = tokio::task::spawn_blocking(create).await;
    let database = created.expect("no panic").expect("the module is valid");
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 15, "a");
    assert_eq!(alice.call("put", &row).await, None);
    alice.watch(1, &["my_best"]).await;
    alice.unsubscribe(1).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    bob.watch(1, &["fragile"]).await;
    assert!(any_client_has_rows(&database, "my_best").await);
    let failing = program.replace(
        "switch (ctx.db.mode",
        "throw new Error(\"no\"); switch (ctx.db.mode",
    );
    let refused = database.update(failing.into_bytes(), HostKind::Js).await;
    assert!(refused.is_err());
    assert!(!any_client_has_rows(&database, "my_best").await);
    alice.watch(1, &["my_best"]).await;
    assert_eq!(alice.rows(1, "my_best"), bag(&[&row]));
    database.shutdown(ShutdownReason::ServerStop).await;
}
