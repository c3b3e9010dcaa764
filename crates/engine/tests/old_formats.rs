//! Logs that earlier versions wrote are read as they were meant.
//!
//! `fixtures/log-records-1` was written by the last version that had no records of schema changes, with `WRITE_FIXTURE` set to
//! that directory: the transactions of [`live`].

mod common;

use std::path::Path;

use common::*;
use lightcone_engine::{CommitOutput, Datastore};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions};
use lightcone_schema::ModuleDef;
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};

const EPOCH: Epoch = Epoch::new(1);
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

/// Runs all transactions and gives the record of each to `take`.
fn live(mut take: impl FnMut(u64, &[u8])) -> Datastore {
    let mut datastore = creating(&definition());
    for number in 0..TRANSACTIONS {
        if number > 0 {
            datastore.begin();
        }
        transaction(&mut datastore, number);
        let mut output = CommitOutput::default();
        assert!(datastore.commit(&mut output).expect("the record fits"));
        take(number, &output.records);
    }
    datastore
}

fn open(directory: &Path) -> LocalLog {
    let options = LogOptions {
        segment_bytes: 1 << 16,
        preallocate: false,
        ..LogOptions::default()
    };
    LocalLog::open(directory, options, EPOCH)
        .expect("the log opens")
        .0
}

fn write(directory: &Path) {
    let mut log = open(directory);
    live(|number, records| {
        let frame = Frame {
            first_offset: LogOffset::new(number),
            count: 1,
            payload: &[records],
        };
        log.append(EPOCH, frame).expect("it is written");
    });
    log.sync().expect("it is durable");
    log.close().expect("it is closed");
}

#[test]
fn records_of_version_1_are_read() {
    if let Some(directory) = std::env::var_os("WRITE_FIXTURE") {
        return write(Path::new(&directory));
    }
    let directory = tempfile::tempdir().expect("a directory");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/log-records-1");
    let log = directory.path().join("log");
    std::fs::create_dir(&log).expect("a directory");
    for file in std::fs::read_dir(fixture).expect("the fixture is there") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), log.join(file.file_name())).expect("it is copied");
    }
    let snapshots = directory.path().join("snapshots");
    let mut snapshots = SnapshotStore::open(&snapshots).expect("there are none");
    let recovered = Datastore::recover(directory.path(), &mut snapshots, &open(&log));
    let (recovered, report) = recovered.expect("old records are read");
    assert_eq!(report.replayed, TRANSACTIONS);
    assert_same(&recovered, &live(|_, _| {}));
}
