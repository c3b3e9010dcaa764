//! Indexes, specialised by key type: no boxed dynamic value on the way of a point lookup.
//!
//! Keys of up to 4, 8 and 16 bytes are integers whose order is the key's byte order; all other keys are byte strings
//! (see [`crate::key`]). A unique hash index stores row ids only and reads keys from the rows: a lookup needs the row
//! anyway, and it costs five bytes a slot whatever the key. Indexes that may hold many rows for one key are ordered
//! sets of (key, row id), so removing one of a million equal keys stays logarithmic; for the hash algorithm that is an
//! implementation detail, range scans on it are refused all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Bound;

use hashbrown::HashTable;
use lightcone_schema::IndexAlgorithm;
use lightcone_types::bsatn::DecodeError;
use lightcone_types::AlgebraicType;
use rustc_hash::FxHashMap;

use crate::key::{encode_column_value, fixed_key_size, successor, KeyRange};
use crate::layout::{check_value, RowLayout};
use crate::rows::{RowId, RowStore};
use crate::Error;

/// How keys are read out of rows and out of the BSATN of a point.
struct KeyReader {
    columns: Vec<usize>,
    types: Vec<AlgebraicType>,
    /// Size of every key in bytes, if constant.
    fixed_bytes: Option<usize>,
    /// The key is one integer at a constant place of the row.
    integer: Option<IntegerColumn>,
}

#[derive(Clone, Copy)]
struct IntegerColumn {
    start: usize,
    bytes: usize,
    /// Flips the sign bit of signed integers so that order is unsigned.
    bias: u64,
}

impl IntegerColumn {
    fn of(ty: &AlgebraicType, start: usize) -> Option<IntegerColumn> {
        use AlgebraicType as T;
        let (bytes, signed) = match ty {
            T::U8 => (1, false),
            T::U16 => (2, false),
            T::U32 => (4, false),
            T::U64 => (8, false),
            T::I8 => (1, true),
            T::I16 => (2, true),
            T::I32 => (4, true),
            T::I64 => (8, true),
            T::Product(product) if product.elements.len() == 1 => {
                return IntegerColumn::of(&product.elements[0].algebraic_type, start)
            }
            _ => return None,
        };
        Some(IntegerColumn {
            start,
            bytes,
            bias: if signed { 1 << (bytes * 8 - 1) } else { 0 },
        })
    }

    #[inline]
    fn load(self, bytes: &[u8]) -> u64 {
        let value = match self.bytes {
            4 => u64::from(u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))),
            8 => u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
            2 => u64::from(u16::from_le_bytes(bytes[..2].try_into().expect("two bytes"))),
            _ => u64::from(bytes[0]),
        };
        value ^ self.bias
    }
}

/// A key in the form its index stores.
trait Key: Ord + Clone {
    /// From key bytes no longer than the fixed size of the index's keys, padded at the end with zero bytes.
    fn from_bytes(bytes: &[u8], fixed_bytes: usize) -> Self;
    fn from_integer(value: u64) -> Self;
}

macro_rules! integer_key {
    ($($type:ty),*) => {$(
        impl Key for $type {
            fn from_bytes(bytes: &[u8], fixed_bytes: usize) -> Self {
                let mut value = 0;
                for index in 0..fixed_bytes {
                    value = (value << 8) | <$type>::from(*bytes.get(index).unwrap_or(&0));
                }
                value
            }
            #[inline]
            fn from_integer(value: u64) -> Self {
                value as $type
            }
        }
    )*};
}
integer_key!(u32, u64, u128);

impl Key for Box<[u8]> {
    fn from_bytes(bytes: &[u8], _: usize) -> Self {
        bytes.into()
    }
    fn from_integer(_: u64) -> Self {
        unreachable!("integer columns have integer keys")
    }
}

impl KeyReader {
    fn new(columns: Vec<usize>, layout: &RowLayout) -> KeyReader {
        let types: Vec<_> = columns.iter().map(|&c| layout.column_type(c).clone()).collect();
        let integer = match columns[..] {
            [column] => layout
                .constant_start(column)
                .and_then(|start| IntegerColumn::of(&types[0], start)),
            _ => None,
        };
        KeyReader {
            fixed_bytes: types.iter().map(fixed_key_size).sum(),
            integer,
            columns,
            types,
        }
    }

    /// Key bytes of a valid row.
    fn row_bytes(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        for (&column, ty) in self.columns.iter().zip(&self.types) {
            encode_column_value(ty, layout.column(row, column), out)
                .expect("rows are checked before they are stored");
        }
    }

