//! State of the open transaction: the undo log of its rows and tables, and what it may take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_table::{Altered, RowId, RowLayout};
use lightcone_types::{IndexId, TableId};

use crate::names::Names;
use crate::outbox_columns::OutboxColumns;
use crate::schedule::ScheduleColumns;
use crate::sequence::Sequence;
use crate::table_state::{TableSlot, TableState};

/// Most bytes of old row images, new rows and undo log that one transaction may pile up.
///
/// Less than what fits one frame of the log, by some room for what a record has beside the rows.
pub(crate) const TRANSACTION_BYTES_MAX: usize = lightcone_log::PAYLOAD_BYTES_MAX - (1 << 24);
/// What a record may have beside the rows that the transaction has counted: tables that change, and the rows of sequences. Less
/// than the room that is left for it, as the record of the time comes in the same frame.
pub(crate) const RECORD_ROOM_BYTES: usize = 1 << 23;

/// Changes between two reports of their number.
const COUNTED_CHANGES: usize = 1024;

/// What happened to a row, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub slot: TableSlot,
    pub row: RowId,
    pub kind: ChangeKind,
    /// Empty for inserts.
    pub old: OldRow,
}

/// The place of an old row in the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldRow {
    start: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Insert,
    Delete,
    Replace,
}

/// One row's net change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetChange {
    pub slot: TableSlot,
    pub table: TableId,
    pub kind: NetKind,
    /// The row as it is now, if it is there.
    pub new: RowId,
    /// The row as it was, if it was there.
    pub old: OldRow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetKind {
    Delete,
    /// Replaced in place; the key of the table's first unique index is the same.
    Put,
    Insert,
}

/// One thing that the open transaction has done to tables.
pub(crate) struct SchemaChange {
    /// So many row changes came before.
    pub changes: usize,
    pub undo: SchemaUndo,
}

pub(crate) enum SchemaUndo {
    Created(TableSlot),
    Dropped(TableSlot, Box<TableState>),
    Altered(TableSlot, Box<StateBefore>),
}

/// What an altered table was.
pub(crate) struct StateBefore {
    pub table: Altered,
    pub sequences: Vec<Sequence>,
    pub schedule: Option<ScheduleColumns>,
    pub outbox: Option<OutboxColumns>,
    pub declared: Option<RowLayout>,
    pub is_writable: bool,
}

/// What the names and the catalog's own sequences were before the transaction.
pub(crate) struct CatalogBefore {
    pub table_names: Names<TableId>,
    pub index_names: Names<IndexId>,
    pub sequences: Vec<(TableSlot, Vec<Sequence>)>,
}

/// The record of the open transaction so far, if it has changed tables.
#[derive(Default)]
pub(crate) struct Sealed {
    /// Groups, one behind the other.
    pub groups: Vec<u8>,
    pub group_count: usize,
    /// So many row changes are in it.
    pub changes: usize,
}

/// State of the open transaction. All buffers are reused.
#[derive(Default)]
pub(crate) struct Transaction {
    pub open: bool,
    /// It has the changes of a record, which has all that is written beside rows already.
    pub is_repeated: bool,
    pub changes: Vec<Change>,
    /// Old images of changed rows.
    pub arena: Vec<u8>,
    /// Bytes of rows inserted; only for the size limit, which counts the undo log too.
    pub inserted_bytes: usize,
    /// Only inserts so far, so no row id occurs twice.
    pub only_inserts: bool,
    /// It has changed rows of views, maybe.
    pub has_view_changes: bool,
    /// What it has done to tables, in order.
    pub schema_changes: Vec<SchemaChange>,
    pub sealed: Sealed,
    pub catalog_before: Option<Box<CatalogBefore>>,
    /// Tables with sequences whose catalog rows the next commit rewrites, each once: also when what drew from them is undone.
    pub unsaved_sequences: Vec<TableSlot>,
    /// Rows found by a delete, before they go.
    pub found: Vec<RowId>,
    /// A row while generated values are put into it.
    pub row: Vec<u8>,
    /// For looks at the net change before the commit.
    pub net: Vec<NetChange>,
    /// Told now and then how many changes there are.
    pub counted: Option<Arc<AtomicU64>>,
}

impl Transaction {
    /// Forgets everything: no transaction is open.
    pub fn reset(&mut self) {
        self.open = false;
        self.is_repeated = false;
        self.changes.clear();
        self.arena.clear();
        self.inserted_bytes = 0;
        self.only_inserts = true;
        self.has_view_changes = false;
        self.schema_changes.clear();
        self.catalog_before = None;
        if self.sealed.group_count > 0 {
            self.sealed = Sealed::default();
        }
        // One huge transaction must not pin its memory for ever.
        self.changes.shrink_to(1 << 16);
        self.arena.shrink_to(1 << 20);
        self.row.shrink_to(1 << 20);
    }

    /// A row as it was before a change.
    #[inline]
    pub fn old(&self, row: OldRow) -> &[u8] {
        &self.arena[row.start as usize..(row.start + row.len) as usize]
    }

    /// The next commit saves the sequences of a table, which have reserved values.
    #[cold]
    pub fn save_sequences_of(&mut self, slot: TableSlot, state: &mut TableState) {
        if !std::mem::replace(&mut state.is_saving_sequences, true) {
            self.unsaved_sequences.push(slot);
        }
    }

    /// Writes a change into the undo log.
    #[inline]
    pub fn note(&mut self, slot: TableSlot, row: RowId, kind: ChangeKind, old: &[u8]) {
        let (start, len) = (self.arena.len() as u32, old.len() as u32);
        self.arena.extend_from_slice(old);
        self.only_inserts &= kind == ChangeKind::Insert;
        self.changes.push(Change {
            slot,
            row,
            kind,
            old: OldRow { start, len },
        });
        if self.changes.len().is_multiple_of(COUNTED_CHANGES) {
            self.report();
        }
    }

    #[cold]
    fn report(&self) {
        if let Some(counted) = &self.counted {
            counted.store(self.changes.len() as u64, Ordering::Relaxed);
        }
    }
}
