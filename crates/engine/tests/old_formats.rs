//! Logs that earlier versions wrote are read as they were meant.
//!
//! Both fixtures have the transactions of [`live`]. `fixtures/log-records-1` was written by the last version that had no records of
//! schema changes; `fixtures/log-format-1`, in small segments and not closed, by the last one that wrote segments of format 1.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use lightcone_engine::{CommitOutput, Datastore};
use lightcone_log::{Frame, LocalLog, Log, LogError, LogOffset, LogOptions};
use lightcone_schema::ModuleDef;
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};

const TRANSACTIONS: u64 = 40;

fn definition() -> ModuleDef {
    module(vec![
        table("accounts", &[("id", T::U32), ("balance", T::I64)])
            .hash(&[0], true)
            .primary_key(0)
            .sequence(0),
        // Two unique indexes: rows are named by the first.
        table("people", &[("name", T::String), ("number", T::U64)])
            .btree(&[1], true)
            .btree(&[0], true),
        table("notes", &[("text", T::String), ("kind", T::U8)]).btree(&[1], false),
        table("happened", &[("what", T::String)]).event(),
    ])
}

/// The transaction with this number, in `datastore`.
fn transaction(datastore: &mut Datastore, number: u64) {
    let text = |what: &str| V::String(format!("{what} {number}").into());
    let small = number as u8 % 7;
    insert(datastore, "accounts", &[V::U32(0), V::I64(number as i64)]).expect("a row");
    insert(datastore, "people", &[text("person"), V::U64(number)]).expect("a row");
    insert(datastore, "notes", &[text("note"), V::U8(small)]).expect("a row");
    insert(datastore, "happened", &[text("something")]).expect("a row");
    let accounts = table_id(datastore, "accounts");
    let people = table_id(datastore, "people");
    let by_id = index_id(datastore, "accounts_id_idx_hash");
    let by_number = index_id(datastore, "people_number_idx_btree");
    let by_name = index_id(datastore, "people_name_idx_btree");
    let by_kind = index_id(datastore, "notes_kind_idx_btree");
    let mut generated = Vec::new();
    if number % 3 == 1 {
        let changed = row(&[V::U32(1), V::I64(-(number as i64))]);
        datastore
            .update(accounts, by_id, &changed, &mut generated)
            .expect("it is there");
        let longer = row(&[
            V::String(format!("person {number}, renamed").into()),
            V::U64(number),
        ]);
        datastore
            .update(people, by_number, &longer, &mut generated)
            .expect("it is there");
    }
    if number % 5 == 4 {
        // The key that names the row in the log changes.
        let moved = row(&[text("person"), V::U64(1000 + number)]);
        if datastore
            .update(people, by_name, &moved, &mut generated)
            .is_err()
        {
            let point = row(&[V::U64(number)]);
            datastore
                .delete_by_index_point(by_number, &point)
                .expect("a point");
        }
        datastore
            .delete_by_index_point(by_kind, &[small])
            .expect("a point");
        let gone = row(&[V::U32(number as u32 - 1)]);
        datastore
            .delete_by_index_point(by_id, &gone)
            .expect("a point");
    }
}

/// A database with all transactions.
fn live() -> Datastore {
    let mut datastore = creating(&definition());
    for number in 0..TRANSACTIONS {
        if number > 0 {
            datastore.begin();
        }
        transaction(&mut datastore, number);
        let mut output = CommitOutput::default();
        assert!(datastore.commit(&mut output).expect("the record fits"));
    }
    datastore
}

/// The segments of a fixture, on a disk of their own.
fn fixture(name: &str) -> SimStorage {
    let storage = SimStorage::new(1);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for file in std::fs::read_dir(fixtures.join(name)).expect("the fixture is there") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("it can be read");
        storage.put_file(&in_log(&path), bytes);
    }
    storage
}

fn in_log(path: &Path) -> PathBuf {
    Path::new("data/log").join(path.file_name().expect("a file has a name"))
}

