//! Snapshots beside the writer and at the stop: how many there are at once, who waits for them, and what the next start replays.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common;
use crate::common::other_machine::OtherMachine;
use crate::common::publishing::stop;
use crate::common::tables::{create_tables, table_options};
use crate::common::{caller, open, OWNER};
use lightcone_database::{
    CallArgs, Commons, Damage, DatabaseCheck, DatabaseHandle, DatabaseOptions, ShutdownReason,
};
use lightcone_storage::sim::{HookedStorage, Hooks};
use lightcone_storage::OpenMode;
use serde_json::{json, Value};
use tokio::task::JoinHandle;

/// A disk that writes packs of snapshots when it may, and slowly.
#[derive(Default)]
struct Packs {
    is_held: Mutex<bool>,
    changed: Condvar,
    begun: AtomicUsize,
    write_ms: AtomicUsize,
    fails: AtomicBool,
}

impl Packs {
    fn hold(&self, is_held: bool) {
        *self.is_held.lock().expect("no panic") = is_held;
        self.changed.notify_all();
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

/// Lets go of what is held when a test fails.
struct Released(Arc<Packs>);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

fn is_pack(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".pack.tmp")
}

impl Hooks for Packs {
    fn before_open(&self, path: &Path, mode: OpenMode) -> io::Result<()> {
        if is_pack(path) && matches!(mode, OpenMode::CreateNew) {
            self.begun.fetch_add(1, Ordering::SeqCst);
            if self.fails.load(Ordering::SeqCst) {
                return Err(io::Error::other("the disk fails"));
            }
        }
        Ok(())
    }

    fn before_write(&self, path: &Path) -> io::Result<()> {
        if is_pack(path) {
            let held = self.is_held.lock().expect("no panic");
            drop(self.changed.wait_while(held, |held| *held));
            let ms = self.write_ms.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(ms as u64));
            if self.fails.load(Ordering::SeqCst) {
                return Err(io::Error::other("the disk fails"));
            }
        }
        Ok(())
    }
}

/// A snapshot is due after 64 KiB of log that is durable, which a round looks at before its own is; and at the stop after 8.
fn options(directory: &Path, packs: &Arc<Packs>, commons: &Arc<Commons>) -> DatabaseOptions {
    let mut options = table_options(directory);
    options.limits.snapshot_log_bytes = 64 << 10;
    options.storage = Arc::new(HookedStorage::new(options.storage, packs.clone()));
    options.commons = commons.clone();
    options
}

fn commons() -> Arc<Commons> {
    Commons::new(lightcone_database::Machine::current(), 1 << 30, 2)
}

async fn create(options: DatabaseOptions) -> DatabaseHandle {
    let program = json!({
        "tables": { "t": [["id", "U32"], ["text", "String"]] },
        "uniqueKeys": { "t": "id" },
    });
    create_tables(options, &program).await
}

/// Inserts a row of so many bytes.
async fn insert(database: &DatabaseHandle, id: u32, bytes: usize) -> Result<(), String> {
    let changes = json!({ "t": { "inserts": [[id, "x".repeat(bytes)]] } });
    let args = CallArgs::Json(json!([changes.to_string()]).to_string());
    let called = database.call(caller(OWNER), "change", args).await;
    called.map(drop).map_err(|error| format!("{error:?}"))
}

async fn insert_all(database: &DatabaseHandle, ids: std::ops::Range<u32>, bytes: usize) {
    for id in ids {
        insert(database, id, bytes).await.expect("the key is free");
    }
}

async fn rows(database: &DatabaseHandle) -> Value {
    let text = "SELECT COUNT(*) AS n FROM t";
    let rows = common::tables::sql(database, OWNER, text).await;
    rows.expect("rows").0[0][0].clone()
}

async fn until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waited).await;
    waited.expect("it comes true in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_writes_a_snapshot_if_the_next_start_would_replay_much() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (packs, commons) = (Arc::new(Packs::default()), commons());
    let database = create(options(&path, &packs, &commons)).await;
    insert_all(&database, 0..2, 1_000).await;
    stop(database).await;
    assert_eq!(packs.begun(), 0, "two rows are replayed at once");
    let database = open(options(&path, &packs, &commons)).await;
    assert!(database.metrics().replayed.transactions > 0);
    insert_all(&database, 2..12, 1_000).await;
    stop(database).await;
    assert_eq!(packs.begun(), 1);
    let database = open(options(&path, &packs, &commons)).await;
    assert_eq!(database.metrics().replayed.transactions, 0);
    assert_eq!(rows(&database).await, json!(12));
    stop(database).await;
    assert_eq!(packs.begun(), 1, "nothing has changed");
}

