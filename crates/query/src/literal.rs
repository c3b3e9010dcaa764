//! Literal texts as values of column types (08 §4.1).

use lightcone_types::bsatn::decode_value;
use lightcone_types::{
    AlgebraicType, AlgebraicValue, ConnectionId, Identity, Reader, SpecialProduct, Timestamp,
    Typespace, Uuid, I256, U256,
};

/// The value that `text` denotes as a `ty`; `None` if it denotes none.
pub(crate) fn literal_value(text: &str, ty: &AlgebraicType) -> Option<AlgebraicValue> {
    let bsatn = encode(text, ty)?;
    decode_value(&Typespace::default(), ty, &mut Reader::new(&bsatn)).ok()
}

/// The BSATN of the value that `text` denotes as a `ty`; `None` if it denotes none.
pub(crate) fn encode(text: &str, ty: &AlgebraicType) -> Option<Vec<u8>> {
    use AlgebraicType as T;
    Some(match ty {
        T::I8 => i8::try_from(signed(text)?).ok()?.to_le_bytes().to_vec(),
        T::I16 => i16::try_from(signed(text)?).ok()?.to_le_bytes().to_vec(),
        T::I32 => i32::try_from(signed(text)?).ok()?.to_le_bytes().to_vec(),
        T::I64 => i64::try_from(signed(text)?).ok()?.to_le_bytes().to_vec(),
        T::I128 => i128::try_from(signed(text)?).ok()?.to_le_bytes().to_vec(),
        T::I256 => signed(text)?.to_le_bytes().to_vec(),
        T::U8 => u8::try_from(unsigned(text)?).ok()?.to_le_bytes().to_vec(),
        T::U16 => u16::try_from(unsigned(text)?).ok()?.to_le_bytes().to_vec(),
        T::U32 => u32::try_from(unsigned(text)?).ok()?.to_le_bytes().to_vec(),
        T::U64 => u64::try_from(unsigned(text)?).ok()?.to_le_bytes().to_vec(),
        T::U128 => u128::try_from(unsigned(text)?).ok()?.to_le_bytes().to_vec(),
        T::U256 => unsigned(text)?.to_le_bytes().to_vec(),
        // By way of F64, as the reference rounds twice.
        T::F32 => (float(text)? as f32).to_le_bytes().to_vec(),
        T::F64 => float(text)?.to_le_bytes().to_vec(),
        T::String => with_length(text.as_bytes())?,
        _ if ty.is_bytes() => with_length(&hex_bytes(text)?)?,
        _ => special_literal(ty.special_product()?, text)?,
    })
}

fn special_literal(special: SpecialProduct, text: &str) -> Option<Vec<u8>> {
    Some(match special {
        SpecialProduct::Identity => Identity::parse_text(text).ok()?.to_le_bytes().to_vec(),
        SpecialProduct::ConnectionId => {
            let id = ConnectionId::parse_text(text).ok()?;
            id.to_le_bytes().to_vec()
        }
        SpecialProduct::Uuid => Uuid::parse_text(text).ok()?.0.to_le_bytes().to_vec(),
        SpecialProduct::Timestamp => {
            let time = Timestamp::parse_rfc3339(text).ok()?;
            time.0.to_le_bytes().to_vec()
        }
        SpecialProduct::TimeDuration => return None,
    })
}

/// The BSATN of bytes: their count, then they.
pub(crate) fn with_length(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = u32::try_from(bytes.len()).ok()?.to_le_bytes().to_vec();
    out.extend_from_slice(bytes);
    Some(out)
}

/// The number after `LIMIT`: an integer in U64, however it is written.
pub(crate) fn limit(text: &str) -> Option<u64> {
    u64::try_from(unsigned(text)?).ok()
}

/// A decimal number taken apart: the value is `digits * 10^exponent`.
struct Decimal<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    exponent: i64,
}

