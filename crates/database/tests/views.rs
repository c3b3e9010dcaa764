//! Views: who sees what, when it changes, and what a view that fails does to others (02 §9.3, 03 §14, 05 §7.6, 08 §10). The
//! modules `modules/views-rs` and `modules/views-ts` are the same, with the published packages.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::requests::{subscribe, unsubscribe};
use crate::common::watcher::{Bag, Watcher};
use crate::common::{bundle, caller, module, open, options, OWNER, STRANGER};
use lightcone_database::{
    DatabaseHandle, DatabaseOptions, HostKind, JsonRows, ShutdownReason, UpdateOutcome,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Identity};
use lightcone_wire::ClientMessage;

const ALL: [&str; 5] = ["my_messages", "my_best", "total", "room_one", "my_query"];

fn js_options(directory: &Path) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options.limits.view_ms_max = 200;
    options
}

async fn create_with(options: DatabaseOptions, kind: HostKind) -> DatabaseHandle {
    let program = match kind {
        HostKind::Wasm => module("views"),
        HostKind::Js => bundle("views").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let created = created.await.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

async fn create(directory: &Path, kind: HostKind) -> DatabaseHandle {
    create_with(js_options(directory), kind).await
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

fn log_of(database: &DatabaseHandle) -> String {
    String::from_utf8_lossy(&database.logs().tail(None)).into_owned()
}

/// How often the view `my_best` has run.
fn runs(database: &DatabaseHandle) -> usize {
    log_of(database).matches("my_best runs").count()
}

async fn views_change_with_their_tables(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), kind).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    alice.watch(1, &ALL).await;
    bob.watch(1, &ALL).await;
    assert_eq!(alice.rows(1, "total"), bag(&[&0_u64.to_le_bytes()]));
    assert_eq!(runs(&database), 2, "once for each");

    // Another client's call, one update with all that follows from it.
    let first = message(1, alice.identity, 1, 5, "first");
    assert_eq!(bob.call("put", &first).await, None);
    alice.settle().await;
    assert_eq!(
        alice.take_updates(),
        [["my_messages", "my_query", "room_one", "total"]]
    );
    assert_eq!(bob.take_updates(), [["room_one", "total"]]);
    for view in ["my_messages", "my_query", "room_one"] {
        assert_eq!(alice.rows(1, view), bag(&[&first]), "{view}");
    }
    assert_eq!(bob.rows(1, "room_one"), bag(&[&first]));
    assert_eq!(bob.rows(1, "my_messages"), bag(&[]));
    assert_eq!(bob.rows(1, "total"), bag(&[&1_u64.to_le_bytes()]));
    assert_eq!(runs(&database), 2, "a score of 5 is not in the range");

    // A changed row: out of the room, into the range.
    let changed = message(1, alice.identity, 2, 10, "changed");
    assert_eq!(bob.call("put", &changed).await, None);
    alice.settle().await;
    assert_eq!(
        alice.take_updates(),
        [["my_best", "my_messages", "my_query", "room_one"]]
    );
    assert_eq!(bob.take_updates(), [["room_one"]]);
    assert_eq!(alice.rows(1, "my_best"), bag(&[&changed]));
    assert_eq!(runs(&database), 3, "that of alice");

    // It changes hands.
    let given = message(1, bob.identity, 2, 10, "given");
    assert_eq!(alice.call("put", &given).await, None);
    bob.settle().await;
    assert_eq!(alice.rows(1, "my_best"), bag(&[]));
    assert_eq!(alice.rows(1, "my_query"), bag(&[]));
    assert_eq!(bob.rows(1, "my_best"), bag(&[&given]));
    assert_eq!(bob.rows(1, "my_query"), bag(&[&given]));
    assert_eq!(runs(&database), 5);

    // What a reducer took back changed nothing.
    if kind == HostKind::Wasm {
        alice.take_updates();
        let mut args = 7_u32.to_vec();
        alice.identity.encode(&mut args);
        assert!(alice.call("put_and_fail", &args).await.is_some());
        assert_eq!(alice.take_updates(), [[""; 0]; 0]);
    }

    // A procedure's commit brings its views along, before its result.
    bob.take_updates();
    let mut args = 9_u32.to_vec();
    bob.identity.encode(&mut args);
    let call = ClientMessage::CallProcedure {
        request_id: 2,
        procedure: "put_by_procedure",
        args: &args,
    };
    bob.client.send(&[call]).await;
    // It runs beside the writer, so answers to later requests may come before.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut updates = bob.take_updates();
    while updates.is_empty() && std::time::Instant::now() < deadline {
        bob.settle().await;
        updates = bob.take_updates();
    }
    assert_eq!(
        updates,
        [["my_best", "my_messages", "my_query", "room_one", "total"]]
    );
    assert_eq!(bob.rows(1, "total"), bag(&[&2_u64.to_le_bytes()]));
    let by_procedure = message(9, bob.identity, 1, 50, "by a procedure");
    assert_eq!(bob.rows(1, "my_best"), bag(&[&by_procedure]));
    assert_eq!(bob.rows(1, "my_messages"), bag(&[&given, &by_procedure]));
    assert_eq!(bob.take_errors(), []);

    // The same in one request, with a query set for each view.
    let mut carol = Watcher::connect(&database, identity(3), 3).await;
    carol.watch_each(1, &ALL).await;
    assert_eq!(carol.sets(), [1, 2, 3, 4, 5]);
    assert_eq!(carol.rows(3, "total"), bag(&[&2_u64.to_le_bytes()]));
    assert_eq!(carol.rows(4, "room_one"), bag(&[&by_procedure]));
    let hers = message(11, carol.identity, 1, 50, "hers");
    assert_eq!(bob.call("put", &hers).await, None);
    carol.settle().await;
    assert_eq!(carol.rows(1, "my_messages"), bag(&[&hers]));
    assert_eq!(carol.rows(2, "my_best"), bag(&[&hers]));
    assert_eq!(carol.rows(3, "total"), bag(&[&3_u64.to_le_bytes()]));
    carol.unsubscribe(1).await;
    carol.unsubscribe(2).await;
    assert_eq!(carol.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_wasm_change_with_their_tables() {
    views_change_with_their_tables(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_javascript_change_with_their_tables() {
    views_change_with_their_tables(HostKind::Js).await;
}

async fn views_are_queried_like_tables(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), kind).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    for (id, owner, text) in [(1, 1, "a"), (2, 1, "b"), (3, 2, "c")] {
        let row = message(id, identity(owner), 1, 10 * id, text);
        assert_eq!(alice.call("put", &row).await, None);
    }
    for (who, query, found) in [
        (
            1,
            "SELECT id, text FROM my_messages WHERE score >= 20",
            r#"[[2,"b"]]"#,
        ),
        (2, "SELECT id, text FROM my_messages", r#"[[3,"c"]]"#),
        (3, "SELECT id FROM my_messages", "[]"),
        (1, "SELECT COUNT(*) AS n FROM my_query", "[[2]]"),
        (3, "SELECT COUNT(*) AS n FROM room_one", "[[3]]"),
        (3, "SELECT * FROM total", "[[3]]"),
        (1, "SELECT text FROM my_best", r#"[["b"]]"#),
    ] {
        let text = sql(&database, identity(who), query).await.expect("rows");
        assert!(text.contains(found), "{who} {query}: {text}");
        assert!(!text.contains("arg_hash"), "{query}: {text}");
    }
    let hidden = sql(&database, OWNER, "SELECT arg_hash FROM my_messages").await;
    assert!(hidden.is_err_and(|error| error.contains("arg_hash")));
    let written = sql(&database, OWNER, "DELETE FROM my_messages").await;
    let written = written.expect_err("a view");
    assert!(written.contains("`my_messages` is a view"), "{written}");
    let private = sql(&database, STRANGER, "SELECT * FROM message").await;
    assert!(private.is_err());

    // The catalog says what there is.
    let views = sql(
        &database,
        OWNER,
        "SELECT view_name, is_public, is_anonymous FROM st_view",
    )
    .await
    .expect("rows");
    assert!(views.contains(r#"["total",true,true]"#), "{views}");
    assert!(views.contains(r#"["my_messages",true,false]"#), "{views}");
    let columns = sql(
        &database,
        OWNER,
        "SELECT col_name FROM st_view_column WHERE col_pos = 0",
    )
    .await
    .expect("rows");
    assert_eq!(columns.matches(r#"["id"]"#).count(), 5, "{columns}");
    let keys =
        "SELECT index_name FROM st_index WHERE index_name = 'fragile_arg_hash_key_idx_btree'";
    let keys = sql(&database, OWNER, keys).await.expect("rows");
    assert!(keys.contains("fragile_arg_hash_key"), "{keys}");

    // Everything that may be read, views among it.
    alice
        .client
        .send(&[subscribe(5, vec!["SELECT * FROM *"])])
        .await;
    alice.settle().await;
    assert_eq!(alice.rows(5, "my_messages").len(), 2);
    assert_eq!(alice.rows(5, "total").len(), 1);
    alice.client.send(&[unsubscribe(5)]).await;
    alice.settle().await;

    // More than the writer copies by itself.
    let long = "x".repeat(300_000);
    for id in 10..16 {
        let row = message(id, identity(4), 7, 1, &long);
        assert_eq!(alice.call("put", &row).await, None);
    }
    let mut dora = Watcher::connect(&database, identity(4), 4).await;
    dora.watch(1, &["my_messages"]).await;
    assert_eq!(dora.rows(1, "my_messages").len(), 6);
    let first = dora.rows(1, "my_messages").into_keys().next();
    assert_eq!(first, Some(message(10, identity(4), 7, 1, &long)));
    let count = sql(
        &database,
        identity(4),
        "SELECT COUNT(*) AS n FROM my_messages",
    )
    .await;
    assert!(count.expect("rows").contains("[[6]]"));

    // No client is subscribed: nothing runs, and who comes back sees what is.
    let before = runs(&database);
    let row = message(4, alice.identity, 1, 99, "d");
    assert_eq!(alice.call("put", &row).await, None);
    assert_eq!(runs(&database), before);
    alice.watch(6, &["my_best"]).await;
    assert_eq!(alice.rows(6, "my_best"), bag(&[&row]));
    assert_eq!(runs(&database), before + 1);
    database.shutdown(ShutdownReason::ServerStop).await;

    // Their rows are nowhere but in memory.
    let database = open(js_options(directory.path())).await;
    let best = sql(&database, identity(1), "SELECT text FROM my_best").await;
    assert!(best.expect("rows").contains(r#"[["d"]]"#));
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.watch(1, &ALL).await;
    assert_eq!(alice.rows(1, "my_messages").len(), 3);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_wasm_are_queried_like_tables() {
    views_are_queried_like_tables(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_javascript_are_queried_like_tables() {
    views_are_queried_like_tables(HostKind::Js).await;
}

/// A line of the view `fragile`.
fn line(key: u32, text: &str) -> Vec<u8> {
    let mut row = key.to_vec();
    text.encode(&mut row);
    row
}

async fn a_view_that_fails_fails_no_other_view(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = js_options(directory.path());
    // What it waits for after a time-out is a hundred times as long.
    options.limits.view_ms_max = 50;
    let database = create_with(options, kind).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 1, "a");
    assert_eq!(alice.call("put", &row).await, None);
    alice.watch(1, &["fragile", "my_messages", "audit"]).await;
    assert_eq!(alice.rows(1, "fragile"), bag(&[&line(1, "a")]));

    for mode in 1_u32..=4 {
        alice.take_updates();
        let last = alice.rows(1, "fragile");
        assert_eq!(alice.call("set_mode", &mode.to_vec()).await, None);
        assert_eq!(alice.take_updates(), [["audit"]], "mode {mode}");
        let errors = alice.take_errors();
        assert_eq!(errors.len(), 1, "mode {mode}: {errors:?}");
        assert!(
            errors[0].1.contains("the view `fragile` failed"),
            "{errors:?}"
        );
        assert!(errors[0].1.contains("[LC0331]"), "{errors:?}");
        assert!(!errors[0].1.contains("as it was told"), "{errors:?}");
        assert_eq!(alice.rows(1, "fragile"), last, "its last rows stand");

        // Others go on meanwhile, it does not keep them waiting, and no client is told twice.
        let started = Instant::now();
        for text in ["b", "c", "d", "e"] {
            let row = message(2, alice.identity, 1, 1, &format!("{text}{mode}"));
            assert_eq!(alice.call("put", &row).await, None);
        }
        if mode == 2 {
            assert!(
                started.elapsed() < Duration::from_millis(900),
                "it has had its time"
            );
        }
        assert_eq!(alice.rows(1, "my_messages").len(), 2);
        assert_eq!(alice.take_errors(), [], "mode {mode}");

        // The next good evaluation repairs it.
        assert_eq!(alice.call("set_mode", &0_u32.to_vec()).await, None);
        let repaired = bag(&[&line(1, "a"), &line(2, &format!("e{mode}"))]);
        for _ in 0..600 {
            alice.settle().await;
            if alice.rows(1, "fragile") == repaired {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(alice.rows(1, "fragile"), repaired, "mode {mode}");
    }
    let log = log_of(&database);
    assert!(log.contains("Error materializing view `fragile`"), "{log}");
    assert!(log.contains("limits.view-ms-max"), "{log}");
    assert!(log.contains("the view `fragile` works again"), "{log}");

    // One that fails from the beginning has no rows yet, and says so.
    assert_eq!(alice.call("set_mode", &1_u32.to_vec()).await, None);
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    bob.watch(1, &["fragile", "total"]).await;
    assert_eq!(bob.rows(1, "fragile"), bag(&[]));
    assert_eq!(bob.rows(1, "total").len(), 1);
    assert_eq!(bob.take_errors().len(), 1);
    let mut carol = Watcher::connect(&database, identity(3), 3).await;
    carol.watch_each(1, &["fragile", "total"]).await;
    assert_eq!(carol.rows(1, "fragile"), bag(&[]));
    assert_eq!(carol.rows(2, "total").len(), 1);
    let errors = carol.take_errors();
    assert!(matches!(&errors[..], [(1, _)]), "{errors:?}");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_wasm_that_fails_fails_no_other_view() {
    a_view_that_fails_fails_no_other_view(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_javascript_that_fails_fails_no_other_view() {
    a_view_that_fails_fails_no_other_view(HostKind::Js).await;
}

/// Joins with views: each caller joins his own rows, at first, live, and in SQL; none gets the rows of another, nor what is hidden.
#[tokio::test(flavor = "multi_thread")]
async fn views_are_joined() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    let queries = [
        // Two views of the caller, one of which has a key.
        "SELECT m.* FROM my_messages m JOIN fragile f ON m.id = f.key WHERE m.room = 1",
        "SELECT f.* FROM my_messages m JOIN fragile f ON m.id = f.key WHERE m.room = 1",
    ];
    let first = message(1, identity(1), 1, 1, "a");
    let other = message(2, identity(2), 1, 1, "b");
    assert_eq!(alice.call("put", &first).await, None);
    assert_eq!(alice.call("put", &other).await, None);
    for watcher in [&mut alice, &mut bob] {
        watcher.client.send(&[subscribe(1, queries.to_vec())]).await;
        watcher.settle().await;
        assert_eq!(watcher.take_errors(), []);
    }
    assert_eq!(alice.rows(1, "my_messages"), bag(&[&first]));
    assert_eq!(alice.rows(1, "fragile"), bag(&[&line(1, "a")]));
    assert_eq!(bob.rows(1, "my_messages"), bag(&[&other]));
    assert_eq!(bob.rows(1, "fragile"), bag(&[&line(2, "b")]));

    // Out of the room, into it again with another text, and one more.
    alice.take_updates();
    let out = message(1, identity(1), 2, 1, "a");
    assert_eq!(bob.call("put", &out).await, None);
    alice.settle().await;
    assert_eq!(alice.rows(1, "my_messages"), bag(&[]));
    assert_eq!(alice.rows(1, "fragile"), bag(&[]));
    let back = message(1, identity(1), 1, 1, "c");
    let more = message(3, identity(1), 1, 1, "d");
    assert_eq!(bob.call("put", &back).await, None);
    assert_eq!(bob.call("put", &more).await, None);
    alice.settle().await;
    assert_eq!(alice.rows(1, "my_messages"), bag(&[&back, &more]));
    let lines = bag(&[&line(1, "c"), &line(3, "d")]);
    assert_eq!(alice.rows(1, "fragile"), lines);
    assert_eq!(alice.take_updates().len(), 3, "one for each change");
    assert_eq!(bob.rows(1, "my_messages"), bag(&[&other]));
    assert_eq!(bob.rows(1, "fragile"), bag(&[&line(2, "b")]));

    let text = "SELECT m.text, f.text AS line FROM my_messages m JOIN fragile f ON m.id = f.key";
    let rows = sql(&database, identity(1), text).await.expect("rows");
    assert!(
        rows.contains(r#"["c","c"]"#) && rows.contains(r#"["d","d"]"#),
        "{rows}"
    );
    assert!(!rows.contains(r#""b""#), "{rows}");
    let text = "SELECT m.* FROM my_messages m JOIN fragile f ON m.id = f.key";
    let rows = sql(&database, identity(2), text).await.expect("rows");
    assert!(
        rows.contains(r#""b"]]"#) && !rows.contains("arg_hash"),
        "{rows}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A view whose query is a join is evaluated again by the database when one of the tables changes.
async fn views_may_be_joins(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), kind).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.watch(1, &["with_mode"]).await;
    assert_eq!(alice.take_errors(), [], "{}", log_of(&database));
    let row = message(0, identity(9), 1, 1, "a");
    assert_eq!(alice.call("put", &row).await, None);
    assert_eq!(alice.rows(1, "with_mode"), bag(&[]));
    assert_eq!(alice.call("set_mode", &0_u32.to_vec()).await, None);
    assert_eq!(alice.rows(1, "with_mode"), bag(&[&row]));
    let changed = message(0, identity(9), 1, 1, "b");
    assert_eq!(alice.call("put", &changed).await, None);
    assert_eq!(alice.rows(1, "with_mode"), bag(&[&changed]));
    assert_eq!(alice.call("take", &0_u32.to_vec()).await, None);
    assert_eq!(alice.rows(1, "with_mode"), bag(&[]));
    assert_eq!(alice.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_wasm_may_be_joins() {
    views_may_be_joins(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_javascript_may_be_joins() {
    views_may_be_joins(HostKind::Js).await;
}

/// However many look at a view that traps, it takes little of the transaction that makes it trap, and all are told and repaired.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_fails_for_many_keeps_no_client_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Wasm).await;
    let mut watchers = Vec::new();
    for number in 1..=100_u8 {
        let mut watcher = Watcher::connect(&database, identity(number), number.into()).await;
        watcher.watch(1, &["fragile"]).await;
        watchers.push(watcher);
    }
    let failed = |log: &str| log.matches("as it was told").count();
    assert_eq!(watchers[0].call("set_mode", &1_u32.to_vec()).await, None);
    for watcher in &mut watchers {
        watcher.settle().await;
        assert_eq!(watcher.take_errors().len(), 1);
    }
    let tried = failed(&log_of(&database));
    assert!((1..100).contains(&tried), "{tried} have run");
    for number in 1..=100_u8 {
        let row = message(number.into(), identity(number), 1, 1, "a");
        assert_eq!(watchers[0].call("put", &row).await, None);
    }
    assert_eq!(watchers[0].call("set_mode", &0_u32.to_vec()).await, None);
    for (number, watcher) in (1_u32..).zip(&mut watchers) {
        for _ in 0..600 {
            watcher.settle().await;
            if !watcher.rows(1, "fragile").is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(watcher.rows(1, "fragile"), bag(&[&line(number, "a")]));
        assert_eq!(watcher.take_errors(), []);
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_program_evaluates_the_views_that_are_in_use() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Js).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 15, "a");
    assert_eq!(alice.call("put", &row).await, None);
    alice.watch(1, &["my_best", "fragile"]).await;
    assert_eq!(alice.rows(1, "my_best"), bag(&[&row]));

    // From 20 on, in place of 10.
    let program = bundle("views");
    let higher = program.replace("value: 10 }", "value: 20 }");
    assert_ne!(higher, program);
    let updated = database
        .update(higher.clone().into_bytes(), HostKind::Js)
        .await;
    assert_eq!(updated.expect("updated"), UpdateOutcome::Updated);
    alice.settle().await;
    assert_eq!(alice.rows(1, "my_best"), bag(&[]));
    let row = message(1, alice.identity, 1, 25, "a");
    assert_eq!(alice.call("put", &row).await, None);
    assert_eq!(alice.rows(1, "my_best"), bag(&[&row]));

    // A program whose view fails for those who look at it is refused.
    let failing = higher.replace(
        "switch (ctx.db.mode",
        "throw new Error(\"no\"); switch (ctx.db.mode",
    );
    assert_ne!(failing, higher);
    let refused = database.update(failing.into_bytes(), HostKind::Js).await;
    let refused = format!("{:?}", refused.expect_err("it fails"));
    assert!(refused.contains("`fragile`"), "{refused}");
    let row = message(2, alice.identity, 1, 30, "b");
    assert_eq!(alice.call("put", &row).await, None);
    assert_eq!(alice.rows(1, "my_best"), bag(&[&row]));
    assert_eq!(alice.rows(1, "fragile").len(), 2);
    assert_eq!(alice.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A caller who has read a view lately is like a client that is subscribed to it: a program in which it fails for him is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_program_evaluates_the_views_that_were_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Js).await;
    let program = bundle("views");
    let fails = |text: &str| {
        let text = format!("throw new Error(\"{text}\"); switch (ctx.db.mode");
        let failing = program.replace("switch (ctx.db.mode", &text);
        assert_ne!(failing, program);
        failing.into_bytes()
    };
    let read = || sql(&database, identity(1), "SELECT * FROM fragile");
    let before = read().await.expect("rows");
    let refused = database
        .update(fails("not with these rows"), HostKind::Js)
        .await;
    let refused = format!("{:?}", refused.expect_err("it fails"));
    for part in ["`fragile`", "not with these rows", "[LC0331]"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(
        read().await.expect("rows"),
        before,
        "the old program goes on"
    );
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 15, "a");
    assert_eq!(alice.call("put", &row).await, None);
    alice.watch(1, &["fragile"]).await;
    assert_eq!(alice.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;

    // No client has read it in this one.
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Js).await;
    let updated = database.update(fails("not read"), HostKind::Js).await;
    assert_eq!(updated.expect("updated"), UpdateOutcome::Updated);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = js_options(directory.path());
    options.limits.view_instances_max = 2;
    let database = create_with(options, HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    alice.watch(1, &["my_messages", "total"]).await;
    alice.watch(2, &["my_query"]).await;
    let errors = alice.take_errors();
    assert!(errors[0].1.contains("[LC0715]"), "{errors:?}");
    // One that is not used makes room.
    alice.client.send(&[unsubscribe(1)]).await;
    alice.watch(2, &["my_query"]).await;
    assert_eq!(alice.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_all_instances_are_bounded_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = js_options(directory.path());
    options.limits.views_bytes_max = 1000;
    let database = create_with(options, HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let row = message(1, alice.identity, 1, 5, &"x".repeat(2000));
    assert_eq!(alice.call("put", &row).await, None);
    alice.watch(1, &["my_messages"]).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    bob.watch(1, &["my_messages"]).await;
    let errors = bob.take_errors();
    assert!(errors[0].1.contains("views-bytes-max"), "{errors:?}");
    // What is not used makes room.
    alice.client.send(&[unsubscribe(1)]).await;
    alice.settle().await;
    bob.watch(2, &["my_messages"]).await;
    assert_eq!(bob.take_errors(), []);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// However often one caller reads, the rows of others stay.
#[tokio::test(flavor = "multi_thread")]
async fn reads_of_one_caller_drop_no_rows_of_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Wasm).await;
    let text = "SELECT * FROM my_best";
    for (caller, times) in [(1, 1), (2, 1100), (1, 1)] {
        for _ in 0..times {
            sql(&database, identity(caller), text).await.expect("rows");
        }
    }
    assert_eq!(runs(&database), 2, "once for each");
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Random changes: all clients have, at any time, what the views would say if they were evaluated anew, and a view has run exactly
/// when a row in the range came, went or changed that it had read.
async fn what_subscribers_hold_is_what_views_say(kind: HostKind, seed: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), kind).await;
    let mut watchers = Vec::new();
    for number in 1..=3_u8 {
        let mut watcher = Watcher::connect(&database, identity(number), number.into()).await;
        watcher.watch(1, &ALL).await;
        watchers.push(watcher);
    }
    let mut random = seed | 1;
    let mut next = move |below: u32| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as u32 % below
    };
    let mut table = std::collections::BTreeMap::<u32, (u8, u32, u32, String)>::new();
    let mut expected_runs = 3;
    for step in 0..80 {
        let id = next(6);
        let old = table.get(&id).cloned();
        let new = match next(4) {
            0 => None,
            _ => Some((1 + next(4) as u8, next(3), next(20), format!("{}", next(2)))),
        };
        let who = next(3) as usize;
        let failed = match &new {
            None => watchers[who].call("take", &id.to_vec()).await,
            Some((owner, room, score, text)) => {
                let args = message(id, identity(*owner), *room, *score, text);
                watchers[who].call("put", &args).await
            }
        };
        assert_eq!(failed, None);
        if old != new {
            let read_by = |row: &Option<(u8, u32, u32, String)>| match row {
                Some((owner @ 1..=3, _, 10.., _)) => Some(*owner),
                _ => None,
            };
            let (before, after) = (read_by(&old), read_by(&new));
            expected_runs += usize::from(before.is_some());
            expected_runs += usize::from(after.is_some() && after != before);
        }
        match new {
            None => table.remove(&id),
            Some(row) => table.insert(id, row),
        };
        let encoded = |(id, (owner, room, score, text)): (&u32, &(u8, u32, u32, String))| {
            message(*id, identity(*owner), *room, *score, text)
        };
        for (number, watcher) in (1..).zip(&mut watchers) {
            watcher.settle().await;
            let all = || table.iter();
            let mine: Bag = all()
                .filter(|(_, m)| m.0 == number)
                .map(|m| (encoded(m), 1))
                .collect();
            let room: Bag = all()
                .filter(|(_, m)| m.1 == 1)
                .map(|m| (encoded(m), 1))
                .collect();
            let best = all().filter(|(_, m)| m.0 == number && m.2 >= 10);
            let best = best.max_by_key(|(_, m)| m.2);
            assert_eq!(
                watcher.rows(1, "my_messages"),
                mine,
                "seed {seed} step {step}"
            );
            assert_eq!(watcher.rows(1, "my_query"), mine, "seed {seed} step {step}");
            assert_eq!(watcher.rows(1, "room_one"), room, "seed {seed} step {step}");
            let total = bag(&[&(table.len() as u64).to_le_bytes()]);
            assert_eq!(watcher.rows(1, "total"), total, "seed {seed} step {step}");
            let scores = |rows: Bag| -> Vec<Vec<u8>> {
                rows.into_keys().map(|row| row[40..44].to_vec()).collect()
            };
            let best = best.map(|m| m.1 .2.to_le_bytes().to_vec());
            let held = scores(watcher.rows(1, "my_best"));
            assert_eq!(held, Vec::from_iter(best), "seed {seed} step {step}");
        }
        assert_eq!(
            runs(&database),
            expected_runs,
            "seed {seed} step {step}: {old:?}"
        );
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_subscribers_hold_is_what_views_of_wasm_say() {
    for seed in [1, 22, 333] {
        what_subscribers_hold_is_what_views_say(HostKind::Wasm, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_subscribers_hold_is_what_views_of_javascript_say() {
    what_subscribers_hold_is_what_views_say(HostKind::Js, 4444).await;
}

/// A new connection does not cost what others have.
#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(directory.path(), HostKind::Wasm).await;
    let mut alice = Watcher::connect(&database, identity(1), 1).await;
    let mut bob = Watcher::connect(&database, identity(2), 2).await;
    bob.watch(1, &["my_best"]).await;
    drop(bob);
    alice.settle().await;
    let before = runs(&database);
    for _ in 0..100 {
        let row = message(1, identity(2), 1, 50, "for bob");
        assert_eq!(alice.call("put", &row).await, None);
        assert_eq!(alice.call("take", &1_u32.to_vec()).await, None);
    }
    assert!(
        runs(&database) <= before + 2,
        "his connection may have ended a little later"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}
