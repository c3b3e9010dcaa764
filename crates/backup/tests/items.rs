//! Items and manifests: whatever the bytes are, they are read as what was written, or refused.

use lightcone_backup::fuzzing::{fuzz_backup_items, fuzz_backup_manifests};
use lightcone_backup::{
    moment_in, newest_moment, objects_of, Decoder, FileEntry, Frame, Head, History, Item, LogEntry,
    Manifest, ObjectHash, Pack, PackEntry, Place, SnapshotEntry, SnapshotHead, FORMAT,
};
use lightcone_engine::record::put_clock;
use lightcone_log::{Epoch, LogHash, LogOffset};
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Place> {
    (0..1_u64 << 61, any::<[u8; 16]>()).prop_map(|(offset, hash)| Place {
        offset: LogOffset::new(offset),
        hash: LogHash::from_le_bytes(hash),
    })
}

fn hash() -> impl Strategy<Value = ObjectHash> {
    any::<[u8; 32]>().prop_map(ObjectHash)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..100)
}

fn frame() -> impl Strategy<Value = Frame> {
    (place(), 1..u32::MAX, any::<u64>(), bytes()).prop_map(|(place, count, epoch, payload)| Frame {
        first_offset: place.offset,
        count,
        epoch: Epoch::new(epoch),
        hash: place.hash,
        payload,
    })
}

fn item() -> impl Strategy<Value = Item> {
    let head = (
        place(),
        any::<i64>(),
        0..1_u64 << 62,
        any::<Option<String>>(),
    );
    let head = head.prop_map(|(from, time, end, begins_because)| Head {
        format: FORMAT,
        database: "ab".repeat(32),
        time,
        from,
        end,
        begins_because,
    });
    let hashes = proptest::collection::vec(hash(), 0..5);
    let snapshot = (0..1_u64 << 62, hashes, bytes());
    let snapshot = snapshot.prop_map(|(offset, objects, engine)| SnapshotHead {
        offset: LogOffset::new(offset),
        objects,
        engine,
    });
    let entry = (hash(), any::<u32>(), any::<u32>());
    let entry = entry.prop_map(|(object, position, bytes)| PackEntry {
        object,
        position,
        bytes,
    });
    let pack = (hash(), proptest::collection::vec(entry, 0..5));
    prop_oneof![
        head.prop_map(Item::Head),
        snapshot.prop_map(Item::Snapshot),
        bytes().prop_map(Item::Object),
        frame().prop_map(Item::Frame),
        pack.prop_map(|(hash, entries)| Item::Pack(Pack { hash, entries })),
        place().prop_map(Item::End),
        ".*".prop_map(Item::Failed),
    ]
}

/// A frame of so many transactions behind a place, each with a clock record before it.
fn frame_behind(place: Place, times: &[i64]) -> Frame {
    let mut payload = Vec::new();
    for time in times {
        put_clock(&mut payload, *time);
        // A transaction without groups.
        payload.extend([3, 0]);
    }
    let (epoch, count) = (Epoch::FIRST, times.len() as u32);
    let hash = place
        .hash
        .after(epoch, place.offset, count, &[payload.as_slice()]);
    Frame {
        first_offset: place.offset,
        count,
        epoch,
        hash,
        payload,
    }
}

/// The manifest of a backup of `frames` behind a place.
fn manifest(time: i64, from: Place, frames: &[Frame], snapshot: Option<u64>) -> Manifest {
    let mut bytes = Vec::new();
    let mut end = from;
    for frame in frames {
        end = end.behind(frame).expect("it follows");
        Item::Frame(frame.clone()).encode(&mut bytes);
    }
    let entry = LogEntry {
        from,
        end,
        newest: newest_moment(frames),
        file: FileEntry::of(&bytes),
    };
    Manifest {
        format: FORMAT,
        database: "00".repeat(32),
        time,
        end,
        epoch: Some(1),
        begins_because: None,
        snapshot: snapshot.map(|offset| SnapshotEntry {
            offset,
            file: FileEntry::of(b"snapshot"),
            object_bytes: 5,
        }),
        log: if frames.is_empty() {
            vec![]
        } else {
            vec![entry]
        },
        added_bytes: bytes.len() as u64,
        checksum: String::new(),
    }
}

