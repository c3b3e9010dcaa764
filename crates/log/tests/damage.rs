//! Damage: found wherever it is, named, never silently cut; and repaired on request only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{at, fill, open, payload, read_all, read_from, segments, DIRECTORY, EPOCH};
use crate::log_segment::fuzz_segment;
use lightcone_log::{
    repair_on, Epoch, FilePosition, LocalLog, Log, LogCheck, LogError, LogOffset, LogOptions,
};
use lightcone_storage::sim::SimStorage;
use lightcone_storage::Storage as _;

const HEADER: usize = 4096;

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 4096 + 500,
        preallocate: false,
        ..LogOptions::default()
    }
}

/// Opens and reads everything; the number of transactions, or the first error.
fn open_and_read(storage: &SimStorage, options: LogOptions) -> Result<u64, LogError> {
    let (log, recovery) =
        LocalLog::open_on(Arc::new(storage.clone()), Path::new(DIRECTORY), options)?;
    let mut reader = log.feed().read(recovery.tail.oldest_offset)?;
    let mut next = recovery.tail.oldest_offset;
    while let Some(frame) = reader.next()? {
        assert_eq!(frame.first_offset, next);
        assert_eq!(frame.payload, payload(next, 60));
        next += u64::from(frame.count);
    }
    assert_eq!(next, recovery.tail.next_offset);
    Ok(next.get())
}

/// Three segments: four frames, four frames, three frames.
fn sample(close: bool) -> SimStorage {
    let storage = SimStorage::new(7);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 11, 60);
    if close {
        log.close().unwrap();
    }
    assert_eq!(segments(&storage).len(), 3);
    storage.crash(0)
}

#[test]
fn every_flipped_bit_is_found_and_named() {
    for close in [false, true] {
        let storage = sample(close);
        let frame = 52 + 60;
        for (number, path) in segments(&storage).iter().enumerate() {
            let whole = storage.file(path).unwrap();
            let last = number == 2;
            for byte in 0..whole.len() {
                // All bits where it matters; one bit per byte in the padding of the header block.
                let bits = if (120..HEADER).contains(&byte) {
                    0..1
                } else {
                    0..8
                };
                for bit in bits {
                    let mut bytes = whole.clone();
                    bytes[byte] ^= 1 << bit;
                    storage.put_file(path, bytes);
                    let result = open_and_read(&storage.crash(0), options());
                    let frame_start = match byte {
                        _ if byte < HEADER => 0,
                        _ => HEADER + (byte - HEADER) / frame * frame,
                    };
                    if last && frame_start + frame >= whole.len() {
                        // The last frame, or the closing mark: as good as a torn tail.
                        let kept = if close { 11 } else { 10 };
                        assert_eq!(result.unwrap(), kept, "byte {byte} bit {bit}");
                        continue;
                    }
                    match result {
                        Err(LogError::Damaged {
                            file, byte_offset, ..
                        }) => {
                            assert_eq!(
                                (&file, byte_offset),
                                (path, FilePosition::new(frame_start as u64)),
                                "byte {byte} bit {bit}"
                            )
                        }
                        other => panic!("{} byte {byte} bit {bit}: {other:?}", path.display()),
                    }
                }
            }
            storage.put_file(path, whole);
        }
    }
}

fn to_the_end(mut check: LogCheck) -> Result<(), LogError> {
    while check.step()?.is_some() {}
    Ok(())
}

/// Reads what a recovery from a snapshot at `from` would read of a closed log.
fn check(storage: &SimStorage, from: LogOffset) -> Result<(), LogError> {
    let (disk, database) = (Arc::new(storage.clone()), options().database);
    LogCheck::of_closed(disk, Path::new(DIRECTORY), &database, from).and_then(to_the_end)
}

