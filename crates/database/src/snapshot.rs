//! Writing a snapshot beside the writer.

use std::sync::Arc;

use lightcone_engine::DatastoreSnapshot;
use lightcone_log::{Committer, LogOffset, SubmitError};
use lightcone_snapshot::{SnapshotError, SnapshotStore};

use crate::inbox::Notice;
use crate::shared::Shared;

/// A snapshot for which the disk has no room is tried again after this share of the log that makes one due.
const SNAPSHOT_DELAY_SHARE: u64 = 16;

/// A snapshot on its way to the disk. However it ends (written, refused by the disk, panicked, or never begun), the writer
/// hears of it when this is dropped.
pub(crate) struct SnapshotJob {
    shared: Arc<Shared>,
    committer: Arc<Committer>,
    snapshot: DatastoreSnapshot,
    next_offset: LogOffset,
    /// Bytes of the log from which those are counted that make the next one due.
    log_bytes: u64,
}

/// Why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
enum SnapshotFailure {
    #[error(transparent)]
    Log(#[from] SubmitError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl SnapshotJob {
    /// `snapshot` is the state before the transaction `next_offset`, when the log had `log_bytes`.
    pub fn new(
        shared: &Arc<Shared>,
        committer: &Arc<Committer>,
        snapshot: DatastoreSnapshot,
        next_offset: LogOffset,
        log_bytes: u64,
    ) -> SnapshotJob {
        SnapshotJob {
            shared: shared.clone(),
            committer: committer.clone(),
            snapshot,
            next_offset,
            log_bytes,
        }
    }

    /// Blocks until it is written.
    pub fn run(mut self) {
        let shared = self.shared.clone();
        let _turn = shared.snapshots.hold();
        let mut found_room = true;
        if let Err(error) = self.write(&mut found_room) {
            shared.metrics.snapshots.note_failed();
            tracing::error!(database = %shared.options.identity, %error, "no snapshot was written; the log keeps everything");
        }
        if !found_room {
            self.log_bytes = delayed(&shared, self.log_bytes);
        }
    }

    /// Waits until the snapshot's transactions are durable in the log, so that the log never ends before it. Says if
    /// there is no room on the disk: how much it writes shows only then, since most pages may be in older ones.
    fn write(&self, found_room: &mut bool) -> Result<(), SnapshotFailure> {
        let shared = &*self.shared;
        let (options, database) = (&shared.options, shared.options.identity);
        let kept = options.limits.snapshots_kept;
        self.committer.wait_durable(self.next_offset)?;
        let started = shared.environment().instant();
        let directory = options.directory.join("snapshots");
        let store = SnapshotStore::open_on(options.storage.clone(), &directory)?.keeping(kept);
        let written = self.snapshot.write_while(&store, self.next_offset, || {
            *found_room = options.disk.has_room_for(0);
            *found_room && !shared.snapshots.is_cancelled()
        })?;
        let Some(stats) = written else {
            match *found_room {
                false => warn_no_room(shared),
                true => {
                    tracing::info!(%database, "a snapshot was given up, because the database stops");
                }
            }
            return Ok(());
        };
        let took = shared.environment().instant() - started;
        let snapshots = &shared.metrics.snapshots;
        snapshots.note(took, stats.new_object_bytes);
        if stats.mended_objects > 0 {
            tracing::error!(%database, objects = stats.mended_objects, "what an older snapshot has on the disk is damaged; the new one has written it again. Check the disk [LC0527]");
        }
        if let Some(oldest) = store.prune(kept)?.log_needed_from {
            self.committer.trim(oldest);
        }
        Ok(())
    }
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        // A writer that has stopped takes no more snapshots.
        let _ = self.shared.inbox.notice(Notice::SnapshotDone {
            log_bytes: self.log_bytes,
        });
    }
}

/// From where the log is counted for the next snapshot after one for which the disk had no room.
pub(crate) fn delayed(shared: &Shared, log_bytes: u64) -> u64 {
    let due = shared.options.limits.snapshot_log_bytes;
    log_bytes.saturating_sub(due - due / SNAPSHOT_DELAY_SHARE)
}

pub(crate) fn warn_no_room(shared: &Shared) {
    tracing::warn!(database = %shared.options.identity, "no snapshot is written: the disk has only its reserve left [LC0125]");
}
