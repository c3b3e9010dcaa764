//! Failures, then restarts of the process, then a power failure: what was acknowledged at any time is there.
//!
//! A restart keeps the cache of the operating system, in which a failed sync leaves bytes that are not on the disk.

use std::path::Path;
use std::sync::Arc;

use crate::common::{at, payload, read_all, segments, DIRECTORY, EPOCH};
use lightcone_log::{repair_on, Frame, LocalLog, Log, LogError, LogOptions};
use lightcone_storage::sim::{Counts, Faults, SimStorage};
use proptest::prelude::*;

fn options(preallocate: bool) -> LogOptions {
    LogOptions {
        segment_bytes: 12_000,
        preallocate,
        ..LogOptions::default()
    }
}

fn try_open(storage: &SimStorage, preallocate: bool) -> Result<LocalLog, LogError> {
    let storage = Arc::new(storage.clone());
    LocalLog::open_on(storage, Path::new(DIRECTORY), options(preallocate)).map(|(log, _)| log)
}

fn open(storage: &SimStorage, preallocate: bool) -> LocalLog {
    match try_open(storage, preallocate) {
        Ok(log) => log,
        Err(error) => panic!("{error}"),
    }
}

/// Appends a frame of one transaction and syncs it.
fn put(log: &mut LocalLog, bytes: &[u8]) -> Result<(), LogError> {
    let first_offset = log.tail().next_offset;
    log.append(
        EPOCH,
        Frame {
            first_offset,
            count: 1,
            payload: &[bytes],
        },
    )?;
    log.sync()
}

#[test]
fn a_failed_sync_a_restart_and_a_power_failure() {
    for seed in 0..200 {
        let storage = SimStorage::new(seed);
        let mut log = open(&storage, true);
        for number in 1..4 {
            put(&mut log, &[number; 900]).unwrap();
        }
        let syncs = storage.counts().syncs;
        storage.set_faults(Faults {
            fail_sync: Some(syncs),
            ..Faults::default()
        });
        assert!(put(&mut log, &[9; 900]).is_err());
        drop(log);
        let mut log = open(&storage, true);
        for number in 10..13 {
            put(&mut log, &[number; 900]).unwrap();
        }
        let acknowledged = read_all(&log);
        drop(log);
        let log = open(&storage.crash(seed), true);
        assert_eq!(read_all(&log), acknowledged, "seed {seed}");
    }
}

#[test]
fn a_failed_sync_around_the_rotation_a_restart_and_a_power_failure() {
    for seed in 0..20 {
        for failing in 0..30 {
            let storage = SimStorage::new(seed);
            let mut log = open(&storage, true);
            let syncs = storage.counts().syncs;
            storage.set_faults(Faults {
                fail_sync: Some(syncs + failing),
                ..Faults::default()
            });
            // The sync of a segment made ahead of time may fail too, which does no harm.
            let _ = (0..30).try_for_each(|_| put(&mut log, &[1; 900]));
            drop(log);
            let mut log = open(&storage, true);
            for number in 10..13 {
                put(&mut log, &[number; 900]).unwrap();
            }
            let acknowledged = read_all(&log);
            drop(log);
            let log = open(&storage.crash(seed * 7 + failing), true);
            assert_eq!(read_all(&log), acknowledged, "seed {seed}, sync {failing}");
        }
    }
}

/// Opening a log is quick: only what was written last is written once more.
#[test]
fn a_proper_end_proves_all_but_the_mark() {
    let storage = SimStorage::new(3);
    let reopen = || {
        let storage = Arc::new(storage.clone());
        LocalLog::open_on(storage, Path::new(DIRECTORY), options(true)).unwrap()
    };
    let (mut log, _) = reopen();
    for number in 0..6 {
        put(&mut log, &[number; 900]).unwrap();
    }
    drop(log);
    let (mut log, recovery) = reopen();
    assert_eq!(recovery.rewritten_bytes, 952);
    log.close().unwrap();
    drop(log);
    let (_log, recovery) = reopen();
    assert_eq!(recovery.rewritten_bytes, 52);
}

