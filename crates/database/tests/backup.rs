//! Backups of a running database, databases that are brought back, and databases that follow another one: any place of the log, byte for
//! byte what a replay gives.

mod common;
mod followers;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use common::publishing::stop;
use common::tables::{create_tables, sql, table_options};
use common::{caller, open, OWNER, STRANGER};
use lightcone_backup::{Decoder, Frame, Head, Item, ObjectHash, Place, SnapshotHead};
use lightcone_database::{
    BackupAfter, CallArgs, DatabaseHandle, DatabaseOptions, Restore, RestoreError,
};
use lightcone_engine::{Datastore, TableHash, ST_MODULE_ID};
use lightcone_log::{LocalLog, LogOffset, LogOptions};
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{Identity, TableId};
use serde_json::{json, Value};

const RESTORED: Identity = Identity::from_le_bytes([2; 32]);

fn options(directory: &Path) -> DatabaseOptions {
    let mut options = table_options(directory);
    options.limits.snapshot_log_bytes = 64 << 10;
    options
}

/// The same engine, with another identity and owner.
fn options_of_restored(directory: &Path) -> DatabaseOptions {
    std::fs::create_dir_all(directory).expect("a directory");
    DatabaseOptions {
        identity: RESTORED,
        owner: STRANGER,
        ..options(directory)
    }
}

async fn create(directory: &Path) -> DatabaseHandle {
    create_with(options(directory)).await
}

async fn create_with(options: DatabaseOptions) -> DatabaseHandle {
    let program = json!({
        "tables": { "t": [["id", "U32"], ["text", "String"]] },
        "uniqueKeys": { "t": "id" },
    });
    create_tables(options, &program).await
}

async fn insert(database: &DatabaseHandle, id: u32, bytes: usize) {
    let changes = json!({ "t": { "inserts": [[id, "x".repeat(bytes)]] } });
    let args = CallArgs::Json(json!([changes.to_string()]).to_string());
    let called = database.call(caller(OWNER), "change", args).await;
    called.expect("the key is free");
}

async fn rows(database: &DatabaseHandle, who: Identity) -> Value {
    let text = "SELECT COUNT(*) AS n FROM t";
    let rows = sql(database, who, text).await;
    rows.expect("rows").0[0][0].clone()
}

/// Everything that is sent, item by item.
async fn items(database: &DatabaseHandle, after: BackupAfter) -> Vec<Item> {
    let mut backup = database.backup(after).await.expect("it begins");
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        while let Some(part) = backup.read().expect("it goes on") {
            bytes.extend_from_slice(part.as_ref());
        }
        bytes
    });
    Decoder::all(&read.await.expect("no panic")).expect("items")
}

/// What has come of a database: all its frames and its newest snapshot.
#[derive(Default)]
struct Kept {
    from: Place,
    frames: Vec<Frame>,
    snapshot: Option<SnapshotHead>,
    objects: Vec<Vec<u8>>,
    end: Place,
}

impl Kept {
    /// Asks for what is behind this. Returns how many objects came, and whether it begins anew.
    async fn go_on(&mut self, database: &DatabaseHandle, is_first: bool) -> (usize, bool) {
        let objects: HashSet<_> = self.objects.iter().map(|o| ObjectHash::of(o)).collect();
        let after = BackupAfter {
            place: (!is_first).then_some(self.end),
            snapshot: self.snapshot.as_ref().map(|head| head.offset.get()),
            objects,
        };
        let (mut came, mut begins) = (0, false);
        for item in items(database, after).await {
            match item {
                Item::Head(head) if head.begins_because.is_some() => {
                    begins = true;
                    self.frames.clear();
                    self.snapshot = None;
                    (self.from, self.end) = (head.from, head.from);
                }
                Item::Head(head) => assert_eq!(head.from, self.end),
                Item::Frame(frame) => {
                    self.end = self.end.behind(&frame).expect("it follows");
                    self.frames.push(frame);
                }
                Item::Snapshot(head) => self.snapshot = Some(head),
                Item::Object(object) => {
                    came += 1;
                    self.objects.push(object);
                }
                Item::End(place) => assert_eq!(place, self.end),
                Item::Pack(_) | Item::Failed(_) => panic!("{item:?}"),
            }
        }
        (came, begins)
    }

