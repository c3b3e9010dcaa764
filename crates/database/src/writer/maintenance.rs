//! What happens to a whole database: a new program, snapshots, its end.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use lightcone_engine::{Datastore, DatastoreSnapshot};
use lightcone_host::HostEnv;
use lightcone_log::{Committer, LogOffset};
use tokio::sync::oneshot;

use super::{Item, Writer};
use crate::error::UpdateError;
use crate::fanout::{Event, Message};
use crate::handle::Shared;
use crate::module::{Module, Program};

/// A snapshot for which the disk has no room is tried again after this share of the log that makes one due.
const SNAPSHOT_DELAY_SHARE: u64 = 16;

impl Writer {
    /// Swaps the program for one with the same schema. Clients and subscriptions stay (02 §14.1).
    pub(super) fn replace(&mut self, program: Program) -> Result<(), UpdateError> {
        if let Some(reason) = self.shared.read_only() {
            return Err(UpdateError::Database(reason));
        }
        let env = HostEnv::new(self.shared.host_config());
        let instance = program
            .loaded
            .instantiate(env)
            .map_err(|error| UpdateError::Module(error.to_string()))?;
        let datastore = self.datastore();
        let mut record = datastore
            .module_record()
            .expect("a running database has a module");
        record.program_kind = program.kind as u8;
        record.program_hash = program.hash;
        record.program = program.bytes.to_vec();
        datastore.begin();
        if let Err(error) = datastore.set_module_record(&record) {
            datastore.rollback();
            return Err(UpdateError::Database(error.to_string()));
        }
        let ops = self.commit();
        self.event(Event::Committed { ops });
        let log = self.shared.log.clone();
        log.info(&format!("Updated program to {}", program.hash.to_hex()));
        let catalog = crate::catalog::CatalogView::new(self.datastore(), &program.def);
        let module = Arc::new(Module::new(self.module.version + 1, program, catalog));
        self.module = module.clone();
        self.shared.set_module(module);
        self.instance = instance;
        self.instance.prepare();
        log.info("Database updated");
        crate::open::warn_unsupported(&log, self.module.def());
        Ok(())
    }

    pub(super) fn snapshot_if_due(&mut self) {
        let limits = &self.shared.options.limits;
        if self.state.snapshot_running
            || self.shared.options.in_memory
            || self.shared.read_only().is_some()
        {
            return;
        }
        let log_bytes = self.replayed_bytes + self.committer.stats().log_bytes;
        if log_bytes.saturating_sub(self.state.log_bytes_at_snapshot) < limits.snapshot_log_bytes {
            return;
        }
        // A snapshot can wait; the log needs what is left of the disk.
        if !self.shared.options.disk.has_room_for(0) {
            self.state.log_bytes_at_snapshot = delayed(&self.shared, log_bytes);
            warn_no_room(&self.shared);
            return;
        }
        self.state.snapshot_running = true;
        let snapshot = self.datastore().snapshot();
        let (shared, next_offset) = (self.shared.clone(), self.next_offset);
        let committer = self.shared.committer_view(&self.committer);
        let done = SnapshotDone {
            shared: shared.clone(),
            log_bytes,
        };
        self.shared.runtime.spawn_blocking(move || {
            let mut done = done;
            let found_room = write_snapshot(&shared, &snapshot, next_offset, &committer);
            if !found_room {
                done.log_bytes = delayed(&shared, log_bytes);
            }
        });
    }

