//! Special types: conventions over ordinary products and sums (01 §1.2).
//!
//! Recognition is by exact structure. It never follows refs and compares names byte for byte.

mod connection_id;
mod identity;
mod time;
mod time_text;
mod uuid;

pub use connection_id::ConnectionId;
pub use identity::Identity;
pub use time::{TimeDuration, Timestamp};
pub use time_text::TimestampError;
pub use uuid::{Uuid, UuidError};

use crate::algebraic_type::{AlgebraicType, ProductType, SumType};
use crate::algebraic_value::AlgebraicValue;
use crate::bsatn::{Decode, DecodeError, Encode, Reader};
use crate::integer::IntegerType;

/// As which SQL clients see a special product (08 §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownAs {
    Bytes,
    Uuid,
    Timestamp,
    Interval,
}

/// Gives the BSATN of the value that a literal of SQL denotes (08 §4.1).
pub type ReadLiteral = fn(&str) -> Option<Vec<u8>>;

/// What is known of a special product.
pub struct SpecialFacts {
    /// The name of the type.
    pub name: &'static str,
    /// The name of the element.
    pub field: &'static str,
    /// The type of the element.
    pub content: AlgebraicType,
    pub shown_as: ShownAs,
    /// If SQL compares its values, as their numbers: a literal, and what reads literals.
    pub literals: Option<(&'static str, ReadLiteral)>,
}

macro_rules! special_products {
    ($(
        $name:ident = $field:literal, $content:ident, $from_content:path, {$($to_content:tt)*}, $constructor:ident;
        $cell:literal, $shown_as:ident, $text:ident, $literals:expr;
    )*) => {
        /// A product that means more than its element: it has exactly one, of this type and with a name that says what it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SpecialProduct {
            $($name,)*
        }

        impl SpecialProduct {
            pub const ALL: &[SpecialProduct] = &[$(SpecialProduct::$name,)*];

            pub fn facts(self) -> &'static SpecialFacts {
                match self {
                    $(SpecialProduct::$name => const { &SpecialFacts {
                        name: stringify!($name),
                        field: $field,
                        content: AlgebraicType::$content,
                        shown_as: ShownAs::$shown_as,
                        literals: $literals,
                    } },)*
                }
            }

            /// The value of an element as people read it in cells of tables (08 §18). None: it is none of this type.
            pub fn cell(self, element: &AlgebraicValue) -> Option<String> {
                match (self, element) {
                    $((SpecialProduct::$name, AlgebraicValue::$content(content)) => {
                        Some(format!($cell, $from_content(*content)))
                    })*
                    _ => None,
                }
            }

            /// The value of an element as SQL clients read it; bytes as hex digits. None: it is none of this type.
            pub fn text(self, element: &AlgebraicValue) -> Option<String> {
                match (self, element) {
                    $((SpecialProduct::$name, AlgebraicValue::$content(content)) => {
                        Some($from_content(*content).$text())
                    })*
                    _ => None,
                }
            }
        }

        impl AlgebraicType {
            $(
                #[doc = concat!("`", stringify!($name), "` as a type.")]
                pub fn $constructor() -> Self {
                    SpecialProduct::$name.into()
                }
            )*
        }

        $(
            impl From<$name> for AlgebraicValue {
                fn from(value: $name) -> Self {
                    Self::Product(vec![Self::$content(value $($to_content)*)])
                }
            }

            impl Encode for $name {
                #[inline]
                fn encode(&self, out: &mut Vec<u8>) {
                    self $($to_content)*.encode(out);
                }
            }

            impl Decode for $name {
                #[inline]
                fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    Decode::decode(r).map($from_content)
                }
            }
        )*
    };
}

// A product, its element and the type of that; its value from that and back; the function that gives it as a type. Its form in
// cells, as which SQL clients see it and in which text, its literals.
special_products! {
    Identity = "__identity__", U256, Identity::from_u256, {.to_u256()}, identity;
        "0x{}", Bytes, to_hex,
        Some(("0x0000000000000000000000000000000000000000000000000000000000000000", |text| bsatn(Identity::parse_text(text))));
    ConnectionId = "__connection_id__", U128, ConnectionId, {.0}, connection_id;
        "0x{}", Bytes, to_hex,
        Some(("0x00000000000000000000000000000000", |text| bsatn(ConnectionId::parse_text(text))));
    Timestamp = "__timestamp_micros_since_unix_epoch__", I64, Timestamp, {.0}, timestamp;
        "{}", Timestamp, to_rfc3339,
        Some(("'1970-01-01T00:00:00Z'", |text| bsatn(Timestamp::parse_rfc3339(text))));
    TimeDuration = "__time_duration_micros__", I64, TimeDuration, {.0}, time_duration;
        "{}", Interval, to_iso8601, None;
    Uuid = "__uuid__", U128, Uuid, {.0}, uuid;
        "\"{}\"", Uuid, to_string,
        Some(("0x00000000000000000000000000000000", |text| bsatn(Uuid::parse_text(text))));
}

