//! Logs that others follow: readers beside the writer, cuts, and hashes that two nodes compare.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{at, fill, open, payload, read_all, read_on, segments, DIRECTORY, EPOCH};
use lightcone_log::{
    Epoch, Frame, FrameRef, LocalLog, Log, LogError, LogOffset, LogOptions, LogWriter,
    LogWriterOptions, MemoryLog, SEGMENTS_PINNED_MAX,
};
use lightcone_storage::sim::{Faults, SimStorage};

/// Four frames of `fill(…, 60)`.
fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 4096 + 500,
        preallocate: false,
        ..LogOptions::default()
    }
}

fn append(log: &mut LocalLog, epoch: Epoch, count: u32, bytes: &[u8]) {
    let first_offset = log.tail().next_offset;
    let frame = Frame {
        first_offset,
        count,
        payload: &[bytes],
    };
    log.append(epoch, frame).unwrap();
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn readers_follow_a_writer_from_any_offset() {
    let storage = SimStorage::new(1);
    let options = LogOptions {
        segment_bytes: 20_000,
        ..LogOptions::default()
    };
    let log = open(&storage, options, EPOCH).0;
    let writer = LogWriter::spawn(Box::new(log), LogWriterOptions::default(), Box::new(|_| {}));
    const TRANSACTIONS: u64 = 2000;
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut reader = writer.feed().read(at(0)).unwrap();
            scope.spawn(move || {
                let mut next = at(0);
                while next < at(TRANSACTIONS) {
                    assert!(reader.wait(LONG).unwrap(), "nothing comes behind {next}");
                    while let Some(frame) = reader.next().unwrap() {
                        assert_eq!(frame.first_offset, next);
                        let expected: Vec<u8> = (0..u64::from(frame.count))
                            .flat_map(|n| payload(next + n, 50))
                            .collect();
                        assert_eq!(frame.payload, expected);
                        next += u64::from(frame.count);
                        assert_eq!(reader.offset(), next);
                    }
                }
            });
        }
        for offset in (0..TRANSACTIONS).map(at) {
            writer.propose(offset, 1, payload(offset, 50)).unwrap();
        }
    });
    writer.wait_committed(at(TRANSACTIONS)).unwrap();
    // A reader that begins in the middle gets the frame around its offset, and a clone goes on by itself.
    let mut reader = writer.feed().read(at(777)).unwrap();
    let frame = reader.next().unwrap().unwrap();
    let behind = frame.first_offset + u64::from(frame.count);
    assert!(frame.first_offset <= at(777) && behind > at(777));
    let mut other = reader.clone();
    assert_eq!(read_on(&mut reader), read_on(&mut other));
    assert_eq!(other.offset(), at(TRANSACTIONS));
    // Nothing more: not at once, not after a while, and never when the log has ended.
    assert!(!other.wait(Duration::from_millis(1)).unwrap());
    let waiting = thread::spawn(move || other.wait(LONG));
    drop(writer.shutdown().unwrap());
    let ended = waiting.join().unwrap();
    assert!(matches!(ended, Err(LogError::Closed)), "{ended:?}");
}

#[test]
fn a_task_is_woken_for_what_is_durable_and_for_nothing_else() {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    let mut reader = log.feed().read(at(0)).unwrap();
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(flag.clone());
    let context = &mut Context::from_waker(&waker);
    assert!(reader.poll_ready(context).is_pending());
    append(&mut log, EPOCH, 1, b"first");
    assert!(!flag.0.load(Ordering::SeqCst), "it is not durable yet");
    assert_eq!(reader.next().unwrap(), None);
    log.sync().unwrap();
    assert!(flag.0.load(Ordering::SeqCst));
    assert!(matches!(reader.poll_ready(context), Poll::Ready(Ok(()))));
    assert_eq!(reader.next().unwrap().unwrap().payload, b"first");
    // A log that fails tells those who wait.
    assert!(reader.poll_ready(context).is_pending());
    let syncs = storage.counts().syncs;
    storage.set_faults(Faults {
        fail_sync: Some(syncs),
        ..Faults::default()
    });
    append(&mut log, EPOCH, 1, b"second");
    assert!(log.sync().is_err());
    let failed = reader.poll_ready(context);
    assert!(
        matches!(failed, Poll::Ready(Err(LogError::Poisoned { .. }))),
        "{failed:?}"
    );
    assert_eq!(reader.next().unwrap(), None, "it was never durable");
}

