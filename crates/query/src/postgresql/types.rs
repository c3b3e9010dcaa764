//! Which type of PostgreSQL a type is shown as (08 §19), and the object ids of those types.

use lightcone_types::{AlgebraicType, SpecialProduct};

/// Object ids of types, as PostgreSQL has given them out.
pub mod oid {
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
pub fn oid_of(ty: &AlgebraicType) -> u32 {
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
pub fn parameter_oid(ty: &AlgebraicType) -> u32 {
    match ty {
        AlgebraicType::U64 => oid::INT8,
        AlgebraicType::String => oid::TEXT,
        ty => oid_of(ty),
    }
}

/// All variants are bare names.
pub fn is_simple_enum(ty: &AlgebraicType) -> bool {
    let is_unit = |ty: &AlgebraicType| ty.as_product().is_some_and(|p| p.elements.is_empty());
    ty.as_sum().is_some_and(|sum| {
        !sum.variants.is_empty() && sum.variants.iter().all(|v| is_unit(&v.algebraic_type))
    })
}

/// A type as PostgreSQL's catalogue has it.
pub struct CatalogueType {
    pub oid: u32,
    pub name: &'static str,
    /// As `format_type` gives it.
    pub shown: &'static str,
    pub category: &'static str,
    /// Bytes of a value, or -1 where they differ.
    pub size: i16,
    /// Of an array.
    pub element: Option<u32>,
}

impl CatalogueType {
    /// The array of it, or 0.
    pub fn array(&self) -> u32 {
        match array_oid(self.oid) {
            oid::ANYARRAY => 0,
            array => array,
        }
    }
}

const fn ty(
    oid: u32,
    name: &'static str,
    shown: &'static str,
    category: &'static str,
    size: i16,
) -> CatalogueType {
    let element = None;
    CatalogueType {
        oid,
        name,
        shown,
        category,
        size,
        element,
    }
}

const fn array(oid: u32, name: &'static str, shown: &'static str, element: u32) -> CatalogueType {
    CatalogueType {
        element: Some(element),
        ..ty(oid, name, shown, "A", -1)
    }
}

/// The types of all columns, with what drivers ask about besides.
pub const TYPES: &[CatalogueType] = &[
    ty(oid::BOOL, "bool", "boolean", "B", 1),
    ty(oid::BYTEA, "bytea", "bytea", "U", -1),
    ty(oid::NAME, "name", "name", "S", 64),
    ty(oid::INT8, "int8", "bigint", "N", 8),
    ty(oid::INT2, "int2", "smallint", "N", 2),
    ty(oid::INT4, "int4", "integer", "N", 4),
    ty(oid::TEXT, "text", "text", "S", -1),
    ty(oid::OID, "oid", "oid", "N", 4),
    ty(oid::JSON, "json", "json", "U", -1),
    ty(oid::FLOAT4, "float4", "real", "N", 4),
    ty(oid::FLOAT8, "float8", "double precision", "N", 8),
    ty(oid::UNKNOWN, "unknown", "text", "X", -1),
    array(oid::BOOL_ARRAY, "_bool", "boolean[]", oid::BOOL),
    array(oid::INT2_ARRAY, "_int2", "smallint[]", oid::INT2),
    array(oid::INT4_ARRAY, "_int4", "integer[]", oid::INT4),
    array(
        oid::VARCHAR_ARRAY,
        "_varchar",
        "character varying[]",
        oid::VARCHAR,
    ),
    array(oid::INT8_ARRAY, "_int8", "bigint[]", oid::INT8),
    ty(oid::BPCHAR, "bpchar", "text", "S", -1),
    ty(oid::VARCHAR, "varchar", "character varying", "S", -1),
    ty(
        oid::TIMESTAMP,
        "timestamp",
        "timestamp without time zone",
        "D",
        8,
    ),
    ty(
        oid::TIMESTAMPTZ,
        "timestamptz",
        "timestamp with time zone",
        "D",
        8,
    ),
    ty(oid::INTERVAL, "interval", "interval", "T", 16),
    array(oid::NUMERIC_ARRAY, "_numeric", "numeric[]", oid::NUMERIC),
    ty(oid::NUMERIC, "numeric", "numeric", "N", -1),
    ty(oid::ANYARRAY, "anyarray", "anyarray", "P", -1),
    ty(oid::UUID, "uuid", "uuid", "U", 16),
    ty(oid::ANYENUM, "anyenum", "anyenum", "P", 4),
    ty(oid::JSONB, "jsonb", "text", "U", -1),
];

fn of_oid(oid: u32) -> Option<&'static CatalogueType> {
    TYPES.iter().find(|ty| ty.oid == oid)
}

/// Bytes of a value of the type, or -1 where they differ.
pub fn size_of_oid(oid: u32) -> i16 {
    of_oid(oid).map_or(-1, |ty| ty.size)
}

/// What PostgreSQL calls the type, as `format_type` gives it.
pub fn name_of_oid(oid: u32) -> &'static str {
    of_oid(oid).map_or("text", |ty| ty.shown)
}

/// The type of a name, as the catalogue has it or as it is shown.
pub fn oid_of_name(name: &str) -> Option<u32> {
    let is_named = |ty: &&CatalogueType| ty.name == name || ty.shown == name;
    TYPES.iter().find(is_named).map(|ty| ty.oid)
}
