//! The log on a real disk, and its rules of use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{at, fill, open, payload, read_all, read_from, segments, DIRECTORY, EPOCH};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogError, LogOffset, LogOptions, MemoryLog};
use lightcone_storage::sim::SimStorage;

#[test]
fn on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b");
    for preallocate in [false, true] {
        let options = LogOptions {
            segment_bytes: 100_000,
            preallocate,
            ..LogOptions::default()
        };
        let (mut log, _) = LocalLog::open(&path, options.clone()).unwrap();
        assert!(matches!(
            LocalLog::open(&path, options.clone()),
            Err(LogError::Locked { .. })
        ));
        fill(&mut log, 100, 5000);
        let next = log.tail().next_offset;
        assert_eq!(read_all(&log).len() as u64, next.get());
        drop(log);
        let (log, recovery) = LocalLog::open(&path, options).unwrap();
        assert_eq!(
            (recovery.tail.next_offset, recovery.torn_bytes_cut),
            (next, 0)
        );
        let frames = read_from(&log, at(next.get() - 30));
        assert_eq!(frames.len(), 30);
        assert!(frames
            .iter()
            .all(|(first, _, bytes)| *bytes == payload(*first, 5000)));
    }
}

/// What opening has read is not read again by the replay, from any offset; the second reader reads the disk.
#[test]
fn the_last_segment_is_read_once() {
    let storage = SimStorage::new(0);
    let options = || LogOptions {
        segment_bytes: 4 << 20,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 25, 300_000);
    let expected = read_all(&log);
    assert_eq!(segments(&storage).len(), 2);
    log.close().unwrap();
    drop(log);
    // Thirteen frames fit a segment.
    let last_segment = at(13);
    for from_offset in [at(0), last_segment, at(23)] {
        let log = open(&storage, options(), EPOCH).0;
        let wanted = expected.iter().filter(|(first, ..)| *first >= from_offset);
        let wanted: Vec<_> = wanted.cloned().collect();
        let opened = storage.counts().reads;
        assert_eq!(read_from(&log, from_offset), wanted);
        let first_reads = storage.counts().reads - opened;
        assert_eq!(first_reads == 0, from_offset >= last_segment);
        assert_eq!(read_from(&log, from_offset), wanted);
        assert!(storage.counts().reads > opened + first_reads);
    }
    // What comes behind is read with it, or what was read is forgotten.
    for forgets in [false, true] {
        let mut log = open(&storage, options(), EPOCH).0;
        if forgets {
            log.forget_read();
        }
        let before = log.tail().next_offset.get() as usize;
        fill(&mut log, 1, 100);
        assert_eq!(read_all(&log).len(), before + 1);
    }
    // Nor is it taken for a segment that comes behind.
    let mut log = open(&storage, options(), EPOCH).0;
    let before = log.tail().next_offset.get() as usize;
    fill(&mut log, 14, 300_000);
    assert_eq!(segments(&storage).len(), 3);
    assert_eq!(read_all(&log).len(), before + 14);
}

#[test]
fn epochs_fence() {
    let storage = SimStorage::new(0);
    let epoch = Epoch::new;
    let mut log = open(&storage, LogOptions::default(), epoch(3)).0;
    let frame = |first_offset| Frame {
        first_offset: at(first_offset),
        count: 1,
        payload: &[b"x"],
    };
    let fences = |result: Result<(), LogError>, old: u64, new: u64| {
        let Err(LogError::Fenced { epoch, current }) = result else {
            panic!("not fenced: {result:?}");
        };
        assert_eq!((epoch.get(), current.get()), (old, new));
    };
    fences(log.append(epoch(2), frame(0)), 2, 3);
    log.append(epoch(3), frame(0)).unwrap();
    assert_eq!(log.raise_epoch(epoch(5)).unwrap().epoch, epoch(5));
    fences(log.append(epoch(3), frame(1)), 3, 5);
    fences(log.raise_epoch(epoch(4)).map(drop), 4, 5);
    log.append(epoch(5), frame(1)).unwrap();
    log.sync().unwrap();
    drop(log);
    // The log remembers its epoch, also if none is named.
    let reopen = |storage: SimStorage, number| {
        let (storage, options) = (Arc::new(storage), LogOptions::default());
        let (mut log, _) = LocalLog::open_on(storage, Path::new(DIRECTORY), options)?;
        log.raise_epoch(epoch(number)).map(drop)
    };
    fences(reopen(storage.clone(), 4), 4, 5);
    drop(open(&storage, LogOptions::default(), epoch(8)));
    fences(reopen(storage.crash(0), 7), 7, 8);
}