#[test]
fn a_repair_whose_sync_failed_is_repeated_and_holds() {
    for seed in 0..60 {
        for failing in 0..4 {
            let storage = SimStorage::new(seed);
            let mut log = open(&storage, true);
            for number in 1..6 {
                put(&mut log, &[number; 300]).unwrap();
            }
            drop(log);
            storage.rot(&segments(&storage)[0], 4096 + 352 + 100, 3);
            let repair = || {
                repair_on(
                    Arc::new(storage.clone()),
                    Path::new(DIRECTORY),
                    &options(true),
                )
            };
            let syncs = storage.counts().syncs;
            storage.set_faults(Faults {
                fail_sync: Some(syncs + failing),
                ..Faults::default()
            });
            let _ = repair();
            storage.evict(seed);
            repair().unwrap();
            let mut log = open(&storage, true);
            assert_eq!(log.tail().next_offset, at(1));
            // As long as the frame that is gone: what was behind that one must not come back.
            put(&mut log, &[20; 300]).unwrap();
            let acknowledged = read_all(&log);
            drop(log);
            let log = open(&storage.crash(seed), true);
            assert_eq!(read_all(&log), acknowledged, "seed {seed}, sync {failing}");
        }
    }
}

#[derive(Clone, Debug)]
enum Fault {
    None,
    Writes(u64),
    Tear(u64),
    Sync(u64),
    Names(u64),
    Read(u64),
    Open(u64),
    Full(u64),
}

impl Fault {
    fn faults(&self, done: Counts, short: bool, storage: &SimStorage) -> Faults {
        let mut faults = Faults {
            short_writes: short,
            short_reads: short,
            ..Faults::default()
        };
        match self {
            Fault::None => {}
            Fault::Writes(after) => faults.fail_writes_from = Some(done.writes + after),
            Fault::Tear(after) => faults.tear_write = Some(done.writes + after),
            Fault::Sync(after) => faults.fail_sync = Some(done.syncs + after),
            Fault::Names(after) => faults.fail_names_from = Some(done.names + after),
            Fault::Read(after) => faults.fail_read = Some(done.reads + after),
            Fault::Open(after) => faults.fail_open = Some(done.opens + after),
            Fault::Full(bytes) => {
                let files = storage.files();
                let used = files
                    .iter()
                    .map(|path| storage.file(path).map_or(0, |f| f.len()));
                faults.full_at_bytes = Some(used.sum::<usize>() as u64 + bytes);
            }
        }
        faults
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => Just(Fault::None),
        1 => (0..30u64).prop_map(Fault::Writes),
        1 => (0..30u64).prop_map(Fault::Tear),
        4 => (0..30u64).prop_map(Fault::Sync),
        1 => (0..8u64).prop_map(Fault::Names),
        1 => (0..12u64).prop_map(Fault::Read),
        1 => (0..6u64).prop_map(Fault::Open),
        1 => (0..20_000u64).prop_map(Fault::Full),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// One round of group commit.
    Commit(Vec<usize>),
    Close,
    Trim(u64),
    /// So many of the last transactions go.
    Truncate(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(0..2500usize, 1..3).prop_map(Step::Commit),
        1 => Just(Step::Close),
        1 => (0..10u64).prop_map(Step::Trim),
        1 => (0..10u64).prop_map(Step::Truncate),
    ]
}

#[derive(Clone, Debug)]
enum End {
    Restart,
    /// The operating system needed memory in between.
    EvictAndRestart(u64),
    PowerFailure(u64),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => Just(End::Restart),
        2 => any::<u64>().prop_map(End::EvictAndRestart),
        2 => any::<u64>().prop_map(End::PowerFailure),
    ]
}

/// One life of the process: a fault waits for it, it does these things, and ends.
type Life = (Fault, Vec<Step>, End);

/// What the log must hold, and what it may hold besides.
#[derive(Default)]
struct Model {
    /// Payloads of all transactions that were acknowledged, from the first one on.
    acknowledged: Vec<Vec<u8>>,
    /// What was handed to the log after them.
    attempted: Vec<Vec<u8>>,
    /// Where the log may have been cut, by a cut that failed.
    maybe_cut: Option<usize>,
}