#[test]
fn a_check_says_what_recovery_says() {
    let storage = sample(true);
    let paths = segments(&storage);
    let text = |error: LogError| error.to_string();
    for path in &paths {
        let length = storage.file(path).expect("it is there").len();
        for byte in (0..120).chain(HEADER..length) {
            let rotten = storage.crash(0);
            rotten.rot(path, byte as u64, (byte % 8) as u8);
            let files = rotten.files();
            let checked = check(&rotten, at(0)).err().map(text);
            assert_eq!(rotten.files(), files, "nothing is changed");
            let opened = open_and_read(&rotten, options()).err().map(text);
            assert_eq!(checked, opened, "{} byte {byte}", path.display());
        }
    }
    // A payload before the snapshot is not needed, one of the last segment is.
    let payload_of = |frame: usize| (HEADER + frame * 112 + 52) as u64;
    for (segment, frame, from, is_needed) in [
        (0, 3, 4, false),
        (0, 3, 3, true),
        (1, 2, 7, false),
        (1, 2, 6, true),
        (2, 0, 11, true),
    ] {
        let rotten = storage.crash(0);
        rotten.rot(&paths[segment], payload_of(frame), 1);
        let is_found = check(&rotten, at(from)).is_err();
        assert_eq!(is_found, is_needed, "frame {frame} of segment {segment}");
    }
    let trimmed = storage.crash(0);
    trimmed.remove(&paths[0]).expect("it is there");
    for (from, is_there) in [(3, false), (4, true), (11, true), (12, false)] {
        assert_eq!(check(&trimmed, at(from)).is_ok(), is_there, "from {from}");
    }
    assert!(check(&SimStorage::new(0), at(0)).is_err());
}

#[test]
fn a_log_is_checked_while_it_is_written() {
    let storage = SimStorage::new(7);
    let preallocated = LogOptions {
        segment_bytes: 1 << 13,
        ..LogOptions::default()
    };
    let mut log = open(&storage, preallocated, EPOCH).0;
    fill(&mut log, 100, 60);
    let begun = LogCheck::of_open(&log.feed(), at(0)).expect("it is whole");
    fill(&mut log, 7, 60);
    to_the_end(begun).expect("what is being written is not looked at");
    let check = |log: &LocalLog| LogCheck::of_open(&log.feed(), at(0)).and_then(to_the_end);
    check(&log).expect("it is whole");
    let paths = segments(&storage);
    for path in [&paths[0], paths.last().expect("some")] {
        storage.rot(path, HEADER as u64 + 60, 1);
        let found = check(&log).expect_err("it is damaged");
        assert!(
            matches!(&found, LogError::Damaged { file, byte_offset, .. }
                if file == path && byte_offset.get() == HEADER as u64),
            "{found}"
        );
        storage.rot(path, HEADER as u64 + 60, 1);
    }
    // Trimming is not held up by a check.
    let mut begun = LogCheck::of_open(&log.feed(), at(0)).expect("it is whole");
    assert!(log.trim(at(50)).expect("the disk works") > 0);
    while let Ok(Some(_)) = begun.step() {}
    check(&log).expect_err("the first transactions are gone");
    LogCheck::of_open(&log.feed(), at(50))
        .and_then(to_the_end)
        .expect("the others are whole");
}

#[test]
fn damage_in_a_preallocated_segment_is_found() {
    let storage = SimStorage::new(3);
    let options = || LogOptions {
        segment_bytes: 1 << 16,
        ..LogOptions::default()
    };
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 20, 60);
    drop(log);
    let path = &segments(&storage)[0];
    let whole = storage.file(path).unwrap();
    assert!(whole.len() >= 1 << 16);
    // A whole frame zeroed, as a lost write would leave it.
    let mut bytes = whole.clone();
    bytes[HEADER + 5 * 112..HEADER + 6 * 112].fill(0);
    storage.put_file(path, bytes);
    let error = open_and_read(&storage, options()).unwrap_err();
    assert!(
        matches!(&error, LogError::Damaged { byte_offset, .. } if byte_offset.get() == (HEADER + 5 * 112) as u64),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("zeros where a frame is expected"),
        "{error}"
    );
    assert!(error.to_string().ends_with("[LC0503]"));
    // Rubbish after the end is a torn tail.
    let mut bytes = whole.clone();
    bytes[HEADER + 20 * 112 + 300] = 1;
    storage.put_file(path, bytes);
    let (_, recovery) = open(&storage, options(), EPOCH);
    assert_eq!(
        (recovery.tail.next_offset, recovery.torn_bytes_cut),
        (at(20), 301)
    );
    assert_eq!(storage.file(path).unwrap(), whole);
}