/// What is beyond 16 MiB of a database counts: a snapshot waits for a share of it, also at the stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_database_waits_for_more_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (packs, commons) = (Arc::new(Packs::default()), commons());
    let of_percent = |percent| {
        let mut options = options(&path, &packs, &commons);
        options.limits.snapshot_log_percent = percent;
        options
    };
    let mut without = of_percent(1);
    without.limits.snapshot_log_bytes = u64::MAX;
    let database = create(without).await;
    insert_all(&database, 0..20, 1 << 20).await;
    stop(database).await;
    let database = open(of_percent(10_000)).await;
    insert_all(&database, 20..22, 1 << 20).await;
    stop(database).await;
    assert_eq!(packs.begun(), 0, "22 MiB of log are less than 50");
    let database = open(of_percent(1)).await;
    insert_all(&database, 22..24, 100).await;
    until(|| database.metrics().snapshots.times.count() == 1).await;
    stop(database).await;
}

/// A check of the files, to its end.
fn damage_of(options: &DatabaseOptions, running: Option<&DatabaseHandle>) -> Damage {
    let mut check = DatabaseCheck::begin(options.clone(), running).expect("there are files");
    while check.step().expect("there are files").is_some() {}
    let damage = check.damage().expect("there are files");
    damage.expect("nothing is written meanwhile")
}

/// The files of a directory with this ending, the newest last.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_such = |path: &PathBuf| path.to_string_lossy().ends_with(ending);
    let mut paths: Vec<_> = paths.filter(is_such).collect();
    paths.sort();
    paths
}