    /// What brings back the state before the transaction `end`.
    fn items_until(&self, end: LogOffset) -> Vec<Item> {
        let snapshot = self.snapshot.as_ref().filter(|head| head.offset <= end);
        let start = snapshot.map_or(LogOffset::FIRST, |head| head.offset);
        let (mut from, mut place) = (None, self.from);
        let mut frames = Vec::new();
        for frame in &self.frames {
            if frame.end() > start && frame.first_offset < end {
                from = from.or(Some(place));
                frames.push(Item::Frame(frame.clone()));
            }
            if frame.first_offset < end {
                place = place.behind(frame).expect("it follows");
            }
        }
        let from = from.unwrap_or(place);
        let mut items = vec![Item::Head(Head {
            format: lightcone_backup::FORMAT,
            database: "00".repeat(32),
            time: 0,
            from,
            end: end.get(),
            begins_because: None,
        })];
        if let Some(head) = snapshot {
            items.push(Item::Snapshot(head.clone()));
            let needed: HashSet<_> = head.objects.iter().collect();
            let objects = self.objects.iter();
            let objects = objects.filter(|object| needed.contains(&ObjectHash::of(object)));
            items.extend(objects.cloned().map(Item::Object));
        }
        items.extend(frames);
        items.push(Item::End(place));
        items
    }
}

fn restore(directory: &Path, items: &[Item]) -> Result<(), RestoreError> {
    restore_within(directory, items, u64::MAX)
}

fn restore_within(directory: &Path, items: &[Item], bytes_max: u64) -> Result<(), RestoreError> {
    let mut restore = Restore::begin(options_of_restored(directory), move || bytes_max)?;
    let bytes: Vec<u8> = items.iter().flat_map(Item::to_vec).collect();
    for part in bytes.chunks(100_000) {
        restore.take(part)?;
    }
    restore.finish().map(drop)
}

/// The hashes of all tables of what is on the disk before the transaction `end`, but of the row that says whose it is.
fn hashes(directory: &Path, identity: Identity, end: LogOffset) -> Vec<(TableId, TableHash)> {
    let log_options = LogOptions {
        database: identity.to_le_bytes(),
        ..LogOptions::default()
    };
    let (log, _) = LocalLog::open(&directory.join("log"), log_options).expect("the log opens");
    let mut snapshots = SnapshotStore::open(&directory.join("snapshots")).expect("snapshots");
    let recovered = Datastore::recover_until(directory, &mut snapshots, &log, end);
    let (mut datastore, _) = recovered.expect("it recovers");
    let mut hashes = datastore.snapshot().hashes();
    hashes.retain(|(table, _)| *table != ST_MODULE_ID);
    hashes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_place_is_brought_back_as_a_replay_gives_it() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("db");
    let database = create(&path).await;
    let mut kept = Kept::default();
    let (_, begins) = kept.go_on(&database, true).await;
    assert!(begins && kept.snapshot.is_none(), "it is young");
    for id in 0..12 {
        insert(&database, id, 2_000).await;
    }
    assert_eq!(kept.go_on(&database, false).await, (0, false));
    stop(database).await;
    let end = kept.end.offset;
    assert_eq!(end, LogOffset::new(13));
    for number in 1..=end.get() {
        let place = LogOffset::new(number);
        let restored = root.path().join(format!("restored{number}"));
        restore(&restored, &kept.items_until(place)).expect("it is brought back");
        assert_eq!(
            hashes(&restored, RESTORED, LogOffset::MAX),
            hashes(&path, options(&path).identity, place),
            "before transaction {number}"
        );
    }
    // It opens, is its new owner's, and goes on.
    let restored = root.path().join("restored5");
    let database = open(options_of_restored(&restored)).await;
    assert_eq!(rows(&database, STRANGER).await, json!(4));
    let text = "SELECT database_identity, owner_identity FROM st_module";
    let row = sql(&database, STRANGER, text).await.expect("a row").0[0].to_string();
    // As numbers, without zeros in front.
    for identity in [RESTORED, STRANGER] {
        let hex = identity.to_hex();
        assert!(row.contains(hex.trim_start_matches('0')), "{row}");
    }
    insert(&database, 100, 10).await;
    stop(database).await;
    let database = open(options_of_restored(&restored)).await;
    assert_eq!(rows(&database, STRANGER).await, json!(5));
    // And it can be backed up itself.
    let mut again = Kept::default();
    again.go_on(&database, true).await;
    stop(database).await;
    let twice = root.path().join("twice");
    restore(&twice, &again.items_until(again.end.offset)).expect("it is brought back");
}

