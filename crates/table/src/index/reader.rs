//! Reading keys out of rows, points and bounds.

use std::cell::Cell;

use lightcone_schema::IndexAlgorithm;
use lightcone_types::bsatn::{fixed_size, DecodeError};
use lightcone_types::AlgebraicType;

use crate::error::Error;
use crate::key::{encode_column_value, successor, KeyRange};
use crate::layout::RowLayout;

/// Reads keys out of rows and out of the BSATN of a point.
pub(super) struct KeyReader {
    pub columns: Vec<usize>,
    types: Vec<AlgebraicType>,
    /// Size of every key in bytes, if constant: then that of the values, too.
    pub fixed_bytes: Option<usize>,
    /// The key is one integer at a constant place of the row.
    pub integer: Option<IntegerColumn>,
    /// Keys are equal if and only if their BSATN is (01 §1.6.2), and key bytes are BSATN. For hash indexes only.
    pub bitwise: bool,
}

#[derive(Clone, Copy)]
pub(super) struct IntegerColumn {
    pub start: usize,
    pub bytes: usize,
    /// Flips the sign bit of signed integers so that order is unsigned.
    bias: u64,
}

impl IntegerColumn {
    fn of(ty: &AlgebraicType, start: usize) -> Option<IntegerColumn> {
        match ty {
            AlgebraicType::Integer(integer) if integer.bytes() <= size_of::<u64>() => {
                let bytes = integer.bytes();
                let sign = 1 << (bytes * 8 - 1);
                let bias = if integer.is_signed() { sign } else { 0 };
                Some(IntegerColumn { start, bytes, bias })
            }
            AlgebraicType::Product(product) if product.elements.len() == 1 => {
                IntegerColumn::of(&product.elements[0].algebraic_type, start)
            }
            _ => None,
        }
    }

    #[inline]
    pub fn load(self, bytes: &[u8]) -> u64 {
        let value = match self.bytes {
            4 => u64::from(u32::from_le_bytes(
                bytes[..4].try_into().expect("four bytes"),
            )),
            8 => u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
            2 => u64::from(u16::from_le_bytes(
                bytes[..2].try_into().expect("two bytes"),
            )),
            _ => u64::from(bytes[0]),
        };
        value ^ self.bias
    }
}

/// A key in the form its index stores.
pub(super) trait Key: Ord + Clone {
    /// From key bytes no longer than the fixed size of the index's keys, padded at the end with zero bytes.
    fn from_bytes(bytes: &[u8], fixed_bytes: usize) -> Self;
    fn from_integer(value: u64) -> Self;

    /// The number of ordered keys that are less.
    fn count_less(keys: &[Self], key: &Self) -> usize {
        keys.partition_point(|other| other < key)
    }
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
            /// Looks at all of them: none of the loads waits for another, and no branch is guessed wrongly.
            #[inline]
            fn count_less(keys: &[Self], key: &Self) -> usize {
                keys.iter().map(|other| usize::from(other < key)).sum()
            }
        }
    )*};
}
integer_key!(u32, u64, u128);

/// A key of 17 to 32 bytes: an identity, for example.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WideKey([u128; 2]);

impl Key for WideKey {
    fn from_bytes(bytes: &[u8], _: usize) -> Self {
        let (first, rest) = bytes.split_at(bytes.len().min(16));
        WideKey([first, rest].map(|half| {
            let mut padded = [0; 16];
            padded[..half.len()].copy_from_slice(half);
            u128::from_be_bytes(padded)
        }))
    }
    fn from_integer(_: u64) -> Self {
        unreachable!("integer columns have shorter keys")
    }
}

impl Key for std::sync::Arc<[u8]> {
    fn from_bytes(bytes: &[u8], _: usize) -> Self {
        bytes.into()
    }
    fn from_integer(_: u64) -> Self {
        unreachable!("integer columns have integer keys")
    }
}

/// Composite hash keys of at most so many bytes are compared bit by bit (01 §1.6.2).
const BITWISE_KEY_BYTES_MAX: usize = 119;

/// The size in bytes of the largest value; none if there is no bound.
fn bytes_max(ty: &AlgebraicType) -> Option<usize> {
    use AlgebraicType as T;
    match ty {
        T::String | T::Array(_) | T::Ref(_) => None,
        T::Product(_) => ty.parts().map(|(_, part)| bytes_max(part)).sum(),
        T::Sum(_) => {
            let largest = ty.parts().try_fold(0, |largest: usize, (_, part)| {
                Some(largest.max(bytes_max(part)?))
            });
            Some(1 + largest?)
        }
        scalar => lightcone_types::bsatn::fixed_size(scalar),
    }
}

fn holds_float(ty: &AlgebraicType) -> bool {
    use AlgebraicType as T;
    match ty {
        T::F32 | T::F64 => true,
        T::Array(element) => holds_float(element),
        _ => ty.parts().any(|(_, part)| holds_float(part)),
    }
}