/// Turns a bit, or turns it back.
fn turn(path: &Path, byte: usize) {
    let mut bytes = std::fs::read(path).expect("it is there");
    bytes[byte] ^= 4;
    std::fs::write(path, bytes).expect("it is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_named_and_mended() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (packs, commons) = (Arc::new(Packs::default()), commons());
    let options = || options(&path, &packs, &commons);
    // Two snapshots, each of a stop, and a log behind them.
    let database = create(options()).await;
    insert_all(&database, 0..10, 1_000).await;
    stop(database).await;
    let database = open(options()).await;
    insert_all(&database, 10..20, 1_000).await;
    stop(database).await;
    let database = open(options()).await;
    insert_all(&database, 20..22, 1_000).await;
    stop(database).await;
    assert!(damage_of(&options(), None).is_empty());
    let packs_of = || files(&path.join("snapshots"), ".pack");
    assert_eq!(packs_of().len(), 2);
    let [older, newest] = [packs_of()[0].clone(), packs_of()[1].clone()];
    turn(&older, 1_000);
    assert!(damage_of(&options(), None).is_empty(), "it is not needed");
    turn(&older, 1_000);
    turn(&newest, 1_000);
    let texts = damage_of(&options(), None).texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let text = &texts[0];
    assert!(
        text.contains(&newest.display().to_string()) && text.ends_with("[LC0521]"),
        "{text}"
    );
    assert!(text.contains(" is damaged at byte "), "{text}");
    turn(&newest, 1_000);
    let segment = files(&path.join("log"), ".segment").remove(0);
    turn(&segment, 4_200);
    let texts = damage_of(&options(), None).texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(
        texts[0].contains(&segment.display().to_string()),
        "{texts:?}"
    );
    assert!(texts[0].ends_with("[LC0503]"), "{texts:?}");
    turn(&segment, 4_200);

    // A database that is open has a new one written, also where nothing has come since.
    let database = open(options()).await;
    assert!(damage_of(&options(), Some(&database)).is_empty());
    let written = || database.metrics().snapshots.times.count();
    // All of the last segment is read whatever snapshots there are, and a repair needs those from before.
    let segment = files(&path.join("log"), ".segment").pop();
    let segment = segment.expect("there is one");
    turn(&segment, 4_200);
    let damage = damage_of(&options(), Some(&database));
    assert!(damage.log.is_some() && damage.snapshots.is_empty());
    database.mend(damage);
    turn(&segment, 4_200);
    let _released = Released(packs.clone());
    for snapshots in 1..=2 {
        let damaged = packs_of().pop().expect("there are some");
        turn(&damaged, 1_000);
        let damage = damage_of(&options(), Some(&database));
        assert_eq!(damage.snapshots.len(), 1, "{damage:?}");
        let again = damage_of(&options(), Some(&database));
        packs.hold(true);
        let begun = packs.begun();
        database.mend(damage);
        until(|| packs.begun() > begun).await;
        // Wanted again while it is written: the next one would be the same.
        if snapshots == 1 {
            database.mend(again);
        }
        packs.hold(false);
        until(|| written() == snapshots).await;
        until(|| !packs_of().contains(&damaged)).await;
        assert!(damage_of(&options(), Some(&database)).is_empty());
    }
    assert_eq!(database.metrics().snapshots.failed, 0);
    stop(database).await;
    let database = open(options()).await;
    assert_eq!(database.metrics().replayed.transactions, 0);
    assert_eq!(rows(&database).await, json!(22));
    // Behind the newest snapshot it gets one, so that a backup can be made, and not one more each time.
    let durable = database.stats().durable_offset;
    insert_all(&database, 22..23, 1_000).await;
    until(|| database.stats().durable_offset > durable).await;
    let bytes = std::fs::read(&segment).expect("it is there");
    let last = bytes.iter().rposition(|byte| *byte == b'x').expect("a row");
    turn(&segment, last);
    let damage = damage_of(&options(), Some(&database));
    assert!(damage.log_fails_behind, "{damage:?}");
    database.mend(damage);
    until(|| database.metrics().snapshots.times.count() == 1).await;
    let damage = damage_of(&options(), Some(&database));
    assert!(
        damage.log.is_some() && !damage.log_fails_behind,
        "{damage:?}"
    );
    turn(&segment, last);
    // What the disk refuses to replace, the next one replaces.
    let damaged = packs_of().pop().expect("there are some");
    turn(&damaged, 1_000);
    packs.fails.store(true, Ordering::SeqCst);
    database.mend(damage_of(&options(), Some(&database)));
    until(|| database.metrics().snapshots.failed == 1).await;
    packs.fails.store(false, Ordering::SeqCst);
    insert_all(&database, 23..28, 30_000).await;
    until(|| !packs_of().contains(&damaged)).await;
    stop(database).await;
}

/// A stop is not held up by a slow disk, and what it gives up is replayed.
#[tokio::test(flavor = "multi_thread")]
async fn the_snapshot_of_a_stop_has_its_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let packs = Arc::new(Packs::default());
    // Its five seconds are 50 ms here.
    let commons = Commons::new(OtherMachine::hurried(100), 1 << 30, 2);
    let mut slow = options(&path, &packs, &commons);
    slow.limits.snapshot_log_bytes = 1 << 30;
    let database = create(slow).await;
    insert_all(&database, 0..16, 500_000).await;
    stop(database).await;
    packs.write_ms.store(20, Ordering::SeqCst);
    let database = open(options(&path, &packs, &commons)).await;
    // The log that it has read makes one due at once; that one is given up by the stop.
    stop(database).await;
    assert!(packs.begun() >= 1);
    packs.write_ms.store(0, Ordering::SeqCst);
    let database = open(options(&path, &packs, &commons)).await;
    assert!(database.metrics().replayed.transactions >= 16);
    assert_eq!(rows(&database).await, json!(16));
    stop(database).await;
}

/// A database that waits for a turn goes on without one, and gets it later.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_writes_two_snapshots_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let (packs, commons) = (Arc::new(Packs::default()), commons());
    packs.hold(true);
    let _released = Released(packs.clone());
    let mut databases = Vec::new();
    for number in 0..4 {
        let path = directory.path().join(format!("db{number}"));
        let database = create(options(&path, &packs, &commons)).await;
        insert_all(&database, 0..4, 30_000).await;
        databases.push(database);
    }
    until(|| packs.begun() >= 2).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(packs.begun(), 2);
    for database in &databases {
        insert_all(database, 4..6, 100).await;
    }
    packs.hold(false);
    let written = |database: &DatabaseHandle| database.metrics().snapshots.times.count();
    until(|| databases.iter().all(|database| written(database) == 1)).await;
    for database in databases {
        assert_eq!(rows(&database).await, json!(6));
        stop(database).await;
    }
}

