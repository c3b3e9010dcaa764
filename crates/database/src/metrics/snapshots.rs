//! Snapshots that are written, and what was replayed when the database was opened.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use lightcone_log::LogOffset;
use lightcone_types::Timestamp;

use super::histogram::{Histogram, HistogramSnapshot};

/// Counted by the thread that writes snapshots, and by the writer that waits for it.
#[derive(Default)]
pub(crate) struct SnapshotCounters {
    times: Histogram,
    bytes: AtomicU64,
    failed: AtomicU64,
    held_rounds: AtomicU64,
}

impl SnapshotCounters {
    /// One is on the disk, and has taken so many bytes of it.
    pub fn note(&self, time: Duration, bytes: u64) {
        self.times.note_shared(time);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub fn note_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub fn note_held_writer(&self) {
        self.held_rounds.fetch_add(1, Relaxed);
    }

    pub fn read(&self) -> SnapshotMetrics {
        SnapshotMetrics {
            times: self.times.snapshot(),
            bytes: self.bytes.load(Relaxed),
            failed: self.failed.load(Relaxed),
            held_rounds: self.held_rounds.load(Relaxed),
        }
    }
}

/// Snapshots since the database was opened.
#[derive(Clone, Debug, Default)]
pub struct SnapshotMetrics {
    /// Of those that were written.
    pub times: HistogramSnapshot,
    /// What was written for them; what older ones have on the disk is not written again.
    pub bytes: u64,
    /// Those that could not be written.
    pub failed: u64,
    /// Rounds of the writer after which it waited for one, because it had copied too many pages.
    pub held_rounds: u64,
}

impl SnapshotMetrics {
    pub(crate) fn add(&mut self, other: &SnapshotMetrics) {
        self.times.add(&other.times);
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.held_rounds += other.held_rounds;
    }
}

/// What opening a database took: reading its snapshot, and the log since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub time: Duration,
    /// Of the log.
    pub transactions: u64,
    pub bytes: u64,
}

impl Replayed {
    pub(crate) fn add(&mut self, other: &Replayed) {
        self.time += other.time;
        self.transactions += other.transactions;
        self.bytes += other.bytes;
    }
}

/// From where on the history of a database can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// The state before this transaction, and before each later one, can be read: there is a snapshot of it, or it is the first
    /// one, and the log from there on.
    pub from: LogOffset,
    /// The state at this moment, and at each later one, can be read. None: that is not known, or all of the history is there.
    pub since: Option<Timestamp>,
    /// The last backup that was completed has all before this transaction.
    pub backed_up: Option<LogOffset>,
    /// Transactions that the log had to lose before a backup had them, since the database was opened.
    pub lost: u64,
}

impl Retained {
    /// Adds what another database has lost. What several retain means nothing.
    pub(crate) fn add(&mut self, other: &Retained) {
        self.lost += other.lost;
        self.leave();
    }

    /// Leaves what stays true when the database is closed.
    pub(crate) fn leave(&mut self) {
        *self = Retained {
            lost: self.lost,
            ..Retained::default()
        };
    }
}
