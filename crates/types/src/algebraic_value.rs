//! Values of algebraic types (01 §1.1.4), their equality and order (01 §1.6).

use ethnum::{I256, U256};

use crate::connection_id::ConnectionId;
use crate::identity::Identity;
use crate::time::{TimeDuration, Timestamp};
use crate::uuid::Uuid;
use std::cmp::Ordering;

/// A value detached from its type.
///
/// `==` is *bitwise* equality, the row identity of 01 §1.6.2: −0 and +0 differ, a NaN equals
/// itself. Value equality and order are [`value_cmp`](Self::value_cmp).
#[derive(Clone, Debug)]
pub enum AlgebraicValue {
    Sum {
        tag: u8,
        value: Box<AlgebraicValue>,
    },
    Product(Vec<AlgebraicValue>),
    /// Arrays of every element type except `U8`.
    Array(Vec<AlgebraicValue>),
    /// The one form of `Array(U8)`.
    Bytes(Vec<u8>),
    String(Box<str>),
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    I128(i128),
    U128(u128),
    I256(I256),
    U256(U256),
    F32(f32),
    F64(f64),
}

impl AlgebraicValue {
    pub fn unit() -> Self {
        Self::Product(Vec::new())
    }

    pub fn sum(tag: u8, value: AlgebraicValue) -> Self {
        Self::Sum {
            tag,
            value: Box::new(value),
        }
    }

    pub fn enum_tag(tag: u8) -> Self {
        Self::sum(tag, Self::unit())
    }

    pub fn some(value: AlgebraicValue) -> Self {
        Self::sum(0, value)
    }

    pub fn none() -> Self {
        Self::enum_tag(1)
    }

    pub fn as_product(&self) -> Option<&[AlgebraicValue]> {
        match self {
            Self::Product(elements) => Some(elements),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// The canonical total order of values of one type (01 §1.6.1).
    ///
    /// −0 equals +0, all NaNs are equal and above +∞. Values of different types are ordered by
    /// constructor; nothing may depend on that.
    pub fn value_cmp(&self, other: &Self) -> Ordering {
        use AlgebraicValue::*;
        match (self, other) {
            (Sum { tag: a, value: x }, Sum { tag: b, value: y }) => {
                a.cmp(b).then_with(|| x.value_cmp(y))
            }
            (Product(a), Product(b)) | (Array(a), Array(b)) => cmp_slices(a, b),
            (Bytes(a), Bytes(b)) => a.cmp(b),
            (String(a), String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Bool(a), Bool(b)) => a.cmp(b),
            (I8(a), I8(b)) => a.cmp(b),
            (U8(a), U8(b)) => a.cmp(b),
            (I16(a), I16(b)) => a.cmp(b),
            (U16(a), U16(b)) => a.cmp(b),
            (I32(a), I32(b)) => a.cmp(b),
            (U32(a), U32(b)) => a.cmp(b),
            (I64(a), I64(b)) => a.cmp(b),
            (U64(a), U64(b)) => a.cmp(b),
            (I128(a), I128(b)) => a.cmp(b),
            (U128(a), U128(b)) => a.cmp(b),
            (I256(a), I256(b)) => a.cmp(b),
            (U256(a), U256(b)) => a.cmp(b),
            (F32(a), F32(b)) => cmp_floats(f64::from(*a), f64::from(*b)),
            (F64(a), F64(b)) => cmp_floats(*a, *b),
            _ => self.constructor_rank().cmp(&other.constructor_rank()),
        }
    }

    /// Value equality: −0 equals +0 and every NaN equals every NaN (01 §1.6.1).
    pub fn value_eq(&self, other: &Self) -> bool {
        self.value_cmp(other) == Ordering::Equal
    }

    fn constructor_rank(&self) -> u8 {
        use AlgebraicValue::*;
        match self {
            Sum { .. } => 1,
            Product(_) => 2,
            Array(_) => 3,
            Bytes(_) => 4,
            String(_) => 5,
            Bool(_) => 6,
            I8(_) => 7,
            U8(_) => 8,
            I16(_) => 9,
            U16(_) => 10,
            I32(_) => 11,
            U32(_) => 12,
            I64(_) => 13,
            U64(_) => 14,
            I128(_) => 15,
            U128(_) => 16,
            I256(_) => 17,
            U256(_) => 18,
            F32(_) => 19,
            F64(_) => 20,
        }
    }
}

fn cmp_slices(a: &[AlgebraicValue], b: &[AlgebraicValue]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        match x.value_cmp(y) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    a.len().cmp(&b.len())
}

/// `partial_cmp` already treats both zeros as equal; only NaN needs a place.
fn cmp_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl PartialEq for AlgebraicValue {
    fn eq(&self, other: &Self) -> bool {
        use AlgebraicValue::*;
        match (self, other) {
            (Sum { tag: a, value: x }, Sum { tag: b, value: y }) => a == b && x == y,
            (Product(a), Product(b)) | (Array(a), Array(b)) => a == b,
            (F32(a), F32(b)) => a.to_bits() == b.to_bits(),
            (F64(a), F64(b)) => a.to_bits() == b.to_bits(),
            _ => self.value_cmp(other) == Ordering::Equal,
        }
    }
}

impl Eq for AlgebraicValue {}

impl std::hash::Hash for AlgebraicValue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        use AlgebraicValue::*;
        self.constructor_rank().hash(state);
        match self {
            Sum { tag, value } => {
                tag.hash(state);
                value.hash(state);
            }
            Product(elements) | Array(elements) => elements.hash(state),
            Bytes(v) => v.hash(state),
            String(v) => v.hash(state),
            Bool(v) => v.hash(state),
            I8(v) => v.hash(state),
            U8(v) => v.hash(state),
            I16(v) => v.hash(state),
            U16(v) => v.hash(state),
            I32(v) => v.hash(state),
            U32(v) => v.hash(state),
            I64(v) => v.hash(state),
            U64(v) => v.hash(state),
            I128(v) => v.hash(state),
            U128(v) => v.hash(state),
            I256(v) => v.to_le_bytes().hash(state),
            U256(v) => v.to_le_bytes().hash(state),
            F32(v) => v.to_bits().hash(state),
            F64(v) => v.to_bits().hash(state),
        }
    }
}

macro_rules! impl_from {
    ($($native:ty => $variant:ident),* $(,)?) => {$(
        impl From<$native> for AlgebraicValue {
            fn from(value: $native) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

impl_from! {
    bool => Bool, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64,
    u64 => U64, i128 => I128, u128 => U128, I256 => I256, U256 => U256, f32 => F32, f64 => F64,
    Box<str> => String,
}

impl From<&str> for AlgebraicValue {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for AlgebraicValue {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Identity> for AlgebraicValue {
    fn from(value: Identity) -> Self {
        Self::Product(vec![Self::U256(value.to_u256())])
    }
}

macro_rules! impl_from_special {
    ($($special:ty => $variant:ident),* $(,)?) => {$(
        impl From<$special> for AlgebraicValue {
            fn from(value: $special) -> Self {
                Self::Product(vec![Self::$variant(value.0)])
            }
        }
    )*};
}

impl_from_special! {
    ConnectionId => U128, Timestamp => I64, TimeDuration => I64, Uuid => U128,
}
