//! Held indexes, which are beside those of the schema, and what has changed while one is being built.

use lightcone_schema::IndexAlgorithm;
use lightcone_types::ColId;

use crate::index::Index;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;

/// An index for lookups by a column that no index of the schema is for. It is there as long as it has holders.
pub(super) struct HeldIndex {
    pub column: ColId,
    /// None while the schema has one on this column.
    pub index: Option<Index>,
    pub holders: usize,
}

impl HeldIndex {
    /// Whether it has holders, and the schema has no such index.
    pub fn is_used(&self) -> bool {
        self.holders > 0 && self.index.is_some()
    }
}

/// The changes of a column while an index on it is built.
#[derive(Default)]
pub struct IndexChanges {
    /// Keys in BSATN, one behind the other.
    pub(super) keys: Vec<u8>,
    pub(super) changes: Vec<IndexChange>,
}

pub(super) struct IndexChange {
    pub(super) row: RowId,
    /// Inserted, or else deleted.
    pub(super) is_insert: bool,
    /// The end of its key in `keys`.
    pub(super) key_end: usize,
}

impl IndexChanges {
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn heap_bytes(&self) -> usize {
        self.keys.capacity() + self.changes.capacity() * size_of::<IndexChange>()
    }

    fn push(&mut self, key: &[u8], row: RowId, is_insert: bool) {
        self.keys.extend_from_slice(key);
        self.changes.push(IndexChange {
            row,
            is_insert,
            key_end: self.keys.len(),
        });
    }
}

/// A column of a table on which an index is being built elsewhere.
pub(super) struct Building {
    pub column: ColId,
    pub changes: IndexChanges,
    pub changes_bytes_max: usize,
    /// There were too many changes.
    pub is_lost: bool,
}

impl Building {
    pub fn note(&mut self, layout: &RowLayout, row: &[u8], id: RowId, is_insert: bool) {
        if self.is_lost {
            return;
        }
        let key = layout.column(row, usize::from(self.column.0));
        self.changes.push(key, id, is_insert);
        if self.changes.heap_bytes() > self.changes_bytes_max {
            self.is_lost = true;
            self.changes = IndexChanges::default();
        }
    }

    /// A row is replaced by one of the same id.
    pub fn note_replaced(&mut self, layout: &RowLayout, id: RowId, old: &[u8], new: &[u8]) {
        let column = usize::from(self.column.0);
        if layout.column(old, column) != layout.column(new, column) {
            self.note(layout, old, id, false);
            self.note(layout, new, id, true);
        }
    }
}

pub(super) fn empty_index(column: ColId, layout: &RowLayout) -> Index {
    Index::new(&IndexAlgorithm::BTree(vec![column]), false, layout)
}

pub(super) fn held_index(column: ColId, rows: &RowStore, layout: &RowLayout) -> Index {
    let mut index = empty_index(column, layout);
    rows.for_each(|id, _| index.insert(rows, layout, id));
    index
}
