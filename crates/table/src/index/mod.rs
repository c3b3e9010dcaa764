//! Indexes, specialised by key type: no boxed dynamic value on the way of a point lookup.
//!
//! Keys of up to 4, 8 and 16 bytes are integers whose order is the key's byte order; all other keys are byte strings
//! (see [`crate::key`]). A unique hash index stores row ids only and reads keys from the rows: a lookup needs the row
//! anyway, and it costs eight bytes a slot whatever the key. Indexes that may hold many rows for one key are ordered
//! sets of (key, row id), so removing one of a million equal keys stays logarithmic; for the hash algorithm that is an
//! implementation detail, range scans on it are refused all the same.

mod direct;
mod reader;
mod unique_hash;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use lightcone_schema::IndexAlgorithm;

use self::direct::Direct;
use self::reader::{Key, KeyReader};
use self::unique_hash::UniqueHash;
use crate::key::KeyRange;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;
use crate::Error;

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

/// One index of a table.
pub struct Index {
    reader: KeyReader,
    structure: Structure,
    unique: bool,
    ordered: bool,
}

enum Structure {
    Hash(UniqueHash),
    Direct(Direct),
    Unique4(BTreeMap<u32, RowId>),
    Unique8(BTreeMap<u64, RowId>),
    Unique16(BTreeMap<u128, RowId>),
    UniqueBytes(BTreeMap<Box<[u8]>, RowId>),
    Many4(BTreeSet<(u32, RowId)>),
    Many8(BTreeSet<(u64, RowId)>),
    Many16(BTreeSet<(u128, RowId)>),
    ManyBytes(BTreeSet<(Box<[u8]>, RowId)>),
}

