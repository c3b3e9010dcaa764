#![allow(dead_code)] // Every test file uses its own part.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions, Recovery};
use lightcone_storage::sim::SimStorage;

pub const DIRECTORY: &str = "log";
/// The first writer.
pub const EPOCH: Epoch = Epoch::new(0);

/// The offset behind so many transactions.
pub fn at(transactions: u64) -> LogOffset {
    LogOffset::new(transactions)
}

pub fn open(storage: &SimStorage, options: LogOptions, epoch: Epoch) -> (LocalLog, Recovery) {
    match LocalLog::open_on(
        Arc::new(storage.clone()),
        Path::new(DIRECTORY),
        options,
        epoch,
    ) {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    }
}

/// Bytes that depend on the offset, so that no frame passes for another.
pub fn payload(offset: LogOffset, bytes: usize) -> Vec<u8> {
    (0..bytes as u64)
        .map(|byte| (offset.get().wrapping_mul(31).wrapping_add(byte * 7) % 251) as u8)
        .collect()
}

pub fn read_all(log: &dyn Log) -> Vec<(LogOffset, u32, Vec<u8>)> {
    read_from(log, log.tail().oldest_offset)
}

pub fn read_from(log: &dyn Log, offset: LogOffset) -> Vec<(LogOffset, u32, Vec<u8>)> {
    let mut reader = log.read(offset).expect("the log is read");
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().expect("the log is read") {
        frames.push((frame.first_offset, frame.count, frame.payload.to_vec()));
    }
    frames
}

/// Appends and syncs `frames` frames of one transaction each.
pub fn fill(log: &mut LocalLog, frames: u64, bytes: usize) {
    for _ in 0..frames {
        let tail = log.tail();
        let payload = payload(tail.next_offset, bytes);
        log.append(
            tail.epoch,
            Frame {
                first_offset: tail.next_offset,
                count: 1,
                payload: &[&payload],
            },
        )
        .expect("the disk works");
        log.sync().expect("the disk works");
    }
}

pub fn segments(storage: &SimStorage) -> Vec<PathBuf> {
    storage
        .files()
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "segment")
        })
        .collect()
}
