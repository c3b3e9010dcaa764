//! The integer types: what differs from one to the next is said here, and nowhere else.

use std::cmp::Ordering;

pub use ethnum::{I256, U256};

/// Gives a macro the integer types, for code that is generated for each: the name of the type and of its variant of
/// `AlgebraicValue`, the tag in BSATN (01 §1.4), the type in Rust, and whether it has a sign.
///
/// A type that is added here is added to [`with_integer`](crate::with_integer) too.
macro_rules! for_each_integer {
    ($make:ident $($arguments:tt)*) => {
        $make! { $($arguments)*
            I8 = 6, i8, Signed;
            U8 = 7, u8, Unsigned;
            I16 = 8, i16, Signed;
            U16 = 9, u16, Unsigned;
            I32 = 10, i32, Signed;
            U32 = 11, u32, Unsigned;
            I64 = 12, i64, Signed;
            U64 = 13, u64, Unsigned;
            I128 = 14, i128, Signed;
            U128 = 15, u128, Unsigned;
            I256 = 16, i256, Signed;
            U256 = 17, u256, Unsigned;
        }
    };
}
pub(crate) use for_each_integer;

/// Evaluates an expression in which a name stands for the Rust type of an [`IntegerType`]:
/// `with_integer!(ty, N => size_of::<N>())`. The expression is compiled for each type by itself, so widths are constants in it.
#[macro_export]
macro_rules! with_integer {
    ($ty:expr, $N:ident => $body:expr) => {
        $crate::integer::with_integer! { @each $ty, $N => $body,
            I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, I128 i128, U128 u128,
            I256 $crate::integer::I256, U256 $crate::integer::U256
        }
    };
    (@each $ty:expr, $N:ident => $body:expr, $($name:ident $rust:ty),*) => {
        match $ty {
            $($crate::integer::IntegerType::$name => {
                type $N = $rust;
                $body
            })*
        }
    };
}

pub use with_integer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Signed,
    Unsigned,
}

macro_rules! integer_types {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        /// An integer type. Its number is its tag in BSATN.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum IntegerType {
            $($name = $tag,)*
        }

        impl IntegerType {
            pub const ALL: &[IntegerType] = &[$(IntegerType::$name,)*];

            /// As JSON and messages spell it: `U64`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(IntegerType::$name => stringify!($name),)*
                }
            }

            /// As texts of errors spell it: `u64`.
            pub const fn rust_name(self) -> &'static str {
                match self {
                    $(IntegerType::$name => stringify!($rust),)*
                }
            }

            const fn sign(self) -> Sign {
                match self {
                    $(IntegerType::$name => Sign::$sign,)*
                }
            }
        }
    };
}

for_each_integer!(integer_types);

impl IntegerType {
    pub(crate) fn from_tag(tag: u8) -> Option<IntegerType> {
        IntegerType::ALL.iter().copied().find(|ty| *ty as u8 == tag)
    }

    pub const fn is_signed(self) -> bool {
        matches!(self.sign(), Sign::Signed)
    }

    /// The size of every value.
    #[inline]
    pub const fn bytes(self) -> usize {
        with_integer!(self, N => size_of::<N>())
    }

    /// All values are ones of 64 bits without a sign.
    pub fn fits_u64(self) -> bool {
        !self.is_signed() && self.bytes() <= size_of::<u64>()
    }

    /// Compares the values at the start of two byte strings. `None` if one of them is too short.
    #[inline]
    pub fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        Some(with_integer!(self, N => {
            let left = N::from_le_bytes(*left.first_chunk()?);
            left.cmp(&N::from_le_bytes(*right.first_chunk()?))
        }))
    }

    /// The value at the start of a byte string. `None` if that is too short, or the value beyond 128 bits.
    #[inline]
    pub fn to_i128(self, bytes: &[u8]) -> Option<i128> {
        with_integer!(self, N => fitting(N::from_le_bytes(*bytes.first_chunk()?)))
    }

    /// The least and the greatest value, as far as 128 bits go.
    pub fn range_i128(self) -> (i128, i128) {
        with_integer!(self, N => (
            fitting(N::MIN).unwrap_or(i128::MIN),
            fitting(N::MAX).unwrap_or(i128::MAX),
        ))
    }

    /// The BSATN of the value that has these decimal digits, behind a sign or not. `None` if there is none.
    pub fn parse(self, digits: &str) -> Option<Vec<u8>> {
        with_integer!(self, N => Some(digits.parse::<N>().ok()?.to_le_bytes().to_vec()))
    }
}

/// An integer, if 128 bits can hold it.
#[inline]
pub(crate) fn fitting(integer: impl TryInto<i128>) -> Option<i128> {
    integer.try_into().ok()
}