/// What a segment had when it got its name was on the disk, so nothing of it is a torn tail.
#[test]
fn the_end_of_a_copied_segment_is_no_torn_tail() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 4, 60);
    // It is a copy from now on.
    log.truncate_from(at(3)).unwrap();
    drop(log);
    let path = &segments(&storage)[0];
    let whole = storage.file(path).unwrap();
    assert_eq!(whole.len(), HEADER + 3 * 112);
    assert_eq!(open_and_read(&storage.crash(0), options()).unwrap(), 3);
    let finds = |bytes: Vec<u8>, place: usize| {
        let frame_start = (HEADER + (place - HEADER) / 112 * 112) as u64;
        storage.put_file(path, bytes);
        let result = open_and_read(&storage.crash(0), options());
        assert!(
            matches!(&result, Err(LogError::Damaged { byte_offset, .. }) if byte_offset.get() == frame_start),
            "byte {place}: {result:?}"
        );
    };
    for byte in HEADER..whole.len() {
        let mut flipped = whole.clone();
        flipped[byte] ^= 4;
        finds(flipped, byte);
        finds(whole[..byte].to_vec(), byte);
        let mut zeroed = whole.clone();
        let frame = (byte - HEADER) / 112 * 112;
        zeroed[HEADER + frame..].fill(0);
        finds(zeroed, byte);
    }
    let report = repair(&storage);
    assert_eq!(report.next_offset, Some(at(2)));
    assert_eq!(open_and_read(&storage.crash(1), options()).unwrap(), 2);
}

/// One mark of a raised epoch may rot: the other one has it, or proves the damage.
#[test]
fn a_raised_epoch_outlives_a_rotten_mark() {
    let storage = SimStorage::new(1);
    let mut log = open(&storage, options(), EPOCH).0;
    fill(&mut log, 1, 60);
    log.raise_epoch(Epoch::new(5)).unwrap();
    drop(log);
    let path = &segments(&storage)[0];
    let whole = storage.file(path).unwrap();
    let marks = HEADER + 112;
    assert_eq!(whole.len(), marks + 2 * 52);
    for byte in marks..whole.len() {
        let mut bytes = whole.clone();
        bytes[byte] ^= 4;
        storage.put_file(path, bytes);
        let crashed = Arc::new(storage.crash(0));
        let opened = LocalLog::open_on(crashed, Path::new(DIRECTORY), options());
        match opened.map(|(log, _)| log.tail().epoch) {
            Ok(epoch) => assert_eq!((epoch, byte >= marks + 52), (Epoch::new(5), true)),
            Err(LogError::Damaged { byte_offset, .. }) => {
                assert_eq!(byte_offset, FilePosition::new(marks as u64));
            }
            Err(error) => panic!("byte {byte}: {error}"),
        }
    }
}

#[test]
fn a_moved_frame_is_no_frame() {
    let storage = sample(false);
    let path = &segments(&storage)[0];
    let mut bytes = storage.file(path).unwrap();
    bytes.copy_within(HEADER..HEADER + 112, HEADER + 112);
    storage.put_file(path, bytes);
    assert!(matches!(
        open_and_read(&storage, options()),
        Err(LogError::Damaged { byte_offset, .. }) if byte_offset.get() == 4208
    ));
}

#[test]
fn missing_segments() {
    let storage = sample(false);
    let paths = segments(&storage);
    let without = |missing: &[usize]| {
        let copy = SimStorage::new(0);
        for (number, path) in paths.iter().enumerate() {
            if !missing.contains(&number) {
                copy.put_file(path, storage.file(path).unwrap());
            }
        }
        copy
    };
    assert!(
        matches!(open_and_read(&without(&[1]), options()), Err(LogError::Gap { file, .. }) if file == paths[2])
    );
    // The first ones may have been trimmed.
    let trimmed = without(&[0]);
    assert_eq!(open_and_read(&trimmed, options()).unwrap(), 11);
    let log = open(&trimmed, options(), EPOCH).0;
    assert!(matches!(
        log.feed().read(at(3)).map(drop),
        Err(LogError::OutOfRange { wanted, oldest, next })
            if [wanted, oldest, next] == [3, 4, 11].map(at)
    ));
    assert!(matches!(
        log.feed().read(at(12)).map(drop),
        Err(LogError::OutOfRange { .. })
    ));
    assert_eq!(read_from(&log, at(11)), []);
    assert_eq!(read_from(&log, at(9)).len(), 2);
    // A segment that lost its last frame does not meet the next one.
    let short = without(&[]);
    let mut bytes = storage.file(&paths[0]).unwrap();
    bytes.truncate(HEADER + 3 * 112);
    short.put_file(&paths[0], bytes);
    let error = open_and_read(&short, options()).unwrap_err();
    assert!(
        matches!(&error, LogError::Damaged { file, byte_offset, .. } if *file == paths[0] && byte_offset.get() == 4432),
        "{error}"
    );
}

