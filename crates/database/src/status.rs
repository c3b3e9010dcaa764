//! How a database is doing: whether it takes writes, whether it ends, whether snapshots may be written, and what it has
//! counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lightcone_log::{LogError, LogFeed, LogWriter};
use lightcone_snapshot::Problem;
use lightcone_types::Due;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::migration_progress::{MigrationProgress, Rehearsals};

/// What clients of a database are told that ends because of a bug.
pub(crate) const FAILED_TEXT: &str = "the database failed and restarts [LC0308]";

/// What is refused hears of a database that follows another one.
const FOLLOWS_TEXT: &str =
    "this database follows another one, which takes the writes of both [LC0557]";

/// Counters since the database was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatabaseStats {
    pub transactions: u64,
    /// All transactions before this one are on disk.
    pub durable_offset: u64,
    pub log_bytes: u64,
    pub log_syncs: u64,
    /// Bytes of records that wait for the disk.
    pub log_queue_bytes: u64,
    pub live_queries: u64,
    pub messages_sent: u64,
    pub slow_clients_cut: u64,
}

impl DatabaseStats {
    /// Adds what another database has counted. An offset of several means nothing.
    pub fn add(&mut self, other: &DatabaseStats) {
        self.transactions += other.transactions;
        self.durable_offset = 0;
        self.log_bytes += other.log_bytes;
        self.log_syncs += other.log_syncs;
        self.log_queue_bytes += other.log_queue_bytes;
        self.live_queries += other.live_queries;
        self.messages_sent += other.messages_sent;
        self.slow_clients_cut += other.slow_clients_cut;
    }

    /// Leaves what stays true when the database is closed: what it has counted, and nothing that it has.
    pub fn leave(&mut self) {
        (self.durable_offset, self.log_queue_bytes, self.live_queries) = (0, 0, 0);
    }
}

/// Set by the threads of a database, read by all others.
pub(crate) struct Status {
    /// Committed since the database was opened.
    pub transactions: AtomicU64,
    pub fanout: Arc<FanoutStats>,
    log: OnceLock<Arc<LogWriter>>,
    read_only: OnceLock<ReadOnly>,
    /// Its leader takes the writes.
    follows: AtomicBool,
    /// The database ends because it was asked to.
    is_stopping: AtomicBool,
    /// The writer replaces the program.
    is_updating: AtomicBool,
    /// What it does to the tables then.
    pub migration: MigrationProgress,
    /// Migrations that are tried beside it.
    pub rehearsals: Rehearsals,
    /// What there was still to do at a proper end.
    due: OnceLock<Due>,
    /// Closed when the writer has ended and the log is given back. Has no permits.
    ended: Semaphore,
}

/// A database's turn, among those of a server, to write a snapshot.
pub(crate) type SnapshotTurn = OwnedSemaphorePermit;

/// Lets one snapshot at a time be written, and gives it up.
#[derive(Default)]
pub(crate) struct SnapshotGate {
    is_cancelled: AtomicBool,
    /// Held while a snapshot is written.
    busy: Mutex<()>,
    /// Those on the disk that the next one replaces.
    damaged: Mutex<Vec<Problem>>,
}

impl SnapshotGate {
    /// A snapshot that is being written is given up, and no more are.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The next snapshot replaces these.
    pub fn add_damaged(&self, damaged: Vec<Problem>) {
        let mut known = self.damaged.lock();
        for problem in damaged {
            if known.iter().all(|other| other.offset != problem.offset) {
                known.push(problem);
            }
        }
    }

    pub fn take_damaged(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.damaged.lock())
    }

    /// Waits until no snapshot is being written, and keeps it so.
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.busy.lock()
    }

    /// Whether none is being written.
    pub fn is_idle(&self) -> bool {
        self.busy.try_lock().is_some()
    }

    /// [`hold`](Self::hold) for so long.
    pub fn hold_within(&self, time: Duration) -> Option<MutexGuard<'_, ()>> {
        self.busy.try_lock_for(time)
    }
}

