//! Values of run-time types: encode, decode, check.

use super::decode::{Decode, PREALLOCATED_ELEMENTS_MAX};
use super::encode::{encode_len, Encode};
use super::reader::{DecodeError, Reader};
use crate::algebraic_type::{AlgebraicType, ProductType, SumType, SumTypeVariant};
use crate::algebraic_value::{with_integer_value, AlgebraicValue};
use crate::integer::{with_integer, IntegerType};
use crate::typespace::Typespace;

/// Appends the encoding of a value. A value carries all its encoding needs, so no type is taken.
pub fn encode_value(value: &AlgebraicValue, out: &mut Vec<u8>) {
    use AlgebraicValue::*;
    match value {
        Sum { tag, value } => {
            out.push(*tag);
            encode_value(value, out);
        }
        Product(elements) => elements.iter().for_each(|e| encode_value(e, out)),
        Array(elements) => {
            encode_len(elements.len(), out);
            elements.iter().for_each(|e| encode_value(e, out));
        }
        Bytes(v) => v.encode(out),
        String(v) => v.encode(out),
        Bool(v) => v.encode(out),
        F32(v) => v.encode(out),
        F64(v) => v.encode(out),
        integer => with_integer_value!(integer, v => v.encode(out), else {}),
    }
}

impl Encode for AlgebraicValue {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_value(self, out);
    }
}

/// Reads the tag of a sum, and finds its variant.
#[inline]
pub(crate) fn read_variant<'t>(
    sum: &'t SumType,
    r: &mut Reader<'_>,
) -> Result<(u8, &'t SumTypeVariant), DecodeError> {
    let tag = r.read_u8()?;
    match sum.variants.get(usize::from(tag)) {
        Some(variant) => Ok((tag, variant)),
        None => Err(DecodeError::unknown_tag(tag)),
    }
}

/// Reads a value of type `ty`, following refs in `typespace`.
pub fn decode_value(
    typespace: &Typespace,
    ty: &AlgebraicType,
    r: &mut Reader<'_>,
) -> Result<AlgebraicValue, DecodeError> {
    use AlgebraicType as T;
    use AlgebraicValue as V;
    Ok(match follow(typespace, ty)? {
        T::Ref(_) => unreachable!("follow() ends at another constructor"),
        T::Sum(sum) => {
            let (tag, variant) = read_variant(sum, r)?;
            let value = r.nested(|r| decode_value(typespace, &variant.algebraic_type, r))?;
            V::Sum {
                tag,
                value: Box::new(value),
            }
        }
        T::Product(product) => V::Product(decode_product(typespace, product, r)?),
        T::Array(element) => match follow(typespace, element)? {
            T::Integer(IntegerType::U8) => V::Bytes(r.read_bytes()?.to_vec()),
            element => {
                let count = r.read_u32()? as usize;
                let mut elements = Vec::with_capacity(
                    count
                        .min(PREALLOCATED_ELEMENTS_MAX)
                        .min(r.remaining().len()),
                );
                r.nested(|r| {
                    for _ in 0..count {
                        elements.push(decode_value(typespace, element, r)?);
                    }
                    Ok(())
                })?;
                V::Array(elements)
            }
        },
        T::String => V::String(Decode::decode(r)?),
        T::Bool => V::Bool(r.read_bool()?),
        T::Integer(integer) => decode_integer(*integer, r)?,
        T::F32 => V::F32(r.read_f32()?),
        T::F64 => V::F64(r.read_f64()?),
    })
}

/// Reads a value of an integer type.
#[inline]
pub(crate) fn decode_integer(
    integer: IntegerType,
    r: &mut Reader<'_>,
) -> Result<AlgebraicValue, DecodeError> {
    with_integer!(integer, N => N::decode(r).map(AlgebraicValue::from))
}

