//! Tables, values and naive models for the tests.
#![allow(dead_code)] // every test file uses its own part

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_schema::{
    ColumnSchema, IndexAlgorithm, IndexSchema, TableAccess, TableKind, TableSchema,
};
use lightcone_types::bsatn::encode_value;
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ColId, IndexId, TableId, I256, U256,
};
use proptest::prelude::*;

/// Cases per property; few, so that the tests stay fast. `PROPTEST_CASES` overrides it.
pub fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A table schema with these columns and indexes.
pub fn schema(columns: &[T], indexes: &[(IndexAlgorithm, bool)]) -> Arc<TableSchema> {
    Arc::new(TableSchema {
        id: TableId(4096),
        name: "t".into(),
        accessor: None,
        columns: columns
            .iter()
            .enumerate()
            .map(|(n, ty)| ColumnSchema {
                name: format!("c{n}"),
                accessor: None,
                ty: ty.clone(),
            })
            .collect(),
        primary_key: None,
        indexes: indexes
            .iter()
            .enumerate()
            .map(|(n, (algorithm, unique))| IndexSchema {
                id: IndexId(4096 + n as u32),
                name: format!("i{n}"),
                accessor: None,
                algorithm: algorithm.clone(),
                unique: *unique,
            })
            .collect(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Public,
        kind: TableKind::User,
        is_event: false,
        view: None,
    })
}

pub fn encode(value: &V) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_value(value, &mut bytes);
    bytes
}

pub fn row(values: &[V]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values
        .iter()
        .for_each(|value| encode_value(value, &mut bytes));
    bytes
}

pub fn btree(columns: &[u16]) -> IndexAlgorithm {
    IndexAlgorithm::BTree(columns.iter().map(|&c| ColId(c)).collect())
}

pub fn hash(columns: &[u16]) -> IndexAlgorithm {
    IndexAlgorithm::Hash(columns.iter().map(|&c| ColId(c)).collect())
}

pub fn simple_enum() -> T {
    T::sum([("a", T::unit()), ("b", T::unit()), ("c", T::unit())])
}

/// Column types of every key class.
pub fn column_type() -> impl Strategy<Value = T> {
    prop::sample::select(vec![
        T::Bool,
        T::U8,
        T::U16,
        T::U32,
        T::U64,
        T::U128,
        T::U256,
        T::I8,
        T::I16,
        T::I32,
        T::I64,
        T::I128,
        T::I256,
        T::F32,
        T::F64,
        T::String,
        T::bytes(),
        T::Array(Box::new(T::I16)),
        T::Array(Box::new(T::String)),
        T::unit(),
        T::timestamp(),
        T::identity(),
        simple_enum(),
        T::option(T::U32),
        T::option(T::String),
        T::sum([("x", T::U32), ("y", T::F32)]),
        T::product([("p", T::U16), ("q", T::String)]),
        T::product([("p", T::I8), ("q", T::F64)]),
    ])
}

/// Numbers around the borders of bytes, chunks and signs, few enough to collide.
fn number() -> impl Strategy<Value = i128> {
    prop_oneof![
        6 => 0..6_i128,
        1 => Just(-1),
        1 => Just(-2),
        1 => Just(0x7f),
        2 => prop::sample::select(vec![0xff_i128, 0x100, 0x1ff, 1023, 1024, 2047, 2048, 0xffff, 0x1_0000, 0x7fff_ffff]),
        1 => Just(i128::from(u64::MAX)),
        1 => Just(i128::MIN),
        1 => Just(i128::MAX),
        1 => any::<i128>(),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.5,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        f64::MAX,
    ])
}

fn float32() -> impl Strategy<Value = f32> {
    prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7f80_0001),
        f32::from_bits(1),
        f32::from_bits(0x8000_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
    ])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["", "a", "b", "ab", "a\0", "a\0\0", "\0", "a\0b", "\u{1}", "aa", "ü", "\u{ffff}", "𐀀"])
            .prop_map(str::to_owned),
        1 => "[ab\0]{0,6}",
    ]
}

fn byte_string() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..4)
}

