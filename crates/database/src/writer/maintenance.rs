//! What happens to a whole database: snapshots, its end.

use std::sync::Arc;

use lightcone_engine::Datastore;
use tokio::sync::{oneshot, OwnedSemaphorePermit};

use super::Writer;
use crate::events::FanoutItem;
use crate::inbox::{Input, TableRows};
use crate::shared::Shared;
use crate::snapshot::{self, SnapshotJob};
use crate::status::FAILED_TEXT;

impl Writer {
    pub(super) fn table_rows(&self) -> Vec<TableRows> {
        let tables = self.module.def().tables.iter();
        let rows = tables.filter_map(|table| {
            let id = self.datastore.table_id_from_name(&table.name)?;
            Some(TableRows {
                table: table.name.clone(),
                rows: self.datastore.table(id)?.rows().row_count(),
            })
        });
        rows.collect()
    }

    /// Since the newest snapshot when the database was opened.
    fn log_bytes(&self) -> u64 {
        self.replayed_bytes + self.committer.stats().log_bytes
    }

    pub(super) fn snapshot_if_due(&mut self) {
        let limits = &self.shared.options.limits;
        if self.state.snapshot_running
            || self.state.stop.is_some()
            || self.shared.options.in_memory
            || self.shared.status.read_only().is_some()
        {
            return;
        }
        let log_bytes = self.log_bytes();
        if log_bytes.saturating_sub(self.state.log_bytes_at_snapshot) < limits.snapshot_log_bytes {
            return;
        }
        // A snapshot can wait; the log needs what is left of the disk.
        if !self.shared.options.disk.has_room_for(0) {
            self.state.log_bytes_at_snapshot = snapshot::delayed(&self.shared, log_bytes);
            snapshot::warn_no_room(&self.shared);
            return;
        }
        self.state.snapshot_running = true;
        let turns = &self.shared.options.commons.snapshots;
        if let Ok(turn) = turns.clone().try_acquire_owned() {
            return self.begin_snapshot(turn);
        }
        // Nothing is frozen meanwhile. The sender alone would keep the inbox open, all that is shared would stay with it.
        let (turns, shared) = (turns.clone(), Arc::downgrade(&self.shared));
        let wait = async move {
            if let (Ok(turn), Some(shared)) = (turns.acquire_owned().await, shared.upgrade()) {
                // A database that has stopped lets the next one have its turn.
                let _ = shared.inbox.send(Input::SnapshotTurn(turn));
            }
        };
        self.shared.environment().spawn_task(Box::pin(wait));
    }

    /// Freezes the tables and has them written beside the writer.
    pub(super) fn begin_snapshot(&mut self, turn: OwnedSemaphorePermit) {
        if self.shared.status.is_read_only() {
            self.state.snapshot_running = false;
            return;
        }
        let log_bytes = self.log_bytes();
        let state = self.datastore.snapshot();
        let job = SnapshotJob::new(
            &self.shared,
            &self.committer,
            state,
            self.next_offset,
            log_bytes,
            turn,
        );
        let environment = self.shared.environment();
        environment.spawn_blocking(Box::new(move || job.run()));
    }

    pub(super) fn stop(mut self) {
        self.shared.status.set_stopping(!self.state.failed);
        self.shared.snapshots.cancel();
        self.shared.procedures.stop();
        self.inbox.close();
        self.shared.close();
        let (code, reason, is_opened_again, done) = match self.state.stop.take() {
            Some(stop) => (stop.code, stop.reason, stop.is_opened_again, stop.done),
            None if self.state.failed => (1011, FAILED_TEXT.to_owned(), false, Vec::new()),
            None => (1001, "module exited".to_owned(), false, Vec::new()),
        };
        self.end_round();
        self.shared.log.flush();
        let log_bytes = self.log_bytes();
        let log = self.committer.shutdown();
        drop(self.shared.snapshots.hold());
        match &log {
            Ok(_) if !self.state.failed => mark_planned(&self.shared, &self.datastore),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the log did not end properly")
            }
        }
        let (fanout_done, wait) = oneshot::channel();
        let _ = self.fanout.send(FanoutItem::Stop {
            code,
            reason,
            done: fanout_done,
        });
        let _ = wait.blocking_recv();
        // Fan-out does it, unless it failed.
        self.shared.outbox.end();
        drop(self.fanout_machine);
        let log_bytes = log_bytes.saturating_sub(self.state.log_bytes_at_snapshot);
        if let (Ok(mut log), true, false) = (log, is_opened_again, self.state.failed) {
            // No client is connected any more, and the lock of the log keeps others out.
            let state = || self.datastore.snapshot();
            snapshot::write_at_stop(&self.shared, state, log.as_mut(), log_bytes);
        }
        for done in done {
            let _ = done.send(());
        }
    }
}

/// Notes for the next start of the server that nothing is planned, if so. All is durable by now.
fn mark_planned(shared: &Shared, datastore: &Datastore) {
    let waits = !datastore.schedules().is_empty() || datastore.outbound_count() > 0;
    if waits || datastore.has_backfill_tables() {
        return;
    }
    let options = &shared.options;
    if let Err(error) = options.note_no_schedules(true) {
        // It is opened once for nothing, no more.
        tracing::debug!(database = %options.identity, %error, "the mark of a database without plans cannot be set");
    }
}