    #[inline]
    fn of_row<K: Key>(&self, layout: &RowLayout, row: &[u8]) -> K {
        if let Some(column) = self.integer {
            return K::from_integer(column.load(&row[column.start..]));
        }
        let mut bytes = Vec::with_capacity(self.fixed_bytes.unwrap_or(32));
        self.row_bytes(layout, row, &mut bytes);
        K::from_bytes(&bytes, self.fixed_bytes.unwrap_or(0))
    }

    /// Key bytes of the BSATN of a point (03 §8.2); bytes after the point are ignored.
    fn point_bytes(&self, point: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut at = 0;
        for ty in &self.types {
            at += encode_column_value(ty, &point[at..], out)?;
        }
        Ok(())
    }

    #[inline]
    fn of_point<K: Key>(&self, point: &[u8]) -> Result<K, DecodeError> {
        if let Some(column) = self.integer {
            if point.len() >= column.bytes {
                return Ok(K::from_integer(column.load(point)));
            }
        }
        let mut bytes = Vec::with_capacity(self.fixed_bytes.unwrap_or(32));
        self.point_bytes(point, &mut bytes)?;
        Ok(K::from_bytes(&bytes, self.fixed_bytes.unwrap_or(0)))
    }

    /// The interval of keys that a range scan (03 §8.3) selects, and whether it is a point.
    fn range(
        &self,
        prefix: &[u8],
        prefix_columns: usize,
        start: &[u8],
        end: &[u8],
    ) -> Result<KeyRange, Error> {
        let Some(bound_type) = self.types.get(prefix_columns) else {
            return Err(Error::PrefixTooLong { prefix_columns });
        };
        let mut prefix_key = Vec::new();
        let mut at = 0;
        for ty in &self.types[..prefix_columns] {
            at += encode_column_value(ty, &prefix[at..], &mut prefix_key)?;
        }
        let with_value = |bytes: &[u8]| -> Result<Vec<u8>, DecodeError> {
            let mut key = prefix_key.clone();
            encode_column_value(bound_type, bytes, &mut key)?;
            Ok(key)
        };
        let tag = |bound: &[u8]| bound.first().copied().ok_or_else(missing_bound);
        let start = match tag(start)? {
            0 => Some(with_value(&start[1..])?),
            1 => successor(&with_value(&start[1..])?),
            2 => Some(prefix_key.clone()),
            tag => return Err(invalid_bound(tag)),
        };
        let end = match tag(end)? {
            0 => successor(&with_value(&end[1..])?),
            1 => Some(with_value(&end[1..])?),
            2 => successor(&prefix_key),
            tag => return Err(invalid_bound(tag)),
        };
        // A start above every key selects nothing: an empty interval says so.
        Ok(match start {
            Some(start) => KeyRange { start, end },
            None => KeyRange { start: Vec::new(), end: Some(Vec::new()) },
        })
    }
}

fn missing_bound() -> DecodeError {
    DecodeError::BufferLength { what: "u8", expected: 1, given: 0 }
}

fn invalid_bound(tag: u8) -> Error {
    Error::Decode(DecodeError::InvalidTag { tag, sum_name: None })
}

