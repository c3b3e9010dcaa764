//! Types of columns in vectors.

use lightcone_types::AlgebraicType;

/// The type that the files call so.
pub fn column_type(name: &str) -> AlgebraicType {
    use AlgebraicType as T;
    match name {
        "Bool" => T::Bool,
        "I8" => T::I8,
        "U8" => T::U8,
        "I16" => T::I16,
        "U16" => T::U16,
        "I32" => T::I32,
        "U32" => T::U32,
        "I64" => T::I64,
        "U64" => T::U64,
        "I128" => T::I128,
        "U128" => T::U128,
        "I256" => T::I256,
        "U256" => T::U256,
        "F32" => T::F32,
        "F64" => T::F64,
        "String" => T::String,
        "Bytes" => T::bytes(),
        "Identity" => T::identity(),
        "ConnectionId" => T::connection_id(),
        "Timestamp" => T::timestamp(),
        "TimeDuration" => T::time_duration(),
        "Uuid" => T::uuid(),
        "Array<String>" => T::array(T::String),
        "Option<U64>" => T::option(T::U64),
        unknown => panic!("no type {unknown}"),
    }
}
