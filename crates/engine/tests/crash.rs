//! Log, snapshots and recovery together, on a disk that fails: nothing that was acknowledged is lost, nothing is half
//! there, and no single place that rots in a snapshot costs anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use lightcone_engine::{CommitOutput, Datastore, RecoveryError};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogError, LogOffset, LogOptions};
use lightcone_snapshot::{SnapshotError, SnapshotStore};
use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};
use proptest::prelude::*;

const SNAPSHOTS_KEPT: usize = 2;

fn database() -> &'static Path {
    Path::new("data/replicas/1")
}

const EPOCH: Epoch = Epoch::new(1);

struct Database {
    datastore: Datastore,
    snapshots: SnapshotStore,
    log: LocalLog,
}

fn open(storage: &SimStorage) -> Result<Database, RecoveryError> {
    let shared = Arc::new(storage.clone());
    let options = LogOptions {
        segment_bytes: 9000,
        ..LogOptions::default()
    };
    let (log, _) = LocalLog::open_on(shared.clone(), &database().join("log"), options)?;
    let mut snapshots = SnapshotStore::open_on(shared, &database().join("snapshots"))?;
    let (datastore, _) = Datastore::recover(database(), &mut snapshots, &log)?;
    Ok(Database {
        datastore,
        snapshots,
        log,
    })
}

impl Database {
    fn next_offset(&self) -> u64 {
        self.log.tail().next_offset.get()
    }

    /// One transaction in a frame of its own; the first one makes the tables.
    fn commit(&mut self, text: &str) -> Result<(), LogError> {
        let offset = self.next_offset();
        let mut output = CommitOutput::default();
        if offset == 0 {
            let tables = vec![
                table("last", &[("id", T::U8), ("offset", T::U64)]).btree(&[0], true),
                table("lines", &[("offset", T::U64), ("text", T::String)]).btree(&[0], true),
            ];
            self.datastore = creating(&module(tables));
        } else {
            self.datastore.begin();
        }
        let datastore = &mut self.datastore;
        let key = index_id(datastore, "last_id_idx_btree");
        datastore.delete_by_index_point(key, &[0]).expect("a key");
        insert(datastore, "last", &[V::U8(0), V::U64(offset)]).expect("it was deleted");
        let line = [V::U64(offset), V::String(text.into())];
        insert(datastore, "lines", &line).expect("it is new");
        assert!(datastore.commit(&mut output).expect("the record fits"));
        let payload: &[&[u8]] = &[&output.records];
        self.log.append(
            EPOCH,
            Frame {
                first_offset: LogOffset::new(offset),
                count: 1,
                payload,
            },
        )?;
        self.log.sync()
    }

    /// As the server does it.
    fn snapshot(&mut self) -> Result<(), SnapshotError> {
        let snapshot = self.datastore.snapshot();
        snapshot.write_to(&self.snapshots, LogOffset::new(self.next_offset()))?;
        let pruned = self.snapshots.prune(SNAPSHOTS_KEPT)?;
        if let Some(oldest) = pruned.log_needed_from {
            // Old segments that cannot be removed now go with the next snapshot.
            let _ = self.log.trim(oldest);
        }
        Ok(())
    }

    /// The text of each transaction, from the tables.
    fn texts(&self) -> Vec<String> {
        if self.next_offset() == 0 {
            return Vec::new();
        }
        let lines = rows(&self.datastore, table_id(&self.datastore, "lines"));
        let last = rows(&self.datastore, table_id(&self.datastore, "last"));
        let mut texts: Vec<(u64, String)> = lines
            .iter()
            .map(|line| {
                let (offset, text) = line.split_at(8);
                let offset = u64::from_le_bytes(offset.try_into().expect("8 bytes"));
                (offset, String::from_utf8(text[4..].to_vec()).expect("text"))
            })
            .collect();
        texts.sort();
        assert!(texts
            .iter()
            .map(|(offset, _)| *offset)
            .eq(0..self.next_offset()));
        assert_eq!(last.len(), 1);
        assert_eq!(last[0][1..], (self.next_offset() - 1).to_le_bytes());
        texts.into_iter().map(|(_, text)| text).collect()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Commit(usize),
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..1500usize).prop_map(Step::Commit),
        1 => Just(Step::Snapshot),
    ]
}

