//! Rows as SATS-JSON in the untyped form (01 §1.7): an array of arrays.

use std::cell::Cell;

use lightcone_types::bsatn::min_size;
use lightcone_types::json::bsatn_to_json_untyped;
use lightcone_types::{AlgebraicType, DecodeError, Reader, Typespace};

use super::rows::{ResultRow, RowEncoder};

/// Writes rows as SATS-JSON.
#[derive(Default)]
pub struct JsonRows {
    has_rows: bool,
    /// What the next row takes, if it was measured.
    measured: Cell<Option<usize>>,
}

impl RowEncoder for JsonRows {
    type Out = String;

    fn begin(&mut self, out: &mut String) {
        out.push('[');
    }

    fn row(&mut self, row: &ResultRow<'_>, out: &mut String) {
        if let Some(bytes) = self.measured.take() {
            // No more than was reserved for it.
            out.reserve_exact(bytes);
        }
        out.push_str(if self.has_rows { ",[" } else { "[" });
        self.has_rows = true;
        for (nth, (ty, value)) in row.columns().enumerate() {
            if nth > 0 {
                out.push(',');
            }
            write(ty, &mut Reader::new(value), out).expect("stored rows decode");
        }
        out.push(']');
    }

    fn end(&mut self, out: &mut String) {
        out.push(']');
    }

    fn bytes_max(&self, row: &ResultRow<'_>) -> usize {
        let mut scratch = String::new();
        let columns = row.columns().map(|(ty, value)| {
            let written = written_bytes(ty, &mut Reader::new(value), &mut scratch);
            // With the comma before it.
            1 + written.expect("stored rows decode")
        });
        let bytes = 3 + columns.sum::<usize>();
        self.measured.set(Some(bytes));
        bytes
    }
}

fn write(ty: &AlgebraicType, reader: &mut Reader<'_>, out: &mut String) -> Result<(), DecodeError> {
    bsatn_to_json_untyped(&Typespace::default(), ty, reader, out)
}

/// How many bytes [`write`] writes for a value.
fn written_bytes(
    ty: &AlgebraicType,
    reader: &mut Reader<'_>,
    scratch: &mut String,
) -> Result<usize, DecodeError> {
    use AlgebraicType as T;
    Ok(match ty {
        T::String => 2 + escaped_bytes(reader.read_str()?),
        T::Array(_) if ty.is_bytes() => 2 + 2 * reader.read_bytes()?.len(),
        T::Array(element) => {
            let count = reader.read_count(min_size(element))? as usize;
            let mut bytes = 2 + count.saturating_sub(1);
            for _ in 0..count {
                bytes += written_bytes(element, reader, scratch)?;
            }
            bytes
        }
        T::Sum(sum) => {
            let tag = reader.read_u8()?;
            let variant = sum.variants.get(usize::from(tag));
            let variant = variant.ok_or_else(|| DecodeError::invalid_tag(tag, ""))?;
            let digits = tag.checked_ilog10().unwrap_or(0) as usize + 1;
            3 + digits + written_bytes(&variant.algebraic_type, reader, scratch)?
        }
        T::Product(product) => {
            let mut bytes = 2 + product.elements.len().saturating_sub(1);
            for element in &product.elements {
                bytes += written_bytes(&element.algebraic_type, reader, scratch)?;
            }
            bytes
        }
        leaf => {
            scratch.clear();
            write(leaf, reader, scratch)?;
            scratch.len()
        }
    })
}

fn escaped_bytes(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(escape).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::bsatn::encode_value;
    use lightcone_types::AlgebraicValue;
    use proptest::prelude::*;
    use AlgebraicType as T;
    use AlgebraicValue as V;

    /// A type, and a value of it.
    fn typed() -> impl Strategy<Value = (T, V)> {
        let leaf = prop_oneof![
            "[a\"\\\\\n\r\t\u{1}\u{8}\u{c}\u{1f}é]{0,40}"
                .prop_map(|text| (T::String, V::String(text.into()))),
            any::<f64>().prop_map(|number| (T::F64, V::F64(number))),
            any::<f32>().prop_map(|number| (T::F32, V::F32(number))),
            any::<i128>().prop_map(|number| (T::I128, V::I128(number))),
            any::<i64>().prop_map(|number| (T::I64, V::I64(number))),
            any::<bool>().prop_map(|is| (T::Bool, V::Bool(is))),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| (T::bytes(), V::Bytes(b))),
            any::<i64>().prop_map(|us| (T::timestamp(), V::Product(vec![V::I64(us)]))),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                (inner.clone(), 0_usize..5)
                    .prop_map(|((ty, value), count)| (T::array(ty), V::Array(vec![value; count]))),
                inner.clone().prop_map(|(ty, value)| {
                    let product = T::product([("a", ty.clone()), ("n", ty)]);
                    (product, V::Product(vec![value.clone(), value]))
                }),
                Just((T::unit(), V::Product(Vec::new()))),
                inner.prop_map(|(ty, value)| (T::option(ty), V::some(value))),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_as_long_as_it_was_measured((ty, value) in typed()) {
            let mut bsatn = Vec::new();
            encode_value(&value, &mut bsatn);
            let mut written = String::new();
            write(&ty, &mut Reader::new(&bsatn), &mut written).expect("it is written");
            let measured = written_bytes(&ty, &mut Reader::new(&bsatn), &mut String::new());
            prop_assert_eq!(measured.expect("it is measured"), written.len(), "{}", written);
        }
    }
}
