//! What a query has to keep before anything comes out: groups, rows to be sorted, rows that came already.

mod groups;
mod keyed_hash;
mod memory;

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

use lightcone_table::RowLayout;

use self::memory::ENTRY_BYTES;
use crate::execute::ExecuteError;
use crate::sort_key::push_sort_key;

pub(crate) use self::groups::Groups;
pub(crate) use self::memory::Memory;

/// The rows that came already.
#[derive(Default)]
pub(crate) struct Seen {
    rows: HashSet<Box<[u8]>>,
    key: Vec<u8>,
}

impl Seen {
    /// Is this row the first of its kind? It has so many columns.
    pub fn is_new(
        &mut self,
        row_layout: &RowLayout,
        columns: usize,
        row: &[u8],
        memory: &mut Memory,
    ) -> Result<bool, ExecuteError> {
        self.key.clear();
        for column in 0..columns {
            let value = row_layout.column(row, column);
            push_sort_key(row_layout.column_type(column), value, false, &mut self.key);
        }
        if self.rows.contains(&*self.key) {
            return Ok(false);
        }
        memory.take(self.key.len() + ENTRY_BYTES)?;
        self.rows.insert(self.key.as_slice().into());
        Ok(true)
    }
}

/// A row behind its key, in one piece.
struct KeyedRow {
    bytes: Box<[u8]>,
    key_bytes: usize,
}

impl KeyedRow {
    /// Rows whose keys are equal come in the order of their bytes.
    fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.key_bytes)
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + ENTRY_BYTES
    }
}

impl PartialEq for KeyedRow {
    fn eq(&self, other: &KeyedRow) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for KeyedRow {}

impl PartialOrd for KeyedRow {
    fn partial_cmp(&self, other: &KeyedRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyedRow {
    fn cmp(&self, other: &KeyedRow) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Rows to be sorted: as many as are wanted in the end.
#[derive(Default)]
pub(crate) struct Sorter {
    kept: Kept,
    sorted: Vec<KeyedRow>,
}

/// Those that may be wanted.
enum Kept {
    /// With the last of them on top.
    All(BinaryHeap<KeyedRow>),
    /// Equal rows once.
    Different(BTreeSet<KeyedRow>),
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::All(BinaryHeap::new())
    }
}

impl Kept {
    fn len(&self) -> usize {
        match self {
            Kept::All(kept) => kept.len(),
            Kept::Different(kept) => kept.len(),
        }
    }

    fn last(&self) -> Option<&KeyedRow> {
        match self {
            Kept::All(kept) => kept.peek(),
            Kept::Different(kept) => kept.last(),
        }
    }

    fn pop_last(&mut self) -> Option<KeyedRow> {
        match self {
            Kept::All(kept) => kept.pop(),
            Kept::Different(kept) => kept.pop_last(),
        }
    }

    /// False: an equal row is there, and is to stay the only one.
    fn push(&mut self, row: KeyedRow) -> bool {
        match self {
            Kept::Different(kept) => kept.insert(row),
            Kept::All(kept) => {
                kept.push(row);
                true
            }
        }
    }

    fn into_sorted(self) -> Vec<KeyedRow> {
        match self {
            Kept::All(kept) => kept.into_sorted_vec(),
            Kept::Different(kept) => kept.into_iter().collect(),
        }
    }
}

impl Sorter {
    /// Equal rows come once.
    pub fn of_different_rows() -> Sorter {
        Sorter {
            kept: Kept::Different(BTreeSet::new()),
            sorted: Vec::new(),
        }
    }

    /// `rows_max` is how many rows are wanted in the end.
    pub fn push(
        &mut self,
        key: &[u8],
        row: &[u8],
        rows_max: usize,
        memory: &mut Memory,
    ) -> Result<(), ExecuteError> {
        let is_full = self.kept.len() >= rows_max;
        let is_wanted = |last: &KeyedRow| (key, row) < last.parts();
        if is_full && !self.kept.last().is_some_and(is_wanted) {
            return Ok(());
        }
        let kept = KeyedRow {
            bytes: [key, row].concat().into(),
            key_bytes: key.len(),
        };
        let bytes = kept.memory_bytes();
        if !self.kept.push(kept) {
            return Ok(());
        }
        if is_full {
            let replaced = self.kept.pop_last();
            memory.bytes -= replaced.map_or(0, |replaced| replaced.memory_bytes());
        }
        memory.take(bytes)
    }

    /// No row is wanted whose key begins so: as many as are wanted stand before it.
    #[inline]
    pub fn refuses(&self, beginning: &[u8], rows_max: usize) -> bool {
        let last = self.last_key(rows_max);
        let last = last.and_then(|last| last.get(..beginning.len()));
        last.is_some_and(|last| beginning > last)
    }

    /// The key of the last row that is wanted, if there are as many as are.
    #[inline]
    pub fn last_key(&self, rows_max: usize) -> Option<&[u8]> {
        let last = self.kept.last().filter(|_| self.kept.len() >= rows_max)?;
        Some(last.parts().0)
    }

    /// The row at a position of the order. After the first look no more rows come.
    pub fn row(&mut self, position: usize) -> Option<&[u8]> {
        if self.sorted.is_empty() {
            self.sorted = std::mem::take(&mut self.kept).into_sorted();
        }
        let kept = self.sorted.get(position)?;
        Some(kept.parts().1)
    }
}
