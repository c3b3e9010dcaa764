//! The types SQL can compare (08 §6), by how their encodings are compared (01 §1.6.1).

use std::cmp::Ordering;

use lightcone_types::{AlgebraicType, SpecialProduct, I256, U256};

/// How the BSATN of a comparable type is read for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    /// Bool too.
    U8,
    U16,
    U32,
    U64,
    /// ConnectionId and Uuid too.
    U128,
    /// Identity too.
    U256,
    I8,
    I16,
    I32,
    /// Timestamp too.
    I64,
    I128,
    I256,
    F32,
    F64,
    /// String and Array(U8).
    Bytes,
}

impl Scalar {
    /// `None` for types that have no comparison in SQL.
    pub fn of(ty: &AlgebraicType) -> Option<Scalar> {
        use AlgebraicType as T;
        Some(match ty {
            T::Bool | T::U8 => Scalar::U8,
            T::U16 => Scalar::U16,
            T::U32 => Scalar::U32,
            T::U64 => Scalar::U64,
            T::U128 => Scalar::U128,
            T::U256 => Scalar::U256,
            T::I8 => Scalar::I8,
            T::I16 => Scalar::I16,
            T::I32 => Scalar::I32,
            T::I64 => Scalar::I64,
            T::I128 => Scalar::I128,
            T::I256 => Scalar::I256,
            T::F32 => Scalar::F32,
            T::F64 => Scalar::F64,
            T::String => Scalar::Bytes,
            _ if ty.is_bytes() => Scalar::Bytes,
            _ => match ty.special_product()? {
                SpecialProduct::Identity => Scalar::U256,
                SpecialProduct::ConnectionId | SpecialProduct::Uuid => Scalar::U128,
                SpecialProduct::Timestamp => Scalar::I64,
                SpecialProduct::TimeDuration => return None,
            },
        })
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// Compares the values at the start of two byte strings. `None` if one of them is too short.
    pub fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        Some(match self {
            Scalar::U8 => left.first()?.cmp(right.first()?),
            Scalar::U16 => u16_at(left)?.cmp(&u16_at(right)?),
            Scalar::U32 => u32_at(left)?.cmp(&u32_at(right)?),
            Scalar::U64 => u64_at(left)?.cmp(&u64_at(right)?),
            Scalar::U128 => u128_at(left)?.cmp(&u128_at(right)?),
            Scalar::U256 => u256_at(left)?.cmp(&u256_at(right)?),
            Scalar::I8 => i8_at(left)?.cmp(&i8_at(right)?),
            Scalar::I16 => i16_at(left)?.cmp(&i16_at(right)?),
            Scalar::I32 => i32_at(left)?.cmp(&i32_at(right)?),
            Scalar::I64 => i64_at(left)?.cmp(&i64_at(right)?),
            Scalar::I128 => i128_at(left)?.cmp(&i128_at(right)?),
            Scalar::I256 => i256_at(left)?.cmp(&i256_at(right)?),
            Scalar::F32 => compare_floats(f32_at(left)?.into(), f32_at(right)?.into()),
            Scalar::F64 => compare_floats(f64_at(left)?, f64_at(right)?),
            Scalar::Bytes => content(left)?.cmp(content(right)?),
        })
    }
}

macro_rules! read_at {
    ($($name:ident: $ty:ty, $size:literal;)*) => {$(
        #[inline]
        pub(crate) fn $name(bytes: &[u8]) -> Option<$ty> {
            bytes.first_chunk::<$size>().map(|chunk| <$ty>::from_le_bytes(*chunk))
        }
    )*};
}

read_at! {
    i8_at: i8, 1;
    u16_at: u16, 2;
    i16_at: i16, 2;
    u32_at: u32, 4;
    i32_at: i32, 4;
    u64_at: u64, 8;
    i64_at: i64, 8;
    u128_at: u128, 16;
    i128_at: i128, 16;
    u256_at: U256, 32;
    i256_at: I256, 32;
    f32_at: f32, 4;
    f64_at: f64, 8;
}

/// The bytes behind a length.
#[inline]
pub(crate) fn content(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32_at(bytes)? as usize;
    bytes.get(4..)?.get(..length)
}

/// All NaNs equal and above everything, both zeros equal.
#[inline]
pub(crate) fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}
