//! Entry points for fuzz targets: any bytes must give items and manifests, or an error.

use crate::{moment_in, newest_moment, objects_of, Decoder, Frame, History, Item, Manifest};
use lightcone_log::LogOffset;

/// Takes `data` as items, whole and in parts of a few bytes.
///
/// # Panics
/// If an item does not survive its own encoding, or comes out otherwise in parts.
pub fn fuzz_backup_items(data: &[u8]) {
    let whole = Decoder::all(data);
    let mut decoder = Decoder::default();
    let (mut parts, mut failed) = (Vec::new(), false);
    'parts: for part in data.chunks(7) {
        decoder.push(part);
        loop {
            match decoder.next() {
                Ok(Some(item)) => parts.push(item),
                Ok(None) => break,
                Err(_) => {
                    failed = true;
                    break 'parts;
                }
            }
        }
    }
    match &whole {
        Ok(items) => assert_eq!((items, failed), (&parts, false)),
        Err(_) => assert!(failed || decoder.pending() > 0),
    }
    for item in &parts {
        assert_eq!(Decoder::all(&item.to_vec()), Ok(vec![item.clone()]));
    }
    let _ = objects_of(data);
    let frames: Vec<&Frame> = parts
        .iter()
        .filter_map(|item| match item {
            Item::Frame(frame) => Some(frame),
            _ => None,
        })
        .collect();
    if let Some(newest) = newest_moment(frames.iter().copied()) {
        assert_eq!(moment_in(frames.iter().copied(), newest), None);
        if newest > i64::MIN + 1 {
            assert!(moment_in(frames.iter().copied(), newest - 1).is_some());
        }
    }
}

/// Takes `data` as manifests, one in each line, as they are and with a correct checksum, and plans with them.
///
/// # Panics
/// If a manifest does not survive its own encoding, or a plan has a gap.
pub fn fuzz_backup_manifests(data: &[u8]) {
    let mut manifests = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let mended = serde_json::from_slice::<Manifest>(line).map(|manifest| manifest.encode());
        for bytes in [Some(line.to_vec()), mended.ok()].into_iter().flatten() {
            if let Ok(manifest) = Manifest::decode("fuzzed", &bytes) {
                let again = Manifest::decode("fuzzed", &manifest.encode());
                assert_eq!(again.as_ref(), Ok(&manifest));
                manifests.push(manifest);
            }
        }
    }
    for history in History::all(&manifests) {
        let end = history.newest.end.offset.get();
        for end in [0, end / 2, end, u64::MAX].map(LogOffset::new) {
            let Some(plan) = history.plan(end) else {
                continue;
            };
            assert!(plan.log.windows(2).all(|pair| pair[0].end == pair[1].from));
            let start = plan.snapshot.map_or(0, |snapshot| snapshot.offset);
            let from = plan.log.first().map_or(end, |entry| entry.from.offset);
            let to = plan.log.last().map_or(end, |entry| entry.end.offset);
            assert!(from <= end && to >= end && start <= end.get());
            assert!(plan.log.is_empty() || from.get() <= start);
        }
    }
}
