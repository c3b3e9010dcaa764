//! Special types: conventions over ordinary products and sums (01 §1.2).
//!
//! Recognition is by exact structure. It never follows refs and compares names byte for byte.

use crate::{AlgebraicType, ProductType, SumType};

/// Name of the only element of an `Identity` product.
pub const IDENTITY_FIELD: &str = "__identity__";
/// Name of the only element of a `ConnectionId` product.
pub const CONNECTION_ID_FIELD: &str = "__connection_id__";
/// Name of the only element of a `Timestamp` product.
pub const TIMESTAMP_FIELD: &str = "__timestamp_micros_since_unix_epoch__";
/// Name of the only element of a `TimeDuration` product.
pub const TIME_DURATION_FIELD: &str = "__time_duration_micros__";
/// Name of the only element of a `Uuid` product.
pub const UUID_FIELD: &str = "__uuid__";

impl ProductType {
    fn is_newtype(&self, name: &str, inner: &AlgebraicType) -> bool {
        matches!(&self.elements[..], [e] if e.name() == Some(name) && e.algebraic_type == *inner)
    }

    /// True for one of the five special products.
    pub fn is_special(&self) -> bool {
        self.is_identity()
            || self.is_connection_id()
            || self.is_timestamp()
            || self.is_time_duration()
            || self.is_uuid()
    }

    /// True for the special type `Identity`.
    pub fn is_identity(&self) -> bool {
        self.is_newtype(IDENTITY_FIELD, &AlgebraicType::U256)
    }

    /// True for the special type `ConnectionId`.
    pub fn is_connection_id(&self) -> bool {
        self.is_newtype(CONNECTION_ID_FIELD, &AlgebraicType::U128)
    }

    /// True for the special type `Timestamp`.
    pub fn is_timestamp(&self) -> bool {
        self.is_newtype(TIMESTAMP_FIELD, &AlgebraicType::I64)
    }

    /// True for the special type `TimeDuration`.
    pub fn is_time_duration(&self) -> bool {
        self.is_newtype(TIME_DURATION_FIELD, &AlgebraicType::I64)
    }

    /// True for the special type `Uuid`.
    pub fn is_uuid(&self) -> bool {
        self.is_newtype(UUID_FIELD, &AlgebraicType::U128)
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
            .is_some_and(|(interval, time)| interval.is_time_duration() && time.is_timestamp())
    }

    /// True for option, result and `ScheduleAt`.
    pub fn is_special(&self) -> bool {
        self.is_option() || self.is_result() || self.is_schedule_at()
    }
}

impl AlgebraicType {
    /// `Identity` as a type.
    pub fn identity() -> Self {
        Self::product([(IDENTITY_FIELD, Self::U256)])
    }

    /// `ConnectionId` as a type.
    pub fn connection_id() -> Self {
        Self::product([(CONNECTION_ID_FIELD, Self::U128)])
    }

    /// `Timestamp` as a type.
    pub fn timestamp() -> Self {
        Self::product([(TIMESTAMP_FIELD, Self::I64)])
    }

    /// `TimeDuration` as a type.
    pub fn time_duration() -> Self {
        Self::product([(TIME_DURATION_FIELD, Self::I64)])
    }

    /// `Uuid` as a type.
    pub fn uuid() -> Self {
        Self::product([(UUID_FIELD, Self::U128)])
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

    /// True for the five special products, option, result and `ScheduleAt`.
    pub fn is_special(&self) -> bool {
        match self {
            Self::Product(p) => p.is_special(),
            Self::Sum(s) => s.is_special(),
            _ => false,
        }
    }

    /// True for the special type `Identity`.
    pub fn is_identity(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_identity())
    }

    /// True for the special type `ConnectionId`.
    pub fn is_connection_id(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_connection_id())
    }

    /// True for the special type `Timestamp`.
    pub fn is_timestamp(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_timestamp())
    }

    /// True for the special type `TimeDuration`.
    pub fn is_time_duration(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_time_duration())
    }

    /// True for the special type `Uuid`.
    pub fn is_uuid(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_uuid())
    }

    /// True for the special type `ScheduleAt`.
    pub fn is_schedule_at(&self) -> bool {
        matches!(self, Self::Sum(s) if s.is_schedule_at())
    }

    /// True for `Option<T>`.
    pub fn is_option(&self) -> bool {
        self.as_option().is_some()
    }

    /// The `T` of `Option<T>`.
    pub fn as_option(&self) -> Option<&AlgebraicType> {
        self.as_sum().and_then(SumType::as_option)
    }

    /// True for `Result<T, E>`.
    pub fn is_result(&self) -> bool {
        self.as_result().is_some()
    }

    /// The `T` and `E` of `Result<T, E>`.
    pub fn as_result(&self) -> Option<(&AlgebraicType, &AlgebraicType)> {
        self.as_sum().and_then(SumType::as_result)
    }
}