/// While calls go on; the second time only what has changed comes.
#[tokio::test(flavor = "multi_thread")]
async fn backups_under_load_are_small_and_consistent() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("db");
    let database = create(&path).await;
    // 4 MiB that do not change.
    for id in 0..64 {
        insert(&database, 1_000_000 + id, 65_000).await;
    }
    let (is_over, next) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let writing = tokio::spawn({
        let (database, is_over, next) = (database.clone(), is_over.clone(), next.clone());
        async move {
            while !is_over.load(Ordering::SeqCst) {
                let id = next.fetch_add(1, Ordering::SeqCst);
                insert(&database, id, 500).await;
            }
        }
    });
    let mut kept = Kept::default();
    let mut came = Vec::new();
    for number in 0..8 {
        let (objects, begins) = kept.go_on(&database, number == 0).await;
        assert_eq!(begins, number == 0);
        came.push(objects);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    is_over.store(true, Ordering::SeqCst);
    writing.await.expect("no panic");
    assert!(!kept.go_on(&database, false).await.1);
    stop(database).await;
    assert!(came[0] >= 64, "{came:?}");
    assert!(came[1..].iter().all(|objects| *objects < 64), "{came:?}");
    let restored = root.path().join("restored");
    let end = kept.end.offset;
    restore(&restored, &kept.items_until(end)).expect("it is brought back");
    assert_eq!(
        hashes(&restored, RESTORED, LogOffset::MAX),
        hashes(&path, options(&path).identity, end)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_history_begins_anew() {
    let root = tempfile::tempdir().expect("a directory");
    let database = create(&root.path().join("db")).await;
    insert(&database, 1, 10).await;
    let mut kept = Kept::default();
    kept.go_on(&database, true).await;
    stop(database).await;
    // As many transactions, and others.
    let database = create(&root.path().join("other")).await;
    insert(&database, 2, 10).await;
    assert!(kept.go_on(&database, false).await.1);
    let ahead = Place {
        offset: LogOffset::new(1_000),
        ..kept.end
    };
    kept.end = ahead;
    assert!(kept.go_on(&database, false).await.1);
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_backup_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let database = create(&root.path().join("db")).await;
    for id in 0..4 {
        insert(&database, id, 40_000).await;
    }
    let mut kept = Kept::default();
    // Until there is a snapshot.
    for number in 0..200 {
        kept.go_on(&database, number == 0).await;
        if kept.snapshot.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    insert(&database, 100, 10).await;
    kept.go_on(&database, false).await;
    stop(database).await;
    let whole = kept.items_until(kept.end.offset);
    assert!(matches!(whole[1], Item::Snapshot(_)) && whole.len() > 4);
    let mut number = 0;
    let mut refused = |items: &[Item]| {
        number += 1;
        let directory = root.path().join(format!("refused{number}"));
        let error = restore(&directory, items).expect_err("it is no backup");
        error.to_string()
    };
    // Each item is needed, and in its order.
    for gone in 0..whole.len() {
        let mut items = whole.clone();
        items.remove(gone);
        let error = refused(&items);
        assert!(error.contains("[LC"), "without item {gone}: {error}");
    }
    let mut twice = whole.clone();
    twice.push(whole[0].clone());
    assert!(refused(&twice).contains("[LC0550]"));
    let mut reversed = whole.clone();
    reversed.reverse();
    assert!(refused(&reversed).contains("[LC0550]"));
    assert!(refused(&[]).contains("[LC0550]"));
    // Bytes of pages, of the catalog and of frames.
    for nth in 1..whole.len() - 1 {
        for at in [0, 7, 40, 4_000] {
            let mut items = whole.clone();
            let bytes = match &mut items[nth] {
                Item::Object(bytes) => bytes,
                Item::Frame(frame) => &mut frame.payload,
                Item::Snapshot(head) => &mut head.engine,
                _ => continue,
            };
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x55;
                refused(&items);
            }
        }
    }
    // What no snapshot names.
    let mut more = whole.clone();
    more.insert(2, Item::Object(b"another".to_vec()));
    assert!(refused(&more).contains("more objects"));
    // More memory than there is.
    let directory = root.path().join("small");
    let error = restore_within(&directory, &whole, 1_000).expect_err("too large");
    assert!(error.to_string().contains("[LC0531]"), "{error}");
    restore(&root.path().join("whole"), &whole).expect("the whole one is one");
}

/// A transaction may have more bytes than a client may have asked for.
#[tokio::test(flavor = "multi_thread")]
async fn large_transactions_come_in_parts() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("db");
    let mut without_snapshots = options(&path);
    without_snapshots.limits.snapshot_log_bytes = u64::MAX;
    let database = create_with(without_snapshots.clone()).await;
    let rows: Vec<_> = (0..100).map(|id| json!([id, "x".repeat(60_000)])).collect();
    let changes = json!({ "t": { "inserts": rows } });
    let args = CallArgs::Json(json!([changes.to_string()]).to_string());
    let called = database.call(caller(OWNER), "change", args).await;
    called.expect("it fits");
    stop(database).await;
    without_snapshots.limits.client_bytes_max = 4 << 20;
    let database = open(without_snapshots).await;
    let mut kept = Kept::default();
    kept.go_on(&database, true).await;
    let frames = kept.frames.iter().map(|frame| frame.payload.len());
    assert!(frames.max() > Some(5 << 20));
    let end = kept.end.offset;
    stop(database).await;
    let restored = root.path().join("restored");
    restore(&restored, &kept.items_until(end)).expect("it is brought back");
    assert_eq!(
        hashes(&restored, RESTORED, LogOffset::MAX),
        hashes(&path, options(&path).identity, end)
    );
}
