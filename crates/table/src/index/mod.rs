//! Indexes, specialised by key type: no boxed dynamic value on the way of a point lookup.
//!
//! Keys of up to 4, 8, 16 and 32 bytes are integers whose order is the key's byte order; all other keys are byte strings
//! (see [`crate::key`]). A unique hash index stores row ids only and reads keys from the rows: a lookup needs the row
//! anyway, and it costs eight bytes a slot whatever the key. Indexes that may hold many rows for one key are ordered
//! sets of (key, row id), so removing one of a million equal keys stays logarithmic; for the hash algorithm that is an
//! implementation detail, range scans on it are refused all the same.

mod direct;
mod reader;
#[allow(unsafe_code)]
mod tree;
mod unique_hash;

use std::sync::Arc;

use lightcone_schema::IndexAlgorithm;

use self::direct::Direct;
use self::reader::{Key, KeyReader, WideKey};
use self::tree::Tree;
use self::unique_hash::{Keys, UniqueHash};
use crate::error::Error;
use crate::key::KeyRange;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;

/// The point a lookup asks for, as BSATN of the indexed columns in index order.
pub type PointKey<'a> = &'a [u8];

/// The rows a range scan asks for: BSATN of the first `prefix_columns` columns, and bounds of the next one (03 §8.3).
#[derive(Clone, Copy)]
pub struct RangeBounds<'a> {
    pub prefix: &'a [u8],
    pub prefix_columns: usize,
    pub start: &'a [u8],
    pub end: &'a [u8],
}

impl<'a> RangeBounds<'a> {
    /// Bounds of the first column.
    pub fn of_first(start: &'a [u8], end: &'a [u8]) -> RangeBounds<'a> {
        RangeBounds {
            prefix: &[],
            prefix_columns: 0,
            start,
            end,
        }
    }
}

/// An index of a table, or a frozen copy of it.
pub struct Index {
    reader: Arc<KeyReader>,
    structure: Structure,
    unique: bool,
    ordered: bool,
}

enum Structure {
    Hash(UniqueHash),
    Direct(Direct),
    Ordered4(Tree<u32>),
    Ordered8(Tree<u64>),
    Ordered16(Tree<u128>),
    Ordered32(Tree<WideKey>),
    OrderedBytes(Tree<Arc<[u8]>>),
}

/// Calls `$body` with the structure inside.
macro_rules! inside {
    ($structure:expr, tree $tree:ident => $t:expr, hash $hash:ident => $h:expr, direct $direct:ident => $d:expr) => {
        match $structure {
            Structure::Ordered4($tree) => $t,
            Structure::Ordered8($tree) => $t,
            Structure::Ordered16($tree) => $t,
            Structure::Ordered32($tree) => $t,
            Structure::OrderedBytes($tree) => $t,
            Structure::Hash($hash) => $h,
            Structure::Direct($direct) => $d,
        }
    };
}

impl Index {
    /// An empty index over the columns of `algorithm`.
    pub fn new(algorithm: &IndexAlgorithm, unique: bool, layout: &RowLayout) -> Index {
        let reader = KeyReader::new(algorithm, layout);
        let structure = match (algorithm, unique, reader.fixed_bytes) {
            (IndexAlgorithm::Hash(_), true, _) => Structure::Hash(UniqueHash::default()),
            (IndexAlgorithm::Direct(_), true, _) => Structure::Direct(Direct::default()),
            (_, _, Some(0..=4)) => Structure::Ordered4(Tree::default()),
            (_, _, Some(5..=8)) => Structure::Ordered8(Tree::default()),
            (_, _, Some(9..=16)) => Structure::Ordered16(Tree::default()),
            (_, _, Some(17..=32)) => Structure::Ordered32(Tree::default()),
            _ => Structure::OrderedBytes(Tree::default()),
        };
        Index {
            reader: Arc::new(reader),
            structure,
            unique,
            ordered: !matches!(algorithm, IndexAlgorithm::Hash(_)),
        }
    }

    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Whether two valid rows have the same key.
    pub fn same_key(&self, layout: &RowLayout, a: &[u8], b: &[u8]) -> bool {
        if let Some(column) = self.reader.integer {
            return column.load(&a[column.start..]) == column.load(&b[column.start..]);
        }
        self.reader
            .columns
            .iter()
            .all(|&column| layout.column(a, column) == layout.column(b, column))
            || (!self.reader.bitwise && self.reader.same_value(layout, a, b))
    }

