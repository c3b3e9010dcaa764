//! Values of algebraic types (01 §1.1.4), their equality and order (01 §1.6).

use ethnum::{i256, u256};

use crate::integer::{fitting, for_each_integer, IntegerType};
use std::cmp::Ordering;
use std::fmt;

macro_rules! algebraic_value {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
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
            F32(f32),
            F64(f64),
            $($name($rust),)*
        }
    };
}
for_each_integer!(algebraic_value);

/// Evaluates an expression in which a name stands for the integer of a value; another one for a value that is none.
macro_rules! with_integer_value {
    ($value:expr, $integer:ident => $body:expr, else $other:expr) => {
        $crate::integer::for_each_integer! { with_integer_value @each $value, $integer => $body, else $other; }
    };
    (@each $value:expr, $integer:ident => $body:expr, else $other:expr;
     $($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        match $value {
            $($crate::algebraic_value::AlgebraicValue::$name($integer) => $body,)*
            _ => $other,
        }
    };
}
pub(crate) use with_integer_value;

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
            (F32(a), F32(b)) => cmp_floats(f64::from(*a), f64::from(*b)),
            (F64(a), F64(b)) => cmp_floats(*a, *b),
            _ => cmp_integers(self, other)
                .unwrap_or_else(|| self.constructor_rank().cmp(&other.constructor_rank())),
        }
    }

    /// Value equality: −0 equals +0 and every NaN equals every NaN (01 §1.6.1).
    pub fn value_eq(&self, other: &Self) -> bool {
        self.value_cmp(other) == Ordering::Equal
    }

    /// An integer or a float, whose text is its digits.
    pub fn as_number(&self) -> Option<&dyn fmt::Display> {
        match self {
            Self::F32(float) => Some(float),
            Self::F64(float) => Some(float),
            _ => with_integer_value!(self, integer => Some(integer), else None),
        }
    }

    /// An integer that 128 bits can hold.
    pub fn to_i128(&self) -> Option<i128> {
        with_integer_value!(self, integer => fitting(*integer), else None)
    }

    /// The tag of its type; bytes, which are arrays too, have one of their own.
    fn constructor_rank(&self) -> u8 {
        match self {
            Self::Sum { .. } => 1,
            Self::Product(_) => 2,
            Self::Array(_) => 3,
            Self::String(_) => 4,
            Self::Bool(_) => 5,
            Self::F32(_) => 18,
            Self::F64(_) => 19,
            Self::Bytes(_) => u8::MAX,
            integer => integer.integer_type().map_or(0, |ty| ty as u8),
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

/// The order of floats (01 §1.6.1): all NaNs equal and above everything, both zeros equal.
#[inline]
pub fn cmp_floats(a: f64, b: f64) -> Ordering {
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
            F32(v) => v.to_bits().hash(state),
            F64(v) => v.to_bits().hash(state),
            integer => with_integer_value!(integer, v => v.hash(state), else {}),
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

impl_from!(bool => Bool, f32 => F32, f64 => F64, Box<str> => String);

macro_rules! integer_values {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        impl_from!($($rust => $name),*);

        impl AlgebraicValue {
            /// The type of an integer; none of another value.
            pub fn integer_type(&self) -> Option<IntegerType> {
                match self {
                    $(AlgebraicValue::$name(_) => Some(IntegerType::$name),)*
                    _ => None,
                }
            }
        }

        /// Of two integers of one type.
        fn cmp_integers(left: &AlgebraicValue, right: &AlgebraicValue) -> Option<Ordering> {
            match (left, right) {
                $((AlgebraicValue::$name(left), AlgebraicValue::$name(right)) => Some(left.cmp(right)),)*
                _ => None,
            }
        }
    };
}

for_each_integer!(integer_values);

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
