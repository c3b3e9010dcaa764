//! Shared by the test files; not every file uses everything.
#![allow(dead_code)]

use lightcone_types::bsatn::{decode_value, validate, Decode, Encode, Reader};
use lightcone_types::json::{
    description_from_node, description_to_json, parse, JsonError, META_ALGEBRAIC_TYPE, META_TYPES,
    META_TYPESPACE,
};
use lightcone_types::{
    AlgebraicType, AlgebraicValue, ProductType, ProductTypeElement, SumType, SumTypeVariant,
    TypeRef, Typespace, I256, U256,
};
use proptest::prelude::*;
use spacetimedb_sats as sats;
use spacetimedb_sats::de::DeserializeSeed;

/// Bytes of hex text; white space is layout.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let pair = |p: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(p).expect("ASCII"), 16).expect("hexadecimal")
    };
    digits.chunks(2).map(pair).collect()
}

fn from_json<T: Decode>(meta: TypeRef, text: &str) -> Result<T, JsonError> {
    description_from_node(&META_TYPES, &meta.into(), &parse(text)?)
}

fn to_json<T: Encode>(meta: TypeRef, description: &T) -> String {
    let mut out = String::new();
    description_to_json(&META_TYPES, &meta.into(), description, &mut out);
    out
}

pub fn type_from_json(text: &str) -> Result<AlgebraicType, JsonError> {
    from_json(META_ALGEBRAIC_TYPE, text)
}

pub fn type_to_json(ty: &AlgebraicType) -> String {
    to_json(META_ALGEBRAIC_TYPE, ty)
}

pub fn typespace_from_json(text: &str) -> Result<Typespace, JsonError> {
    from_json(META_TYPESPACE, text)
}

pub fn typespace_to_json(typespace: &Typespace) -> String {
    to_json(META_TYPESPACE, typespace)
}

pub fn decode(
    typespace: &Typespace,
    ty: &AlgebraicType,
    bytes: &[u8],
) -> Result<AlgebraicValue, String> {
    let mut r = Reader::new(bytes);
    let value = decode_value(typespace, ty, &mut r).map_err(|e| e.to_string());
    let mut checked = Reader::new(bytes);
    let valid = validate(typespace, ty, &mut checked).map_err(|e| e.to_string());
    assert_eq!(
        value.clone().map(drop),
        valid,
        "validate and decode_value agree"
    );
    assert_eq!(
        r.position(),
        checked.position(),
        "validate and decode_value stop alike"
    );
    if value.is_ok() {
        assert!(r.is_empty(), "{} bytes left", r.remaining().len());
    }
    value
}

/// The same type in the published crate, through its BSATN.
pub fn sats_type(ty: &AlgebraicType) -> sats::AlgebraicType {
    sats::bsatn::from_slice(&ty.to_vec()).expect("our type encoding is valid")
}

pub fn sats_typespace(typespace: &Typespace) -> sats::Typespace {
    sats::bsatn::from_slice(&typespace.to_vec()).expect("our typespace encoding is valid")
}

/// The published decoder's view of bytes.
pub fn sats_value(
    typespace: &Typespace,
    ty: &AlgebraicType,
    mut bytes: &[u8],
) -> Result<sats::AlgebraicValue, String> {
    let typespace = sats_typespace(typespace);
    let ty = sats_type(ty);
    sats::WithTypespace::new(&typespace, &ty)
        .deserialize(sats::bsatn::Deserializer::new(&mut bytes))
        .map_err(|e| e.to_string())
}

