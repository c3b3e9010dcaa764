//! One form for all encodings of equal values, by which rows are sorted and compared.

use lightcone_table::key::encode_column_value;
use lightcone_table::RowLayout;
use lightcone_types::AlgebraicType;

use crate::condition::ColumnAt;
use crate::grouping::{Order, OrderKey};
use crate::scalar::Scalar;

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
    let integer = ty
        .integer()
        .filter(|integer| integer.bytes() <= size_of::<u64>())?;
    let mut bytes = [0; size_of::<u64>()];
    bytes.get_mut(..value.len())?.copy_from_slice(value);
    let sign = 1 << (8 * value.len() - 1);
    Some(u64::from_le_bytes(bytes) ^ if integer.is_signed() { sign } else { 0 })
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
    let scalar = Scalar::of(ty);
    match scalar.and_then(|scalar| scalar.float(value)) {
        Some(float) if float.is_nan() && value.len() == size_of::<f32>() => {
            value.copy_from_slice(&f32::NAN.to_le_bytes());
        }
        Some(float) if float.is_nan() => value.copy_from_slice(&f64::NAN.to_le_bytes()),
        Some(0.0) => value.fill(0),
        _ => {}
    }
}
