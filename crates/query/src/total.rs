//! Totals of a column: of integers and of floats, both exact.

use crate::exact_sum::ExactSum;
use crate::scalar::{
    f32_at, f64_at, i16_at, i32_at, i64_at, i8_at, u16_at, u32_at, u64_at, Scalar,
};

/// The total of the values of a column. Sums of numbers of 64 bits never get out of 128: there are not as many rows.
#[derive(Clone, Debug)]
pub(crate) enum Total {
    Signed(i128),
    Unsigned(u128),
    Float(Box<ExactSum>),
}

impl Total {
    /// Of no values.
    pub fn empty(scalar: Scalar) -> Total {
        match scalar {
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Total::Signed(0),
            Scalar::F32 | Scalar::F64 => Total::Float(Box::default()),
            _ => Total::Unsigned(0),
        }
    }

    pub fn add(&mut self, scalar: Scalar, value: &[u8]) {
        match self {
            Total::Signed(total) => *total += signed(scalar, value),
            Total::Unsigned(total) => *total += unsigned(scalar, value),
            Total::Float(total) => total.add(float(scalar, value)),
        }
    }

    /// Takes a value out that was added.
    pub fn remove(&mut self, scalar: Scalar, value: &[u8]) {
        match self {
            Total::Signed(total) => *total -= signed(scalar, value),
            Total::Unsigned(total) => *total -= unsigned(scalar, value),
            Total::Float(total) => total.remove(float(scalar, value)),
        }
    }

    /// Writes it as the value of a `SUM`.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Total::Signed(total) => out.extend_from_slice(&total.to_le_bytes()),
            Total::Unsigned(total) => out.extend_from_slice(&total.to_le_bytes()),
            Total::Float(total) => out.extend_from_slice(&total.value().to_le_bytes()),
        }
    }

    /// The value of an `AVG` of so many values.
    pub fn average(&self, count: u64) -> f64 {
        let total = match self {
            Total::Signed(total) => *total as f64,
            Total::Unsigned(total) => *total as f64,
            Total::Float(total) => total.value(),
        };
        total / count as f64
    }

    /// Bytes on the heap of a total of such values.
    pub fn heap_bytes(scalar: Scalar) -> usize {
        match scalar.is_float() {
            true => size_of::<ExactSum>(),
            false => 0,
        }
    }
}

fn signed(scalar: Scalar, value: &[u8]) -> i128 {
    match scalar {
        Scalar::I8 => i8_at(value).map(i128::from),
        Scalar::I16 => i16_at(value).map(i128::from),
        Scalar::I32 => i32_at(value).map(i128::from),
        Scalar::I64 => i64_at(value).map(i128::from),
        _ => None,
    }
    .unwrap_or_default()
}

fn unsigned(scalar: Scalar, value: &[u8]) -> u128 {
    match scalar {
        Scalar::U8 => value.first().map(|byte| u128::from(*byte)),
        Scalar::U16 => u16_at(value).map(u128::from),
        Scalar::U32 => u32_at(value).map(u128::from),
        Scalar::U64 => u64_at(value).map(u128::from),
        _ => None,
    }
    .unwrap_or_default()
}

fn float(scalar: Scalar, value: &[u8]) -> f64 {
    match scalar {
        Scalar::F32 => f32_at(value).map(f64::from),
        Scalar::F64 => f64_at(value),
        _ => None,
    }
    .unwrap_or_default()
}