fn open(storage: &SimStorage) -> Result<LocalLog, LogError> {
    let options = LogOptions {
        segment_bytes: 1 << 13,
        preallocate: false,
        ..LogOptions::default()
    };
    let storage = Arc::new(storage.clone());
    LocalLog::open_on(storage, Path::new("data/log"), options).map(|(log, _)| log)
}

fn segments(storage: &SimStorage) -> Vec<PathBuf> {
    let mut segments = storage.files();
    segments.retain(|path| path.extension().is_some_and(|e| e == "segment"));
    segments.sort();
    segments
}

fn recover(storage: &SimStorage, log: &LocalLog) -> Datastore {
    let storage = Arc::new(storage.clone());
    let snapshots = SnapshotStore::open_on(storage, Path::new("data/snapshots"));
    let mut snapshots = snapshots.expect("there are none");
    let recovered = Datastore::recover(Path::new("data"), &mut snapshots, log);
    let (mut datastore, report) = recovered.expect("old logs are read");
    assert_eq!(report.replayed, log.tail().next_offset.get());
    // These databases were made before there was `st_env`; one that is opened gets it.
    assert!(datastore.lacks_system_tables());
    datastore.begin();
    datastore
        .list_system_tables()
        .expect("nothing is in the way");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    assert!(!datastore.lacks_system_tables());
    datastore
}

#[test]
fn records_of_version_1_are_read() {
    let storage = fixture("log-records-1");
    let log = open(&storage).expect("the log opens");
    assert_eq!(log.tail().next_offset, LogOffset::new(TRANSACTIONS));
    assert_same(&recover(&storage, &log), &live());
}

#[test]
fn segments_of_format_1_are_read_and_the_log_goes_on_in_format_2() {
    let mut storage = fixture("log-format-1");
    let mut expected = live();
    for number in TRANSACTIONS..TRANSACTIONS + 20 {
        // Each time it is opened anew, also by a power failure.
        storage = storage.crash(number);
        let mut log = open(&storage).expect("the log opens");
        assert_eq!(log.tail().next_offset, LogOffset::new(number));
        assert_same(&recover(&storage, &log), &expected);
        expected.begin();
        transaction(&mut expected, number);
        let mut output = CommitOutput::default();
        assert!(expected.commit(&mut output).expect("the record fits"));
        let frame = Frame {
            first_offset: LogOffset::new(number),
            count: 1,
            payload: &[&output.records],
        };
        log.append(log.tail().epoch, frame).expect("it is written");
        log.sync().expect("it is durable");
    }
    let version = |path: &PathBuf| storage.file(path).expect("a file")[8];
    let versions: Vec<u8> = segments(&storage).iter().map(version).collect();
    assert!(versions.is_sorted() && versions.starts_with(&[1, 1]) && versions.ends_with(&[2, 2]));
    // Readers go over the border, and the old part can be cut.
    let mut log = open(&storage).expect("the log opens");
    let mut reader = log.feed().read(LogOffset::new(5)).expect("it is there");
    let mut offset = LogOffset::new(5);
    while let Some(frame) = reader.next().expect("it is intact") {
        assert_eq!(frame.first_offset, offset);
        offset += 1;
    }
    assert_eq!(offset, LogOffset::new(TRANSACTIONS + 20));
    log.truncate_from(LogOffset::new(3)).expect("it is cut");
    drop(log);
    let log = open(&storage.crash(1)).expect("the log opens");
    assert_eq!(log.tail().next_offset, LogOffset::new(3));
}

#[test]
fn damage_in_segments_of_format_1_is_found() {
    let whole = fixture("log-format-1");
    let path = &segments(&whole)[1];
    let intact = whole.file(path).expect("a file");
    for byte in (0..112).chain(4096..intact.len()) {
        let mut bytes = intact.clone();
        bytes[byte] ^= 1 << (byte % 8);
        whole.put_file(path, bytes);
        let found = open(&whole.crash(1)).and_then(|log| {
            let mut reader = log.feed().read(LogOffset::FIRST)?;
            while reader.next()?.is_some() {}
            Ok(())
        });
        assert!(
            matches!(found, Err(LogError::Damaged { ref file, .. }) if file == path),
            "byte {byte}: {found:?}"
        );
    }
}
