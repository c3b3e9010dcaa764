//! Snapshots of a database, and what is counted of it.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::Writer;
use crate::inbox::{Input, TableRows};
use crate::snapshot::{self, SnapshotJob};

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
    pub(super) fn log_bytes(&self) -> u64 {
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
        let job = SnapshotJob {
            shared: self.shared.clone(),
            committer: self.committer.clone(),
            snapshot: Some(self.datastore.snapshot()),
            next_offset: self.next_offset,
            log_bytes: self.log_bytes(),
            _turn: turn,
        };
        job.begin();
    }
}
