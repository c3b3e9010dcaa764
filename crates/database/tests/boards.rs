//! Aggregates and the first rows of an order, through views of real modules (08 §10.4): `modules/boards-rs` and
//! `modules/boards-ts` are the same, with the published packages.

use crate::common::watcher::{Bag, Watcher};
use crate::common::{bundle, module, options, OWNER, STRANGER};
use lightcone_database::{DatabaseHandle, HostKind, ShutdownReason};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::Encode;

async fn create(kind: HostKind) -> DatabaseHandle {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    options.in_memory = true;
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let program = match kind {
        HostKind::Wasm => module("boards"),
        HostKind::Js => bundle("boards").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let created = created.await.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

/// A row of `score`, and the arguments of `put`: id, team, points.
fn score(row: (u32, u32, u32)) -> Vec<u8> {
    [row.0.to_vec(), row.1.to_vec(), row.2.to_vec()].concat()
}

/// A row of `by_team`.
fn total((team, players, points, best, mean): (u32, u64, u128, u32, f64)) -> Vec<u8> {
    let mut row = team.to_vec();
    players.encode(&mut row);
    points.encode(&mut row);
    best.encode(&mut row);
    mean.encode(&mut row);
    row
}

fn bag(rows: impl IntoIterator<Item = Vec<u8>>) -> Bag {
    rows.into_iter().map(|row| (row, 1)).collect()
}

async fn views_follow_their_table(kind: HostKind) {
    let database = create(kind).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, STRANGER, 2).await;
    watcher.watch(1, &["by_team"]).await;
    watcher.watch(2, &["first_two"]).await;
    assert_eq!(watcher.take_errors(), []);
    for row in [(1, 7, 1000), (2, 7, 2001), (3, 8, 5)] {
        assert_eq!(writer.call("put", &score(row)).await, None);
    }
    watcher.settle().await;
    let totals = [(7, 2, 3001, 2001, 1500.5), (8, 1, 5, 5, 5.0)];
    assert_eq!(watcher.rows(1, "by_team"), bag(totals.map(total)));
    let first = [(1, 7, 1000), (2, 7, 2001)];
    assert_eq!(watcher.rows(2, "first_two"), bag(first.map(score)));
    watcher.take_updates();

    // Behind the first two, and in a team of its own.
    assert_eq!(writer.call("put", &score((4, 9, 6))).await, None);
    watcher.settle().await;
    assert_eq!(watcher.take_updates(), [["by_team"]]);
    // The best of a team goes, and what was behind the first two comes.
    assert_eq!(writer.call("take", &2_u32.to_vec()).await, None);
    watcher.settle().await;
    assert_eq!(watcher.take_updates(), [["by_team", "first_two"]]);
    let totals = [
        (7, 1, 1000, 1000, 1000.0),
        (8, 1, 5, 5, 5.0),
        (9, 1, 6, 6, 6.0),
    ];
    assert_eq!(watcher.rows(1, "by_team"), bag(totals.map(total)));
    let first = [(1, 7, 1000), (4, 9, 6)];
    assert_eq!(watcher.rows(2, "first_two"), bag(first.map(score)));
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_a_rust_module_follow_their_table() {
    views_follow_their_table(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_a_typescript_module_follow_their_table() {
    views_follow_their_table(HostKind::Js).await;
}