#[derive(Default)]
struct Model {
    acknowledged: Vec<String>,
    attempted: Option<String>,
    number: usize,
}

impl Model {
    fn check(&mut self, database: &Database) {
        let found = database.texts();
        let mut expected = std::mem::take(&mut self.acknowledged);
        if found.len() > expected.len() {
            expected.extend(self.attempted.take());
        }
        assert_eq!(found.len(), expected.len(), "transactions that are there");
        assert!(found == expected, "something else was written");
        self.acknowledged = found;
        self.attempted = None;
    }

    fn live(&mut self, database: &mut Database, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            match step {
                Step::Commit(bytes) => {
                    self.number += 1;
                    let text = format!("{} {}", self.number, "x".repeat(*bytes));
                    self.attempted = Some(text.clone());
                    database.commit(&text).map_err(|error| error.to_string())?;
                    self.acknowledged.extend(self.attempted.take());
                }
                Step::Snapshot if database.next_offset() == 0 => {}
                // A snapshot that fails is only logged.
                Step::Snapshot => match database.snapshot() {
                    Ok(()) | Err(SnapshotError::Misuse { .. }) => {}
                    Err(error) => assert!(error.to_string().contains("injected"), "{error}"),
                },
            }
        }
        Ok(())
    }
}

type Life = (u8, u64, Vec<Step>, u64);

/// Runs these lives, with a fault in each, and leaves the disk as the last power failure leaves it.
fn run(seed: u64, lives: &[Life]) -> (SimStorage, Model) {
    let mut storage = SimStorage::new(seed);
    let mut model = Model::default();
    for (kind, at, steps, end) in lives {
        let done = storage.counts();
        let mut faults = Faults {
            short_reads: seed.is_multiple_of(2),
            short_writes: seed.is_multiple_of(3),
            ..Faults::default()
        };
        match kind {
            0 => faults.fail_writes_from = Some(done.writes + at),
            1..=3 => faults.fail_sync = Some(done.syncs + at),
            4 => faults.fail_names_from = Some(done.names + at / 3),
            5 => faults.fail_read = Some(done.reads + at),
            6 => faults.fail_open = Some(done.opens + at / 3),
            _ => {}
        }
        storage.set_faults(faults);
        match open(&storage) {
            Ok(mut database) => {
                model.check(&database);
                if let Err(error) = model.live(&mut database, steps) {
                    assert!(error.contains("injected"), "{error}");
                }
            }
            Err(error) => assert!(error.to_string().contains("injected"), "{error}"),
        }
        storage.set_faults(Faults::default());
        match end % 3 {
            0 => {}
            1 => storage.evict(*end),
            _ => storage = storage.crash(*end),
        }
    }
    (storage.crash(seed ^ 1), model)
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let life = (
        0..9u8,
        0..40u64,
        prop::collection::vec(step(), 0..25),
        any::<u64>(),
    );
    prop::collection::vec(life, 1..6)
}

