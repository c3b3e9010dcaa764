//! Writing a snapshot beside the writer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, DatastoreSnapshot};
use lightcone_log::{Log, LogOffset, LogWriter};
use lightcone_snapshot::{SnapshotError, SnapshotStore};
use tokio::sync::oneshot;

use crate::courier::Ready;
use crate::error::NotDurable;
use crate::inbox::Input;
use crate::options::Limits;
use crate::outbox::Waiting;
use crate::retention;
use crate::shared::Shared;
use crate::status::SnapshotTurn;

/// The first pages of a database cost nothing to write: they keep no snapshot waiting.
const SMALL_BYTES: u64 = 16 << 20;
/// A snapshot for which the disk has no room is tried again after this share of the log that makes one due.
const SNAPSHOT_DELAY_SHARE: u64 = 16;
/// A database that stops writes a snapshot if the next start would replay at least this share of the log that makes one due.
const STOP_SNAPSHOT_SHARE: u64 = 8;
/// For so long; what is not written by then is replayed.
const STOP_SNAPSHOT_TIME_MAX: Duration = Duration::from_secs(5);

/// So much log since the last snapshot makes the next one due, if so many bytes of pages were in the database then. A snapshot writes
/// about as much of a large database that changes everywhere, and a start reads it: both are in proportion to the log.
pub(crate) fn due_bytes(limits: &Limits, page_bytes: u64) -> u64 {
    let large = page_bytes.saturating_sub(SMALL_BYTES);
    let share = (large / 100).saturating_mul(limits.snapshot_log_percent);
    limits.snapshot_log_bytes.max(share)
}

/// The turn, if it is the database's. Otherwise the writer hears when it is.
pub(crate) fn take_turn(shared: &Arc<Shared>) -> Option<SnapshotTurn> {
    let turns = &shared.options.commons.snapshots;
    let turn = turns.clone().try_acquire_owned();
    if turn.is_err() {
        // Nothing is frozen meanwhile. The sender alone would keep the inbox open, all that is shared would stay with it.
        let (turns, waits) = (turns.clone(), Arc::downgrade(shared));
        let wait = async move {
            if let (Ok(turn), Some(shared)) = (turns.acquire_owned().await, waits.upgrade()) {
                // A database that has stopped lets the next one have its turn.
                let _ = shared.inbox.send(Input::SnapshotTurn(turn));
            }
        };
        shared.environment().spawn_task(Box::pin(wait));
    }
    turn.ok()
}

/// A snapshot on its way to the disk. However it ends (written, refused by the disk, panicked, or never begun), the writer
/// hears of it when this is dropped.
pub(crate) struct SnapshotJob {
    pub shared: Arc<Shared>,
    pub committer: Arc<LogWriter>,
    /// Until it is written: the state before `next_offset`.
    pub snapshot: Option<DatastoreSnapshot>,
    pub next_offset: LogOffset,
    /// Bytes of the log from which those are counted that make the next one due.
    pub log_bytes: u64,
    /// What makes the next one due is counted in shares of it.
    pub due_bytes: u64,
    pub _turn: SnapshotTurn,
}

/// How the writing of a snapshot ends.
enum Written {
    /// The log before this is not needed any more.
    Whole { log_needed_from: Option<LogOffset> },
    /// It was cancelled.
    GivenUp,
    /// The disk has no room. How much a snapshot writes shows only then, since most pages may be in older ones.
    NoRoom,
}

impl SnapshotJob {
    /// Has it written when its transactions are durable in the log, so that the log never ends before it.
    pub fn begin(self) {
        let (shared, offset) = (self.shared.clone(), self.next_offset);
        let begin = move |durable: Result<(), NotDurable>| match durable {
            Ok(()) => {
                let shared = self.shared.clone();
                let run = move || self.run();
                shared.environment().spawn_blocking(Box::new(run));
            }
            Err(error) => not_written(&self.shared, &error),
        };
        let waiting = [Waiting::Release(Box::new(begin))].into_iter();
        shared.outbox.hold(offset, waiting, &mut Ready::default());
    }

    /// Blocks until it is written.
    fn run(mut self) {
        let shared = self.shared.clone();
        let _busy = shared.snapshots.hold();
        let may_go_on = || !shared.snapshots.is_cancelled();
        let Some(snapshot) = self.snapshot.take().filter(|_| may_go_on()) else {
            return;
        };
        match write(&shared, snapshot, self.next_offset, may_go_on) {
            Ok(Written::Whole { log_needed_from }) => {
                if let Some(oldest) = log_needed_from {
                    self.committer.trim(oldest);
                }
            }
            Ok(Written::GivenUp) => {
                tracing::info!(database = %shared.options.identity, "a snapshot was given up, because the database stops");
            }
            Ok(Written::NoRoom) => {
                warn_no_room(&shared);
                self.log_bytes = delayed(self.due_bytes, self.log_bytes);
            }
            Err(error) => {
                not_written(&shared, &error);
                self.log_bytes = delayed(self.due_bytes, self.log_bytes);
            }
        }
    }
}

/// Writes a snapshot, and removes those that are too old then.
fn write(
    shared: &Shared,
    snapshot: DatastoreSnapshot,
    next_offset: LogOffset,
    may_go_on: impl Fn() -> bool,
) -> Result<Written, SnapshotError> {
    let kept = shared.options.limits.snapshots_kept;
    let store = shared.options.snapshots()?.keeping(kept);
    let mut store = store.without(shared.snapshots.take_damaged());
    let written = write_to(&mut store, shared, snapshot, next_offset, may_go_on);
    if !matches!(written, Ok(Written::Whole { .. })) {
        // The next one has to replace them.
        shared.snapshots.add_damaged(store.into_problems());
    }
    written
}

