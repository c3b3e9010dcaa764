//! Snapshots of a database, and what is counted of it.

use super::Writer;
use crate::inbox::TableRows;
use crate::snapshot::{self, SnapshotJob};
use crate::status::SnapshotTurn;

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
        self.replayed_bytes + self.way_out.log.log_bytes()
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
        if let Some(turn) = snapshot::take_turn(&self.shared) {
            self.begin_snapshot(turn);
        }
    }

    /// Freezes the tables and has them written beside the writer.
    pub(super) fn begin_snapshot(&mut self, turn: SnapshotTurn) {
        if self.shared.status.is_read_only() {
            self.state.snapshot_running = false;
            return;
        }
        let job = SnapshotJob {
            shared: self.shared.clone(),
            committer: self.way_out.log.clone(),
            snapshot: Some(self.datastore.snapshot()),
            next_offset: self.next_offset,
            log_bytes: self.log_bytes(),
            _turn: turn,
        };
        job.begin();
    }
}