/// Any ref-free type, including the special ones and unnamed parts.
pub fn any_type() -> impl Strategy<Value = AlgebraicType> {
    use AlgebraicType as T;
    let leaf = prop_oneof![
        Just(T::String),
        Just(T::Bool),
        Just(T::I8),
        Just(T::U8),
        Just(T::I16),
        Just(T::U16),
        Just(T::I32),
        Just(T::U32),
        Just(T::I64),
        Just(T::U64),
        Just(T::I128),
        Just(T::U128),
        Just(T::I256),
        Just(T::U256),
        Just(T::F32),
        Just(T::F64),
        Just(T::bytes()),
        Just(T::unit()),
        Just(T::identity()),
        Just(T::connection_id()),
        Just(T::timestamp()),
        Just(T::time_duration()),
        Just(T::uuid()),
        Just(T::schedule_at()),
        Just(T::simple_enum(["Red", "Green", "Blue"])),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let named = proptest::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            inner.clone().prop_map(T::array),
            inner.clone().prop_map(T::option),
            (inner.clone(), inner.clone()).prop_map(|(t, e)| T::result(t, e)),
            named
                .clone()
                .prop_map(|types| T::product(with_names(types))),
            named.clone().prop_map(|types| T::sum(with_names(types))),
            named.clone().prop_map(|types| {
                let element = |algebraic_type| ProductTypeElement {
                    name: None,
                    algebraic_type,
                };
                T::Product(ProductType {
                    elements: types.into_iter().map(element).collect(),
                })
            }),
            named.prop_map(|types| {
                let variant = |algebraic_type| SumTypeVariant {
                    name: None,
                    algebraic_type,
                };
                T::Sum(SumType {
                    variants: types.into_iter().map(variant).collect(),
                })
            }),
        ]
    })
}

fn with_names(types: Vec<AlgebraicType>) -> Vec<(String, AlgebraicType)> {
    types
        .into_iter()
        .enumerate()
        .map(|(i, t)| (format!("part{i}"), t))
        .collect()
}

/// Any value of a ref-free type.
pub fn any_value(ty: &AlgebraicType) -> BoxedStrategy<AlgebraicValue> {
    use AlgebraicType as T;
    use AlgebraicValue as V;
    match *ty {
        T::Ref(_) => unreachable!("types here are free of refs"),
        T::Sum(ref sum) => {
            let variants: Vec<_> = sum
                .variants
                .iter()
                .enumerate()
                .map(|(tag, v)| {
                    any_value(&v.algebraic_type)
                        .prop_map(move |x| V::sum(tag as u8, x))
                        .boxed()
                })
                .collect();
            proptest::strategy::Union::new(variants).boxed()
        }
        T::Product(ref product) => {
            let elements: Vec<_> = product
                .elements
                .iter()
                .map(|e| any_value(&e.algebraic_type))
                .collect();
            elements.prop_map(V::Product).boxed()
        }
        T::Array(ref element) if **element == T::U8 => any::<Vec<u8>>().prop_map(V::Bytes).boxed(),
        T::Array(ref element) => proptest::collection::vec(any_value(element), 0..4)
            .prop_map(V::Array)
            .boxed(),
        T::String => any::<String>().prop_map(V::from).boxed(),
        T::Bool => any::<bool>().prop_map(V::Bool).boxed(),
        T::I8 => any::<i8>().prop_map(V::I8).boxed(),
        T::U8 => any::<u8>().prop_map(V::U8).boxed(),
        T::I16 => any::<i16>().prop_map(V::I16).boxed(),
        T::U16 => any::<u16>().prop_map(V::U16).boxed(),
        T::I32 => any::<i32>().prop_map(V::I32).boxed(),
        T::U32 => any::<u32>().prop_map(V::U32).boxed(),
        T::I64 => any::<i64>().prop_map(V::I64).boxed(),
        T::U64 => any::<u64>().prop_map(V::U64).boxed(),
        T::I128 => any::<i128>().prop_map(V::I128).boxed(),
        T::U128 => any::<u128>().prop_map(V::U128).boxed(),
        T::I256 => any::<[u8; 32]>()
            .prop_map(|b| V::I256(I256::from_le_bytes(b)))
            .boxed(),
        T::U256 => any::<[u8; 32]>()
            .prop_map(|b| V::U256(U256::from_le_bytes(b)))
            .boxed(),
        // By bits: all NaNs, subnormals and infinities.
        T::F32 => any::<u32>().prop_map(|b| V::F32(f32::from_bits(b))).boxed(),
        T::F64 => any::<u64>().prop_map(|b| V::F64(f64::from_bits(b))).boxed(),
    }
}

pub fn any_typed_value() -> impl Strategy<Value = (AlgebraicType, AlgebraicValue)> {
    any_type().prop_flat_map(|ty| {
        let value = any_value(&ty);
        (Just(ty), value)
    })
}

/// Decodes a type and checks that nothing is left.
pub fn decode_type(bytes: &[u8]) -> AlgebraicType {
    let mut r = Reader::new(bytes);
    let ty = AlgebraicType::decode(&mut r).expect("valid type");
    assert!(r.is_empty());
    ty
}