fn bsatn<E>(value: Result<impl Encode, E>) -> Option<Vec<u8>> {
    Some(value.ok()?.to_vec())
}

impl From<SpecialProduct> for AlgebraicType {
    fn from(special: SpecialProduct) -> AlgebraicType {
        let facts = special.facts();
        AlgebraicType::product([(facts.field, facts.content.clone())])
    }
}

impl ProductType {
    /// Which special product this is, if it is one.
    pub fn special(&self) -> Option<SpecialProduct> {
        let [element] = &self.elements[..] else {
            return None;
        };
        let (name, ty) = (element.name()?, &element.algebraic_type);
        let is_it = |facts: &SpecialFacts| facts.field == name && facts.content == *ty;
        let mut all = SpecialProduct::ALL.iter().copied();
        all.find(|special| is_it(special.facts()))
    }
}

impl SumType {
    fn as_pair(&self, first: &str, second: &str) -> Option<(&AlgebraicType, &AlgebraicType)> {
        match &self.variants[..] {
            [a, b] if a.name() == Some(first) && b.name() == Some(second) => {
                Some((&a.algebraic_type, &b.algebraic_type))
            }
            _ => None,
        }
    }

    /// The `T` of `Option<T>`.
    pub fn as_option(&self) -> Option<&AlgebraicType> {
        self.as_pair("some", "none")
            .filter(|(_, none)| none.is_unit())
            .map(|(some, _)| some)
    }

    /// The `T` and `E` of `Result<T, E>`.
    pub fn as_result(&self) -> Option<(&AlgebraicType, &AlgebraicType)> {
        self.as_pair("ok", "err")
    }

    /// True for `Option<T>`.
    pub fn is_option(&self) -> bool {
        self.as_option().is_some()
    }

    /// True for the special type `ScheduleAt`.
    pub fn is_schedule_at(&self) -> bool {
        self.as_pair("Interval", "Time")
            .is_some_and(|(interval, time)| {
                interval.special_product() == Some(SpecialProduct::TimeDuration)
                    && time.special_product() == Some(SpecialProduct::Timestamp)
            })
    }

    /// True for option, result and `ScheduleAt`.
    pub fn is_special(&self) -> bool {
        self.is_option() || self.as_result().is_some() || self.is_schedule_at()
    }
}

impl IntegerType {
    /// As which a hash, or an identity, is stored.
    pub const HASH: Self = Self::U256;
}

impl AlgebraicType {
    /// A hash, or an identity, as a bare number: so the system tables have them.
    pub const HASH: Self = Self::Integer(IntegerType::HASH);

    /// `ScheduleAt` as a type.
    pub fn schedule_at() -> Self {
        Self::sum([
            ("Interval", Self::time_duration()),
            ("Time", Self::timestamp()),
        ])
    }

    /// `Option<T>` as a type.
    pub fn option(some: AlgebraicType) -> Self {
        Self::sum([("some", some), ("none", Self::unit())])
    }

    /// `Result<T, E>` as a type.
    pub fn result(ok: AlgebraicType, err: AlgebraicType) -> Self {
        Self::sum([("ok", ok), ("err", err)])
    }

    /// Which special product this is, if it is one.
    pub fn special_product(&self) -> Option<SpecialProduct> {
        self.as_product().and_then(ProductType::special)
    }

    /// True for the special products, option, result and `ScheduleAt`.
    pub fn is_special(&self) -> bool {
        match self {
            Self::Product(product) => product.special().is_some(),
            Self::Sum(sum) => sum.is_special(),
            _ => false,
        }
    }

    /// True for the special type `ScheduleAt`.
    pub fn is_schedule_at(&self) -> bool {
        self.as_sum().is_some_and(SumType::is_schedule_at)
    }

    /// The `T` of `Option<T>`.
    pub fn as_option(&self) -> Option<&AlgebraicType> {
        self.as_sum().and_then(SumType::as_option)
    }

    /// The `T` and `E` of `Result<T, E>`.
    pub fn as_result(&self) -> Option<(&AlgebraicType, &AlgebraicType)> {
        self.as_sum().and_then(SumType::as_result)
    }
}