#[test]
fn foreign_and_locked() {
    let storage = sample(false);
    let other = LogOptions {
        database: [1; 32],
        ..options()
    };
    assert!(matches!(
        open_and_read(&storage, other),
        Err(LogError::Foreign { .. })
    ));
    let _log = open(&storage, options(), EPOCH).0;
    assert!(matches!(
        open_and_read(&storage, options()),
        Err(LogError::Locked { .. })
    ));
    assert!(matches!(
        repair_on(Arc::new(storage.clone()), Path::new(DIRECTORY), &options()),
        Err(LogError::Locked { .. })
    ));
}

fn repair(storage: &SimStorage) -> lightcone_log::RepairReport {
    repair_on(Arc::new(storage.clone()), Path::new(DIRECTORY), &options()).unwrap()
}

#[test]
fn repair_keeps_what_is_before_the_damage() {
    let storage = sample(true);
    let report = repair(&storage);
    assert_eq!(
        (report.damage, report.next_offset, report.saved.len()),
        (None, Some(at(11)), 0)
    );
    let paths = segments(&storage);
    let whole = storage.file(&paths[1]).unwrap();
    let mut bytes = whole.clone();
    bytes[HEADER + 2 * 112 + 70] ^= 4;
    storage.put_file(&paths[1], bytes.clone());
    let report = repair(&storage);
    assert!(report.damage.unwrap().contains("byte 4320"));
    assert_eq!(
        report.cut,
        Some((paths[1].clone(), FilePosition::new(4320)))
    );
    assert_eq!(report.next_offset, Some(at(6)));
    let name =
        |number: usize, end: &str| PathBuf::from(format!("{}{end}", paths[number].display()));
    assert_eq!(
        report.saved,
        [name(2, ".removed"), name(1, ".removed-4320")]
    );
    assert_eq!(storage.file(&report.saved[1]).unwrap(), bytes[4320..]);
    assert_eq!(
        report.removed_bytes,
        2 * 112 + storage.file(&report.saved[0]).unwrap().len() as u64
    );
    let mut log = open(&storage.crash(1), options(), EPOCH).0;
    assert_eq!(read_all(&log).len(), 6);
    fill(&mut log, 5, 60);
    assert_eq!(read_all(&log).len(), 11);
    assert_eq!(repair(&storage).damage, None);
}

#[test]
fn repair_of_headers_and_gaps() {
    for byte in [0, 13, 60, 4000] {
        let storage = sample(true);
        let paths = segments(&storage);
        let mut bytes = storage.file(&paths[1]).unwrap();
        bytes[byte] ^= 1;
        storage.put_file(&paths[1], bytes);
        let report = repair(&storage);
        assert_eq!((report.next_offset, report.saved.len()), (Some(at(4)), 2));
        assert_eq!(open_and_read(&storage.crash(1), options()).unwrap(), 4);
    }
    let storage = sample(true);
    let bytes = storage.file(&segments(&storage)[0]).unwrap();
    storage.put_file(&segments(&storage)[0], bytes[..2000].to_vec());
    let report = repair(&storage);
    assert_eq!(
        (report.cut, report.next_offset, report.saved.len()),
        (None, None, 3)
    );
}

#[test]
fn fuzz_entry_takes_anything() {
    let storage = sample(true);
    let whole = storage.file(&segments(&storage)[0]).unwrap();
    fuzz_segment(&[]);
    fuzz_segment(&whole);
    let mut random = 1u64;
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = HEADER + (random >> 33) as usize % (bytes.len() - HEADER);
            bytes[at] = (random >> 20) as u8;
        }
        if random & 1 == 0 {
            let length = (random >> 40) as usize % bytes.len();
            bytes.truncate(length);
        }
        fuzz_segment(&bytes);
    }
}
