//! How much memory writing a value takes at most, read from its BSATN before anything is made of it.

use std::fmt::Write as _;

use lightcone_types::bsatn::{fixed_size, min_size};
use lightcone_types::{AlgebraicType, AlgebraicValue, DecodeError, Reader};

/// What grows by doubling takes this much of its content, with what it has grown from.
const GROWN: usize = 3;
/// No number but a float, and no special product, has a longer text.
const SCALAR_TEXT_BYTES_MAX: usize = 96;
/// Signs around a value: quotes, commas, braces, each escaped.
const AROUND_BYTES: usize = 12;
/// What a character becomes at most that is written with an escape in JSON in an array.
const ESCAPE_BYTES: usize = 8;

/// The most memory that writing a value takes, with what is written.
pub(super) fn written_bytes_max(ty: &AlgebraicType, bsatn: &[u8]) -> usize {
    // A text and bytes are copied when they are decoded, and then written as they are, or as hex.
    match ty {
        AlgebraicType::String => return (1 + GROWN) * bsatn.len(),
        ty if ty.is_bytes() => return (1 + 2 * GROWN) * bsatn.len(),
        _ => {}
    }
    let mut size = Size::default();
    measure(ty, &mut Reader::new(bsatn), &mut size).expect("stored rows decode");
    // The text is made first and then written, or the value is written in binary, which is shorter.
    size.value + 2 * GROWN * size.text
}

#[derive(Default)]
struct Size {
    /// Decoded.
    value: usize,
    /// Written.
    text: usize,
}

/// Counts what is written.
struct Counted<'s>(&'s mut usize);

impl std::fmt::Write for Counted<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        *self.0 += text.len();
        Ok(())
    }
}

fn measure(
    ty: &AlgebraicType,
    reader: &mut Reader<'_>,
    size: &mut Size,
) -> Result<(), DecodeError> {
    use AlgebraicType as T;
    size.value += GROWN * std::mem::size_of::<AlgebraicValue>();
    size.text += AROUND_BYTES;
    match ty {
        T::String => {
            let text = reader.read_str()?;
            size.value += text.len();
            size.text += escaped(text);
        }
        T::F32 => {
            let number = reader.read_f32()?;
            write!(Counted(&mut size.text), "{number}").expect("counting cannot fail");
        }
        T::F64 => {
            let number = reader.read_f64()?;
            write!(Counted(&mut size.text), "{number}").expect("counting cannot fail");
        }
        T::Array(_) if ty.is_bytes() => {
            let bytes = reader.read_bytes()?;
            size.value += bytes.len();
            size.text += 2 * bytes.len();
        }
        T::Array(element) => {
            for _ in 0..reader.read_count(min_size(element))? {
                measure(element, reader, size)?;
            }
        }
        T::Sum(sum) => {
            let tag = reader.read_u8()?;
            let variant = sum.variants.get(usize::from(tag));
            let Some(variant) = variant else {
                return Err(DecodeError::invalid_tag(tag, ""));
            };
            size.text += key(variant.name());
            if !ty.is_simple_enum() {
                // A special product keeps its field here.
                size.text += SCALAR_TEXT_BYTES_MAX;
            }
            measure(&variant.algebraic_type, reader, size)?;
        }
        T::Product(product) if ty.special_product().is_none() => {
            for element in &product.elements {
                size.text += key(element.name());
                measure(&element.algebraic_type, reader, size)?;
            }
        }
        ty => {
            reader.read_slice(fixed_size(ty).unwrap_or_default())?;
            size.text += SCALAR_TEXT_BYTES_MAX;
        }
    }
    Ok(())
}

fn key(name: Option<&str>) -> usize {
    AROUND_BYTES + name.map_or(SCALAR_TEXT_BYTES_MAX, escaped)
}

fn escaped(text: &str) -> usize {
    let is_escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
    text.len() + ESCAPE_BYTES * text.bytes().filter(is_escaped).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_query::postgresql::{write, Format};
    use lightcone_types::bsatn::encode_value;
    use proptest::prelude::*;
    use AlgebraicType as T;
    use AlgebraicValue as V;

    fn bound_and_written(ty: &T, value: &V) -> (usize, usize) {
        let mut bsatn = Vec::new();
        encode_value(value, &mut bsatn);
        let mut out = Vec::new();
        let formats = [Format::Text, Format::Binary];
        let written = formats.map(|format| {
            out.clear();
            write(ty, value, format, &mut out);
            out.len()
        });
        (written_bytes_max(ty, &bsatn), written[0].max(written[1]))
    }

    /// A type, and a value of it.
    fn typed() -> impl Strategy<Value = (T, V)> {
        let leaf = prop_oneof![
            "[a\"\\\\\n\u{1}é]{0,40}".prop_map(|text| (T::String, V::String(text.into()))),
            any::<f64>().prop_map(|number| (T::F64, V::F64(number))),
            any::<f32>().prop_map(|number| (T::F32, V::F32(number))),
            any::<i128>().prop_map(|number| (T::I128, V::I128(number))),
            any::<bool>().prop_map(|is| (T::Bool, V::Bool(is))),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| (T::bytes(), V::Bytes(b))),
            any::<i64>().prop_map(|us| (T::timestamp(), V::Product(vec![V::I64(us)]))),
            any::<i64>().prop_map(|us| (T::time_duration(), V::Product(vec![V::I64(us)]))),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                (inner.clone(), 0_usize..5)
                    .prop_map(|((ty, value), count)| (T::array(ty), V::Array(vec![value; count]))),
                ("[a\"]{0,5}", inner.clone()).prop_map(|(name, (ty, value))| {
                    let product = T::product([(name.as_str(), ty.clone()), ("n", ty)]);
                    (product, V::Product(vec![value.clone(), value]))
                }),
                inner.prop_map(|(ty, value)| (T::option(ty), V::some(value))),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_takes_more_than_its_bound((ty, value) in typed()) {
            let (bound, written) = bound_and_written(&ty, &value);
            // An array of bytes by its elements is bytes, and is written as such.
            prop_assert!(written <= bound, "{ty:?} {value:?}: {written} > {bound}");
        }
    }

    #[test]
    fn numbers_that_are_long_as_text_are_counted_as_they_are() {
        let ty = T::array(T::F64);
        let of = |number| V::Array(vec![V::F64(number); 1_000]);
        let (long, written) = bound_and_written(&ty, &of(f64::MIN_POSITIVE));
        assert!(written > 300 * 1_000 && long >= written);
        let (short, _) = bound_and_written(&ty, &of(0.5));
        assert!(short < long / 4);
    }
}
