//! Snapshots: complete or not at all, shared objects stored once, damage found and set aside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_snapshot::fuzzing::fuzz_snapshot_manifest;
use lightcone_snapshot::{
    ObjectHash, SnapshotError, SnapshotStats, SnapshotStore, READ_BACK_BYTES_MAX,
};
use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_storage::LogOffset;
use proptest::prelude::*;

const DIRECTORY: &str = "snapshots";

fn open(storage: &SimStorage) -> SnapshotStore {
    SnapshotStore::open_on(Arc::new(storage.clone()), Path::new(DIRECTORY)).unwrap()
}

fn object(seed: u64) -> Vec<u8> {
    let bytes = 1 + (seed * 7919 % 3000) as usize;
    (0..bytes)
        .map(|at| (seed * 131 + at as u64 * 17) as u8)
        .collect()
}

/// Takes a snapshot of these objects; its engine manifest is their hashes.
fn take(store: &SnapshotStore, offset: u64, seeds: &[u64]) -> Result<SnapshotStats, SnapshotError> {
    let mut writer = store.begin(LogOffset::new(offset))?;
    let mut manifest = Vec::new();
    for seed in seeds {
        manifest.extend(writer.put(&object(*seed))?.0);
    }
    writer.finish(&manifest)
}

/// The offset of the newest snapshot, after checking that it holds exactly these objects.
fn check(store: &mut SnapshotStore, expected: impl Fn(u64) -> Vec<u64>) -> Option<u64> {
    let snapshot = store.latest().unwrap()?;
    let seeds = expected(snapshot.offset.get());
    let hashes: Vec<ObjectHash> = snapshot
        .manifest
        .chunks(32)
        .map(|hash| ObjectHash(hash.try_into().unwrap()))
        .collect();
    assert_eq!(hashes.len(), seeds.len());
    for (hash, seed) in hashes.iter().zip(&seeds) {
        assert_eq!(snapshot.read(hash).unwrap(), object(*seed));
    }
    snapshot.verify().unwrap();
    Some(snapshot.offset.get())
}