    /// Appends the key columns of a valid row as the BSATN of a point.
    pub fn point_of_row(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        for &column in &self.reader.columns {
            out.extend_from_slice(layout.column(row, column));
        }
    }

    /// Appends the key of a valid row: bytes that are equal where keys are, and in their order if the index has one.
    pub fn key_of_row(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        let reader = &self.reader;
        reader.with_row_bytes(layout, row, |key| out.extend_from_slice(key));
    }

    /// Appends the key that rows have which a point scan finds, as [`key_of_row`](Self::key_of_row) gives it.
    ///
    /// # Errors
    /// If the point does not decode.
    pub fn key_of_point(
        &self,
        layout: &RowLayout,
        point: PointKey<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let reader = &self.reader;
        Ok(reader.with_point_bytes(layout, point, |key| out.extend_from_slice(key))?)
    }

    /// The keys of the rows that a range scan finds, as [`key_of_row`](Self::key_of_row) gives them.
    ///
    /// # Errors
    /// As [`for_range`](Self::for_range).
    pub fn key_range(&self, range: RangeBounds<'_>) -> Result<KeyRange, Error> {
        if !self.ordered {
            return Err(Error::NotOrdered);
        }
        let prefix = (range.prefix, range.prefix_columns);
        self.reader.range(prefix, range.start, range.end)
    }

    /// The length of the point at the start of `bytes`.
    ///
    /// # Errors
    /// If `bytes` do not start with a point of this index.
    pub fn point_len(&self, layout: &RowLayout, bytes: &[u8]) -> Result<usize, Error> {
        let columns = self.reader.columns.iter();
        Ok(columns.copied().try_fold(0, |at, column| {
            layout
                .check_column(column, &bytes[at..])
                .map(|length| at + length)
        })?)
    }

    /// Adds a row that was just stored under `id`. For a unique index the key must be free.
    pub fn insert(&mut self, rows: &RowStore, layout: &RowLayout, id: RowId) {
        let row = rows.get(id);
        let reader = &self.reader;
        inside!(&mut self.structure,
            tree tree => tree.insert(reader.of_row(layout, row), id),
            hash hash => hash.insert(Keys { reader, rows, layout }, id),
            direct direct => direct.set(reader.of_row::<u64>(layout, row), Some(id)));
    }

    /// Adds a row whose bytes were replaced, unless it is there.
    pub fn reinsert(&mut self, rows: &RowStore, layout: &RowLayout, id: RowId) {
        if !self.unique || self.find_row(rows, layout, rows.get(id)).is_none() {
            self.insert(rows, layout, id);
        }
    }

    /// Removes the row `id`, which is still stored.
    pub fn remove(&mut self, rows: &RowStore, layout: &RowLayout, id: RowId) {
        let row = rows.get(id);
        let reader = &self.reader;
        inside!(&mut self.structure,
            tree tree => tree.remove(reader.of_row(layout, row), id),
            hash hash => hash.remove(Keys { reader, rows, layout }, id),
            direct direct => direct.set(reader.of_row::<u64>(layout, row), None));
    }

    /// Adds a row with this key to an index that is not unique, or removes it.
    ///
    /// # Errors
    /// If the point does not decode.
    pub fn change_point(
        &mut self,
        layout: &RowLayout,
        point: PointKey<'_>,
        id: RowId,
        is_insert: bool,
    ) -> Result<(), Error> {
        debug_assert!(!self.unique);
        let reader = &self.reader;
        inside!(&mut self.structure,
            tree tree => match is_insert {
                true => tree.insert(reader.of_point(layout, point)?, id),
                false => tree.remove(reader.of_point(layout, point)?, id),
            },
            hash _hash => unreachable!("an index that is not unique is a tree"),
            direct _direct => unreachable!("as above"));
        Ok(())
    }