#[test]
fn a_reader_holds_what_it_needs_up_to_a_bound() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 10, 60);
    let mut slow = log.feed().read(at(5)).unwrap();
    // The segment of the reader is the second one.
    log.trim(at(8)).unwrap();
    assert_eq!(log.tail().oldest_offset, at(4));
    assert_eq!(slow.next().unwrap().unwrap().first_offset, at(5));
    let pinned = 4 * SEGMENTS_PINNED_MAX as u64;
    fill(&mut log, pinned - 2, 60);
    log.trim(LogOffset::MAX).unwrap();
    assert_eq!(log.tail().oldest_offset, at(4), "it is still held");
    fill(&mut log, 4, 60);
    log.trim(LogOffset::MAX).unwrap();
    assert!(log.tail().oldest_offset > at(4));
    // It has the file, and what is in it; then it is told.
    let mut told = None;
    while told.is_none() {
        match slow.next() {
            Ok(Some(frame)) => assert!(frame.first_offset < at(8)),
            Ok(None) => panic!("the reader takes the log for read"),
            Err(error) => told = Some(error),
        }
    }
    assert!(
        matches!(told, Some(LogError::LeftBehind { wanted, .. }) if wanted == at(8)),
        "{told:?}"
    );
    // Who has gone holds nothing.
    let reader = log.feed().read(log.tail().oldest_offset).unwrap();
    drop(reader.clone());
    drop(reader);
    log.trim(LogOffset::MAX).unwrap();
    assert_eq!(segments(&storage).len(), 1);
}

#[test]
fn segments_are_told_with_their_bytes() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 10, 60);
    let told = log.feed().segment_bytes().unwrap();
    let starts: Vec<_> = told.iter().map(|(start, _)| *start).collect();
    assert_eq!(starts, [at(0), at(4), at(8)]);
    assert!(told.iter().all(|(_, bytes)| *bytes > 4 * 60));
    log.trim(at(8)).unwrap();
    assert_eq!(log.feed().segment_bytes().unwrap(), told[2..]);
}

/// Its segment may be gone, if it has the file and the next segment is there.
#[test]
fn a_reader_goes_on_behind_a_trimmed_segment() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 1, 60);
    // It knows of one frame.
    let mut slow = log.feed().read(at(0)).unwrap();
    let frames = 4 * (SEGMENTS_PINNED_MAX as u64 + 2);
    fill(&mut log, frames - 1, 60);
    let _holds_the_next = log.feed().read(at(4)).unwrap();
    log.trim(LogOffset::MAX).unwrap();
    assert_eq!(log.tail().oldest_offset, at(4));
    assert_eq!(read_on(&mut slow).len() as u64, frames);
}

/// The wanted transaction is inside of a frame that the cut has left.
#[test]
fn a_cut_behind_the_frame_of_a_reader_that_has_begun_nothing() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    append(&mut log, EPOCH, 5, b"five");
    append(&mut log, EPOCH, 1, b"one");
    log.sync().unwrap();
    let mut reader = log.feed().read(at(3)).unwrap();
    log.truncate_from(at(5)).unwrap();
    assert_eq!(read_on(&mut reader), [(at(0), 5, b"five".to_vec())]);
}

/// Only their number of cuts says that they are that, so they go one opening later.
#[test]
fn segments_that_a_cut_has_left_are_set_aside() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 11, 60);
    let paths = segments(&storage);
    let left: Vec<_> = paths.iter().map(|path| storage.file(path)).collect();
    // The copy is made and named; then nothing more.
    storage.set_faults(Faults {
        fail_names_from: Some(storage.counts().names + 2),
        ..Faults::default()
    });
    assert!(log.truncate_from(at(2)).is_err());
    assert_eq!(segments(&storage), paths);
    drop(log);
    storage.set_faults(Faults::default());
    let log = open(&storage, options(), EPOCH).0;
    assert_eq!(read_all(&log).len(), 2);
    assert_eq!(segments(&storage), paths[..1]);
    let aside = |path: &PathBuf| path.with_extension("segment.cut");
    for (path, bytes) in paths.iter().zip(left).skip(1) {
        assert_eq!(storage.file(&aside(path)), bytes);
    }
    drop(log);
    // What a repair took out stays.
    let repaired = paths[1].with_extension("segment.removed");
    storage.put_file(&repaired, b"repaired".to_vec());
    let log = open(&storage, options(), EPOCH).0;
    assert_eq!(read_all(&log).len(), 2);
    for path in &paths[1..] {
        assert_eq!(storage.file(&aside(path)), None);
    }
    assert_eq!(storage.file(&repaired), Some(b"repaired".to_vec()));
}

