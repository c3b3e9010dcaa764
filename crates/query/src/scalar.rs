//! The types SQL can compare (08 §6), by how their encodings are compared (01 §1.6.1).

use std::cmp::Ordering;

use lightcone_types::{cmp_floats, AlgebraicType, IntegerType};

/// How the BSATN of a comparable type is read for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    /// Bool too, and all special types that are numbers.
    Integer(IntegerType),
    F32,
    F64,
    /// String and Array(U8).
    Bytes,
}

impl Scalar {
    /// As a number: 0 or 1.
    pub const BOOL: Scalar = Scalar::Integer(IntegerType::U8);

    /// `None` for types that have no comparison in SQL.
    pub fn of(ty: &AlgebraicType) -> Option<Scalar> {
        use AlgebraicType as T;
        match ty {
            T::Bool => Some(Scalar::BOOL),
            T::Integer(integer) => Some(Scalar::Integer(*integer)),
            T::F32 => Some(Scalar::F32),
            T::F64 => Some(Scalar::F64),
            T::String => Some(Scalar::Bytes),
            _ if ty.is_bytes() => Some(Scalar::Bytes),
            _ => {
                let facts = ty.special_product()?.facts();
                facts.literals.and_then(|_| Scalar::of(&facts.content))
            }
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// The float at the start of a byte string. `None` of other types too.
    #[inline]
    pub fn float(self, bytes: &[u8]) -> Option<f64> {
        match self {
            Scalar::F32 => f32_at(bytes).map(f64::from),
            Scalar::F64 => f64_at(bytes),
            Scalar::Integer(_) | Scalar::Bytes => None,
        }
    }

    /// Compares the values at the start of two byte strings. `None` if one of them is too short.
    pub fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        Some(match self {
            Scalar::Integer(integer) => return integer.compare(left, right),
            Scalar::F32 | Scalar::F64 => cmp_floats(self.float(left)?, self.float(right)?),
            Scalar::Bytes => content(left)?.cmp(content(right)?),
        })
    }
}

macro_rules! read_at {
    ($($name:ident: $ty:ty;)*) => {$(
        #[inline]
        pub(crate) fn $name(bytes: &[u8]) -> Option<$ty> {
            Some(<$ty>::from_le_bytes(*bytes.first_chunk()?))
        }
    )*};
}

read_at! {
    u8_at: u8;
    u16_at: u16;
    u32_at: u32;
    u64_at: u64;
    i8_at: i8;
    i16_at: i16;
    i32_at: i32;
    i64_at: i64;
    f32_at: f32;
    f64_at: f64;
}

/// The bytes behind a length.
#[inline]
pub(crate) fn content(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32_at(bytes)? as usize;
    bytes.get(4..)?.get(..length)
}