    pub(super) fn stop(mut self) {
        self.shared
            .stopping
            .store(!self.state.failed, Ordering::Release);
        self.shared
            .snapshot_cancelled
            .store(true, Ordering::Relaxed);
        self.inbox.close();
        self.shared.close_inbox();
        let (code, reason, done) = match self.state.stop.take() {
            Some((code, reason, done)) => (code, reason, Some(done)),
            None if self.state.failed => (1011, FAILED_TEXT.to_owned(), None),
            None => (1001, "module exited".to_owned(), None),
        };
        self.end_round();
        self.shared.log.flush();
        self.shared.forget_log();
        let committer = sole_owner(self.committer);
        match committer.shutdown() {
            Ok(_) if !self.state.failed => mark_planned(&self.shared, self.datastore.as_deref()),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the log did not end properly")
            }
        }
        let (fanout_done, wait) = oneshot::channel();
        let _ = self.fanout.send(Message::Stop {
            code,
            reason,
            done: fanout_done,
        });
        let _ = wait.blocking_recv();
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

/// What clients of a database are told that ends because of a bug.
pub(crate) const FAILED_TEXT: &str = "the database failed and restarts [LC0308]";

/// From where the log is counted for the next snapshot after one for which the disk had no room.
fn delayed(shared: &Shared, log_bytes: u64) -> u64 {
    let due = shared.options.limits.snapshot_log_bytes;
    log_bytes.saturating_sub(due - due / SNAPSHOT_DELAY_SHARE)
}

fn warn_no_room(shared: &Shared) {
    tracing::warn!(database = %shared.options.identity, "no snapshot is written: the disk has only its reserve left [LC0125]");
}

/// Tells the writer that a snapshot has ended, however it did: written, refused by the disk, panicked, or never begun.
struct SnapshotDone {
    shared: Arc<Shared>,
    log_bytes: u64,
}

impl Drop for SnapshotDone {
    fn drop(&mut self) {
        // A writer that has stopped takes no more snapshots.
        let _ = self.shared.send(Item::SnapshotDone {
            durable_bytes: self.log_bytes,
        });
    }
}

/// Notes for the next start of the server that nothing is planned, if so. All is durable by now.
fn mark_planned(shared: &Shared, datastore: Option<&Datastore>) {
    let nothing_planned = datastore.is_some_and(|datastore| datastore.schedules().is_empty());
    if !nothing_planned {
        return;
    }
    let options = &shared.options;
    if let Err(error) = crate::planned::set(&*options.storage, &options.directory, true) {
        // It is opened once for nothing, no more.
        tracing::debug!(database = %options.identity, %error, "the mark of a database without plans cannot be set");
    }
}

/// Waits for a snapshot thread or a reader of statistics to let go of the log.
fn sole_owner(mut committer: Arc<Committer>) -> Committer {
    loop {
        match Arc::try_unwrap(committer) {
            Ok(committer) => return committer,
            Err(shared) => committer = shared,
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits until the snapshot's transactions are durable in the log, so that the log never ends before it. False if it was
/// given up because of the disk: how much it writes shows only then, since most pages may be in older ones.
fn write_snapshot(
    shared: &Shared,
    snapshot: &DatastoreSnapshot,
    next_offset: u64,
    committer: &crate::handle::CommitterView,
) -> bool {
    let _busy = shared
        .snapshot_busy
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_cancelled = || shared.snapshot_cancelled.load(Ordering::Relaxed);
    let mut found_room = true;
    let result = committer.wait_durable(next_offset).and_then(|()| {
        let store = lightcone_snapshot::SnapshotStore::open_on(
            shared.options.storage.clone(),
            &shared.options.directory.join("snapshots"),
        )
        .map_err(|error| error.to_string())?
        .keeping(shared.options.limits.snapshots_kept);
        let written = snapshot
            .write_while(&store, LogOffset::new(next_offset), || {
                found_room = shared.options.disk.has_room_for(0);
                found_room && !is_cancelled()
            })
            .map_err(|error| error.to_string())?;
        let Some(stats) = written else {
            if !found_room {
                warn_no_room(shared);
                return Ok(());
            }
            tracing::info!(database = %shared.options.identity, "a snapshot was given up, because the database stops");
            return Ok(());
        };
        if stats.mended_objects > 0 {
            tracing::error!(database = %shared.options.identity, objects = stats.mended_objects, "what an older snapshot has on the disk is damaged; the new one has written it again. Check the disk [LC0527]");
        }
        let pruned = store
            .prune(shared.options.limits.snapshots_kept)
            .map_err(|error| error.to_string())?;
        if let Some(oldest) = pruned.log_needed_from {
            committer.trim(oldest);
        }
        Ok(())
    });
    if let Err(error) = result {
        tracing::error!(database = %shared.options.identity, %error, "no snapshot was written; the log keeps everything");
    }
    found_room
}
