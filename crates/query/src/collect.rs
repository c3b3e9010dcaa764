//! What a query has to keep before anything comes out: groups, rows to be sorted, rows that came already.

mod groups;
mod keyed_hash;
mod memory;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

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
#[derive(PartialEq, Eq)]
struct KeyedRow {
    bytes: Box<[u8]>,
    key_bytes: usize,
    /// Tells equal rows apart.
    number: u64,
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

impl PartialOrd for KeyedRow {
    fn partial_cmp(&self, other: &KeyedRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyedRow {
    fn cmp(&self, other: &KeyedRow) -> Ordering {
        let order = self.parts().cmp(&other.parts());
        order.then(self.number.cmp(&other.number))
    }
}

/// Rows to be sorted: as many as are wanted in the end.
#[derive(Default)]
pub(crate) struct Sorter {
    /// Those that may be wanted.
    kept: BTreeSet<KeyedRow>,
    sorted: Vec<KeyedRow>,
    /// Equal rows come once.
    is_of_different_rows: bool,
    count: u64,
}

impl Sorter {
    pub fn new(is_of_different_rows: bool) -> Sorter {
        Sorter {
            is_of_different_rows,
            ..Sorter::default()
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
        self.count += u64::from(!self.is_of_different_rows);
        let kept = KeyedRow {
            bytes: [key, row].concat().into(),
            key_bytes: key.len(),
            number: self.count,
        };
        let bytes = kept.memory_bytes();
        if !self.kept.insert(kept) {
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
            self.sorted = std::mem::take(&mut self.kept).into_iter().collect();
        }
        let kept = self.sorted.get(position)?;
        Some(kept.parts().1)
    }
}