#[test]
fn unfit_frames_change_nothing() {
    let storage = SimStorage::new(0);
    let mut log = open(
        &storage,
        LogOptions {
            first_offset: at(10),
            ..LogOptions::default()
        },
        EPOCH,
    )
    .0;
    for (first_offset, count) in [(0, 1), (11, 1), (10, 0)] {
        let error = log
            .append(
                EPOCH,
                Frame {
                    first_offset: at(first_offset),
                    count,
                    payload: &[],
                },
            )
            .unwrap_err();
        assert!(matches!(error, LogError::BadFrame { .. }), "{error}");
    }
    log.append(
        EPOCH,
        Frame {
            first_offset: at(10),
            count: u32::MAX,
            payload: &[],
        },
    )
    .unwrap();
    log.sync().unwrap();
    assert_eq!(log.tail().durable_offset, at(10) + u64::from(u32::MAX));
    assert_eq!(read_all(&log), [(at(10), u32::MAX, Vec::new())]);
}

#[test]
fn trim_removes_whole_segments() {
    let storage = SimStorage::new(0);
    let options = LogOptions {
        segment_bytes: 5000,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options.clone(), EPOCH).0;
    fill(&mut log, 30, 200);
    assert_eq!(log.trim(at(2)).unwrap(), 0);
    assert_eq!(log.trim(at(10)).unwrap(), 3);
    let oldest = log.tail().oldest_offset;
    assert!(oldest > at(0) && oldest <= at(10));
    assert!(matches!(
        log.feed().read(at(oldest.get() - 1)).map(drop),
        Err(LogError::OutOfRange { .. })
    ));
    assert_eq!(read_all(&log).len() as u64, at(30) - oldest);
    // The last segment always stays.
    log.trim(LogOffset::MAX).unwrap();
    drop(log);
    let mut log = open(&storage.crash(5), options, EPOCH).0;
    assert_eq!(log.tail().next_offset, at(30));
    fill(&mut log, 1, 200);
}

#[test]
fn a_frame_larger_than_a_segment() {
    let storage = SimStorage::new(0);
    let options = LogOptions {
        segment_bytes: 8192,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options.clone(), EPOCH).0;
    fill(&mut log, 1, 3_000_000);
    fill(&mut log, 2, 100);
    fill(&mut log, 1, 2_000_000);
    drop(log);
    let log = open(&storage.crash(1), options, EPOCH).0;
    assert_eq!(
        read_all(&log)
            .iter()
            .map(|frame| frame.2.len())
            .collect::<Vec<_>>(),
        [3_000_000, 100, 100, 2_000_000]
    );
}

#[test]
fn memory_log() {
    let mut log = MemoryLog::new();
    let mut reader = log.feed().read(at(0)).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    let frame = |first_offset, count| Frame {
        first_offset: at(first_offset),
        count,
        payload: &[b"gone"],
    };
    log.append(Epoch::new(2), frame(0, 7)).unwrap();
    assert_eq!(log.tail().durable_offset, at(7));
    let fenced = log.append(EPOCH, frame(7, 1));
    assert!(matches!(fenced, Err(LogError::Fenced { .. })));
    let unfit = log.append(Epoch::new(2), frame(6, 1));
    assert!(matches!(unfit, Err(LogError::BadFrame { .. })));
    let early = log.feed().read(at(0)).map(|_| ());
    assert!(
        matches!(early, Err(LogError::OutOfRange { oldest, next, .. }) if (oldest, next) == (at(7), at(7)))
    );
    // It keeps nothing, so a reader is told that it missed something.
    assert!(reader.wait(Duration::ZERO).unwrap());
    assert!(reader.wait(Duration::MAX).unwrap());
    let missed = reader.next();
    assert!(
        matches!(missed, Err(LogError::LeftBehind { wanted, oldest }) if (wanted, oldest) == (at(0), at(7)))
    );
}