#[test]
fn a_number_of_cuts_without_a_next_one_is_damage() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 2, 60);
    drop(log);
    let path = &segments(&storage)[0];
    let mut bytes = storage.file(path).unwrap();
    bytes[104..112].fill(0xff);
    let checked = [&bytes[..12], &bytes[16..4096]].concat();
    bytes[12..16].copy_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
    storage.put_file(path, bytes);
    let mut log = open(&storage, options(), EPOCH).0;
    let error = log.truncate_from(at(1)).unwrap_err().to_string();
    assert!(error.contains("there is no number after that"), "{error}");
}

#[test]
fn a_cut_without_space_leaves_no_copy() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 4, 60);
    let bytes = storage.file(&segments(&storage)[0]).unwrap().len();
    storage.set_faults(Faults {
        full_at_bytes: Some(bytes as u64 + 100),
        ..Faults::default()
    });
    let cut = log.truncate_from(at(3));
    assert!(matches!(cut, Err(LogError::Poisoned { .. })), "{cut:?}");
    assert_eq!(segments(&storage).len(), 1);
    let is_copy = |path: &std::path::PathBuf| path.ends_with("copy.tmp");
    assert!(!storage.files().iter().any(is_copy));
}

#[test]
fn a_cut_reaches_readers() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 11, 60);
    let feed = log.feed();
    let reader_at = |offset: u64| {
        let mut reader = feed.read(at(0)).unwrap();
        while reader.offset() < at(offset) {
            reader.next().unwrap().unwrap();
        }
        reader
    };
    let (mut before, mut on, mut behind) = (reader_at(2), reader_at(6), reader_at(9));
    // The one in the segment of the cut, the other behind it.
    let mut not_begun = [7, 9].map(|offset| feed.read(at(offset)).unwrap());
    let mut begins_before = feed.read(at(5)).unwrap();
    log.raise_epoch(Epoch::new(4)).unwrap();
    let inside = |log: &mut LocalLog, offset| log.truncate_from(at(offset)).map(drop);
    assert_eq!(log.truncate_from(at(6)).unwrap().next_offset, at(6));
    append(&mut log, Epoch::new(4), 5, b"five others");
    log.sync().unwrap();
    assert!(matches!(
        inside(&mut log, 8),
        Err(LogError::InsideFrame { first_offset, next_offset, .. })
            if (first_offset, next_offset) == (at(6), at(11))
    ));
    assert!(matches!(
        inside(&mut log, 12),
        Err(LogError::OutOfRange { .. })
    ));
    let others = [(at(6), 5, b"five others".to_vec())];
    assert_eq!(read_on(&mut on), others);
    let frames = read_on(&mut before);
    assert_eq!(frames.last(), others.last());
    assert_eq!(frames.iter().map(|frame| frame.1).sum::<u32>(), 9);
    let told = behind.next().map(drop);
    assert!(
        matches!(told, Err(LogError::CutAway { offset }) if offset == at(9)),
        "{told:?}"
    );
    // Who begins there counts on what was before.
    for reader in &mut not_begun {
        let wanted = reader.offset();
        let told = reader.next().map(drop);
        assert!(
            matches!(told, Err(LogError::CutAway { offset }) if offset == wanted),
            "{wanted}: {told:?}"
        );
    }
    assert_eq!(read_on(&mut begins_before).len(), 2);
    assert_eq!(read_all(&log).len(), 7);
}

