//! Literal texts as values of column types (08 §4.1).

use lightcone_types::bsatn::decode_value;
use lightcone_types::{hex_decode, AlgebraicType, AlgebraicValue, Encode, Reader, Typespace};

/// The value that `text` denotes as a `ty`; `None` if it denotes none.
pub(crate) fn literal_value(text: &str, ty: &AlgebraicType) -> Option<AlgebraicValue> {
    let bsatn = encode(text, ty)?;
    decode_value(&Typespace::default(), ty, &mut Reader::new(&bsatn)).ok()
}

/// The BSATN of the value that `text` denotes as a `ty`; `None` if it denotes none.
pub(crate) fn encode(text: &str, ty: &AlgebraicType) -> Option<Vec<u8>> {
    use AlgebraicType as T;
    Some(match ty {
        T::Integer(integer) => {
            let digits = integer_digits(text, integer.bytes())?;
            integer.parse(&digits)?
        }
        // By way of F64, as the reference rounds twice.
        T::F32 => (float(text)? as f32).to_vec(),
        T::F64 => float(text)?.to_vec(),
        T::String => with_length(text.as_bytes())?,
        _ if ty.is_bytes() => with_length(&hex_decode(text.strip_prefix("0x").unwrap_or(text))?)?,
        _ => (ty.special_product()?.facts().literals?.1)(text)?,
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
    integer_digits(text, size_of::<u64>())?.parse().ok()
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

/// Is it a number, as literals are written?
pub fn is_number(text: &str) -> bool {
    decimal(text).is_some()
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

/// The digits of an integer without leading zeros, behind a `-` if it is negative. `None` if the text is none, or has more digits
/// than any integer of so many bytes.
fn integer_digits(text: &str, bytes: usize) -> Option<String> {
    let Decimal {
        negative,
        integer,
        fraction,
        exponent,
    } = decimal(text)?;
    let digits = [integer, fraction].concat();
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = exponent
        .saturating_add(i64::try_from(digits.len() - significant.len()).ok()?)
        .saturating_sub(i64::try_from(fraction.len()).ok()?);
    let zeros = usize::try_from(zeros).ok()?;
    // A byte is three digits at most.
    if significant.len().saturating_add(zeros) > 3 * bytes {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{significant}{}", "0".repeat(zeros)))
}

/// The nearest double; too large is infinite, and there is no negative zero.
fn float(text: &str) -> Option<f64> {
    decimal(text)?;
    let value = text.parse::<f64>().ok()?;
    Some(if value == 0.0 { 0.0 } else { value })
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
