//! Which type of PostgreSQL a type is shown as (08 §19), and the object ids of those types.

use lightcone_types::{AlgebraicType, SpecialProduct};

/// Object ids of types, as PostgreSQL has given them out.
pub(super) mod oid {
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const BOOL_ARRAY: u32 = 1000;
    pub const INT2_ARRAY: u32 = 1005;
    pub const INT4_ARRAY: u32 = 1007;
    pub const VARCHAR_ARRAY: u32 = 1015;
    pub const INT8_ARRAY: u32 = 1016;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC_ARRAY: u32 = 1231;
    pub const NUMERIC: u32 = 1700;
    pub const ANYARRAY: u32 = 2277;
    pub const UUID: u32 = 2950;
    pub const ANYENUM: u32 = 3500;
    pub const JSONB: u32 = 3802;
}

/// The type of a result's column.
pub(super) fn oid_of(ty: &AlgebraicType) -> u32 {
    use AlgebraicType as T;
    match ty {
        T::String => oid::VARCHAR,
        T::Bool => oid::BOOL,
        T::U8 | T::I8 | T::I16 => oid::INT2,
        T::U16 | T::I32 => oid::INT4,
        T::U32 | T::I64 => oid::INT8,
        T::U64 | T::I128 | T::U128 | T::I256 | T::U256 => oid::NUMERIC,
        T::F32 => oid::FLOAT4,
        T::F64 => oid::FLOAT8,
        _ if ty.is_bytes() => oid::BYTEA,
        T::Array(element) => array_oid(oid_of(element)),
        T::Sum(_) if is_simple_enum(ty) => oid::ANYENUM,
        _ => match ty.special_product() {
            Some(SpecialProduct::Identity | SpecialProduct::ConnectionId) => oid::BYTEA,
            Some(SpecialProduct::Timestamp) => oid::TIMESTAMP,
            Some(SpecialProduct::TimeDuration) => oid::INTERVAL,
            Some(SpecialProduct::Uuid) => oid::UUID,
            None => oid::JSON,
        },
    }
}

fn array_oid(element: u32) -> u32 {
    match element {
        oid::VARCHAR => oid::VARCHAR_ARRAY,
        oid::BOOL => oid::BOOL_ARRAY,
        oid::INT2 => oid::INT2_ARRAY,
        oid::INT4 => oid::INT4_ARRAY,
        oid::INT8 => oid::INT8_ARRAY,
        oid::NUMERIC => oid::NUMERIC_ARRAY,
        _ => oid::ANYARRAY,
    }
}

/// The type that a parameter is announced with. Numbers of 64 bits without a sign are taken as those with one, as drivers have
/// no type of their own for them.
pub(super) fn parameter_oid(ty: &AlgebraicType) -> u32 {
    match ty {
        AlgebraicType::U64 => oid::INT8,
        AlgebraicType::String => oid::TEXT,
        ty => oid_of(ty),
    }
}

/// All variants are bare names.
pub(super) fn is_simple_enum(ty: &AlgebraicType) -> bool {
    let is_unit = |ty: &AlgebraicType| ty.as_product().is_some_and(|p| p.elements.is_empty());
    ty.as_sum().is_some_and(|sum| {
        !sum.variants.is_empty() && sum.variants.iter().all(|v| is_unit(&v.algebraic_type))
    })
}

/// Bytes of a value of the type, or -1 where they differ.
pub(super) fn size_of_oid(oid: u32) -> i16 {
    match oid {
        oid::BOOL => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::FLOAT4 | oid::OID | oid::ANYENUM => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::INTERVAL | oid::UUID => 16,
        oid::NAME => 64,
        _ => -1,
    }
}