fn write_to(
    store: &mut SnapshotStore,
    shared: &Shared,
    snapshot: DatastoreSnapshot,
    next_offset: LogOffset,
    may_go_on: impl Fn() -> bool,
) -> Result<Written, SnapshotError> {
    let (options, database) = (&shared.options, shared.options.identity);
    let (started, begun) = (shared.environment().instant(), shared.environment().now());
    let page_bytes = snapshot.page_bytes();
    // One that was being written when this one was wanted may be the same.
    if !store.has_intact(next_offset)? {
        let mut found_room = true;
        let written = snapshot.write_while(store, next_offset, &shared.copy_room, || {
            found_room = options.disk.has_room_for(0);
            found_room && may_go_on()
        })?;
        let Some(stats) = written else {
            return Ok(match found_room {
                true => Written::GivenUp,
                false => Written::NoRoom,
            });
        };
        let took = shared.environment().instant() - started;
        shared.metrics.snapshots.note(took, stats.new_object_bytes);
        if stats.mended_objects > 0 {
            tracing::error!(%database, objects = stats.mended_objects, "what an older snapshot has on the disk is damaged; the new one has written it again. Check the disk [LC0527]");
        }
    }
    // What is damaged must not count as kept, and is needed no more.
    store.replaced(next_offset);
    store.rename_damaged()?;
    let bytes = (due_bytes(&options.limits, page_bytes), page_bytes);
    let log_needed_from = retention::prune(shared, store, next_offset, begun, bytes)?;
    Ok(Written::Whole { log_needed_from })
}

/// Until when a database that stops may write a snapshot, if so many bytes of the log have come since the last one that it should.
pub(crate) fn time_at_stop(shared: &Shared, log_bytes: u64, due_bytes: u64) -> Option<Instant> {
    let due = due_bytes / STOP_SNAPSHOT_SHARE;
    let is_due =
        !shared.options.in_memory && log_bytes >= due && shared.options.disk.has_room_for(0);
    is_due.then(|| shared.environment().instant() + STOP_SNAPSHOT_TIME_MAX)
}

/// Has a snapshot written of a database that stops. `log` has ended, and keeps others out until what is returned hears of the end.
///
/// # Errors
/// The log again: it is not the database's turn.
pub(crate) fn begin_at_stop(
    shared: &Arc<Shared>,
    datastore: &mut Datastore,
    log: Box<dyn Log>,
    deadline: Instant,
) -> Result<oneshot::Receiver<()>, Box<dyn Log>> {
    let turns = shared.options.commons.snapshots.clone();
    let Ok(turn) = turns.try_acquire_owned() else {
        if shared.environment().instant() < deadline {
            return Err(log);
        }
        tracing::info!(database = %shared.options.identity, "no snapshot is written at the stop: others of the server take the time for it");
        return Ok(oneshot::channel().1);
    };
    let (done, written) = oneshot::channel();
    let (of, snapshot) = (shared.clone(), datastore.snapshot());
    let write = move || {
        write_at_stop(&of, snapshot, log, deadline);
        drop((turn, done));
    };
    shared.environment().spawn_blocking(Box::new(write));
    Ok(written)
}

fn write_at_stop(
    shared: &Shared,
    snapshot: DatastoreSnapshot,
    mut log: Box<dyn Log>,
    deadline: Instant,
) {
    let is_in_time = || shared.environment().instant() < deadline;
    match write(shared, snapshot, log.tail().next_offset, is_in_time) {
        Ok(Written::Whole { log_needed_from }) => {
            let trimmed = log_needed_from.map_or(Ok(0), |oldest| log.trim(oldest));
            if let Err(error) = trimmed {
                tracing::warn!(database = %shared.options.identity, %error, "old segments of the log stay");
            }
        }
        Ok(Written::GivenUp) => {
            tracing::info!(database = %shared.options.identity, "the snapshot at the stop was given up, as it took too long; the next start replays the log");
        }
        Ok(Written::NoRoom) => warn_no_room(shared),
        Err(error) => not_written(shared, &error),
    }
}

fn not_written(shared: &Shared, error: &dyn std::fmt::Display) {
    shared.metrics.snapshots.note_failed();
    tracing::error!(database = %shared.options.identity, %error, "no snapshot was written; the log keeps everything");
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        self.shared.copy_room.end();
        // A writer that has stopped takes no more snapshots.
        let _ = self.shared.inbox.send(Input::SnapshotDone {
            log_bytes: self.log_bytes,
        });
    }
}

/// From where the log is counted for the next snapshot after one for which the disk had no room.
pub(crate) fn delayed(due_bytes: u64, log_bytes: u64) -> u64 {
    log_bytes.saturating_sub(due_bytes - due_bytes / SNAPSHOT_DELAY_SHARE)
}

pub(crate) fn warn_no_room(shared: &Shared) {
    tracing::warn!(database = %shared.options.identity, "no snapshot is written: the disk has only its reserve left [LC0125]");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_of_a_large_database_is_due() {
        let mut limits = Limits::default();
        assert_eq!(due_bytes(&limits, 0), 256 << 20);
        assert_eq!(due_bytes(&limits, 1 << 30), 256 << 20);
        let large = due_bytes(&limits, 5 << 30);
        assert!((1275 << 20..1280 << 20).contains(&large), "{large}");
        limits.snapshot_log_bytes = 1;
        assert_eq!(due_bytes(&limits, SMALL_BYTES), 1);
        limits.snapshot_log_bytes = u64::MAX;
        assert_eq!(due_bytes(&limits, u64::MAX), u64::MAX);
    }
}