    /// The row of a unique index that has the key of `row`.
    #[inline]
    pub fn find_row(&self, rows: &RowStore, layout: &RowLayout, row: &[u8]) -> Option<RowId> {
        debug_assert!(self.unique);
        let reader = &self.reader;
        inside!(&self.structure,
            tree tree => tree.find(reader.of_row(layout, row)),
            hash hash => hash.find_row(Keys { reader, rows, layout }, row),
            direct direct => direct.get(reader.of_row::<u64>(layout, row)))
    }

    /// Calls `visit` with every row whose key is `point`, in no particular order.
    ///
    /// # Errors
    /// If the point does not decode.
    #[inline]
    pub fn for_point(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        point: PointKey<'_>,
        visit: impl FnMut(RowId),
    ) -> Result<(), Error> {
        if self.unique {
            let found = self.find_point(rows, layout, point)?;
            found.into_iter().for_each(visit);
            return Ok(());
        }
        let mut visit = visit;
        self.walk_point(rows, layout, point, None, |id| {
            visit(id);
            true
        })
    }

    /// The row of a unique index whose key is `point`.
    ///
    /// # Errors
    /// If the point does not decode.
    #[inline]
    pub fn find_point(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        point: PointKey<'_>,
    ) -> Result<Option<RowId>, Error> {
        let reader = &self.reader;
        Ok(inside!(&self.structure,
            tree tree => tree.find(reader.of_point(layout, point)?),
            hash hash => hash.find_point(Keys { reader, rows, layout }, point)?,
            direct direct => direct.get(reader.of_point::<u64>(layout, point)?)))
    }

    /// As [`Index::for_point`], from behind the row `after` if there is one, until `visit` returns false.
    pub fn walk_point(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        point: PointKey<'_>,
        after: Option<RowId>,
        mut visit: impl FnMut(RowId) -> bool,
    ) -> Result<(), Error> {
        if self.unique {
            // There is nothing behind the only row.
            let found = match after {
                Some(_) => None,
                None => self.find_point(rows, layout, point)?,
            };
            found.into_iter().for_each(|id| {
                visit(id);
            });
            return Ok(());
        }
        let reader = &self.reader;
        inside!(&self.structure,
            tree tree => tree_point(tree, reader.of_point(layout, point)?, after, visit),
            hash _hash => unreachable!("an index that is not unique is a tree"),
            direct _direct => unreachable!("as above"));
        Ok(())
    }

    /// Calls `visit` with every row in the range (03 §8.3), in key order.
    ///
    /// # Errors
    /// If the index has no order, the prefix is too long, or a part does not decode.
    pub fn for_range(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        range: RangeBounds<'_>,
        mut visit: impl FnMut(RowId),
    ) -> Result<(), Error> {
        self.walk_range(rows, layout, range, None, |id| {
            visit(id);
            true
        })
    }

    /// As [`Index::for_range`], from behind the row `after` if there is one, until `visit` returns false.
    pub fn walk_range(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        range: RangeBounds<'_>,
        after: Option<RowId>,
        visit: impl FnMut(RowId) -> bool,
    ) -> Result<(), Error> {
        let reader = &self.reader;
        let range = self.key_range(range)?;
        if range.is_empty() {
            return Ok(());
        }
        let size = reader.fixed_bytes.unwrap_or(0);
        let after = after.map(|id| (id, rows.get(id)));
        inside!(&self.structure,
        tree tree => {
            let after = after.map(|(id, row)| (reader.of_row(layout, row), id));
            tree_range(tree, &range, size, after, visit);
        },
        hash _hash => unreachable!("hash indexes have no order"),
        direct direct => {
            let (first, last) = direct_bounds(&range, size);
            let first = match after {
                Some((_, row)) => reader.of_row::<u64>(layout, row).checked_add(1),
                None => Some(first),
            };
            if let (Some(first), Some(last)) = (first, last) {
                direct.walk_range(first, last, visit);
            }
        });
        Ok(())
    }

