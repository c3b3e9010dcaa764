//! Backups of a running database, databases that are brought back, and databases that follow another one: any place of the log, byte for
//! byte what a replay gives.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::common::publishing::{publish, stop};
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::{caller, open, OWNER, STRANGER};
use lightcone_accounts::{Account, Kind};
use lightcone_backup::{Decoder, Frame, Head, Item, ObjectHash, Place, SnapshotHead};
use lightcone_database::{
    BackupAfter, CallArgs, Caller, Commons, DatabaseHandle, DatabaseOptions, HostKind, Import,
    JsonRows, Machine, MemoryMax, Restore, RestoreError, Retained, Rights, SqlError,
};
use lightcone_engine::{Datastore, TableHash, ST_MODULE_ID};
use lightcone_log::{LocalLog, LogOffset, LogOptions};
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{Identity, TableId, TimeDuration, Timestamp};
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
    // What does not change comes once, with the first snapshot that there is.
    let all = came.iter().filter(|objects| **objects >= 64);
    assert!(all.count() <= 1, "{came:?}");
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

/// With small segments, and no snapshot but those at stops.
fn options_of_kept(directory: &Path) -> DatabaseOptions {
    let mut options = options(directory);
    options.limits.log_segment_bytes = 16 << 10;
    options.limits.log_preallocate = false;
    options
}