/// What PostgreSQL calls the type, as `format_type` gives it.
pub(super) fn name_of_oid(oid: u32) -> &'static str {
    match oid {
        oid::BOOL => "boolean",
        oid::BYTEA => "bytea",
        oid::NAME => "name",
        oid::INT8 => "bigint",
        oid::INT2 => "smallint",
        oid::INT4 => "integer",
        oid::TEXT => "text",
        oid::OID => "oid",
        oid::JSON => "json",
        oid::FLOAT4 => "real",
        oid::FLOAT8 => "double precision",
        oid::BOOL_ARRAY => "boolean[]",
        oid::INT2_ARRAY => "smallint[]",
        oid::INT4_ARRAY => "integer[]",
        oid::VARCHAR_ARRAY => "character varying[]",
        oid::INT8_ARRAY => "bigint[]",
        oid::VARCHAR => "character varying",
        oid::TIMESTAMP => "timestamp without time zone",
        oid::TIMESTAMPTZ => "timestamp with time zone",
        oid::INTERVAL => "interval",
        oid::NUMERIC_ARRAY => "numeric[]",
        oid::NUMERIC => "numeric",
        oid::ANYARRAY => "anyarray",
        oid::UUID => "uuid",
        oid::ANYENUM => "anyenum",
        _ => "text",
    }
}

/// A type as PostgreSQL's catalogue has it.
pub(super) struct CatalogueType {
    pub oid: u32,
    pub name: &'static str,
    pub category: &'static str,
    /// Of an array.
    pub element: Option<u32>,
    /// The array of it, or 0.
    pub array: u32,
}

const fn ty(oid: u32, name: &'static str, category: &'static str, array: u32) -> CatalogueType {
    CatalogueType {
        oid,
        name,
        category,
        element: None,
        array,
    }
}

const fn array(oid: u32, name: &'static str, element: u32) -> CatalogueType {
    CatalogueType {
        oid,
        name,
        category: "A",
        element: Some(element),
        array: 0,
    }
}

/// The types of all columns, with what drivers ask about besides.
pub(super) const TYPES: &[CatalogueType] = &[
    ty(oid::BOOL, "bool", "B", oid::BOOL_ARRAY),
    ty(oid::BYTEA, "bytea", "U", 0),
    ty(oid::NAME, "name", "S", 0),
    ty(oid::INT8, "int8", "N", oid::INT8_ARRAY),
    ty(oid::INT2, "int2", "N", oid::INT2_ARRAY),
    ty(oid::INT4, "int4", "N", oid::INT4_ARRAY),
    ty(oid::TEXT, "text", "S", 0),
    ty(oid::OID, "oid", "N", 0),
    ty(oid::JSON, "json", "U", 0),
    ty(oid::FLOAT4, "float4", "N", 0),
    ty(oid::FLOAT8, "float8", "N", 0),
    ty(oid::UNKNOWN, "unknown", "X", 0),
    array(oid::BOOL_ARRAY, "_bool", oid::BOOL),
    array(oid::INT2_ARRAY, "_int2", oid::INT2),
    array(oid::INT4_ARRAY, "_int4", oid::INT4),
    array(oid::VARCHAR_ARRAY, "_varchar", oid::VARCHAR),
    array(oid::INT8_ARRAY, "_int8", oid::INT8),
    ty(oid::BPCHAR, "bpchar", "S", 0),
    ty(oid::VARCHAR, "varchar", "S", oid::VARCHAR_ARRAY),
    ty(oid::TIMESTAMP, "timestamp", "D", 0),
    ty(oid::TIMESTAMPTZ, "timestamptz", "D", 0),
    ty(oid::INTERVAL, "interval", "T", 0),
    array(oid::NUMERIC_ARRAY, "_numeric", oid::NUMERIC),
    ty(oid::NUMERIC, "numeric", "N", oid::NUMERIC_ARRAY),
    ty(oid::ANYARRAY, "anyarray", "P", 0),
    ty(oid::UUID, "uuid", "U", 0),
    ty(oid::ANYENUM, "anyenum", "P", 0),
    ty(oid::JSONB, "jsonb", "U", 0),
];

/// The type of a name, as the catalogue has it or as it is shown.
pub(super) fn oid_of_name(name: &str) -> Option<u32> {
    let is_named = |ty: &&CatalogueType| ty.name == name || name_of_oid(ty.oid) == name;
    TYPES.iter().find(is_named).map(|ty| ty.oid)
}