/// Numbers of fan-out.
#[derive(Default)]
pub(crate) struct FanoutStats {
    /// Batches that it is done with: what they have for clients is in their queues, or waits for the disk.
    pub done_batches: AtomicU64,
    pub messages_sent: AtomicU64,
    pub live_queries: AtomicU64,
    pub slow_clients_cut: AtomicU64,
}

/// Why a database takes no more writes.
struct ReadOnly {
    reason: String,
    /// Opened anew, it may work again.
    is_passing: bool,
}

impl Status {
    pub fn new() -> Status {
        Status {
            transactions: AtomicU64::new(0),
            fanout: Arc::default(),
            log: OnceLock::new(),
            read_only: OnceLock::new(),
            follows: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_updating: AtomicBool::new(false),
            migration: MigrationProgress::default(),
            rehearsals: Rehearsals::default(),
            due: OnceLock::new(),
            ended: Semaphore::new(0),
        }
    }

    /// Why the database takes no more writes, if so.
    pub fn read_only(&self) -> Option<String> {
        let follows = self.follows.load(Ordering::Acquire);
        let failed = self.read_only.get().map(|state| state.reason.clone());
        failed.or_else(|| follows.then(|| FOLLOWS_TEXT.to_owned()))
    }

    /// Why what was done will never be durable.
    pub fn not_durable(&self) -> String {
        let failed = self.read_only.get();
        failed.map_or_else(|| FAILED_TEXT.to_owned(), |state| state.reason.clone())
    }

    pub fn is_read_only(&self) -> bool {
        self.has_failed_log() || self.follows.load(Ordering::Acquire)
    }

    pub fn has_failed_log(&self) -> bool {
        self.read_only.get().is_some()
    }

    /// Before its threads start: it takes no writes of its own.
    pub fn set_following(&self) {
        self.follows.store(true, Ordering::Release);
    }

    /// Whether what made it read-only may be over when it is opened anew.
    pub fn may_work_again(&self) -> bool {
        self.read_only.get().is_some_and(|state| state.is_passing)
    }

    pub fn set_read_only(&self, error: &LogError) {
        let _ = self.read_only.set(ReadOnly {
            reason: format!("the database is read-only because its log failed: {error} [LC0537]"),
            is_passing: error.is_passing(),
        });
    }

    /// The writer ends: because it was asked to, or because of a bug.
    pub fn set_stopping(&self, was_asked: bool) {
        self.is_stopping.store(was_asked, Ordering::Release);
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Set by the writer when it begins and ends to replace the program.
    pub fn set_updating(&self, is_updating: bool) {
        self.is_updating.store(is_updating, Ordering::Release);
    }

    pub fn is_updating(&self) -> bool {
        self.is_updating.load(Ordering::Acquire)
    }

    pub fn set_due(&self, due: Due) {
        // There is one end.
        let _ = self.due.set(due);
    }

    /// What there was still to do at a proper end.
    pub fn due(&self) -> Option<Due> {
        self.due.get().copied()
    }

    pub fn set_ended(&self) {
        self.ended.close();
    }

    /// Waits until the log is given back.
    pub async fn ended(&self) {
        // Fails when it is closed, which is what this waits for.
        let _ = self.ended.acquire().await;
    }

    pub fn set_log(&self, log: Arc<LogWriter>) {
        // There is one.
        let _ = self.log.set(log);
    }

    /// The log for readers, also when it has ended.
    pub fn feed(&self) -> Option<&LogFeed> {
        self.log.get().map(|log| log.feed())
    }

    pub fn stats(&self) -> DatabaseStats {
        let log = self.log.get().map(|log| log.stats()).unwrap_or_default();
        let fanout = &self.fanout;
        DatabaseStats {
            transactions: self.transactions.load(Ordering::Relaxed),
            durable_offset: log.committed_offset.get(),
            log_bytes: log.log_bytes,
            log_syncs: log.syncs,
            log_queue_bytes: log.queue_bytes as u64,
            live_queries: fanout.live_queries.load(Ordering::Relaxed),
            messages_sent: fanout.messages_sent.load(Ordering::Relaxed),
            slow_clients_cut: fanout.slow_clients_cut.load(Ordering::Relaxed),
        }
    }
}
