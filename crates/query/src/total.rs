//! Totals of a column: of integers and of floats, both exact.

use crate::exact_sum::ExactSum;
use crate::scalar::{f32_at, f64_at, Scalar};

/// The total of the values of a column. Sums of numbers of 64 bits never get out of 128: there are not as many rows.
#[derive(Clone, Debug)]
pub(crate) enum Total {
    Integer(i128),
    Float(Box<ExactSum>),
}

impl Total {
    /// Of no values.
    pub fn empty(scalar: Scalar) -> Total {
        match scalar {
            Scalar::F32 | Scalar::F64 => Total::Float(Box::default()),
            _ => Total::Integer(0),
        }
    }

    pub fn add(&mut self, scalar: Scalar, value: &[u8]) {
        match self {
            Total::Integer(total) => *total += integer(scalar, value),
            Total::Float(total) => total.add(float(scalar, value)),
        }
    }

    /// Takes a value out that was added.
    pub fn remove(&mut self, scalar: Scalar, value: &[u8]) {
        match self {
            Total::Integer(total) => *total -= integer(scalar, value),
            Total::Float(total) => total.remove(float(scalar, value)),
        }
    }

    /// Writes it as the value of a `SUM`.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Total::Integer(total) => out.extend_from_slice(&total.to_le_bytes()),
            Total::Float(total) => out.extend_from_slice(&total.value().to_le_bytes()),
        }
    }

    /// The value of an `AVG` of so many values.
    pub fn average(&self, count: u64) -> f64 {
        let total = match self {
            Total::Integer(total) => *total as f64,
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

fn integer(scalar: Scalar, value: &[u8]) -> i128 {
    match scalar {
        Scalar::Integer(integer) => integer.to_i128(value),
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