/// Opens the database at a second, changes a few segments, and stops it, so that a snapshot is written. What is retained then, and where
/// the log ends.
async fn live(options: &DatabaseOptions, second: u32) -> (Retained, u64) {
    let clock = options
        .commons
        .test_clock(Timestamp(i64::from(second) * 1_000_000));
    let options = DatabaseOptions {
        test_clock: Some(clock),
        ..options.clone()
    };
    let database = open(options).await;
    for number in 0..8 {
        insert(&database, second * 100 + number, 6_000).await;
    }
    stop(database.clone()).await;
    (database.retained(), database.stats().durable_offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_kept_for_its_time() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("db");
    let mut options = options_of_kept(&path);
    options.limits.history_kept_for = Duration::from_secs(25);
    stop(create_with(options.clone()).await).await;
    let (mut ends, mut states, mut last) = (Vec::new(), Vec::new(), Retained::default());
    for second in [10, 20, 30, 40, 50] {
        let (retained, end) = live(&options, second).await;
        (last, ends) = (retained, [ends, vec![end]].concat());
        states.push(hashes(&path, options.identity, LogOffset::MAX));
        if second == 20 {
            assert_eq!((retained.from, retained.since), (LogOffset::FIRST, None));
        }
    }
    // At second 25 it was as it was after second 20.
    assert_eq!(last.from.get(), ends[1], "{ends:?}");
    assert_eq!(last.since, Some(Timestamp(20_000_000)));
    for (end, state) in ends.iter().zip(&states).skip(1) {
        let end = LogOffset::new(*end);
        assert_eq!(hashes(&path, options.identity, end), *state);
    }
    // The same after it was opened anew, and as always where nothing is said.
    let database = open(options.clone()).await;
    assert_eq!(database.retained(), last);
    stop(database).await;
    options.limits.history_kept_for = Duration::ZERO;
    let (retained, _) = live(&options, 60).await;
    assert_eq!(retained.from.get(), ends[4]);
    // Nor is more kept than has room.
    options.limits.history_kept_for = Duration::from_secs(1_000);
    options.limits.history_bytes_max = 1;
    let (_, end) = live(&options, 70).await;
    let (retained, _) = live(&options, 80).await;
    assert_eq!((retained.from.get(), retained.lost), (end, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_waits_for_a_backup() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("db");
    let mut options = options_of_kept(&path);
    options.limits.history_kept_until_backed_up = true;
    stop(create_with(options.clone()).await).await;
    for second in 1..5 {
        let (retained, _) = live(&options, second).await;
        assert_eq!(retained.from, LogOffset::FIRST);
    }
    let snapshots = SnapshotStore::open(&path.join("snapshots")).expect("snapshots");
    assert_eq!(snapshots.offsets().expect("a list").len(), 2);
    let database = open(options.clone()).await;
    let mut kept = Kept::default();
    kept.go_on(&database, true).await;
    let elsewhere = Place {
        hash: Place::default().hash,
        ..kept.end
    };
    let refused = database.note_backed_up(elsewhere).await;
    let refused = refused.expect_err("it is another history").to_string();
    assert!(refused.contains("[LC0512]"), "{refused}");
    assert_eq!(database.retained().backed_up, None);
    database.note_backed_up(kept.end).await.expect("noted");
    stop(database).await;
    // What it has goes, and nothing behind it.
    let mut retained = Retained::default();
    for second in 5..8 {
        retained = live(&options, second).await.0;
    }
    assert_eq!(retained.backed_up, Some(kept.end.offset));
    assert!(retained.from > LogOffset::FIRST && retained.lost == 0);
    let database = open(options.clone()).await;
    assert!(!kept.go_on(&database, false).await.1, "there is a gap");
    database.note_backed_up(kept.end).await.expect("noted");
    stop(database).await;
    // Unless it is too much.
    options.limits.history_bytes_max = 1;
    let mut lost = 0;
    for second in 8..11 {
        lost += live(&options, second).await.0.lost;
    }
    assert!(lost > 0);
    let database = open(options.clone()).await;
    assert!(kept.go_on(&database, false).await.1, "there is a gap");
    stop(database).await;
    // A damaged note is none: then more is kept.
    std::fs::write(path.join("history"), b"backed-up").expect("written");
    let database = open(options).await;
    assert_eq!(database.retained().backed_up, None);
    stop(database).await;
}

/// Every state that is kept, by number and by moment, whatever has become of the tables since.
#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_queried() {
    const BEGIN_US: i64 = 1_700_000_000_000_000;
    const SECOND_US: i64 = 1_000_000;
    let at = |us: i64| Timestamp(BEGIN_US + us).to_rfc3339();
    let root = tempfile::tempdir().expect("a directory");
    let mut options = options(&root.path().join("db"));
    options.limits.log_segment_bytes = 64 << 10;
    options.test_clock = Some(options.commons.test_clock(Timestamp(BEGIN_US)));
    let mut program = json!({
        "tables": { "t": [["id", "U32"], ["text", "String"]], "gone": [["x", "U32"]] },
        "uniqueKeys": { "t": "id" },
        "views": { "some": { "query": "SELECT * FROM t WHERE id = 1", "table": "t" } },
    });
    let database = create_tables(options, &program).await;
    for id in 0..10 {
        database
            .advance(TimeDuration(SECOND_US))
            .await
            .expect("it runs");
        insert(&database, id, 2_000).await;
    }
    let counted = async |table: &str, as_of: &str| {
        let text = format!("SELECT COUNT(*) AS n FROM {table} AS OF {as_of}");
        Ok::<_, String>(sql(&database, OWNER, &text).await?.0[0][0].clone())
    };
    let refused = async |table: &str, as_of: &str, with: &str| {
        let text = counted(table, as_of).await.expect_err(as_of);
        assert!(text.contains(with), "{as_of}: {text}");
        text
    };
    for number in 1..=11 {
        let rows = counted("t", &number.to_string()).await;
        assert_eq!(rows, Ok(json!(number - 1)), "before transaction {number}");
        let (exactly, later) = ((number - 1) * SECOND_US, number * SECOND_US - 1);
        for moment in [exactly, later.min(10 * SECOND_US)] {
            let rows = counted("t", &format!("SYSTEM TIME '{}'", at(moment))).await;
            assert_eq!(rows, Ok(json!(number - 1)), "{moment}");
        }
    }
    // Nothing before the first transaction, and nothing that is not there yet.
    refused("t", "0", "[LC0419]").await;
    refused(
        "t",
        "12",
        "the newest one is that before transaction 11 [LC0419]",
    )
    .await;
    refused(
        "t",
        &format!("'{}'", at(11 * SECOND_US)),
        "of the future [LC0419]",
    )
    .await;
    refused("t", &format!("'{}'", at(-1)), "[LC0419]").await;
    refused("some", "5", "[LC0418]").await;

    // A table that is gone, rows that are gone; joins and conditions.
    program["tables"]
        .as_object_mut()
        .expect("tables")
        .remove("gone");
    publish(&database, &program, true).await.expect("a plan");
    sql(&database, OWNER, "DELETE FROM t WHERE id < 10")
        .await
        .expect("they go");
    assert_eq!(counted("t", "11").await, Ok(json!(10)));
    assert_eq!(counted("gone", "11").await, Ok(json!(0)));
    refused("gone", "13", "no such table: `gone`").await;
    let text =
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id AS OF 4 WHERE b.id > 0 ORDER BY a.id DESC";
    assert_eq!(
        sql(&database, OWNER, text).await.expect("rows").0,
        json!([[2], [1]])
    );

    // Only owners: who writes rows, or sees all of them, sees no deleted ones.
    for rights in [Rights::Public, Rights::Reads, Rights::Writes] {
        let who = Caller {
            rights,
            ..caller(STRANGER)
        };
        let text = "SELECT * FROM t AS OF 4".to_owned();
        let answer = database.sql(who, text, true, JsonRows::default()).await;
        let is_refused = matches!(&answer, Err(SqlError::Query(why)) if why.contains("[LC0418]"));
        assert!(is_refused, "{rights:?}");
    }
    // A client who goes away is no hindrance to the next one.
    let run = database.sql(
        caller(OWNER),
        "SELECT * FROM t AS OF 2".to_owned(),
        true,
        JsonRows::default(),
    );
    let _ = tokio::time::timeout(Duration::ZERO, run).await;
    assert_eq!(counted("t", "2").await, Ok(json!(1)));

    // What is trimmed is gone, and the answer says what is left.
    let rows_from = database.stats().durable_offset;
    for id in 100.. {
        assert!(id < 400, "the log is never trimmed");
        database
            .advance(TimeDuration(SECOND_US))
            .await
            .expect("it runs");
        insert(&database, id, 8_000).await;
        // By turns, as a state is kept for a while.
        let first = (1 + id % 2).to_string();
        let Err(why) = counted("t", &first).await else {
            continue;
        };
        let oldest = why.strip_prefix(&format!("the state before transaction {first} is not kept any more: the oldest one is that before transaction "));
        let oldest = oldest.and_then(|rest| rest.strip_suffix(" [LC0419]"));
        let (oldest, time) = oldest
            .and_then(|rest| rest.split_once(", of "))
            .expect(&why);
        let found = counted("t", oldest).await;
        let found_then = counted("t", &format!("'{time}'")).await;
        // From when the snapshot was begun on, also before the next transaction.
        let begun = database.retained().since.map(|since| since.to_rfc3339());
        let found_begun = counted("t", &format!("'{}'", begun.unwrap_or_default())).await;
        // A snapshot that was being written may have taken the place of that one by now.
        if let (Ok(found), Ok(found_then), Ok(_)) = (found, found_then, found_begun) {
            let rows = oldest.parse::<u64>().expect("a number") - rows_from;
            assert_eq!((found, found_then), (json!(rows), json!(rows + 1)));
            break;
        }
    }
    refused("t", "'yesterday'", "cannot be parsed as type `Timestamp`").await;
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_of_the_past_have_bounds() {
    let root = tempfile::tempdir().expect("a directory");
    let commons_with = |free_bytes| {
        let process = Account::root(Kind::Process, usize::MAX);
        let memory_max = MemoryMax {
            clients_bytes: 1 << 30,
            procedures_bytes: 1 << 30,
            free_bytes,
        };
        Commons::below(process, Machine::current(), memory_max, 2, None)
    };
    for (name, free_bytes, time_max, code) in [
        (
            "small",
            (|| 8 << 20) as fn() -> usize,
            Duration::from_secs(30),
            "[LC0420]",
        ),
        (
            "brief",
            (|| usize::MAX) as fn() -> usize,
            Duration::ZERO,
            "[LC0708]",
        ),
    ] {
        let mut options = options(&root.path().join(name));
        options.commons = commons_with(free_bytes);
        options.limits.read_time_max = time_max;
        let database = create_with(options).await;
        for id in 0..80 {
            insert(&database, id, 65_000).await;
        }
        let ask = async |text: &str| {
            let rows = JsonRows::default();
            match database
                .sql(caller(OWNER), text.to_owned(), true, rows)
                .await
            {
                Ok(_) => String::new(),
                Err(SqlError::Query(why) | SqlError::Busy(why)) => why,
                Err(error) => panic!("{error:?}"),
            }
        };
        let why = ask("SELECT id FROM t AS OF 81").await;
        assert!(why.contains(code), "{name}: {why}");
        let why = ask("SELECT id FROM t AS OF 2").await;
        assert_eq!(why.contains(code), name == "brief", "{name}: {why}");
        stop(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_database_with_many_questions_about_the_past_does_not_hold_up_others() {
    let root = tempfile::tempdir().expect("a directory");
    let first = options(&root.path().join("first"));
    let second = DatabaseOptions {
        identity: RESTORED,
        commons: first.commons.clone(),
        ..options(&root.path().join("second"))
    };
    let (first, second) = (create_with(first).await, create_with(second).await);
    for database in [&first, &second] {
        insert(database, 1, 10).await;
        insert(database, 2, 10).await;
    }
    let answered = std::sync::Mutex::new(Vec::new());
    let ask = async |database: &DatabaseHandle, name: &'static str, as_of: u32| {
        let text = format!("SELECT id FROM t AS OF {as_of}");
        sql(database, OWNER, &text).await.expect("rows");
        answered.lock().expect("no panic").push(name);
    };
    tokio::join!(
        ask(&first, "first", 2),
        ask(&first, "first", 3),
        ask(&first, "first", 2),
        ask(&second, "second", 2)
    );
    let answered = answered.into_inner().expect("no panic");
    assert_eq!(answered, ["first", "second", "first", "first"]);
    stop(first).await;
    stop(second).await;
}

/// A right that was taken away meanwhile, or a database that was deleted, gives no rows.
#[tokio::test(flavor = "multi_thread")]
async fn rights_are_asked_for_again_behind_the_wait_for_the_past() {
    let root = tempfile::tempdir().expect("a directory");
    let options = options(root.path());
    let may = Arc::new(AtomicBool::new(true));
    let now = may.clone();
    let rights = move |_: &Identity, _: &Identity| match now.load(Ordering::SeqCst) {
        true => Rights::All,
        false => Rights::Writes,
    };
    options.commons.set_rights(Arc::new(rights));
    let database = create_with(options).await;
    insert(&database, 1, 10).await;
    let text = "SELECT id FROM t AS OF 2";
    let ask = async || {
        let who = Caller {
            rights: Rights::All,
            ..caller(STRANGER)
        };
        let rows = JsonRows::default();
        let answer = database.sql(who, text.to_owned(), true, rows).await;
        may.store(false, Ordering::SeqCst);
        answer.map(|outcome| outcome.text())
    };
    // The second one waits for the first one.
    let (first, second) = tokio::join!(ask(), ask());
    assert_eq!(first.expect("rows"), "[[1]]");
    let is_refused = matches!(&second, Err(SqlError::Query(why)) if why.contains("[LC0418]"));
    assert!(is_refused, "{second:?}");
    // Owners have all rights in any case. The state is still there, and the database is not.
    sql(&database, OWNER, text).await.expect("rows");
    stop(database.clone()).await;
    let rows = JsonRows::default();
    let gone = database.sql(caller(OWNER), text.to_owned(), true, rows);
    assert!(matches!(gone.await, Err(SqlError::ModuleGone)));
    // Nor is a right missing then.
    let gone = ask().await;
    assert!(matches!(gone, Err(SqlError::ModuleGone)), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_has_no_past() {
    let root = tempfile::tempdir().expect("a directory");
    let mut options = options(root.path());
    options.in_memory = true;
    let database = create_with(options).await;
    let why = sql(&database, OWNER, "SELECT id FROM t AS OF 1").await;
    let why = why.expect_err("it is refused");
    assert!(why.contains("[LC0418]"), "{why}");
    stop(database).await;
}

/// Nothing of the program runs, counters go on behind the rows, and what is made is a database like others.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_imported() {
    let root = tempfile::tempdir().expect("a directory");
    let program = json!({
        "tables": {
            "t": [["id", "U64"], ["text", "String"], ["real", "F64"], ["who", "Identity"], ["at", "Timestamp"], ["bytes", "Bytes"]],
            "empty": [["id", "U32"]],
        },
        "uniqueKeys": { "t": "id" },
        "autoInc": { "t": "id" },
        "events": ["empty"],
    });
    let database = create_tables(options(&root.path().join("db")), &program).await;
    let values = "(0, 'a', 1.5, 0xc200da2d6ddb6c0beef0bbaafacffe5f0649c86b8d19411e3219066a6d0e5123, '2026-11-22T10:00:00Z', 0xabcd)";
    for _ in 0..3 {
        let text = format!("INSERT INTO t (id, text, real, who, at, bytes) VALUES {values}");
        sql(&database, OWNER, &text).await.expect("a row");
    }
    let asked = "SELECT * FROM t ORDER BY id";
    let rows = sql(&database, OWNER, asked).await.expect("rows").0;
    let def = database.module_def();
    let bytes = program.to_string().into_bytes();
    let import = Import::new(&def, bytes.clone(), HostKind::Wasm, Timestamp(1));
    let (mut import, mut items) = import.expect("the tables are valid");
    assert!(import.table("empty").is_none() && import.table("st_table").is_none());
    let table = import.table("t").expect("it is there");
    for row in rows.as_array().expect("a list") {
        let frame = import.insert(&table, &row.to_string()).expect("a row");
        items.extend(frame.unwrap_or_default());
    }
    let other = rows[0].to_string().replace("\"a\"", "\"b\"");
    for wrong in ["[1]", "{", "null", other.as_str()] {
        assert!(import.insert(&table, wrong).is_err(), "{wrong}");
    }
    let others = Import::new(&def, bytes, HostKind::Wasm, Timestamp(1));
    let zero = rows[0].to_string().replacen('1', "0", 1);
    let drawn = others.expect("as before").0.insert(&table, &zero);
    let why = drawn.expect_err("it would get a number").to_string();
    assert!(why.contains("counts by itself"), "{why}");
    // So many that there are several frames.
    for id in 100..110 {
        let row = json!([id, "x".repeat(1 << 20), 0.0, rows[0][3], rows[0][4], ""]);
        let frame = import.insert(&table, &row.to_string()).expect("a row");
        items.extend(frame.unwrap_or_default());
    }
    let (head, last) = import.finish().expect("it ends");
    let items = Decoder::all(&[head, items, last].concat()).expect("items");
    assert!(items.len() > 4, "{}", items.len());
    let imported = root.path().join("imported");
    restore(&imported, &items).expect("it is taken");
    let copy = open(options_of_restored(&imported)).await;
    let first = sql(&copy, STRANGER, &format!("{asked} LIMIT 3")).await;
    assert_eq!(first.expect("rows").0, rows);
    let text = format!("INSERT INTO t (id, text, real, who, at, bytes) VALUES {values}");
    sql(&copy, STRANGER, &text).await.expect("a row");
    let last = sql(&copy, STRANGER, "SELECT id FROM t ORDER BY id DESC LIMIT 1").await;
    assert_eq!(last.expect("a row").0, json!([[110]]));
    stop(copy).await;
    stop(database).await;
}