/// At each write, sync, name and open of a cut something fails, or the power does: the log is the old or the new one.
#[test]
fn a_cut_is_made_as_a_whole_or_not_at_all() {
    for (to, frames) in [(at(0), 0), (at(4), 4), (at(6), 6), (at(17), 17)] {
        let (mut old, mut new) = (0, 0);
        for failing in 0..60 {
            let storage = SimStorage::new(failing);
            let mut log = open(&storage, options(), EPOCH).0;
            // The later segments come from behind another cut.
            fill(&mut log, 20, 60);
            log.truncate_from(at(14)).unwrap();
            fill(&mut log, 4, 60);
            log.raise_epoch(Epoch::new(7)).unwrap();
            let before = read_all(&log);
            let done = storage.counts();
            let nth = failing / 4;
            storage.set_faults(match failing % 4 {
                0 => Faults {
                    fail_writes_from: Some(done.writes + nth),
                    ..Faults::default()
                },
                1 => Faults {
                    fail_sync: Some(done.syncs + nth),
                    ..Faults::default()
                },
                2 => Faults {
                    fail_names_from: Some(done.names + nth),
                    ..Faults::default()
                },
                _ => Faults {
                    fail_open: Some(done.opens + nth),
                    ..Faults::default()
                },
            });
            let cut = log.truncate_from(to);
            if let Err(error) = &cut {
                assert!(error.to_string().contains("injected"), "{error}");
            }
            drop(log);
            let storage = match failing % 3 {
                0 => storage,
                _ => storage.crash(failing),
            };
            storage.set_faults(Faults::default());
            let (mut log, recovery) =
                LocalLog::open_on(Arc::new(storage.clone()), Path::new(DIRECTORY), options())
                    .unwrap();
            assert_eq!(
                recovery.tail.epoch,
                Epoch::new(7),
                "the epoch does not fall"
            );
            let after = read_all(&log);
            match after.len() {
                18 => old += 1,
                _ => new += 1,
            }
            if cut.is_ok() || after.len() != 18 {
                assert_eq!(after, before[..frames], "cut before {to}, fault {failing}");
            }
            fill(&mut log, 9, 60);
            drop(log);
            let log = open(&storage.crash(failing), options(), Epoch::new(7)).0;
            let again = read_all(&log);
            assert_eq!(again[..after.len()], after);
            assert_eq!(again.len(), after.len() + 9);
        }
        assert!(
            old > 4 && new > 4,
            "{old} kept the old log, {new} have the new one"
        );
    }
}

/// Nodes have other segments, restart at other times and are cut, and compare what they have.
#[test]
fn hashes_say_what_is_in_a_log_and_not_where() {
    let (one, other) = (SimStorage::new(1), SimStorage::new(2));
    let mut leader = open(&one, options(), EPOCH).0;
    let large = LogOptions {
        segment_bytes: 1 << 20,
        ..LogOptions::default()
    };
    let mut follower = open(&other, large.clone(), EPOCH).0;
    let copy = |leader: &LocalLog, follower: &mut LocalLog| {
        let mut reader = leader.feed().read(follower.tail().next_offset).unwrap();
        while let Some(frame) = reader.next().unwrap() {
            let (first_offset, count) = (frame.first_offset, frame.count);
            let payload: &[&[u8]] = &[frame.payload];
            let copied = Frame {
                first_offset,
                count,
                payload,
            };
            follower.append(frame.epoch, copied).unwrap();
            assert_eq!(follower.tail().hash, frame.hash);
        }
        follower.sync().unwrap();
    };
    fill(&mut leader, 9, 60);
    copy(&leader, &mut follower);
    follower.close().unwrap();
    drop(follower);
    let mut follower = open(&other.crash(1), large, EPOCH).0;
    leader.raise_epoch(Epoch::new(2)).unwrap();
    append(&mut leader, Epoch::new(2), 3, b"three at once");
    leader.sync().unwrap();
    copy(&leader, &mut follower);
    assert_eq!(follower.tail().epoch, Epoch::new(2));
    let hash = |log: &LocalLog, offset| log.feed().hash_at(at(offset)).unwrap();
    for offset in 0..=12 {
        assert_eq!(hash(&leader, offset), hash(&follower, offset));
        // Inside of a frame there is none.
        assert_eq!(hash(&leader, offset).is_none(), (10..12).contains(&offset));
    }
    // The wrong tail of an old leader: the hashes part where it begins, and are the same again when it is gone.
    append(
        &mut follower,
        Epoch::new(2),
        1,
        b"what the old leader wrote",
    );
    append(&mut leader, Epoch::new(3), 1, b"what the old leader wrote");
    follower.sync().unwrap();
    leader.sync().unwrap();
    assert_ne!(hash(&leader, 13), hash(&follower, 13), "the epochs differ");
    follower.truncate_from(at(12)).unwrap();
    copy(&leader, &mut follower);
    assert_eq!(leader.tail().hash, follower.tail().hash);
}