/// Values of a type; small pools, so that equal ones are frequent.
pub fn value(ty: &T) -> BoxedStrategy<V> {
    match *ty {
        T::Bool => any::<bool>().prop_map(V::Bool).boxed(),
        T::U8 => number().prop_map(|n| V::U8(n as u8)).boxed(),
        T::U16 => number().prop_map(|n| V::U16(n as u16)).boxed(),
        T::U32 => number().prop_map(|n| V::U32(n as u32)).boxed(),
        T::U64 => number().prop_map(|n| V::U64(n as u64)).boxed(),
        T::U128 => number().prop_map(|n| V::U128(n as u128)).boxed(),
        T::U256 => (number(), number())
            .prop_map(|(a, b)| V::U256(U256::from_words(a as u128 & 1, b as u128)))
            .boxed(),
        T::I8 => number().prop_map(|n| V::I8(n as i8)).boxed(),
        T::I16 => number().prop_map(|n| V::I16(n as i16)).boxed(),
        T::I32 => number().prop_map(|n| V::I32(n as i32)).boxed(),
        T::I64 => number().prop_map(|n| V::I64(n as i64)).boxed(),
        T::I128 => number().prop_map(V::I128).boxed(),
        T::I256 => number().prop_map(|n| V::I256(I256::from(n))).boxed(),
        T::F32 => float32().prop_map(V::F32).boxed(),
        T::F64 => float().prop_map(V::F64).boxed(),
        T::String => text().prop_map(|s| V::String(s.into())).boxed(),
        T::Array(ref element) if **element == T::U8 => byte_string().prop_map(V::Bytes).boxed(),
        T::Array(ref element) => prop::collection::vec(value(element), 0..3)
            .prop_map(V::Array)
            .boxed(),
        T::Product(ref product) => product
            .elements
            .iter()
            .map(|element| value(&element.algebraic_type))
            .collect::<Vec<_>>()
            .prop_map(V::Product)
            .boxed(),
        T::Sum(ref sum) => {
            let payloads: Vec<_> = sum
                .variants
                .iter()
                .enumerate()
                .map(|(tag, variant)| {
                    value(&variant.algebraic_type).prop_map(move |v| V::sum(tag as u8, v))
                })
                .collect();
            prop::strategy::Union::new(payloads).boxed()
        }
        T::Ref(_) => unreachable!("test types hold no references"),
    }
}

pub fn values(types: &[T]) -> BoxedStrategy<Vec<V>> {
    types.iter().map(value).collect::<Vec<_>>().boxed()
}

fn has_float(ty: &T) -> bool {
    match ty {
        T::F32 | T::F64 => true,
        T::Product(p) => p.elements.iter().any(|e| has_float(&e.algebraic_type)),
        T::Sum(s) => s.variants.iter().any(|v| has_float(&v.algebraic_type)),
        T::Array(element) => has_float(element),
        _ => false,
    }
}

fn has_list(ty: &T) -> bool {
    match ty {
        T::String | T::Array(_) => true,
        T::Product(p) => p.elements.iter().any(|e| has_list(&e.algebraic_type)),
        T::Sum(s) => s.variants.iter().any(|v| has_list(&v.algebraic_type)),
        _ => false,
    }
}

/// What an index is, for the naive model.
#[derive(Debug, Clone)]
pub struct ModelIndex {
    pub algorithm: IndexAlgorithm,
    pub unique: bool,
    /// 01 §1.6.2: composite hash keys of bounded size with a float in them are compared bit by bit.
    pub bitwise: bool,
}

impl ModelIndex {
    pub fn new(algorithm: &IndexAlgorithm, unique: bool, columns: &[T]) -> ModelIndex {
        let types: Vec<&T> = algorithm
            .columns()
            .iter()
            .map(|c| &columns[usize::from(c.0)])
            .collect();
        let composite =
            types.len() > 1 || matches!(types[..], [T::Product(p)] if p.elements.len() > 1);
        let bitwise = matches!(algorithm, IndexAlgorithm::Hash(_))
            && composite
            && types.iter().any(|ty| has_float(ty))
            && !types.iter().any(|ty| has_list(ty));
        ModelIndex {
            algorithm: algorithm.clone(),
            unique,
            bitwise,
        }
    }

    pub fn key(&self, row: &[V]) -> Vec<V> {
        self.algorithm
            .columns()
            .iter()
            .map(|c| row[usize::from(c.0)].clone())
            .collect()
    }

    pub fn same(&self, a: &[V], b: &[V]) -> bool {
        match self.bitwise {
            true => a == b,
            false => a
                .iter()
                .zip(b)
                .all(|(x, y)| x.value_cmp(y) == Ordering::Equal),
        }
    }
}

/// A bound of a range scan.
#[derive(Debug, Clone)]
pub enum Bound {
    Included(V),
    Excluded(V),
    Unbounded,
}

impl Bound {
    pub fn encode(&self) -> Vec<u8> {
        let (tag, value) = match self {
            Bound::Included(value) => (0, Some(value)),
            Bound::Excluded(value) => (1, Some(value)),
            Bound::Unbounded => (2, None),
        };
        let mut bytes = vec![tag];
        value
            .into_iter()
            .for_each(|value| encode_value(value, &mut bytes));
        bytes
    }

    pub fn admits_from_below(&self, value: &V) -> bool {
        match self {
            Bound::Included(start) => value.value_cmp(start) != Ordering::Less,
            Bound::Excluded(start) => value.value_cmp(start) == Ordering::Greater,
            Bound::Unbounded => true,
        }
    }

    pub fn admits_from_above(&self, value: &V) -> bool {
        match self {
            Bound::Included(end) => value.value_cmp(end) != Ordering::Greater,
            Bound::Excluded(end) => value.value_cmp(end) == Ordering::Less,
            Bound::Unbounded => true,
        }
    }
}

pub fn bound(ty: &T) -> BoxedStrategy<Bound> {
    prop_oneof![
        3 => value(ty).prop_map(Bound::Included),
        3 => value(ty).prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
    .boxed()
}