/// A database whose writer waits for the snapshot that `packs` holds, since it changes all rows. The last is a task that does it.
async fn create_waiting(
    path: &Path,
    packs: &Arc<Packs>,
) -> (DatabaseOptions, DatabaseHandle, JoinHandle<()>) {
    packs.hold(true);
    let mut options = options(path, packs, &commons());
    // Some 40 pages, of which the first MiB is gathered before any is written.
    options.limits.snapshot_log_bytes = 159 * 15_000;
    options.limits.snapshot_copied_bytes_max = 2 * 65_536;
    let database = create(options.clone()).await;
    insert_all(&database, 0..160, 15_000).await;
    until(|| packs.begun() == 1).await;
    let changed = {
        let database = database.clone();
        tokio::spawn(async move {
            for id in 0..160 {
                let text = format!("UPDATE t SET text = 'short' WHERE id = {id}");
                let updated = common::tables::sql(&database, OWNER, &text).await;
                updated.expect("the row is there");
            }
        })
    };
    until(|| database.metrics().snapshots.held_rounds > 0).await;
    assert!(!changed.is_finished());
    (options, database, changed)
}

/// Where all changes while a slow disk writes a snapshot, calls wait for the disk, and the database is not kept twice.
#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_a_snapshot_for_which_much_was_copied() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let packs = Arc::new(Packs::default());
    let _released = Released(packs.clone());
    let (options, database, changed) = create_waiting(&path, &packs).await;
    packs.hold(false);
    changed.await.expect("all are changed");
    until(|| database.metrics().snapshots.times.count() > 0).await;
    stop(database).await;
    let database = open(options).await;
    let text = "SELECT COUNT(*) AS n FROM t WHERE text = 'short'";
    let found = common::tables::sql(&database, OWNER, text).await;
    assert_eq!(found.expect("rows").0[0][0], json!(160));
    stop(database).await;
}

/// A stop gives up the snapshot for which the writer waits, and does not wait for its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_snapshot_with_the_writer() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let packs = Arc::new(Packs::default());
    let _released = Released(packs.clone());
    let (options, database, changed) = create_waiting(&path, &packs).await;
    // One that is suspended writes none at its end.
    let mut stopped = pin!(database.clone().shutdown(ShutdownReason::Suspended));
    let has_ended = tokio::select! {
        biased;
        _ = &mut stopped => true,
        () = std::future::ready(()) => false,
    };
    packs.hold(false);
    if !has_ended {
        stopped.await;
    }
    // The call that waited was refused, unless it was the last.
    drop(changed.await);
    let metrics = database.metrics().snapshots;
    assert_eq!((metrics.times.count(), metrics.failed), (0, 0));
    assert!(files(&path.join("snapshots"), ".pack").is_empty());
    drop(database);
    let database = open(options).await;
    assert_eq!(rows(&database).await, json!(160));
    stop(database).await;
}

/// A snapshot that the disk refuses holds nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_when_the_snapshot_for_which_they_wait_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let packs = Arc::new(Packs::default());
    let _released = Released(packs.clone());
    let (_, database, changed) = create_waiting(&path, &packs).await;
    packs.fails.store(true, Ordering::SeqCst);
    packs.hold(false);
    changed.await.expect("all are changed");
    assert!(database.metrics().snapshots.failed > 0);
    packs.fails.store(false, Ordering::SeqCst);
    stop(database).await;
}

/// The files of a database that has failed are given back before it counts as ended, also while a snapshot is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_failed_during_a_snapshot_opens_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db");
    let (packs, commons) = (Arc::new(Packs::default()), commons());
    packs.hold(true);
    let _released = Released(packs.clone());
    let database = create(options(&path, &packs, &commons)).await;
    // A round may not hear of the two before it.
    insert_all(&database, 0..5, 30_000).await;
    until(|| packs.begun() == 1).await;
    // The module takes it for granted that the key is free.
    insert(&database, 0, 10)
        .await
        .expect_err("the writer panics");
    let released = packs.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        released.hold(false);
    });
    database.ended().await;
    let database = open(options(&path, &packs, &commons)).await;
    assert_eq!(rows(&database).await, json!(5));
    insert_all(&database, 5..7, 30_000).await;
    stop(database).await;
}