/// The point a lookup asks for, as BSATN of the indexed columns in index order.
pub type PointKey<'a> = &'a [u8];

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
        let columns = algorithm.columns().iter().map(|c| usize::from(c.0)).collect();
        let reader = KeyReader::new(columns, layout);
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
        self.reader.columns.iter().all(|&column| layout.column(a, column) == layout.column(b, column))
            || {
                let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
                self.reader.row_bytes(layout, a, &mut key_a);
                self.reader.row_bytes(layout, b, &mut key_b);
                key_a == key_b
            }
    }

    /// Appends the key columns of a valid row as the BSATN of a point.
    pub fn point_of_row(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        for &column in &self.reader.columns {
            out.extend_from_slice(layout.column(row, column));
        }
    }

    /// The length of the point at the start of `bytes`.
    ///
    /// # Errors
    /// If `bytes` do not start with a point of this index.
    pub fn point_len(&self, bytes: &[u8]) -> Result<usize, Error> {
        self.reader.types.iter().try_fold(0, |at, ty| Ok(at + check_value(ty, &bytes[at..])?))
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
            unique map => map_get(map, &reader.of_point(point)?).into_iter().for_each(visit),
            many set => set_point(set, reader.of_point(point)?, visit),
            hash hash => hash.find_point(reader, rows, layout, point)?.into_iter().for_each(visit),
            direct direct => direct.get(reader.of_point::<u64>(point)?).into_iter().for_each(visit));
        Ok(())
    }

    /// Calls `visit` with every row in the range (03 §8.3), in key order.
    ///
    /// # Errors
    /// If the index has no order, the prefix is too long, or a part does not decode.
    pub fn for_range(
        &self,
        prefix: &[u8],
        prefix_columns: usize,
        start: &[u8],
        end: &[u8],
        mut visit: impl FnMut(RowId),
    ) -> Result<(), Error> {
        if !self.ordered {
            return Err(Error::NotOrdered);
        }
        let range = self.reader.range(prefix, prefix_columns, start, end)?;
        if range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Ok(());
        }
        let size = self.reader.fixed_bytes.unwrap_or(0);
        match &self.structure {
            Structure::Unique4(map) => map_range(map, &range, size, visit),
            Structure::Unique8(map) => map_range(map, &range, size, visit),
            Structure::Unique16(map) => map_range(map, &range, size, visit),
            Structure::UniqueBytes(map) => map_range(map, &range, size, visit),
            Structure::Many4(set) => set_range(set, &range, size, visit),
            Structure::Many8(set) => set_range(set, &range, size, visit),
            Structure::Many16(set) => set_range(set, &range, size, visit),
            Structure::ManyBytes(set) => set_range(set, &range, size, visit),
            Structure::Direct(direct) => {
                let first = u64::from_bytes(&range.start, size);
                let last = match &range.end {
                    // The end is not empty here, so its integer is above zero.
                    Some(end) => u64::from_bytes(end, size) - 1,
                    None => u64::MAX,
                };
                direct.for_range(first, last, &mut visit);
            }
            Structure::Hash(_) => unreachable!("hash indexes have no order"),
        }
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
            hash hash => hash.ids.len(),
            direct direct => direct.len)
    }

    /// An estimate of the memory in bytes; exact for hash and direct indexes.
    pub fn heap_bytes(&self) -> usize {
        match &self.structure {
            Structure::Hash(hash) => hash.ids.allocation_size(),
            Structure::Direct(direct) => direct.chunks.len() * (DIRECT_CHUNK * 4 + 16),
            Structure::Unique4(map) => map.len() * 14,
            Structure::Unique8(map) => map.len() * 20,
            Structure::Unique16(map) => map.len() * 32,
            Structure::UniqueBytes(map) => map.iter().map(|(key, _)| key.len() + 48).sum(),
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
    set.range((key.clone(), 0)..=(key, RowId::MAX)).for_each(|(_, id)| visit(*id));
}

fn map_range<K: Key>(map: &BTreeMap<K, RowId>, range: &KeyRange, size: usize, mut visit: impl FnMut(RowId)) {
    let start = Bound::Included(K::from_bytes(&range.start, size));
    let end = match &range.end {
        Some(end) => Bound::Excluded(K::from_bytes(end, size)),
        None => Bound::Unbounded,
    };
    map.range((start, end)).for_each(|(_, id)| visit(*id));
}

fn set_range<K: Key>(set: &BTreeSet<(K, RowId)>, range: &KeyRange, size: usize, mut visit: impl FnMut(RowId)) {
    let start = Bound::Included((K::from_bytes(&range.start, size), 0));
    let end = match &range.end {
        Some(end) => Bound::Excluded((K::from_bytes(end, size), 0)),
        None => Bound::Unbounded,
    };
    set.range((start, end)).for_each(|(_, id)| visit(*id));
}

// ---------------------------------------------------------------------------------------------------------------------

/// Row ids by the hash of their key; keys are compared in the rows.
#[derive(Default)]
struct UniqueHash {
    ids: HashTable<RowId>,
    /// Random per index, so that nobody can choose colliding keys.
    seed: Seed,
}

struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(std::hash::RandomState::new().hash_one(0) | 1)
    }
}

impl Seed {
    #[inline]
    fn hash_integer(&self, value: u64) -> u64 {
        let product = u128::from(value ^ self.0) * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ self.0.rotate_left(32));
        (product as u64) ^ (product >> 64) as u64
    }

    fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        let mut hash = self.hash_integer(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = self.hash_integer(hash ^ u64::from_le_bytes(word));
        }
        hash
    }
}

