#![allow(dead_code)] // Every test file uses its own part.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions, LogReader, Recovery};
use lightcone_storage::sim::SimStorage;

pub const DIRECTORY: &str = "log";
/// The first writer.
pub const EPOCH: Epoch = Epoch::FIRST;

/// The offset behind so many transactions.
pub fn at(transactions: u64) -> LogOffset {
    LogOffset::new(transactions)
}

/// Opens the log, and raises its epoch.
pub fn open(storage: &SimStorage, options: LogOptions, epoch: Epoch) -> (LocalLog, Recovery) {
    let storage = Arc::new(storage.clone());
    match LocalLog::open_on(storage, Path::new(DIRECTORY), options) {
        Ok((mut log, recovery)) => {
            log.raise_epoch(epoch).expect("the disk works");
            (log, recovery)
        }
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
    let mut reader = log.feed().read(offset).expect("the log is read");
    read_on(&mut reader)
}

/// What a reader has not read yet.
pub fn read_on(reader: &mut LogReader) -> Vec<(LogOffset, u32, Vec<u8>)> {
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