    /// As [`Index::for_range`], from the last row to the first, until `visit` returns false.
    pub fn walk_range_back(
        &self,
        range: RangeBounds<'_>,
        mut visit: impl FnMut(RowId) -> bool,
    ) -> Result<(), Error> {
        let range = self.key_range(range)?;
        if range.is_empty() {
            return Ok(());
        }
        let size = self.reader.fixed_bytes.unwrap_or(0);
        inside!(&self.structure,
        tree tree => tree_range_back(tree, &range, size, visit),
        hash _hash => unreachable!("hash indexes have no order"),
        direct direct => {
            if let (first, Some(last)) = direct_bounds(&range, size) {
                direct.walk_range_back(first, last, &mut visit);
            }
        });
        Ok(())
    }

    /// Whether it can be walked in the order of its keys.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    pub fn clear(&mut self) {
        inside!(&mut self.structure, tree tree => tree.clear(), hash hash => hash.clear(), direct direct => direct.clear());
    }

    /// The index as it is now. The copy can be read on any thread, with the rows that were frozen at the same time.
    pub fn freeze(&mut self) -> Index {
        let structure = match &mut self.structure {
            Structure::Hash(hash) => Structure::Hash(hash.freeze()),
            Structure::Direct(direct) => Structure::Direct(direct.freeze()),
            Structure::Ordered4(tree) => Structure::Ordered4(tree.freeze()),
            Structure::Ordered8(tree) => Structure::Ordered8(tree.freeze()),
            Structure::Ordered16(tree) => Structure::Ordered16(tree.freeze()),
            Structure::Ordered32(tree) => Structure::Ordered32(tree.freeze()),
            Structure::OrderedBytes(tree) => Structure::OrderedBytes(tree.freeze()),
        };
        Index {
            reader: self.reader.clone(),
            structure,
            ..*self
        }
    }

    /// Bytes that frozen copies may hold alone; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        inside!(&self.structure,
            tree tree => tree.released_bytes(),
            hash hash => hash.released_bytes(),
            direct direct => direct.released_bytes())
    }

    /// The number of rows in the index.
    pub fn row_count(&self) -> usize {
        inside!(&self.structure, tree tree => tree.len(), hash hash => hash.len(), direct direct => direct.len())
    }

    /// The memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        let mut keys_bytes = 0;
        if let Structure::OrderedBytes(tree) = &self.structure {
            tree.walk(None, |key, _| {
                keys_bytes += key.len() + 16;
                true
            });
        }
        keys_bytes
            + inside!(&self.structure,
                tree tree => tree.heap_bytes(),
                hash hash => hash.heap_bytes(),
                direct direct => direct.heap_bytes())
    }
}

/// The first and the last key of a range; none as the last: it is empty. Byte strings that differ may still be one integer.
fn direct_bounds(range: &KeyRange, size: usize) -> (u64, Option<u64>) {
    let last = match &range.end {
        Some(end) => u64::from_bytes(end, size).checked_sub(1),
        None => Some(u64::MAX),
    };
    (u64::from_bytes(&range.start, size), last)
}

fn tree_point<K: Key>(
    tree: &Tree<K>,
    key: K,
    after: Option<RowId>,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = (key, after.map_or(RowId::MIN, RowId::next));
    tree.walk(Some(&start), |key, id| *key == start.0 && visit(id));
}

fn tree_range<K: Key>(
    tree: &Tree<K>,
    range: &KeyRange,
    size: usize,
    after: Option<(K, RowId)>,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = match after {
        Some((key, id)) => (key, id.next()),
        None => (K::from_bytes(&range.start, size), RowId::MIN),
    };
    let end = range.end.as_ref().map(|end| K::from_bytes(end, size));
    tree.walk(Some(&start), |key, id| {
        end.as_ref().is_none_or(|end| key < end) && visit(id)
    });
}

fn tree_range_back<K: Key>(
    tree: &Tree<K>,
    range: &KeyRange,
    size: usize,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = K::from_bytes(&range.start, size);
    let end = range.end.as_ref();
    let end = end.map(|end| (K::from_bytes(end, size), RowId::MIN));
    tree.walk_back(end.as_ref(), |key, id| *key >= start && visit(id));
}
