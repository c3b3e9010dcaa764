//! Special types: conventions over ordinary products and sums (01 §1.2).
//!
//! Recognition is by exact structure. It never follows refs and compares names byte for byte.

use crate::algebraic_type::{AlgebraicType, ProductType, SumType};

/// A product that means more than its element: it has exactly one, of this type and with a name that says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialProduct {
    Identity,
    ConnectionId,
    Timestamp,
    TimeDuration,
    Uuid,
}

impl SpecialProduct {
    /// The name of the element.
    pub fn field(self) -> &'static str {
        match self {
            SpecialProduct::Identity => "__identity__",
            SpecialProduct::ConnectionId => "__connection_id__",
            SpecialProduct::Timestamp => "__timestamp_micros_since_unix_epoch__",
            SpecialProduct::TimeDuration => "__time_duration_micros__",
            SpecialProduct::Uuid => "__uuid__",
        }
    }

    /// The type of the element.
    fn content(self) -> AlgebraicType {
        match self {
            SpecialProduct::Identity => AlgebraicType::U256,
            SpecialProduct::ConnectionId | SpecialProduct::Uuid => AlgebraicType::U128,
            SpecialProduct::Timestamp | SpecialProduct::TimeDuration => AlgebraicType::I64,
        }
    }

    fn with_field(name: &str) -> Option<SpecialProduct> {
        const ALL: [SpecialProduct; 5] = [
            SpecialProduct::Identity,
            SpecialProduct::ConnectionId,
            SpecialProduct::Timestamp,
            SpecialProduct::TimeDuration,
            SpecialProduct::Uuid,
        ];
        ALL.into_iter().find(|special| special.field() == name)
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
        let special = SpecialProduct::with_field(element.name()?)?;
        (element.algebraic_type == special.content()).then_some(special)
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

    /// True for `Result<T, E>`.
    pub fn is_result(&self) -> bool {
        self.as_result().is_some()
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
        self.is_option() || self.is_result() || self.is_schedule_at()
    }
}

impl AlgebraicType {
    /// `Identity` as a type.
    pub fn identity() -> Self {
        SpecialProduct::Identity.into()
    }

    /// `ConnectionId` as a type.
    pub fn connection_id() -> Self {
        SpecialProduct::ConnectionId.into()
    }

    /// `Timestamp` as a type.
    pub fn timestamp() -> Self {
        SpecialProduct::Timestamp.into()
    }

    /// `TimeDuration` as a type.
    pub fn time_duration() -> Self {
        SpecialProduct::TimeDuration.into()
    }

    /// `Uuid` as a type.
    pub fn uuid() -> Self {
        SpecialProduct::Uuid.into()
    }

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