/// A damaged hash, or a frame with an older epoch that follows by its hash, is no torn tail.
#[test]
fn an_older_epoch_after_a_newer_one_is_damage() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, LogOptions::default(), Epoch::new(5)).0;
    let salt = u64::from_le_bytes(
        storage.file(&segments(&storage)[0]).unwrap()[88..96]
            .try_into()
            .unwrap(),
    );
    append(&mut log, Epoch::new(5), 1, b"new");
    log.sync().unwrap();
    // Behind two marks.
    let end = 4096 + 3 * 52 + 3;
    let hash_before = log.tail().hash;
    drop(log);
    // The frame that a program without fencing would write: all of it is right, but for the epoch.
    let mut hashed = hash_before.to_le_bytes().to_vec();
    let (epoch, first_offset) = (4u64.to_le_bytes(), 1u64.to_le_bytes());
    hashed.extend(epoch);
    hashed.extend(first_offset);
    hashed.extend(1u32.to_le_bytes());
    hashed.extend(b"old");
    let mut frame = b"LCF2____".to_vec();
    frame.extend([3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend(first_offset);
    frame.extend(epoch);
    frame.extend(&blake3::hash(&hashed).as_bytes()[..16]);
    let place = [salt, end as u64].map(u64::to_le_bytes).concat();
    let checked = [&place, &frame[..4], &frame[8..]].concat();
    frame.splice(4..8, crc32c::crc32c(&checked).to_le_bytes());
    frame.extend(b"old");
    let path = &segments(&storage)[0];
    let mut bytes = storage.file(path).unwrap();
    bytes[end..end + frame.len()].copy_from_slice(&frame);
    storage.put_file(path, bytes);
    let opened = LocalLog::open_on(
        Arc::new(storage.clone()),
        Path::new(DIRECTORY),
        LogOptions::default(),
    );
    let error = opened.map(drop).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the frame has epoch 4, but the log was at epoch 5"),
        "{error}"
    );
}

/// Segments from before a cut, or of another life of the log, do not join.
#[test]
fn an_old_segment_that_is_put_back_is_found() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 11, 60);
    let paths = segments(&storage);
    let old: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| storage.file(path).unwrap())
        .collect();
    log.truncate_from(at(2)).unwrap();
    for number in 0..12u8 {
        append(&mut log, EPOCH, 1, &[number; 60]);
    }
    log.sync().unwrap();
    let expected = read_all(&log);
    drop(log);
    let new: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| storage.file(path).unwrap())
        .collect();
    assert_ne!(old, new);
    let try_read = || {
        let storage = Arc::new(storage.clone());
        let (log, _) = LocalLog::open_on(storage, Path::new(DIRECTORY), options())?;
        let mut reader = log.feed().read(at(0))?;
        while reader.next()?.is_some() {}
        Ok(read_all(&log))
    };
    for (number, path) in paths.iter().enumerate() {
        storage.put_file(path, old[number].clone());
        let error: LogError = try_read().unwrap_err();
        assert!(
            matches!(&error, LogError::Damaged { .. } | LogError::Gap { .. }),
            "{error}"
        );
        storage.put_file(path, new[number].clone());
        assert_eq!(try_read().unwrap(), expected);
    }
}

/// All frames of a log behind those that the other one has.
fn follow_all(leader: &LocalLog, epoch: Epoch, follower: &mut LocalLog) -> Result<(), LogError> {
    let mut reader = leader.feed().read(follower.tail().next_offset)?;
    while let Some(frame) = reader.next()? {
        follower.follow(epoch, frame)?;
        assert_eq!(follower.tail().hash, frame.hash);
    }
    follower.sync()
}

/// The epochs of all frames.
fn epochs(log: &LocalLog) -> Vec<u64> {
    let mut reader = log.feed().read(at(0)).unwrap();
    let mut epochs = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        epochs.push(frame.epoch.get());
    }
    epochs
}