proptest! {
    #[test]
    fn items_survive_in_parts(items in proptest::collection::vec(item(), 0..6), step in 1_usize..50) {
        let mut bytes = Vec::new();
        for item in &items {
            item.encode(&mut bytes);
        }
        prop_assert_eq!(&Decoder::all(&bytes), &Ok(items.clone()));
        let (mut decoder, mut read) = (Decoder::default(), Vec::new());
        for part in bytes.chunks(step) {
            decoder.push(part);
            while let Some(item) = decoder.next().expect("an item") {
                read.push(item);
            }
        }
        prop_assert_eq!(read, items);
        fuzz_backup_items(&bytes);
    }

    #[test]
    fn any_bytes_are_items_or_refused(mut data in bytes(), kind in 0_u8..9, length in 0_u32..90) {
        fuzz_backup_items(&data);
        fuzz_backup_manifests(&data);
        let mut framed = vec![kind];
        framed.extend(length.to_le_bytes());
        framed.append(&mut data);
        fuzz_backup_items(&framed);
    }

    #[test]
    fn damaged_items_are_items_or_refused(item in item(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut bytes = item.to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        fuzz_backup_items(&bytes);
    }

    #[test]
    fn every_changed_byte_of_a_manifest_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let frames = [frame_behind(Place::default(), &[5, 6])];
        let manifest = manifest(7, Place::default(), &frames, Some(1));
        let mut bytes = manifest.encode();
        let whole = Manifest::decode("m", &bytes).expect("a manifest");
        prop_assert_eq!((&whole.end, &whole.log), (&manifest.end, &manifest.log));
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        // Spaces between the parts mean nothing.
        if let Ok(read) = Manifest::decode("m", &bytes) {
            prop_assert_eq!(read, whole);
        }
        fuzz_backup_manifests(&bytes);
    }

    /// Whatever is cut away of a chain, what is planned leads from its snapshot to the wanted place.
    #[test]
    fn plans_have_no_gap(
        sizes in proptest::collection::vec(1_usize..4, 1..8),
        snapshots in proptest::collection::vec(any::<bool>(), 8),
        gone in proptest::collection::vec(any::<bool>(), 8),
        wanted in 0_u64..30,
    ) {
        let (mut place, mut manifests) = (Place::default(), Vec::new());
        for (number, size) in sizes.iter().enumerate() {
            let time = number as i64 * 10;
            let frame = frame_behind(place, &vec![time; *size]);
            let snapshot = snapshots[number].then_some(place.offset.get());
            let made = manifest(time + 1, place, &[frame], snapshot);
            place = made.end;
            if !gone[number] {
                manifests.push(made);
            }
        }
        let text: Vec<u8> = manifests.iter().flat_map(|m| {
            let mut line = serde_json::to_vec(m).expect("JSON");
            line.push(b'\n');
            line
        }).collect();
        fuzz_backup_manifests(&text);
        let wanted = LogOffset::new(wanted);
        for history in History::all(&manifests) {
            let Some(plan) = history.plan(wanted) else {
                continue;
            };
            let start = plan.snapshot.map_or(0, |snapshot| snapshot.offset);
            prop_assert!(start <= wanted.get());
            let mut at = plan.log.first().map_or(LogOffset::new(start), |entry| entry.from.offset);
            prop_assert!(at.get() <= start);
            for entry in &plan.log {
                prop_assert_eq!(entry.from.offset, at);
                at = entry.end.offset;
            }
            prop_assert!(at >= wanted);
        }
        // Nothing is gone: each place can be brought back.
        if !gone[..sizes.len()].contains(&true) {
            let histories = History::all(&manifests);
            let end = histories[0].newest.end.offset;
            prop_assert_eq!(histories[0].plan(wanted).is_some(), wanted > LogOffset::FIRST && wanted <= end);
        }
    }
}

#[test]
fn frames_that_do_not_follow_are_found() {
    let first = frame_behind(Place::default(), &[1, 2]);
    let place = Place::default().behind(&first).expect("it follows");
    assert_eq!(place.offset, LogOffset::new(2));
    assert_eq!(place.to_string().parse(), Ok(place));
    let second = frame_behind(place, &[3]);
    assert!(place.behind(&second).is_ok());
    assert!(place.behind(&first).is_err(), "again");
    assert!(Place::default().behind(&second).is_err(), "a gap");
    let mut changed = second.clone();
    changed.payload[1] ^= 1;
    assert!(place.behind(&changed).is_err(), "a changed byte");
    let other = Epoch::new(9);
    let of_other = Frame {
        epoch: other,
        ..second
    };
    assert!(place.behind(&of_other).is_err(), "another epoch");
}