/// Calls `$body` with the ordered map or set inside.
macro_rules! ordered {
    ($structure:expr, unique $map:ident => $unique:expr, many $set:ident => $many:expr, hash $hash:ident => $h:expr, direct $direct:ident => $d:expr) => {
        match $structure {
            Structure::Unique4($map) => $unique,
            Structure::Unique8($map) => $unique,
            Structure::Unique16($map) => $unique,
            Structure::UniqueBytes($map) => $unique,
            Structure::Many4($set) => $many,
            Structure::Many8($set) => $many,
            Structure::Many16($set) => $many,
            Structure::ManyBytes($set) => $many,
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
            (_, true, Some(0..=4)) => Structure::Unique4(BTreeMap::new()),
            (_, true, Some(5..=8)) => Structure::Unique8(BTreeMap::new()),
            (_, true, Some(9..=16)) => Structure::Unique16(BTreeMap::new()),
            (_, true, _) => Structure::UniqueBytes(BTreeMap::new()),
            (_, false, Some(0..=4)) => Structure::Many4(BTreeSet::new()),
            (_, false, Some(5..=8)) => Structure::Many8(BTreeSet::new()),
            (_, false, Some(9..=16)) => Structure::Many16(BTreeSet::new()),
            (_, false, _) => Structure::ManyBytes(BTreeSet::new()),
        };
        Index {
            reader,
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
        let reader = &self.reader;
        reader.range(range.prefix, range.prefix_columns, range.start, range.end)
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
        ordered!(&mut self.structure,
            unique map => { map.insert(reader.of_row(layout, row), id); },
            many set => { set.insert((reader.of_row(layout, row), id)); },
            hash hash => hash.insert(reader, rows, layout, id),
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
        ordered!(&mut self.structure,
            unique map => map_remove(map, &reader.of_row(layout, row)),
            many set => { set.remove(&(reader.of_row(layout, row), id)); },
            hash hash => hash.remove(reader, layout, row, id),
            direct direct => direct.set(reader.of_row::<u64>(layout, row), None));
    }

    /// The row of a unique index that has the key of `row`.
    #[inline]
    pub fn find_row(&self, rows: &RowStore, layout: &RowLayout, row: &[u8]) -> Option<RowId> {
        debug_assert!(self.unique);
        let reader = &self.reader;
        ordered!(&self.structure,
            unique map => map_get(map, &reader.of_row(layout, row)),
            many _set => None,
            hash hash => hash.find_row(reader, rows, layout, row),
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
        let reader = &self.reader;
        ordered!(&self.structure,
            unique map => map_get(map, &reader.of_point(layout, point)?).into_iter().for_each(visit),
            many set => set_point(set, reader.of_point(layout, point)?, visit),
            hash hash => hash.find_point(reader, rows, layout, point)?.into_iter().for_each(visit),
            direct direct => direct.get(reader.of_point::<u64>(layout, point)?).into_iter().for_each(visit));
        Ok(())
    }

    /// Like [`Index::for_point`], but only behind the row `after` if there is one, and only until `visit` returns false.
    ///
    /// # Errors
    /// As there.
    pub fn walk_point(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        point: PointKey<'_>,
        after: Option<RowId>,
        mut visit: impl FnMut(RowId) -> bool,
    ) -> Result<(), Error> {
        let reader = &self.reader;
        ordered!(&self.structure,
            unique _map => (),
            many set => {
                set_walk_point(set, reader.of_point(layout, point)?, after, visit);
                return Ok(());
            },
            hash _hash => (),
            direct _direct => ());
        // All others hold one row for a key.
        if after.is_some() {
            return Ok(());
        }
        self.for_point(rows, layout, point, |id| {
            visit(id);
        })
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

    /// Like [`Index::for_range`], but only behind the row `after` if there is one, and only until `visit` returns false.
    ///
    /// # Errors
    /// As there.
    pub fn walk_range(
        &self,
        rows: &RowStore,
        layout: &RowLayout,
        range: RangeBounds<'_>,
        after: Option<RowId>,
        visit: impl FnMut(RowId) -> bool,
    ) -> Result<(), Error> {
        if !self.ordered {
            return Err(Error::NotOrdered);
        }
        let reader = &self.reader;
        let range = reader.range(range.prefix, range.prefix_columns, range.start, range.end)?;
        if range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Ok(());
        }
        let size = reader.fixed_bytes.unwrap_or(0);
        let after = after.map(|id| (id, rows.get(id)));
        ordered!(&self.structure,
        unique map => {
            let after = after.map(|(_, row)| reader.of_row(layout, row));
            map_walk(map, &range, size, after, visit);
        },
        many set => {
            let after = after.map(|(id, row)| (reader.of_row(layout, row), id));
            set_walk(set, &range, size, after, visit);
        },
        hash _hash => unreachable!("hash indexes have no order"),
        direct direct => {
            let first = match after {
                Some((_, row)) => reader.of_row::<u64>(layout, row).checked_add(1),
                None => Some(u64::from_bytes(&range.start, size)),
            };
            // Byte strings that differ may still be one integer: then the range is empty.
            let last = match &range.end {
                Some(end) => u64::from_bytes(end, size).checked_sub(1),
                None => Some(u64::MAX),
            };
            if let (Some(first), Some(last)) = (first, last) {
                direct.walk_range(first, last, visit);
            }
        });
        Ok(())
    }

    pub fn clear(&mut self) {
        ordered!(&mut self.structure,
            unique map => map.clear(),
            many set => set.clear(),
            hash hash => *hash = UniqueHash::default(),
            direct direct => *direct = Direct::default());
    }

    /// The number of rows in the index.
    pub fn row_count(&self) -> usize {
        ordered!(&self.structure,
            unique map => map.len(),
            many set => set.len(),
            hash hash => hash.len(),
            direct direct => direct.len())
    }

    /// An estimate of the memory in bytes; exact for hash and direct indexes.
    pub fn heap_bytes(&self) -> usize {
        match &self.structure {
            Structure::Hash(hash) => hash.heap_bytes(),
            Structure::Direct(direct) => direct.heap_bytes(),
            Structure::Unique4(map) => map.len() * 14,
            Structure::Unique8(map) => map.len() * 20,
            Structure::Unique16(map) => map.len() * 32,
            Structure::UniqueBytes(map) => map.keys().map(|key| key.len() + 48).sum(),
            Structure::Many4(set) => set.len() * 14,
            Structure::Many8(set) => set.len() * 24,
            Structure::Many16(set) => set.len() * 46,
            Structure::ManyBytes(set) => set.iter().map(|(key, _)| key.len() + 56).sum(),
        }
    }
}

fn map_get<K: Key>(map: &BTreeMap<K, RowId>, key: &K) -> Option<RowId> {
    map.get(key).copied()
}

fn map_remove<K: Key>(map: &mut BTreeMap<K, RowId>, key: &K) {
    map.remove(key);
}

fn set_point<K: Key>(set: &BTreeSet<(K, RowId)>, key: K, mut visit: impl FnMut(RowId)) {
    set.range((key.clone(), RowId::MIN)..=(key, RowId::MAX))
        .for_each(|(_, id)| visit(*id));
}

fn set_walk_point<K: Key>(
    set: &BTreeSet<(K, RowId)>,
    key: K,
    after: Option<RowId>,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = match after {
        Some(id) => Bound::Excluded((key.clone(), id)),
        None => Bound::Included((key.clone(), RowId::MIN)),
    };
    let _ = set
        .range((start, Bound::Included((key, RowId::MAX))))
        .all(|(_, id)| visit(*id));
}

fn map_walk<K: Key>(
    map: &BTreeMap<K, RowId>,
    range: &KeyRange,
    size: usize,
    after: Option<K>,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = match after {
        Some(key) => Bound::Excluded(key),
        None => Bound::Included(K::from_bytes(&range.start, size)),
    };
    let end = match &range.end {
        Some(end) => Bound::Excluded(K::from_bytes(end, size)),
        None => Bound::Unbounded,
    };
    let _ = map.range((start, end)).all(|(_, id)| visit(*id));
}

fn set_walk<K: Key>(
    set: &BTreeSet<(K, RowId)>,
    range: &KeyRange,
    size: usize,
    after: Option<(K, RowId)>,
    mut visit: impl FnMut(RowId) -> bool,
) {
    let start = match after {
        Some(entry) => Bound::Excluded(entry),
        None => Bound::Included((K::from_bytes(&range.start, size), RowId::MIN)),
    };
    let end = match &range.end {
        Some(end) => Bound::Excluded((K::from_bytes(end, size), RowId::MIN)),
        None => Bound::Unbounded,
    };
    let _ = set.range((start, end)).all(|(_, id)| visit(*id));
}