/// A new leader has frames of those before it, which its followers lack, and to whom they have promised to listen to no older one.
#[test]
fn frames_of_older_epochs_come_from_a_newer_leader() {
    let (one, other) = (SimStorage::new(1), SimStorage::new(2));
    let mut leader = open(&one, LogOptions::default(), EPOCH).0;
    let mut follower = open(&other, options(), EPOCH).0;
    fill(&mut leader, 6, 60);
    follow_all(&leader, EPOCH, &mut follower).unwrap();
    fill(&mut leader, 3, 60);
    leader.raise_epoch(Epoch::new(3)).unwrap();
    fill(&mut leader, 3, 60);
    leader.raise_epoch(Epoch::new(5)).unwrap();
    follow_all(&leader, Epoch::new(5), &mut follower).unwrap();
    let expected = [[1; 9].as_slice(), &[3; 3]].concat();
    for number in 0..4 {
        assert_eq!(epochs(&follower), expected);
        let tail = follower.tail();
        assert_eq!((tail.epoch, tail.hash), (Epoch::new(5), leader.tail().hash));
        let fenced = |result: Result<(), LogError>| {
            assert!(
                matches!(result, Err(LogError::Fenced { current, .. }) if current.get() == 5),
                "{result:?}"
            );
        };
        fenced(follower.raise_epoch(Epoch::new(4)).map(drop));
        let mut reader = leader.feed().read(at(0)).unwrap();
        let frame = reader.next().unwrap().unwrap();
        fenced(follower.follow(Epoch::new(4), frame));
        let payload = &[b"an old leader".as_slice()];
        let own = Frame {
            first_offset: tail.next_offset,
            count: 1,
            payload,
        };
        fenced(follower.append(Epoch::new(3), own));
        assert_eq!(follower.tail(), tail);
        drop(follower);
        let storage = other.crash(number);
        let options = options();
        follower = LocalLog::open_on(Arc::new(storage), Path::new(DIRECTORY), options)
            .unwrap()
            .0;
    }
    // A cut leaves the promise, and what is appended has a newer epoch than all before.
    follower.truncate_from(at(7)).unwrap();
    assert_eq!(follower.tail().epoch, Epoch::new(5));
    follow_all(&leader, Epoch::new(5), &mut follower).unwrap();
    append(&mut follower, Epoch::new(5), 1, b"own");
    follower.sync().unwrap();
    assert_eq!(epochs(&follower), [expected, vec![5]].concat());
}

#[test]
fn a_frame_that_does_not_follow_is_not_taken() {
    let (one, other) = (SimStorage::new(1), SimStorage::new(2));
    let mut leader = open(&one, options(), Epoch::new(2)).0;
    let mut follower = open(&other, options(), EPOCH).0;
    fill(&mut leader, 2, 60);
    let mut reader = leader.feed().read(at(0)).unwrap();
    let first = reader.next().unwrap().unwrap();
    follower.follow(Epoch::new(2), first).unwrap();
    follower.sync().unwrap();
    let good = reader.next().unwrap().unwrap();
    let changed = [good.payload, b"!"].concat();
    let hash_in = |epoch| {
        let payload = [good.payload];
        let before = follower.tail().hash;
        before.after(epoch, good.first_offset, good.count, &payload)
    };
    let in_epoch = |number| {
        let epoch = Epoch::new(number);
        let hash = hash_in(epoch);
        FrameRef {
            epoch,
            hash,
            ..good
        }
    };
    let wrong = [
        FrameRef {
            payload: &changed,
            ..good
        },
        FrameRef { count: 2, ..good },
        FrameRef {
            first_offset: at(2),
            ..good
        },
        // They follow by their hash.
        in_epoch(1),
        in_epoch(3),
    ];
    let tail = follower.tail();
    for frame in wrong {
        let taken = follower.follow(Epoch::new(2), frame);
        assert!(matches!(taken, Err(LogError::BadFrame { .. })), "{taken:?}");
        assert_eq!(follower.tail(), tail);
    }
    follower.follow(Epoch::new(2), good).unwrap();
    follower.sync().unwrap();
    assert_eq!(read_all(&follower), read_all(&leader));
    // One that keeps nothing has no history.
    let taken = MemoryLog::new().follow(Epoch::new(2), good);
    assert!(matches!(taken, Err(LogError::BadFrame { .. })), "{taken:?}");
}