fn files(storage: &SimStorage, extension: &str) -> Vec<PathBuf> {
    storage
        .files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

#[test]
fn unchanged_objects_are_stored_once() {
    let storage = SimStorage::new(0);
    let mut store = open(&storage);
    assert!(store.latest().unwrap().is_none());
    let first = take(&store, 5, &[1, 2, 3, 2]).unwrap();
    assert_eq!((first.objects, first.new_objects), (3, 3));
    // Two in a row have nothing in common, so the second is written as a whole.
    let second = take(&store, 8, &[1, 3, 4]).unwrap();
    assert_eq!((second.objects, second.new_objects), (3, 3));
    let third = take(&store, 9, &[4, 3, 1]).unwrap();
    assert_eq!((third.objects, third.new_objects), (3, 1));
    let fourth = take(&store, 10, &[1, 3, 4]).unwrap();
    assert_eq!((fourth.objects, fourth.new_objects), (3, 0));
    assert_eq!(files(&storage, "pack").len(), 3);
    assert_eq!(check(&mut store, |_| vec![1, 3, 4]), Some(10));
    let mut writer = store.begin(LogOffset::new(11)).unwrap();
    assert!(writer.reuse(&ObjectHash::of(&object(4))));
    assert!(!writer.reuse(&ObjectHash::of(&object(77))));
    assert!(matches!(
        store.begin(LogOffset::new(12)),
        Err(SnapshotError::Misuse { .. })
    ));
    assert!(matches!(store.prune(1), Err(SnapshotError::Misuse { .. })));
    drop(writer);
    assert!(matches!(
        store.begin(LogOffset::new(9)),
        Err(SnapshotError::Misuse { .. })
    ));
    let snapshot = store.latest().unwrap().unwrap();
    let missing = snapshot.read(&ObjectHash([0; 32])).unwrap_err();
    assert!(matches!(
        missing,
        SnapshotError::NoSuchObject { offset, .. } if offset.get() == 10
    ));
    assert_eq!(snapshot.objects().len(), 3);
}

/// What a snapshot names is read back in parts, so that all of it has its turn and none costs the whole database.
#[test]
fn of_what_is_taken_over_a_part_is_read_back_each_time() {
    const OBJECT_BYTES: u64 = 4 << 20;
    const OBJECTS: u64 = 3 * READ_BACK_BYTES_MAX / OBJECT_BYTES;
    let storage = SimStorage::new(0);
    let store = open(&storage).keeping(1);
    let object = |number: u64| {
        let mut object = vec![number as u8; OBJECT_BYTES as usize];
        object[..8].copy_from_slice(&number.to_le_bytes());
        object
    };
    let mut writer = store.begin(LogOffset::new(1)).unwrap();
    let hashes = (0..OBJECTS).map(|number| writer.put(&object(number)).unwrap());
    let hashes: Vec<ObjectHash> = hashes.collect();
    let stats = writer.finish(&[]).unwrap();
    assert_eq!(stats.hashed_bytes, OBJECTS * OBJECT_BYTES);
    let pack = files(&storage, "pack").remove(0);
    // In the first one, behind the header.
    storage.rot(&pack, 1000, 3);
    let mut was_found = false;
    for offset in 2..10 {
        let mut writer = store.begin(LogOffset::new(offset)).unwrap();
        let taken: Vec<bool> = hashes.iter().map(|hash| writer.reuse(hash)).collect();
        assert!(taken[1..].iter().all(|taken| *taken));
        if !taken[0] {
            was_found = true;
            assert_eq!(writer.put(&object(0)).unwrap(), hashes[0]);
        }
        let stats = writer.finish(&[]).unwrap();
        assert_eq!(stats.read_back_bytes, READ_BACK_BYTES_MAX);
        assert_eq!(stats.mended_objects, u64::from(!taken[0]));
        assert_eq!(stats.hashed_bytes, u64::from(!taken[0]) * OBJECT_BYTES);
        store.prune(1).unwrap();
    }
    assert!(was_found, "it has had its turn");
    let mut store = store;
    store.latest().unwrap().unwrap().verify().unwrap();
}

#[test]
fn an_unfinished_snapshot_leaves_nothing() {
    let storage = SimStorage::new(0);
    let store = open(&storage);
    let mut writer = store.begin(LogOffset::new(1)).unwrap();
    writer.put(&vec![1; 3 << 20]).unwrap();
    assert_eq!(files(&storage, "tmp").len(), 1);
    drop(writer);
    assert_eq!(storage.files(), Vec::<PathBuf>::new());
    let mut writer = store.begin(LogOffset::new(1)).unwrap();
    writer.put(b"x").unwrap();
    std::mem::forget(writer);
    open(&storage);
    assert_eq!(storage.files(), Vec::<PathBuf>::new());
}

#[test]
fn prune_keeps_what_is_needed() {
    let storage = SimStorage::new(0);
    let mut store = open(&storage);
    let range = |offset: u64| (offset * 2 - 2..offset * 2 + 38).collect::<Vec<u64>>();
    for offset in 1..5 {
        take(&store, offset, &range(offset)).unwrap();
    }
    // Most of the first two packs stays in use, so the next snapshots but one lean on them.
    let report = store.prune(2).unwrap();
    assert_eq!((report.snapshots, report.packs), (2, 0));
    assert_eq!(files(&storage, "pack").len(), 4);
    assert_eq!(check(&mut store, range), Some(4));
    // Nothing in common any more: the old packs go with their snapshots.
    take(&store, 5, &(100..110).collect::<Vec<_>>()).unwrap();
    let report = store.prune(0).unwrap();
    assert_eq!((report.snapshots, report.packs), (2, 4));
    assert_eq!(check(&mut store, |_| (100..110).collect()), Some(5));
}

#[test]
fn what_was_read_file_by_file_is_closed() {
    let storage = SimStorage::new(0);
    let mut store = open(&storage);
    for (offset, seeds) in [(1, &[1, 2][..]), (2, &[1, 2]), (3, &[3, 2, 1])] {
        take(&store, offset, seeds).unwrap();
    }
    let mut snapshot = store.latest().unwrap().unwrap();
    let objects = snapshot.objects_by_file();
    assert_eq!(objects.len(), 3);
    for hash in &objects {
        snapshot.close_before(hash);
        snapshot.read(hash).unwrap();
    }
    // It is in another file than the last one.
    let closed = snapshot.read(&objects[0]);
    assert!(matches!(closed, Err(SnapshotError::Misuse { .. })));
}

#[test]
fn prune_leaves_what_is_behind_an_offset() {
    let storage = SimStorage::new(0);
    let store = open(&storage);
    for offset in 1..6 {
        take(&store, offset, &[offset, 100, 101]).unwrap();
    }
    let from = LogOffset::new(3);
    let report = store.prune_before(from, 1).unwrap();
    assert_eq!(report.snapshots, 2);
    assert_eq!(report.log_needed_from, Some(LogOffset::new(5)));
    let needs = store.needs().unwrap();
    let offsets: Vec<u64> = needs.iter().map(|one| one.offset.get()).collect();
    assert_eq!(offsets, [3, 4, 5]);
    let packs = needs.iter().flat_map(|one| &one.packs);
    let packs: std::collections::HashSet<_> = packs.collect();
    assert_eq!(packs.len(), files(&storage, "pack").len());
    // At least so many, wherever they are.
    let report = store.prune_before(LogOffset::new(5), 2).unwrap();
    assert_eq!(report.snapshots, 1);
    assert_eq!(report.log_needed_from, Some(LogOffset::new(4)));
}

#[test]
fn mostly_dead_packs_are_left_behind() {
    let storage = SimStorage::new(0);
    let mut store = open(&storage).keeping(1);
    take(&store, 0, &(0..100).collect::<Vec<_>>()).unwrap();
    take(&store, 1, &(90..110).collect::<Vec<_>>()).unwrap();
    // The ten old objects are written again by the next snapshot, although nothing changed.
    let stats = take(&store, 2, &(90..110).collect::<Vec<_>>()).unwrap();
    assert_eq!((stats.objects, stats.new_objects), (20, 10));
    assert_eq!(store.prune(1).unwrap().packs, 1);
    assert_eq!(check(&mut store, |_| (90..110).collect()), Some(2));
    // Many snapshots with one new object each do not pile up packs.
    let mut store = open(&storage);
    for offset in 3..150 {
        take(&store, offset, &(0..offset).collect::<Vec<_>>()).unwrap();
        store.prune(2).unwrap();
    }
    assert!(
        files(&storage, "pack").len() <= 75,
        "{}",
        files(&storage, "pack").len()
    );
    assert_eq!(check(&mut store, |offset| (0..offset).collect()), Some(149));
}

/// Objects of the newest snapshot that could be read if each was tried, and those of the one before it.
fn readable(storage: &SimStorage) -> [bool; 2] {
    let mut store = open(storage);
    let newest = store.latest().unwrap();
    let newest_is_good = newest.map(|snapshot| {
        let verified = snapshot.verify();
        let is_good = verified.is_ok();
        let error = verified.err().unwrap_or(SnapshotError::Misuse {
            reason: "to see the one before it".to_owned(),
        });
        store.set_aside(snapshot, error);
        is_good
    });
    let older = store.latest().unwrap();
    let older_is_good = older.map(|snapshot| snapshot.verify().is_ok());
    [newest_is_good, older_is_good].map(|is_good| is_good == Some(true))
}

#[test]
fn a_rotten_pack_never_spoils_both_snapshots() {
    let mut found = [0; 2];
    for snapshots in 2..7u64 {
        let sample = || {
            let storage = SimStorage::new(0);
            let store = open(&storage);
            for offset in 0..snapshots {
                // Most stays the same.
                let mut seeds: Vec<u64> = (0..20).collect();
                seeds.push(100 + offset);
                take(&store, offset, &seeds).unwrap();
                store.prune(2).unwrap();
            }
            storage
        };
        assert_eq!(readable(&sample()), [true, true]);
        for pack in files(&sample(), "pack") {
            let length = sample().file(&pack).unwrap().len() as u64;
            for position in (0..length).step_by(397) {
                let storage = sample();
                storage.rot(&pack, position, (position % 8) as u8);
                let [newest, older] = readable(&storage);
                assert!(newest || older, "{} at {position}", pack.display());
                found[0] += u32::from(!newest);
                found[1] += u32::from(!older);
            }
        }
    }
    assert!(found[0] > 10 && found[1] > 10, "{found:?}");
}

#[test]
fn a_damaged_snapshot_is_replaced() {
    let storage = SimStorage::new(0);
    let seeds: Vec<u64> = (0..20).collect();
    for offset in 0..3 {
        take(&open(&storage).keeping(3), offset, &seeds).unwrap();
    }
    // The oldest and the newest have it in common.
    assert_eq!(files(&storage, "pack").len(), 2);
    let newest_without = |damaged: &Path| {
        storage.rot(damaged, 500, 3);
        let mut store = open(&storage);
        let newest = store.latest().unwrap().unwrap();
        let error = newest.verify().unwrap_err();
        store.set_aside(newest, error);
        open(&storage).keeping(3).without(store.into_problems())
    };
    // At the same place, as nothing has come since.
    let mut store = newest_without(&files(&storage, "pack")[0]);
    let stats = take(&store, 2, &seeds).unwrap();
    assert_eq!((stats.new_objects, stats.mended_objects), (20, 0));
    store.replaced(LogOffset::new(2));
    store.rename_damaged().unwrap();
    store.prune(2).unwrap();
    assert_eq!(readable(&storage), [true, true]);
    assert_eq!(files(&storage, "damaged").len(), 0);
    // Behind it.
    let mut store = newest_without(&files(&storage, "pack")[1]);
    take(&store, 3, &seeds).unwrap();
    store.replaced(LogOffset::new(3));
    store.rename_damaged().unwrap();
    let offsets: Vec<u64> = store.offsets().unwrap().iter().map(|at| at.get()).collect();
    assert_eq!(offsets, [1, 3]);
    store.prune(2).unwrap();
    assert_eq!(readable(&storage), [true, true]);
    assert_eq!(files(&storage, "damaged").len(), 1);
}

#[test]
fn what_rots_is_written_again_by_the_next_snapshot() {
    let storage = SimStorage::new(0);
    let store = open(&storage);
    let seeds: Vec<u64> = (0..20).collect();
    take(&store, 0, &seeds).unwrap();
    take(&store, 1, &seeds).unwrap();
    let pack = &files(&storage, "pack")[0];
    storage.rot(pack, 500, 3);
    let stats = take(&store, 2, &seeds).unwrap();
    assert_eq!(
        (stats.objects, stats.new_objects, stats.mended_objects),
        (20, 1, 1)
    );
    assert_eq!(readable(&storage), [true, true]);
    // A disk that does not give an object out counts the same.
    let reads = storage.counts().reads;
    for after in 0..40 {
        storage.set_faults(Faults {
            fail_read: Some(reads + after),
            ..Faults::default()
        });
        take(&store, 3 + after, &seeds).unwrap();
        store.prune(2).unwrap();
        storage.set_faults(Faults::default());
        assert_eq!(readable(&storage), [true, true]);
    }
}

#[test]
fn damaged_snapshots_are_set_aside() {
    let sample = || {
        let storage = SimStorage::new(0);
        let store = open(&storage);
        take(&store, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
        take(&store, 2, &[10, 11, 12, 13]).unwrap();
        storage
    };
    let newest = |storage: &SimStorage, path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = storage.file(path).unwrap();
        change(&mut bytes);
        storage.put_file(path, bytes);
        let crashed = storage.crash(0);
        let mut store = open(&crashed);
        let offset = store
            .latest()
            .unwrap()
            .map(|snapshot| snapshot.offset.get());
        // Nothing is changed before the database is there without it: a good copy may be put back.
        assert_eq!(files(&crashed, "damaged").len(), 0);
        store.rename_damaged().unwrap();
        store.rename_damaged().unwrap();
        assert_eq!(files(&crashed, "damaged").len(), 1);
        let problems: Vec<String> = store
            .problems()
            .iter()
            .map(|problem| problem.to_string())
            .collect();
        (offset, problems)
    };
    type Change = (&'static str, &'static dyn Fn(&mut Vec<u8>));
    let changes: [Change; 5] = [
        ("manifest", &|bytes| bytes[20] ^= 1),
        ("manifest", &|bytes| bytes.truncate(90)),
        ("manifest", &|bytes| bytes.clear()),
        ("pack", &|bytes| bytes[3] ^= 1),
        ("pack", &|bytes| bytes.truncate(bytes.len() - 1)),
    ];
    for (extension, change) in changes {
        let storage = sample();
        let path = files(&storage, extension).pop().unwrap();
        let (offset, problems) = newest(&storage, &path, change);
        assert_eq!((offset, problems.len()), (Some(1), 1), "{problems:?}");
        assert!(
            problems[0].starts_with("the snapshot at transaction 2 cannot be used: ")
                && problems[0].contains(&path.display().to_string())
                && problems[0].ends_with("[LC0521]"),
            "{problems:?}"
        );
    }
    // Damage inside an object shows when it is read.
    let storage = sample();
    let path = files(&storage, "pack").pop().unwrap();
    let mut bytes = storage.file(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    storage.put_file(&path, bytes);
    let mut store = open(&storage);
    let snapshot = store.latest().unwrap().unwrap();
    let problem = snapshot.verify().unwrap_err();
    assert!(
        matches!(&problem, SnapshotError::Damaged { file, .. } if *file == path),
        "{problem}"
    );
    store.set_aside(snapshot, problem);
    assert_eq!(store.latest().unwrap().unwrap().offset.get(), 1);
    store.rename_damaged().unwrap();
    assert_eq!(files(&storage, "damaged").len(), 1);
    // A damaged one does not count as kept.
    let storage = sample();
    let path = files(&storage, "manifest").pop().unwrap();
    storage.put_file(&path, vec![]);
    assert_eq!(open(&storage).prune(1).unwrap().snapshots, 0);
    assert_eq!(open(&storage).latest().unwrap().unwrap().offset.get(), 1);
}

#[test]
fn on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SnapshotStore::open(&directory.path().join("a/snapshots")).unwrap();
    let seeds: Vec<u64> = (0..500).collect();
    take(&store, 0, &seeds).unwrap();
    take(&store, 1, &seeds).unwrap();
    assert_eq!(check(&mut store, |_| seeds.clone()), Some(1));
    store.prune(1).unwrap();
    assert_eq!(check(&mut store, |_| seeds.clone()), Some(1));
}

#[test]
fn fuzz_entry_takes_anything() {
    let storage = SimStorage::new(0);
    take(&open(&storage), 3, &[1, 2, 3]).unwrap();
    let whole = storage.file(&files(&storage, "manifest")[0]).unwrap();
    fuzz_snapshot_manifest(&[]);
    fuzz_snapshot_manifest(&whole);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fuzz_snapshot_manifest(&bytes);
        fuzz_snapshot_manifest(&whole[..at]);
    }
}

