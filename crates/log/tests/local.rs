//! The log on a real disk, and its rules of use.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{fill, open, payload, read_all, read_from, DIRECTORY};
use lightcone_log::{Frame, LocalLog, Log, LogError, LogOptions, MemoryLog};
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
        let (mut log, _) = LocalLog::open(&path, options.clone(), 1).unwrap();
        assert!(matches!(
            LocalLog::open(&path, options.clone(), 1),
            Err(LogError::Locked { .. })
        ));
        fill(&mut log, 100, 5000);
        let next = log.tail().next_offset;
        assert_eq!(read_all(&log).len() as u64, next);
        drop(log);
        let (log, recovery) = LocalLog::open(&path, options, 1).unwrap();
        assert_eq!(
            (recovery.tail.next_offset, recovery.torn_bytes_cut),
            (next, 0)
        );
        let frames = read_from(&log, next - 30);
        assert_eq!(frames.len(), 30);
        assert!(frames
            .iter()
            .all(|(first, _, bytes)| *bytes == payload(*first, 5000)));
    }
}

#[test]
fn epochs_fence() {
    let storage = SimStorage::new(0);
    let mut log = open(&storage, LogOptions::default(), 3).0;
    let frame = |first_offset| Frame {
        first_offset,
        count: 1,
        payload: &[b"x"],
    };
    assert!(matches!(
        log.append(2, frame(0)),
        Err(LogError::Fenced {
            epoch: 2,
            current: 3
        })
    ));
    log.append(3, frame(0)).unwrap();
    assert_eq!(log.seal(5).unwrap().epoch, 5);
    assert!(matches!(
        log.append(3, frame(1)),
        Err(LogError::Fenced {
            epoch: 3,
            current: 5
        })
    ));
    assert!(matches!(log.seal(4), Err(LogError::Fenced { .. })));
    log.append(5, frame(1)).unwrap();
    log.sync().unwrap();
    drop(log);
    let reopened = LocalLog::open_on(
        Arc::new(storage.clone()),
        Path::new(DIRECTORY),
        LogOptions::default(),
        4,
    );
    assert!(matches!(
        reopened,
        Err(LogError::Fenced {
            epoch: 4,
            current: 5
        })
    ));
    drop(open(&storage, LogOptions::default(), 8));
    let reopened = LocalLog::open_on(
        Arc::new(storage.crash(0)),
        Path::new(DIRECTORY),
        LogOptions::default(),
        7,
    );
    assert!(matches!(
        reopened,
        Err(LogError::Fenced {
            epoch: 7,
            current: 8
        })
    ));
}

#[test]
fn unfit_frames_change_nothing() {
    let storage = SimStorage::new(0);
    let mut log = open(
        &storage,
        LogOptions {
            first_offset: 10,
            ..LogOptions::default()
        },
        0,
    )
    .0;
    for (first_offset, count) in [(0, 1), (11, 1), (10, 0)] {
        let error = log
            .append(
                0,
                Frame {
                    first_offset,
                    count,
                    payload: &[],
                },
            )
            .unwrap_err();
        assert!(matches!(error, LogError::BadFrame { .. }), "{error}");
    }
    log.append(
        0,
        Frame {
            first_offset: 10,
            count: u32::MAX,
            payload: &[],
        },
    )
    .unwrap();
    log.sync().unwrap();
    assert_eq!(log.tail().synced_offset, 10 + u64::from(u32::MAX));
    assert_eq!(read_all(&log), [(10, u32::MAX, Vec::new())]);
}

#[test]
fn trim_removes_whole_segments() {
    let storage = SimStorage::new(0);
    let options = LogOptions {
        segment_bytes: 5000,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options.clone(), 0).0;
    fill(&mut log, 30, 200);
    assert_eq!(log.trim(2).unwrap(), 0);
    assert_eq!(log.trim(10).unwrap(), 3);
    let oldest = log.tail().oldest_offset;
    assert!(oldest > 0 && oldest <= 10);
    assert!(matches!(
        log.read(oldest - 1),
        Err(LogError::OutOfRange { .. })
    ));
    assert_eq!(read_all(&log).len() as u64, 30 - oldest);
    // The last segment always stays.
    log.trim(u64::MAX).unwrap();
    drop(log);
    let mut log = open(&storage.crash(5), options, 0).0;
    assert_eq!(log.tail().next_offset, 30);
    fill(&mut log, 1, 200);
}

#[test]
fn a_frame_larger_than_a_segment() {
    let storage = SimStorage::new(0);
    let options = LogOptions {
        segment_bytes: 8192,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options.clone(), 0).0;
    fill(&mut log, 1, 3_000_000);
    fill(&mut log, 2, 100);
    fill(&mut log, 1, 2_000_000);
    drop(log);
    let log = open(&storage.crash(1), options, 0).0;
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
    let mut log = MemoryLog::retaining();
    for first_offset in 0..5 {
        log.append(
            1,
            Frame {
                first_offset,
                count: 1,
                payload: &[&[first_offset as u8], b"!"],
            },
        )
        .unwrap();
    }
    assert_eq!(log.tail().synced_offset, 5);
    assert_eq!(
        read_from(&log, 3),
        [(3, 1, vec![3, b'!']), (4, 1, vec![4, b'!'])]
    );
    assert_eq!(log.trim(2).unwrap(), 2);
    assert!(matches!(log.read(1), Err(LogError::OutOfRange { .. })));
    assert!(matches!(
        log.append(
            0,
            Frame {
                first_offset: 5,
                count: 1,
                payload: &[]
            }
        ),
        Err(LogError::Fenced { .. })
    ));
    let mut log = MemoryLog::new();
    log.append(
        0,
        Frame {
            first_offset: 0,
            count: 7,
            payload: &[b"gone"],
        },
    )
    .unwrap();
    assert_eq!(read_all(&log), []);
    assert!(matches!(
        log.read(0),
        Err(LogError::OutOfRange {
            oldest: 7,
            next: 7,
            ..
        })
    ));
}
