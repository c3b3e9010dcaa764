//! Which type of PostgreSQL a type is shown as (08 §19), and the object ids of those types.

use lightcone_types::{AlgebraicType, IntegerType, ShownAs};

/// Types of PostgreSQL with their object ids: what they are called, what `format_type` calls them, their category, the bytes of a value
/// or -1 where they differ, and the element of an array.
macro_rules! types {
    ($($id:ident $oid:literal $name:literal $shown:literal $category:literal $size:literal $([$element:ident])?;)*) => {
        /// Object ids of types, as PostgreSQL has given them out.
        pub mod oid {
            $(pub const $id: u32 = $oid;)*
        }

        /// The types of all columns, with what drivers ask about besides.
        pub const TYPES: &[CatalogueType] = &[$(CatalogueType {
            oid: $oid,
            name: $name,
            shown: $shown,
            category: $category,
            size: $size,
            element: {
                let elements: &[u32] = &[$(oid::$element)?];
                match elements {
                    [element] => Some(*element),
                    _ => None,
                }
            },
        }),*];
    };
}

types! {
    BOOL 16 "bool" "boolean" "B" 1;
    BYTEA 17 "bytea" "bytea" "U" -1;
    NAME 19 "name" "name" "S" 64;
    INT8 20 "int8" "bigint" "N" 8;
    INT2 21 "int2" "smallint" "N" 2;
    INT4 23 "int4" "integer" "N" 4;
    TEXT 25 "text" "text" "S" -1;
    OID 26 "oid" "oid" "N" 4;
    JSON 114 "json" "json" "U" -1;
    FLOAT4 700 "float4" "real" "N" 4;
    FLOAT8 701 "float8" "double precision" "N" 8;
    UNKNOWN 705 "unknown" "text" "X" -1;
    BOOL_ARRAY 1000 "_bool" "boolean[]" "A" -1 [BOOL];
    INT2_ARRAY 1005 "_int2" "smallint[]" "A" -1 [INT2];
    INT4_ARRAY 1007 "_int4" "integer[]" "A" -1 [INT4];
    VARCHAR_ARRAY 1015 "_varchar" "character varying[]" "A" -1 [VARCHAR];
    INT8_ARRAY 1016 "_int8" "bigint[]" "A" -1 [INT8];
    BPCHAR 1042 "bpchar" "text" "S" -1;
    VARCHAR 1043 "varchar" "character varying" "S" -1;
    TIMESTAMP 1114 "timestamp" "timestamp without time zone" "D" 8;
    TIMESTAMPTZ 1184 "timestamptz" "timestamp with time zone" "D" 8;
    INTERVAL 1186 "interval" "interval" "T" 16;
    NUMERIC_ARRAY 1231 "_numeric" "numeric[]" "A" -1 [NUMERIC];
    NUMERIC 1700 "numeric" "numeric" "N" -1;
    ANYARRAY 2277 "anyarray" "anyarray" "P" -1;
    UUID 2950 "uuid" "uuid" "U" 16;
    ANYENUM 3500 "anyenum" "anyenum" "P" 4;
    JSONB 3802 "jsonb" "text" "U" -1;
}

/// The type of a result's column.
pub fn oid_of(ty: &AlgebraicType) -> u32 {
    use AlgebraicType as T;
    match ty {
        T::String => oid::VARCHAR,
        T::Bool => oid::BOOL,
        T::Integer(integer) => integer_oid(*integer),
        T::F32 => oid::FLOAT4,
        T::F64 => oid::FLOAT8,
        _ if ty.is_bytes() => oid::BYTEA,
        T::Array(element) => array_oid(oid_of(element)),
        T::Sum(_) if ty.is_simple_enum() => oid::ANYENUM,
        _ => match ty.special_product().map(|special| special.facts().shown_as) {
            Some(ShownAs::Bytes) => oid::BYTEA,
            Some(ShownAs::Timestamp) => oid::TIMESTAMP,
            Some(ShownAs::Interval) => oid::INTERVAL,
            Some(ShownAs::Uuid) => oid::UUID,
            None => oid::JSON,
        },
    }
}

/// The narrowest type that holds all values. Those of PostgreSQL have a sign.
pub(super) fn integer_oid(integer: IntegerType) -> u32 {
    match integer.bytes() + usize::from(!integer.is_signed()) {
        ..=2 => oid::INT2,
        3..=4 => oid::INT4,
        5..=8 => oid::INT8,
        _ => oid::NUMERIC,
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
    match *ty {
        AlgebraicType::U64 => oid::INT8,
        AlgebraicType::String => oid::TEXT,
        _ => oid_of(ty),
    }
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
