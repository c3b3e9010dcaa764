//! What a query has to keep before anything comes out: groups, rows to be sorted, rows that came already.

mod groups;
mod keyed_hash;

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

use lightcone_table::key::encode_column_value;
use lightcone_table::RowLayout;
use lightcone_types::AlgebraicType;

use crate::condition::ColumnAt;
use crate::execute::ExecuteError;
use crate::shape::{Order, OrderKey};

pub(crate) use self::groups::Groups;

/// What a kept thing takes beside its bytes: pointers, its place in a table.
const ENTRY_BYTES: usize = 64;

/// The memory of what is kept.
pub(crate) struct Memory {
    pub bytes: usize,
    bytes_max: usize,
}

impl Memory {
    pub fn new(bytes_max: usize) -> Memory {
        Memory {
            bytes: 0,
            bytes_max,
        }
    }

    pub fn take(&mut self, bytes: usize) -> Result<(), ExecuteError> {
        self.bytes += bytes;
        match self.bytes > self.bytes_max {
            true => Err(ExecuteError::Memory {
                bytes_max: self.bytes_max,
            }),
            false => Ok(()),
        }
    }
}

/// One form for all encodings of equal values, which sorts as the values do.
pub(crate) fn push_sort_key(ty: &AlgebraicType, value: &[u8], descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match key_word(ty, value) {
        Some(word) => out.extend_from_slice(&word.to_be_bytes()[size_of::<u64>() - value.len()..]),
        None => {
            encode_column_value(ty, value, out).expect("values of rows are valid");
        }
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The key of an integer of 64 bits at most, which most are: the same as that of any index.
#[inline]
fn key_word(ty: &AlgebraicType, value: &[u8]) -> Option<u64> {
    use AlgebraicType as T;
    let is_signed = match ty {
        T::U8 | T::U16 | T::U32 | T::U64 => false,
        T::I8 | T::I16 | T::I32 | T::I64 => true,
        _ => return None,
    };
    let mut bytes = [0; size_of::<u64>()];
    bytes.get_mut(..value.len())?.copy_from_slice(value);
    let sign = 1 << (8 * value.len() - 1);
    Some(u64::from_le_bytes(bytes) ^ if is_signed { sign } else { 0 })
}

/// The first column of the last row that is wanted, an integer: most rows are behind it, and are compared as numbers.
pub(crate) struct FirstWord {
    pub at: ColumnAt,
    descending: bool,
    word: u64,
}

impl FirstWord {
    /// `key` is what [`push_sort_key`] made of the column.
    pub fn new(
        at: ColumnAt,
        descending: bool,
        ty: &AlgebraicType,
        key: &[u8],
    ) -> Option<FirstWord> {
        // Only of integers that have a word.
        key_word(ty, key)?;
        let word = key.iter().fold(0, |word, byte| {
            let byte = if descending { !byte } else { *byte };
            word << 8 | u64::from(byte)
        });
        Some(FirstWord {
            at,
            descending,
            word,
        })
    }

    /// No row is wanted that has this value in the column.
    #[inline]
    pub fn is_behind(&self, value: Option<(&AlgebraicType, &[u8])>) -> bool {
        let word = value.and_then(|(ty, value)| key_word(ty, value));
        word.is_some_and(|word| match self.descending {
            true => word < self.word,
            false => word > self.word,
        })
    }
}

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

/// The sort key of a row. `read` gives the columns of a match.
pub(crate) fn sort_key<'v>(
    order: &[Order],
    row_layout: &RowLayout,
    row: &[u8],
    read: impl Fn(ColumnAt) -> Option<(&'v AlgebraicType, &'v [u8])>,
    out: &mut Vec<u8>,
) {
    out.clear();
    for Order { by, descending } in order {
        match by {
            OrderKey::Result(column) => {
                let ty = row_layout.column_type(*column);
                push_sort_key(ty, row_layout.column(row, *column), *descending, out);
            }
            OrderKey::Column(at) => {
                // What has no row comes last, as an option without a value does.
                let value = read(*at);
                out.push(u8::from(value.is_none() != *descending));
                if let Some((ty, value)) = value {
                    push_sort_key(ty, value, *descending, out);
                }
            }
        }
    }
}

/// The one encoding of equal floats that stands for all of them in a group's key.
pub(crate) fn make_canonical(ty: &AlgebraicType, value: &mut [u8]) {
    match ty {
        AlgebraicType::F32 => {
            let Some(float) = crate::scalar::f32_at(value) else {
                return;
            };
            // Adding 0 makes +0 of -0.
            let float = if float.is_nan() {
                f32::NAN
            } else {
                float + 0.0
            };
            value.copy_from_slice(&float.to_le_bytes());
        }
        AlgebraicType::F64 => {
            let Some(float) = crate::scalar::f64_at(value) else {
                return;
            };
            let float = if float.is_nan() {
                f64::NAN
            } else {
                float + 0.0
            };
            value.copy_from_slice(&float.to_le_bytes());
        }
        _ => {}
    }
}