/// Opening the store or taking a snapshot may meet the fault; nothing else may be wrong.
fn is_injected(error: &SnapshotError) -> bool {
    error.to_string().contains("injected")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever fails, however often the process is started again, and whenever the power goes: the newest snapshot is one
    /// that was finished, or one that was being finished later.
    #[test]
    fn crashes_faults_and_restarts(
        lives in prop::collection::vec((prop::collection::vec((prop::collection::vec(0..60u64, 0..30), any::<bool>()), 0..5), 0..7u8, 0..40u64, any::<u64>()), 1..5),
        short: bool,
        seed: u64,
    ) {
        let mut storage = SimStorage::new(seed);
        // What was tried at each offset, and the newest that was finished.
        let mut tried: Vec<Vec<u64>> = Vec::new();
        let mut finished = None;
        for (snapshots, fault, at, life_seed) in lives {
            let mut faults = Faults { short_writes: short, short_reads: short, ..Faults::default() };
            let done = storage.counts();
            match fault {
                0 => faults.fail_writes_from = Some(done.writes + at),
                1 | 2 => faults.fail_sync = Some(done.syncs + at / 3),
                3 => faults.fail_names_from = Some(done.names + at / 3),
                4 => faults.fail_read = Some(done.reads + at),
                5 => faults.fail_open = Some(done.opens + at / 2),
                _ => {}
            }
            storage.set_faults(faults);
            match SnapshotStore::open_on(Arc::new(storage.clone()), Path::new(DIRECTORY)) {
                Err(error) => prop_assert!(is_injected(&error), "{}", error),
                Ok(store) => for (seeds, prune) in snapshots {
                    let offset = tried.len() as u64;
                    tried.push(seeds.clone());
                    match take(&store, offset, &seeds) {
                        Ok(_) => finished = Some(offset),
                        Err(error) => prop_assert!(is_injected(&error), "{}", error),
                    }
                    if prune {
                        if let Err(error) = store.prune(2) {
                            prop_assert!(is_injected(&error), "{}", error);
                        }
                    }
                },
            }
            storage.set_faults(Faults::default());
            match life_seed % 3 {
                0 => {}
                1 => storage.evict(life_seed),
                _ => storage = storage.crash(life_seed),
            }
        }
        let mut store = open(&storage.crash(seed ^ 1));
        let found = check(&mut store, |offset| tried[offset as usize].clone());
        prop_assert!(found >= finished, "{:?} {:?}", found, finished);
        prop_assert_eq!(store.problems().len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever fails, and whenever the power goes: the newest snapshot is one that was finished, or the one
    /// that was being finished.
    #[test]
    fn crashes_and_faults(
        snapshots in prop::collection::vec((prop::collection::vec(0..60u64, 0..30), any::<bool>()), 1..8),
        fault in 0..4u8,
        at in 0..40u64,
        short_writes: bool,
        seed: u64,
    ) {
        let storage = SimStorage::new(seed);
        let mut store = open(&storage);
        let mut faults = Faults { short_writes, ..Faults::default() };
        match fault {
            0 => faults.fail_writes_from = Some(at),
            1 => faults.fail_sync = Some(at),
            2 => faults.fail_names_from = Some(at),
            _ => {}
        }
        storage.set_faults(faults);
        let mut finished = None;
        let mut tried = None;
        for (number, (seeds, prune)) in snapshots.iter().enumerate() {
            let offset = number as u64;
            tried = Some(offset);
            match take(&store, offset, seeds) {
                Ok(_) => finished = tried,
                Err(error) => {
                    prop_assert!(error.to_string().contains("injected"), "{}", error);
                    break;
                }
            }
            if *prune && store.prune(1).is_err() {
                break;
            }
            prop_assert_eq!(check(&mut store, |offset| snapshots[offset as usize].0.clone()), finished);
        }
        drop(store);
        let crashed = storage.crash(seed);
        let mut store = open(&crashed);
        let found = check(&mut store, |offset| snapshots[offset as usize].0.clone());
        prop_assert!(found >= finished && found <= tried, "{:?} {:?} {:?}", found, finished, tried);
        prop_assert_eq!(store.problems().len(), 0);
    }
}