/// Whether keys of a hash index over these columns are compared bit by bit.
///
/// Without floats there is no difference, and bits are faster. With floats, single columns go by value, and so do
/// composite keys, unless they are small.
fn compares_bits(types: &[AlgebraicType]) -> bool {
    let composite = match types {
        [AlgebraicType::Product(product)] => product.elements.len() > 1,
        _ => types.len() > 1,
    };
    let bytes: Option<usize> = types.iter().map(bytes_max).sum();
    !types.iter().any(holds_float)
        || (composite && bytes.is_some_and(|bytes| bytes <= BITWISE_KEY_BYTES_MAX))
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Memory above this size is not kept for the next key.
const SCRATCH_BYTES_MAX: usize = 1 << 16;

/// Lends an empty buffer, so that building a key does not allocate.
fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let result = work(&mut scratch);
    if scratch.capacity() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(scratch);
    }
    result
}

impl KeyReader {
    pub fn new(algorithm: &IndexAlgorithm, layout: &RowLayout) -> KeyReader {
        let columns: Vec<_> = algorithm
            .columns()
            .iter()
            .map(|c| usize::from(c.0))
            .collect();
        let types: Vec<_> = columns
            .iter()
            .map(|&c| layout.column_type(c).clone())
            .collect();
        let integer = match columns[..] {
            [column] => layout
                .constant_start(column)
                .and_then(|start| IntegerColumn::of(&types[0], start)),
            _ => None,
        };
        KeyReader {
            fixed_bytes: types.iter().map(fixed_size).sum(),
            integer,
            bitwise: matches!(algorithm, IndexAlgorithm::Hash(_)) && compares_bits(&types),
            columns,
            types,
        }
    }

    /// Key bytes of a valid row.
    pub fn with_row_bytes<R>(
        &self,
        layout: &RowLayout,
        row: &[u8],
        work: impl FnOnce(&[u8]) -> R,
    ) -> R {
        with_scratch(|bytes| {
            for (&column, ty) in self.columns.iter().zip(&self.types) {
                let value = layout.column(row, column);
                if self.bitwise {
                    bytes.extend_from_slice(value);
                } else {
                    encode_column_value(ty, value, bytes)
                        .expect("rows are checked before they are stored");
                }
            }
            work(bytes)
        })
    }

    /// Whether the keys of two valid rows have the same value.
    pub fn same_value(&self, layout: &RowLayout, a: &[u8], b: &[u8]) -> bool {
        self.with_row_bytes(layout, a, |a| self.with_row_bytes(layout, b, |b| a == b))
    }

    #[inline]
    pub fn of_row<K: Key>(&self, layout: &RowLayout, row: &[u8]) -> K {
        if let Some(column) = self.integer {
            return K::from_integer(column.load(&row[column.start..]));
        }
        self.with_row_bytes(layout, row, |bytes| {
            K::from_bytes(bytes, self.fixed_bytes.unwrap_or(0))
        })
    }

    /// Key bytes of the BSATN of a point (03 §8.2); bytes after the point are ignored.
    pub fn with_point_bytes<R>(
        &self,
        layout: &RowLayout,
        point: &[u8],
        work: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, DecodeError> {
        if self.bitwise {
            let mut rest = point;
            for &column in &self.columns {
                rest = &rest[layout.check_column(column, rest)?..];
            }
            return Ok(work(&point[..point.len() - rest.len()]));
        }
        with_scratch(|bytes| {
            let mut at = 0;
            for ty in &self.types {
                at += encode_column_value(ty, &point[at..], bytes)?;
            }
            Ok(work(bytes))
        })
    }

    #[inline]
    pub fn of_point<K: Key>(&self, layout: &RowLayout, point: &[u8]) -> Result<K, DecodeError> {
        if let Some(column) = self.integer {
            if point.len() >= column.bytes {
                return Ok(K::from_integer(column.load(point)));
            }
        }
        self.with_point_bytes(layout, point, |bytes| {
            K::from_bytes(bytes, self.fixed_bytes.unwrap_or(0))
        })
    }

    /// The types of a prefix and of the value after it. The fields of a single column of a product type count as
    /// columns (01 §1.6.3), as far as a prefix reaches into it.
    fn split(&self, prefix_columns: usize) -> Option<(Vec<&AlgebraicType>, &AlgebraicType)> {
        let types: Vec<&AlgebraicType> = match &self.types[..] {
            [AlgebraicType::Product(product)] if prefix_columns > 0 => {
                product.elements.iter().map(|e| &e.algebraic_type).collect()
            }
            types => types.iter().collect(),
        };
        let bound = *types.get(prefix_columns)?;
        Some((types[..prefix_columns].to_vec(), bound))
    }

    /// The interval of keys that a range scan (03 §8.3) selects, and whether it is a point.
    pub fn range(
        &self,
        (prefix, prefix_columns): (&[u8], usize),
        start: &[u8],
        end: &[u8],
    ) -> Result<KeyRange, Error> {
        let (prefix_types, bound_type) = self
            .split(prefix_columns)
            .ok_or(Error::PrefixTooLong { prefix_columns })?;
        let mut prefix_key = Vec::new();
        let mut at = 0;
        for ty in prefix_types {
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
            None => KeyRange {
                start: Vec::new(),
                end: Some(Vec::new()),
            },
        })
    }
}

fn missing_bound() -> DecodeError {
    DecodeError::BufferLength {
        what: "u8",
        expected: 1,
        given: 0,
    }
}

fn invalid_bound(tag: u8) -> Error {
    DecodeError::unknown_tag(tag).into()
}