#[test]
fn moments_are_found_in_frames() {
    let first = frame_behind(Place::default(), &[10, 20]);
    let place = Place::default().behind(&first).expect("it follows");
    let frames = [first, frame_behind(place, &[20, 15, 40])];
    assert_eq!(newest_moment(&frames), Some(40));
    for (moment, offset) in [(9, 0), (10, 1), (19, 1), (20, 4), (39, 4)] {
        let found = moment_in(&frames, moment);
        assert_eq!(found, Some(LogOffset::new(offset)), "{moment}");
    }
    assert_eq!(moment_in(&frames, 40), None);
    assert_eq!(newest_moment(&[]), None);
}

#[test]
fn a_snapshot_file_says_where_every_object_is() {
    let object = ObjectHash::of(b"object");
    let head = SnapshotHead {
        offset: LogOffset::new(3),
        objects: vec![object],
        engine: b"engine".to_vec(),
    };
    let mut bytes = Item::Snapshot(head.clone()).to_vec();
    assert!(objects_of(&bytes).is_err(), "it does not say where");
    let pack = Pack {
        hash: ObjectHash::of(b"pack"),
        entries: vec![PackEntry {
            object,
            position: 0,
            bytes: 6,
        }],
    };
    Item::Pack(pack.clone()).encode(&mut bytes);
    assert_eq!(objects_of(&bytes), Ok((head, vec![pack])));
    assert!(objects_of(&bytes[..bytes.len() - 1]).is_err());
    assert!(objects_of(&[]).is_err());
}

/// Pins the layout that `docs/design/backup.md` draws.
#[test]
fn bytes_of_items() {
    let frame = Frame {
        first_offset: LogOffset::new(2),
        count: 1,
        epoch: Epoch::new(3),
        hash: LogHash::from_le_bytes([7; 16]),
        payload: b"xy".to_vec(),
    };
    let head = [
        4, 38, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    ];
    let expected = [head.as_slice(), &[7; 16], b"xy"].concat();
    assert_eq!(Item::Frame(frame).to_vec(), expected);
    assert_eq!(Item::Object(b"o".to_vec()).to_vec(), [3, 1, 0, 0, 0, b'o']);
    let place = Place {
        offset: LogOffset::new(5),
        hash: LogHash::from_le_bytes([0; 16]),
    };
    let text = format!("5-{}", "0".repeat(32));
    let expected = [&[6, 34, 0, 0, 0], text.as_bytes()].concat();
    assert_eq!(Item::End(place).to_vec(), expected);
}

#[test]
fn other_formats_are_named() {
    let made = manifest(7, Place::default(), &[], None);
    let text = String::from_utf8(made.encode()).expect("text");
    let newer = text.replace("\"format\": 1", "\"format\": 2");
    let error = Manifest::decode("m", newer.as_bytes()).expect_err("another format");
    assert!(error.to_string().contains("[LC0552]"), "{error}");
    let more = text.replace("{\n", "{\n \"more\": 1,\n");
    let error = Manifest::decode("m", more.as_bytes()).expect_err("another member");
    assert!(error.to_string().contains("[LC0551]"), "{error}");
}

/// What a database was before the first transaction of a history is known from a backup that ended there, and from its time on.
#[test]
fn moments_before_the_first_transaction_are_known_from_a_backup() {
    let first = frame_behind(Place::default(), &[10]);
    let place = Place::default().behind(&first).expect("it follows");
    // Of a database whose log was trimmed: it begins where it ends, with a snapshot.
    let begin = manifest(100, place, &[], Some(place.offset.get()));
    let again = manifest(150, place, &[], Some(place.offset.get()));
    let more = manifest(200, place, &[frame_behind(place, &[180])], None);
    for manifests in [
        vec![begin.clone()],
        vec![begin.clone(), again.clone()],
        vec![begin, again, more.clone()],
    ] {
        for history in History::all(&manifests) {
            assert!(!history.is_known_at(99));
            assert!(history.is_known_at(100) && history.is_known_at(170));
        }
    }
    assert!(!History::all(&[more])[0].is_known_at(190));
}
