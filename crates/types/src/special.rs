//! Special types: conventions over ordinary products and sums (01 §1.2).
//!
//! Recognition is by exact structure. It never follows refs and compares names byte for byte.

use crate::algebraic_type::{AlgebraicType, ProductType, SumType};
use crate::algebraic_value::AlgebraicValue;
use crate::bsatn::Encode;
use crate::connection_id::ConnectionId;
use crate::identity::Identity;
use crate::integer::IntegerType;
use crate::time::{TimeDuration, Timestamp};
use crate::uuid::Uuid;
use std::fmt;

macro_rules! special_products {
    ($($name:ident = $field:literal, $content:ident, $from_content:expr, $constructor:ident;)*) => {
        /// A product that means more than its element: it has exactly one, of this type and with a name that says what it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SpecialProduct {
            $($name,)*
        }

        /// A value of a special product.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SpecialValue {
            $($name($name),)*
        }

        impl SpecialProduct {
            const ALL: &[SpecialProduct] = &[$(SpecialProduct::$name,)*];

            /// The name of the type.
            pub fn name(self) -> &'static str {
                match self {
                    $(SpecialProduct::$name => stringify!($name),)*
                }
            }

            /// The name of the element.
            pub fn field(self) -> &'static str {
                match self {
                    $(SpecialProduct::$name => $field,)*
                }
            }

            /// The type of the element.
            pub fn content(self) -> AlgebraicType {
                match self {
                    $(SpecialProduct::$name => AlgebraicType::$content,)*
                }
            }

            fn value(self, content: &AlgebraicValue) -> Option<SpecialValue> {
                match (self, content) {
                    $((SpecialProduct::$name, AlgebraicValue::$content(content)) => {
                        Some(SpecialValue::$name($from_content(*content)))
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
    };
}

special_products! {
    Identity = "__identity__", U256, Identity::from_u256, identity;
    ConnectionId = "__connection_id__", U128, ConnectionId, connection_id;
    Timestamp = "__timestamp_micros_since_unix_epoch__", I64, Timestamp, timestamp;
    TimeDuration = "__time_duration_micros__", I64, TimeDuration, time_duration;
    Uuid = "__uuid__", U128, Uuid, uuid;
}

impl SpecialProduct {
    /// The BSATN of the value that a literal of SQL denotes (08 §4.1); durations have none.
    pub fn parse(self, text: &str) -> Option<Vec<u8>> {
        Some(match self {
            SpecialProduct::Identity => Identity::parse_text(text).ok()?.to_vec(),
            SpecialProduct::ConnectionId => ConnectionId::parse_text(text).ok()?.to_vec(),
            SpecialProduct::Uuid => Uuid::parse_text(text).ok()?.to_vec(),
            SpecialProduct::Timestamp => Timestamp::parse_rfc3339(text).ok()?.to_vec(),
            SpecialProduct::TimeDuration => return None,
        })
    }
}

/// As people read it in cells of tables (08 §18).
impl fmt::Display for SpecialValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecialValue::Identity(id) => write!(f, "0x{id}"),
            SpecialValue::ConnectionId(id) => write!(f, "0x{id}"),
            SpecialValue::Uuid(uuid) => write!(f, "\"{uuid}\""),
            SpecialValue::Timestamp(time) => time.fmt(f),
            SpecialValue::TimeDuration(duration) => duration.fmt(f),
        }
    }
}

impl From<SpecialProduct> for AlgebraicType {
    fn from(special: SpecialProduct) -> AlgebraicType {
        AlgebraicType::product([(special.field(), special.content())])
    }
}

impl ProductType {
    /// Which special product this is, if it is one.
    pub fn special(&self) -> Option<SpecialProduct> {
        let [element] = &self.elements[..] else {
            return None;
        };
        let (name, ty) = (element.name()?, &element.algebraic_type);
        let is_it = |special: &SpecialProduct| special.field() == name && special.content() == *ty;
        SpecialProduct::ALL.iter().copied().find(is_it)
    }

    /// The value with these elements, if this is a special product.
    pub fn special_value(&self, elements: &[AlgebraicValue]) -> Option<SpecialValue> {
        self.special()?.value(elements.first()?)
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