impl Model {
    /// Checks an opened log. What can be read now is taken for durable, so it must remain.
    fn check(&mut self, log: &LocalLog) {
        let tail = log.tail();
        if let Some(end) = self.maybe_cut.take() {
            if tail.next_offset == at(end as u64) {
                self.acknowledged.truncate(end);
                self.attempted.clear();
            }
        }
        assert!(
            tail.next_offset >= at(self.acknowledged.len() as u64),
            "{} transactions were acknowledged, and the log ends before {}",
            self.acknowledged.len(),
            tail.next_offset
        );
        assert_eq!(tail.durable_offset, tail.next_offset);
        let mut expected = std::mem::take(&mut self.acknowledged);
        expected.append(&mut self.attempted);
        expected.truncate(tail.next_offset.get() as usize);
        let found: Vec<Vec<u8>> = read_all(log)
            .into_iter()
            .map(|(_, _, bytes)| bytes)
            .collect();
        assert_eq!(tail.next_offset, tail.oldest_offset + found.len() as u64);
        assert!(
            found[..] == expected[tail.oldest_offset.get() as usize..],
            "the log holds something else than was written"
        );
        self.acknowledged = expected;
    }
}

/// Until the log fails or there is nothing more to do.
fn live(log: &mut LocalLog, steps: &[Step], model: &mut Model) -> Result<(), LogError> {
    for step in steps {
        match step {
            Step::Commit(frames) => {
                for bytes in frames {
                    let first_offset = log.tail().next_offset;
                    // Never the same bytes twice, so that an old frame is not taken for a new one.
                    let number = model.acknowledged.len() + model.attempted.len();
                    let mut payload = payload(first_offset, *bytes);
                    payload.extend((number as u64).to_le_bytes());
                    payload.extend(log.tail().durable_offset.get().to_le_bytes());
                    model.attempted.push(payload.clone());
                    log.append(
                        EPOCH,
                        Frame {
                            first_offset,
                            count: 1,
                            payload: &[&payload],
                        },
                    )?;
                }
                log.sync()?;
                model.acknowledged.append(&mut model.attempted);
            }
            Step::Close => log.close()?,
            Step::Truncate(back) => {
                let tail = log.tail();
                let end = tail.durable_offset.get().saturating_sub(*back);
                let end = at(end).max(tail.oldest_offset);
                model.maybe_cut = Some(end.get() as usize);
                log.truncate_from(end)?;
                model.maybe_cut = None;
                model.acknowledged.truncate(end.get() as usize);
            }
            Step::Trim(back) => {
                let durable = log.tail().durable_offset.get();
                log.trim(at(durable.saturating_sub(*back)))?;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_there(
        lives in prop::collection::vec((fault(), prop::collection::vec(step(), 0..14), end()), 1..7),
        preallocate: bool,
        short: bool,
        seed: u64,
    ) {
        let lives: Vec<Life> = lives;
        let mut storage = SimStorage::new(seed);
        let mut model = Model::default();
        for (fault, steps, end) in &lives {
            storage.set_faults(fault.faults(storage.counts(), short, &storage));
            match try_open(&storage, preallocate) {
                Ok(mut log) => {
                    // Reading may meet the fault as well; the next life looks again.
                    storage.set_faults(Faults::default());
                    model.check(&log);
                    storage.set_faults(fault.faults(storage.counts(), short, &storage));
                    // A trim that fails is tried again some time.
                    let _ = live(&mut log, steps, &mut model);
                }
                Err(LogError::Io { source, .. }) => {
                    prop_assert!(source.to_string().contains("injected"), "{}", source);
                }
                Err(LogError::Poisoned { cause }) => {
                    prop_assert!(cause.to_string().contains("injected"), "{}", cause);
                }
                Err(error) => prop_assert!(false, "refused: {}", error),
            }
            storage.set_faults(Faults::default());
            match end {
                End::Restart => {}
                End::EvictAndRestart(seed) => storage.evict(*seed),
                End::PowerFailure(seed) => storage = storage.crash(*seed),
            }
        }
        let storage = storage.crash(seed ^ 1);
        let mut log = open(&storage, preallocate);
        model.check(&log);
        put(&mut log, b"and it goes on").unwrap();
    }
}