fn snapshot_files(storage: &SimStorage) -> Vec<PathBuf> {
    let files = storage.files().into_iter();
    files
        .filter(|path| path.parent() == Some(&database().join("snapshots")))
        .collect()
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn failures_restarts_and_power_failures(lives in lives(), seed: u64) {
        let (storage, mut model) = run(seed, &lives);
        match open(&storage) {
            Ok(database) => model.check(&database),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn no_rotten_file_of_a_snapshot_costs_anything(lives in lives(), seed: u64, pick: prop::sample::Index, place: prop::sample::Index, bit in 0..8u8) {
        let (storage, mut model) = run(seed, &lives);
        let files = snapshot_files(&storage);
        prop_assume!(!files.is_empty());
        let path = &files[pick.index(files.len())];
        let bytes = storage.file(path).map_or(0, |bytes| bytes.len());
        prop_assume!(bytes > 0);
        storage.rot(path, place.index(bytes) as u64, bit);
        match open(&storage) {
            Ok(database) => model.check(&database),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

/// A database with two snapshots whose log does not reach back before them.
fn sample() -> SimStorage {
    let storage = SimStorage::new(5);
    let mut database = open(&storage).unwrap();
    for round in 0..3 {
        for _ in 0..12 {
            database.commit(&"x".repeat(1400)).unwrap();
        }
        if round < 2 {
            database.snapshot().unwrap();
        }
    }
    assert!(database.log.tail().oldest_offset > LogOffset::FIRST);
    drop(database);
    storage.crash(1)
}

#[test]
fn damaged_snapshots_are_named() {
    let storage = sample();
    let files = snapshot_files(&storage);
    let packs: Vec<&PathBuf> = files
        .iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pack")
        })
        .collect();
    assert_eq!(packs.len(), 2);
    // One is damaged: the other one and the log have everything.
    let one = sample();
    one.rot(packs[1], 3000, 1);
    assert_eq!(open(&one).unwrap().next_offset(), 36);
    assert!(snapshot_files(&one)
        .iter()
        .any(|path| path.extension().is_some_and(|e| e == "damaged")));
    // Both are damaged.
    for pack in &packs {
        storage.rot(pack, 3000, 1);
    }
    let before = snapshot_files(&storage);
    for _ in 0..2 {
        let Err(error) = open(&storage) else {
            panic!("it opened")
        };
        let text = error.to_string();
        assert!(
            matches!(error, RecoveryError::SnapshotDamaged { .. }),
            "{text}"
        );
        for pack in &packs {
            assert!(
                text.contains(&format!(
                    "snapshot file {} is damaged at byte ",
                    pack.display()
                )),
                "{text}"
            );
        }
        assert!(
            text.contains("the snapshot at transaction 12 ")
                && text.contains("the snapshot at transaction 24 "),
            "{text}"
        );
        assert!(
            text.contains("The log begins with transaction ") && text.ends_with("[LC0525]"),
            "{text}"
        );
    }
    assert_eq!(snapshot_files(&storage), before, "nothing is changed");
    // An undamaged copy put back mends it.
    storage.rot(packs[0], 3000, 1);
    assert_eq!(open(&storage).unwrap().next_offset(), 36);
}

#[test]
fn a_snapshot_that_cannot_be_read_is_passed_over_and_kept() {
    let clean = sample();
    let reads = clean.counts().reads;
    drop(open(&clean).unwrap());
    let reads = clean.counts().reads - reads;
    for failing in 0..reads {
        let storage = sample();
        storage.set_faults(Faults {
            fail_read: Some(failing),
            ..Faults::default()
        });
        match open(&storage) {
            Ok(database) => assert_eq!(database.next_offset(), 36),
            // Nothing stands in for the log.
            Err(error) => assert!(
                matches!(
                    error,
                    RecoveryError::Log(_) | RecoveryError::OldLogNeeded { .. }
                ),
                "{error}"
            ),
        }
        storage.set_faults(Faults::default());
        assert_eq!(open(&storage).unwrap().snapshots.problems().len(), 0);
    }
}

#[test]
fn a_damaged_log_behind_a_damaged_snapshot_names_both() {
    let storage = sample();
    let packs: Vec<PathBuf> = snapshot_files(&storage)
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pack")
        })
        .collect();
    storage.rot(&packs[1], 3000, 1);
    let log = database().join("log");
    let segment = storage
        .files()
        .into_iter()
        .filter(|path| path.parent() == Some(&log))
        .nth(1)
        .unwrap();
    storage.rot(&segment, 5000, 1);
    let Err(error) = open(&storage) else {
        panic!("it opened")
    };
    let text = error.to_string();
    assert!(
        text.contains("[LC0503]")
            && text.contains(&packs[1].display().to_string())
            && text.ends_with("[LC0526]"),
        "{text}"
    );
}
