//! Order-preserving index keys: the byte order of keys is the value order of 01 §1.6.1.
//!
//! Each encoding is self-delimiting, so "all keys that start with these bytes" is exactly "all rows whose first columns
//! have these values", and every prefix and range scan becomes one half-open interval of byte strings.
//!
//! | value | key bytes |
//! |---|---|
//! | unsigned integer, Bool | big-endian |
//! | signed integer | big-endian with the sign bit flipped |
//! | float | IEEE bits, sign folded so that order is numeric; -0 as +0, every NaN as the greatest value |
//! | String, bytes | bytes with `00` written as `00 ff`, then `00 00` |
//! | other array | `01` before each element, then `00` |
//! | product | elements in order |
//! | sum | tag, then payload |

use lightcone_types::bsatn::{Decode, DecodeError, Reader};
use lightcone_types::{with_integer, AlgebraicType};

/// How deep a key type may nest; types come from validated definitions, so this is only a backstop.
const DEPTH_MAX: usize = 64;

/// Encodes the BSATN value of type `ty` at the start of `bytes` as key bytes and returns how many bytes it took.
///
/// # Errors
/// If `bytes` do not start with a value of `ty`.
pub fn encode_column_value(
    ty: &AlgebraicType,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(bytes);
    encode(ty, &mut reader, out, 0)?;
    Ok(bytes.len() - reader.remaining().len())
}

fn encode(
    ty: &AlgebraicType,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), DecodeError> {
    use AlgebraicType as T;
    if depth > DEPTH_MAX {
        return Err(DecodeError::Other("key type is nested too deeply".into()));
    }
    match ty {
        T::Bool => out.push(u8::from(reader.read_bool()?)),
        T::Integer(integer) => with_integer!(*integer, N => {
            let mut key = N::decode(reader)?.to_be_bytes();
            if integer.is_signed() {
                key[0] ^= 0x80;
            }
            out.extend_from_slice(&key);
        }),
        T::F32 => {
            let value = f32::from_bits(reader.read_u32()?);
            out.extend_from_slice(&ordered_bits_32(value).to_be_bytes());
        }
        T::F64 => {
            let value = f64::from_bits(reader.read_u64()?);
            out.extend_from_slice(&ordered_bits_64(value).to_be_bytes());
        }
        T::String => escaped(reader.read_str()?.as_bytes(), out),
        T::Array(element) if **element == T::U8 => escaped(reader.read_bytes()?, out),
        T::Array(element) => {
            let count = reader.read_count(lightcone_types::bsatn::min_size(element))?;
            for _ in 0..count {
                out.push(1);
                encode(element, reader, out, depth + 1)?;
            }
            out.push(0);
        }
        T::Product(product) => {
            for element in &product.elements {
                encode(&element.algebraic_type, reader, out, depth + 1)?;
            }
        }
        T::Sum(sum) => {
            let tag = reader.read_u8()?;
            let Some(variant) = sum.variants.get(tag as usize) else {
                return Err(DecodeError::unknown_tag(tag));
            };
            out.push(tag);
            encode(&variant.algebraic_type, reader, out, depth + 1)?;
        }
        T::Ref(_) => return Err(DecodeError::Other("key types hold no references".into())),
    }
    Ok(())
}

/// IEEE bits, folded so that their order is that of the values.
pub fn ordered_bits_64(value: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = match value.is_nan() {
        // Whatever its sign: all NaNs get the same, greatest key.
        true => f64::NAN.to_bits() & !SIGN,
        // Adding 0 makes +0 of -0.
        false => (value + 0.0).to_bits(),
    };
    match bits & SIGN {
        0 => bits | SIGN,
        _ => !bits,
    }
}

/// As [`ordered_bits_64`].
fn ordered_bits_32(value: f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let bits = match value.is_nan() {
        true => f32::NAN.to_bits() & !SIGN,
        false => (value + 0.0).to_bits(),
    };
    match bits & SIGN {
        0 => bits | SIGN,
        _ => !bits,
    }
}

fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// The smallest byte string greater than every string that starts with `prefix`; none if there is no such string.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// A half-open interval of key bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Vec<u8>,
    /// Excluded; none is above every key.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}