/// `[+-] (D+ [. D*] | . D+) [(e|E) [+-] D+]` and nothing else, so no `inf`, no `nan`, no separators.
fn decimal(text: &str) -> Option<Decimal<'_>> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(e) => (&rest[..e], saturating_exponent(&rest[e + 1..])?),
        None => (rest, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let some_digit = !integer.is_empty() || !fraction.is_empty();
    (some_digit && all_digits(integer) && all_digits(fraction)).then_some(Decimal {
        negative,
        integer,
        fraction,
        exponent,
    })
}

fn saturating_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Anything beyond this is out of every type's range, and far from the ends of i64.
    let magnitude = digits
        .parse::<i64>()
        .map_or(i64::MAX / 4, |n| n.min(i64::MAX / 4));
    Some(if negative { -magnitude } else { magnitude })
}

/// A negative sign and the magnitude of an exact integer below 2^256.
fn integer(text: &str) -> Option<(bool, U256)> {
    let Decimal {
        negative,
        integer,
        fraction,
        exponent,
    } = decimal(text)?;
    let digits = || integer.bytes().chain(fraction.bytes());
    let total = integer.len() + fraction.len();
    let Some(last) = digits().rev().position(|d| d != b'0') else {
        return Some((false, U256::ZERO));
    };
    let leading = digits().position(|d| d != b'0').unwrap_or(0);
    // Behind the last digit that is not zero.
    let end = total - last;
    let zeros = exponent
        .saturating_add(i64::try_from(last).ok()?)
        .saturating_sub(i64::try_from(fraction.len()).ok()?);
    let zeros = usize::try_from(zeros).ok()?;
    // 2^256 has 78 digits.
    if (end - leading).saturating_add(zeros) > 78 {
        return None;
    }
    let ten = U256::from(10u8);
    let mut value = U256::ZERO;
    for digit in digits()
        .take(end)
        .skip(leading)
        .chain(std::iter::repeat_n(b'0', zeros))
    {
        value = value
            .checked_mul(ten)?
            .checked_add(U256::from(digit - b'0'))?;
    }
    Some((negative, value))
}

fn unsigned(text: &str) -> Option<U256> {
    let (negative, magnitude) = integer(text)?;
    (!negative || magnitude == U256::ZERO).then_some(magnitude)
}

fn signed(text: &str) -> Option<I256> {
    let (negative, magnitude) = integer(text)?;
    if negative {
        // The magnitude of the least number is one more than that of the greatest.
        let below = magnitude.checked_sub(U256::from(1u8));
        below.map_or(Some(I256::ZERO), |m| {
            I256::try_from(m).ok().map(|m| -m - I256::from(1i8))
        })
    } else {
        I256::try_from(magnitude).ok()
    }
}

/// The nearest double; too large is infinite, and there is no negative zero.
fn float(text: &str) -> Option<f64> {
    decimal(text)?;
    let value = text.parse::<f64>().ok()?;
    Some(if value == 0.0 { 0.0 } else { value })
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |d: u8| char::from(d).to_digit(16).map(|n| n as u8);
    digits
        .chunks_exact(2)
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::column_type;
    use lightcone_vectors::{each, Entry};

    const FILE: &str = "08-literals.json";

    /// Truth values are words, not literals with a text.
    fn each_text(section: &str, check: impl Fn(&str, &AlgebraicType, &Entry)) {
        each(FILE, section, |entry| match entry.0["text"].as_str() {
            Some(text) => check(text, &column_type(entry.text("type")), entry),
            None => assert_eq!(entry.text("type"), "Bool"),
        });
    }

    #[test]
    fn vectors_of_the_chapter() {
        each_text("valid", |text, ty, entry| {
            assert_eq!(encode(text, ty), Some(entry.hex()));
        });
        each_text("invalid", |text, ty, _| assert_eq!(encode(text, ty), None));
    }

    /// Texts that no literal has, as it would not be one.
    #[test]
    fn texts_that_are_no_literals() {
        use AlgebraicType as T;
        for (text, ty) in [
            ("+", T::U32),
            (".", T::U32),
            ("1e", T::U32),
            ("0x1", T::identity()),
            ("01888d6e5-c00-7000-8000-000000000001", T::uuid()),
        ] {
            assert!(encode(text, &ty).is_none(), "{text} as {}", ty.type_name());
        }
    }
}
