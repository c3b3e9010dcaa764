//! Rows of answers as values and texts.

use lightcone_types::bsatn::decode_value;
use lightcone_types::{AlgebraicType, AlgebraicValue as V, Reader, Typespace};

pub fn decode(row: &[u8], types: &[AlgebraicType]) -> Vec<V> {
    let mut reader = Reader::new(row);
    let value = |ty| decode_value(&Typespace::default(), ty, &mut reader).expect("a value");
    types.iter().map(value).collect()
}

/// A value as SQLite would write it, with texts written by `text`.
pub fn shown(value: V, text: fn(&str) -> String) -> String {
    match value {
        V::U32(n) => n.to_string(),
        V::U64(n) => n.to_string(),
        V::I64(n) => n.to_string(),
        V::U128(n) => n.to_string(),
        V::I128(n) => n.to_string(),
        V::F64(f) => format!("{f:?}"),
        V::Bool(b) => u8::from(b).to_string(),
        V::String(string) => text(&string),
        V::Sum { tag: 0, value } => shown(*value, text),
        V::Sum { .. } => "NULL".to_owned(),
        V::Product(_) => "(product)".to_owned(),
        other => panic!("{other:?}"),
    }
}
