//! Migrations on a disk that fails: at every write, sync and change of names, what is there afterwards is the state before a
//! transaction or the one behind it, never one in between.

use std::path::Path;
use std::sync::Arc;

use crate::common;
use crate::common::{assert_same, rows, state};
use crate::definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use lightcone_engine::{CommitOutput, Datastore, MigrationWork};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions};
use lightcone_schema::plan;
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::{Faults, SimStorage};

const EPOCH: Epoch = Epoch::new(1);

fn database() -> &'static Path {
    Path::new("data/replicas/1")
}

fn open(storage: &SimStorage) -> Result<(Datastore, SnapshotStore, LocalLog), String> {
    let shared = Arc::new(storage.clone());
    let options = LogOptions {
        segment_bytes: 9000,
        ..LogOptions::default()
    };
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let log = LocalLog::open_on(shared.clone(), &database().join("log"), options);
    let (log, _) = log.map_err(|error| text(&error))?;
    let snapshots = SnapshotStore::open_on(shared, &database().join("snapshots"));
    let mut snapshots = snapshots.map_err(|error| text(&error))?;
    let recovered = Datastore::recover(database(), &mut snapshots, &log);
    let (datastore, _) = recovered.map_err(|error| text(&error))?;
    Ok((datastore, snapshots, log))
}

/// Versions of the tables, one behind the other.
fn versions() -> Vec<Tables> {
    let mut table = Table::new(&[Kind::U32, Kind::Text]).key().sequence();
    let mut versions = Vec::new();
    let mut push = |table: &Table, more: bool| {
        let mut tables = Tables::from([("t".to_owned(), table.clone())]);
        if more {
            tables.insert("u".to_owned(), Table::new(&[Kind::Payload(0)]));
        }
        versions.push(tables);
    };
    push(&table, false);
    table.columns.push((Kind::I64, 3));
    push(&table, true);
    table = table.index(&[1], Algorithm::BTree);
    push(&table, true);
    table.columns.push((Kind::Payload(1), 1));
    table.unique.clear();
    table.indexes.clear();
    table.has_key = false;
    push(&table, false);
    versions
}

/// What each transaction does; the number is that of its offset.
enum Transaction {
    Create,
    Rows(u32),
    Migrate(usize),
}

fn transactions() -> Vec<Transaction> {
    use Transaction::*;
    vec![
        Create,
        Rows(1),
        Migrate(1),
        Rows(2),
        Migrate(2),
        Rows(3),
        Migrate(3),
        Rows(4),
    ]
}

/// Runs a transaction, which `version` is the tables of, to the end before its commit.
fn run(datastore: &mut Datastore, transaction: &Transaction, version: &mut usize) {
    let versions = versions();
    match transaction {
        Transaction::Create => {
            *datastore = Datastore::new();
            datastore.begin();
            datastore.bootstrap();
            let created = datastore.create_tables(&definition(&versions[0]));
            created.expect("names are free");
        }
        Transaction::Rows(seed) => {
            datastore.begin();
            let table = &versions[*version]["t"];
            let id = common::table_id(datastore, "t");
            for number in 0..40 {
                let row = row_of(table, seed * 1000 + number);
                // A key that is taken.
                let _ = datastore.insert(id, &row, &mut Vec::new());
            }
        }
        Transaction::Migrate(to) => {
            datastore.begin();
            let (old, new) = (definition(&versions[*version]), definition(&versions[*to]));
            let mut may_go_on = || true;
            let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
            for step in plan(&old, &new).expect("a plan").steps {
                let taken = datastore.migrate(&step, &new, &mut work);
                taken.expect("rows allow it");
            }
            *version = *to;
        }
    }
}

/// The states behind each transaction, without a disk.
fn expected() -> Vec<Datastore> {
    (1..=transactions().len())
        .map(|count| {
            let (mut datastore, mut version) = (Datastore::new(), 0);
            for transaction in &transactions()[..count] {
                run(&mut datastore, transaction, &mut version);
                datastore
                    .commit(&mut CommitOutput::default())
                    .expect("the record fits");
            }
            datastore
        })
        .collect()
}

/// Goes on until something fails. Returns how many transactions are acknowledged.
fn live(storage: &SimStorage) -> usize {
    let Ok((mut datastore, snapshots, mut log)) = open(storage) else {
        return 0;
    };
    let mut version = 0;
    for (offset, transaction) in transactions().iter().enumerate() {
        run(&mut datastore, transaction, &mut version);
        let mut output = CommitOutput::default();
        assert!(datastore.commit(&mut output).expect("the record fits"));
        let frame = Frame {
            first_offset: LogOffset::new(offset as u64),
            count: 1,
            payload: &[&output.records],
        };
        if log.append(EPOCH, frame).is_err() || log.sync().is_err() {
            return offset;
        }
        if offset % 3 == 2 {
            // One that fails is only logged.
            let snapshot = datastore.snapshot();
            let _ = snapshot.write_to(&snapshots, LogOffset::new(offset as u64 + 1));
        }
    }
    transactions().len()
}

#[test]
fn a_failure_at_any_place_leaves_a_state_between_transactions() {
    let expected = expected();
    let intact = SimStorage::new(3);
    assert_eq!(live(&intact), expected.len());
    let counts = intact.counts();
    let writes = (0..counts.writes).map(|at| Faults {
        fail_writes_from: Some(at),
        ..Faults::default()
    });
    let syncs = (0..counts.syncs).map(|at| Faults {
        fail_sync: Some(at),
        ..Faults::default()
    });
    let names = (0..counts.names).map(|at| Faults {
        fail_names_from: Some(at),
        ..Faults::default()
    });
    let faults: Vec<Faults> = writes.chain(syncs).chain(names).collect();
    assert!(faults.len() > 40, "{}", faults.len());
    for (number, fault) in faults.into_iter().enumerate() {
        let storage = SimStorage::new(number as u64);
        storage.set_faults(fault);
        let acknowledged = live(&storage);
        storage.set_faults(Faults::default());
        let storage = storage.crash(number as u64);
        let (found, _, log) = open(&storage).unwrap_or_else(|error| panic!("{number}: {error}"));
        let count = log.tail().next_offset.get() as usize;
        assert!(
            count == acknowledged || count == acknowledged + 1,
            "{number}: {count} transactions, and {acknowledged} were acknowledged"
        );
        match count.checked_sub(1) {
            None => assert!(found.schemas().count() == lightcone_engine::system_tables().len()),
            Some(last) => {
                assert_eq!(state(&found), state(&expected[last]), "{number}");
                assert_same(&found, &expected[last]);
            }
        }
    }
    let t = common::table_id(&expected[7], "t");
    assert!(
        rows(&expected[7], t).len() > 20,
        "keys are mostly different"
    );
}
