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
        if self.state.snapshot_running
            || self.state.stop.is_some()
            || self.shared.options.in_memory
            || self.shared.status.is_read_only()
        {
            return;
        }
        let log_bytes = self.log_bytes();
        let since = log_bytes.saturating_sub(self.state.log_bytes_at_snapshot);
        let is_wanted = std::mem::take(&mut self.state.snapshot_wanted);
        if since < self.snapshot_due_bytes && !is_wanted {
            return;
        }
        // A snapshot can wait; the log needs what is left of the disk.
        if !self.shared.options.disk.has_room_for(0) {
            self.state.log_bytes_at_snapshot =
                snapshot::delayed(self.snapshot_due_bytes, log_bytes);
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
        let snapshot = self.datastore.snapshot();
        self.shared.copy_room.begin(&self.datastore);
        let job = SnapshotJob {
            shared: self.shared.clone(),
            committer: self.way_out.log.clone(),
            snapshot: Some(snapshot),
            next_offset: self.next_offset,
            log_bytes: self.log_bytes(),
            due_bytes: self.snapshot_due_bytes,
            _turn: turn,
        };
        job.begin();
    }

    /// Whether so many pages were copied because of the snapshot that is being written that some of it has to be written first.
    pub(super) fn has_copied_much(&self) -> bool {
        let room = &self.shared.copy_room;
        self.state.snapshot_running && !room.has_room(&self.datastore)
    }

    /// A snapshot has ended. From so many bytes of the log on those are counted that make the next one due.
    pub(super) fn snapshot_done(&mut self, log_bytes: u64) {
        self.state.snapshot_running = false;
        self.state.log_bytes_at_snapshot = log_bytes;
        let limits = &self.shared.options.limits;
        self.snapshot_due_bytes = snapshot::due_bytes(limits, self.datastore.page_bytes());
    }

    /// What the disk has of the last snapshot, or of the log behind it, is damaged: a new one makes that good, if it would not be the same.
    pub(super) fn want_snapshot(&mut self, replaces: bool) {
        let has_more = self.log_bytes() > self.state.log_bytes_at_snapshot;
        self.state.snapshot_wanted = has_more || replaces;
    }
}