/// Reads the elements of a product: a row or an argument list.
pub fn decode_product(
    typespace: &Typespace,
    product: &ProductType,
    r: &mut Reader<'_>,
) -> Result<Vec<AlgebraicValue>, DecodeError> {
    if product.elements.is_empty() {
        r.count_empty_value()?;
        return Ok(Vec::new());
    }
    r.nested(|r| {
        product
            .elements
            .iter()
            .map(|e| decode_value(typespace, &e.algebraic_type, r))
            .collect()
    })
}

/// Checks one value of type `ty` and moves past it without building anything. Accepts exactly what
/// [`decode_value`] accepts.
pub fn validate(
    typespace: &Typespace,
    ty: &AlgebraicType,
    r: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    use AlgebraicType as T;
    match follow(typespace, ty)? {
        T::Ref(_) => unreachable!("follow() ends at another constructor"),
        T::Sum(sum) => {
            let (_, variant) = read_variant(sum, r)?;
            r.nested(|r| validate(typespace, &variant.algebraic_type, r))
        }
        T::Product(product) => validate_product(typespace, product, r),
        T::Array(element) => match follow(typespace, element)? {
            T::Integer(IntegerType::U8) => r.read_bytes().map(drop),
            element => {
                let count = r.read_u32()?;
                r.nested(|r| {
                    for _ in 0..count {
                        validate(typespace, element, r)?;
                    }
                    Ok(())
                })
            }
        },
        T::String => r.read_str().map(drop),
        T::Bool => r.read_bool().map(drop),
        T::Integer(integer) => r.read_named(integer.rust_name(), integer.bytes()).map(drop),
        T::F32 => r.read_f32().map(drop),
        T::F64 => r.read_f64().map(drop),
    }
}

/// [`validate`] for the elements of a product: a row or an argument list.
pub fn validate_product(
    typespace: &Typespace,
    product: &ProductType,
    r: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    if product.elements.is_empty() {
        return r.count_empty_value();
    }
    r.nested(|r| {
        product
            .elements
            .iter()
            .try_for_each(|e| validate(typespace, &e.algebraic_type, r))
    })
}

#[inline]
fn follow<'a>(
    typespace: &'a Typespace,
    ty: &'a AlgebraicType,
) -> Result<&'a AlgebraicType, DecodeError> {
    match ty {
        AlgebraicType::Ref(_) => typespace
            .follow(ty)
            .map_err(|e| DecodeError::Other(e.to_string().into())),
        other => Ok(other),
    }
}

/// Size in bytes of every value of a ref-free type, if they all have the same size: no string or
/// array anywhere, and all variants of every sum equally large (01 §1.5.2).
pub fn fixed_size(ty: &AlgebraicType) -> Option<usize> {
    use AlgebraicType::*;
    match ty {
        Ref(_) | Array(_) | String => None,
        Sum(sum) => {
            let mut sizes = sum.variants.iter().map(|v| fixed_size(&v.algebraic_type));
            let Some(first) = sizes.next() else {
                return Some(1);
            };
            let first = first?;
            sizes.all(|size| size == Some(first)).then_some(1 + first)
        }
        Product(product) => fixed_size_product(product),
        Bool => Some(1),
        Integer(integer) => Some(integer.bytes()),
        F32 => Some(4),
        F64 => Some(8),
    }
}

/// [`fixed_size`] of a row type.
pub fn fixed_size_product(product: &ProductType) -> Option<usize> {
    let elements = product.elements.iter();
    elements.map(|e| fixed_size(&e.algebraic_type)).sum()
}

/// Size in bytes of the smallest value of a ref-free type; a ref counts as 0.
pub fn min_size(ty: &AlgebraicType) -> usize {
    use AlgebraicType::*;
    match ty {
        Ref(_) => 0,
        Array(_) | String => 4,
        Sum(_) => {
            let sizes = ty.parts().map(|(_, part)| min_size(part));
            1 + sizes.min().unwrap_or(0)
        }
        Product(_) => ty.parts().map(|(_, part)| min_size(part)).sum(),
        leaf => fixed_size(leaf).unwrap_or(0),
    }
}