fn hash_row(seed: &Seed, reader: &KeyReader, layout: &RowLayout, row: &[u8]) -> u64 {
    if let Some(column) = reader.integer {
        return seed.hash_integer(column.load(&row[column.start..]));
    }
    let mut key = Vec::with_capacity(reader.fixed_bytes.unwrap_or(32));
    reader.row_bytes(layout, row, &mut key);
    seed.hash_bytes(&key)
}

impl UniqueHash {
    fn insert(&mut self, reader: &KeyReader, rows: &RowStore, layout: &RowLayout, id: RowId) {
        let UniqueHash { ids, seed } = self;
        let hash = hash_row(seed, reader, layout, rows.get(id));
        ids.insert_unique(hash, id, |&other| hash_row(seed, reader, layout, rows.get(other)));
    }

    fn remove(&mut self, reader: &KeyReader, layout: &RowLayout, row: &[u8], id: RowId) {
        let hash = hash_row(&self.seed, reader, layout, row);
        if let Ok(entry) = self.ids.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
    }

    #[inline]
    fn find_integer(&self, column: IntegerColumn, rows: &RowStore, key: u64) -> Option<RowId> {
        let hash = self.seed.hash_integer(key);
        let same = |&id: &RowId| column.load(&rows.get(id)[column.start..]) == key;
        self.ids.find(hash, same).copied()
    }

    fn find_key(&self, reader: &KeyReader, rows: &RowStore, layout: &RowLayout, key: &[u8]) -> Option<RowId> {
        let mut candidate = Vec::with_capacity(key.len());
        let same = |&id: &RowId| {
            candidate.clear();
            reader.row_bytes(layout, rows.get(id), &mut candidate);
            candidate == key
        };
        self.ids.find(self.seed.hash_bytes(key), same).copied()
    }

    #[inline]
    fn find_row(&self, reader: &KeyReader, rows: &RowStore, layout: &RowLayout, row: &[u8]) -> Option<RowId> {
        if let Some(column) = reader.integer {
            return self.find_integer(column, rows, column.load(&row[column.start..]));
        }
        let mut key = Vec::new();
        reader.row_bytes(layout, row, &mut key);
        self.find_key(reader, rows, layout, &key)
    }

    #[inline]
    fn find_point(
        &self,
        reader: &KeyReader,
        rows: &RowStore,
        layout: &RowLayout,
        point: &[u8],
    ) -> Result<Option<RowId>, DecodeError> {
        if let Some(column) = reader.integer {
            if point.len() >= column.bytes {
                return Ok(self.find_integer(column, rows, column.load(point)));
            }
        }
        let mut key = Vec::new();
        reader.point_bytes(point, &mut key)?;
        Ok(self.find_key(reader, rows, layout, &key))
    }
}

// ---------------------------------------------------------------------------------------------------------------------

const DIRECT_CHUNK: usize = 1024;

/// Row ids in a dense vector by key, in chunks so that a large key costs one chunk and not its own size.
#[derive(Default)]
struct Direct {
    chunks: FxHashMap<u64, Box<[RowId; DIRECT_CHUNK]>>,
    /// Chunk numbers in order, for range scans.
    order: BTreeSet<u64>,
    len: usize,
}

/// Marks a key without a row; row ids stay below it.
const NO_ROW: RowId = RowId::MAX;

impl Direct {
    #[inline]
    fn get(&self, key: u64) -> Option<RowId> {
        let chunk = self.chunks.get(&(key / DIRECT_CHUNK as u64))?;
        let id = chunk[key as usize % DIRECT_CHUNK];
        (id != NO_ROW).then_some(id)
    }

    fn set(&mut self, key: u64, id: Option<RowId>) {
        let number = key / DIRECT_CHUNK as u64;
        let order = &mut self.order;
        let chunk = self.chunks.entry(number).or_insert_with(|| {
            order.insert(number);
            Box::new([NO_ROW; DIRECT_CHUNK])
        });
        let place = &mut chunk[key as usize % DIRECT_CHUNK];
        self.len = self.len + usize::from(id.is_some()) - usize::from(*place != NO_ROW);
        *place = id.unwrap_or(NO_ROW);
    }

    fn for_range(&self, first: u64, last: u64, visit: &mut impl FnMut(RowId)) {
        let chunk_of = |key: u64| key / DIRECT_CHUNK as u64;
        for &number in self.order.range(chunk_of(first)..=chunk_of(last)) {
            let base = number * DIRECT_CHUNK as u64;
            for (offset, &id) in self.chunks[&number].iter().enumerate() {
                let key = base + offset as u64;
                if id != NO_ROW && key >= first && key <= last {
                    visit(id);
                }
            }
        }
    }
}
