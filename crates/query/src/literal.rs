//! Literal texts as values of column types (08 §4.1).

use lightcone_types::{AlgebraicType, ConnectionId, Identity, Timestamp, Uuid, I256, U256};

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
        _ if ty.is_identity() => Identity::parse_text(text).ok()?.to_le_bytes().to_vec(),
        _ if ty.is_connection_id() => ConnectionId::parse_text(text).ok()?.to_le_bytes().to_vec(),
        _ if ty.is_uuid() => Uuid::parse_text(text).ok()?.0.to_le_bytes().to_vec(),
        _ if ty.is_timestamp() => Timestamp::parse_rfc3339(text)
            .ok()?
            .0
            .to_le_bytes()
            .to_vec(),
        _ => return None,
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

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn vectors_of_the_chapter() {
        use AlgebraicType as T;
        let vectors = [
            ("-1", T::I8, "ff"),
            ("255", T::U8, "ff"),
            ("1e3", T::U32, "e8030000"),
            ("7", T::U32, "07000000"),
            ("10", T::U32, "0a000000"),
            ("-2344353", T::I64, "5f3adcffffffffff"),
            ("18446744073709551615", T::U64, "ffffffffffffffff"),
            ("-8", T::I128, "f8ffffffffffffffffffffffffffffff"),
            ("1e20", T::U128, "000010632d5ec76b0500000000000000"),
            (
                "1e40",
                T::U256,
                "000000000061f5b9abbfa45cc3f129631d000000000000000000000000000000",
            ),
            (
                "-10",
                T::I256,
                "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            ),
            ("0.1", T::F32, "cdcccc3d"),
            ("1e40", T::F32, "0000807f"),
            (".1", T::F64, "9a9999999999b93f"),
            ("1", T::F64, "000000000000f03f"),
            ("O'Neil", T::String, "060000004f274e65696c"),
            ("5", T::String, "0100000035"),
            ("01020304ff", T::bytes(), "0500000001020304ff"),
            ("ABCD", T::bytes(), "02000000abcd"),
            ("0xabcd", T::bytes(), "02000000abcd"),
            ("1234", T::bytes(), "020000001234"),
            (
                "c200da2d6ddb6c0beef0bbaafacffe5f0649c86b8d19411e3219066a6d0e5123",
                T::identity(),
                "23510e6d6a0619321e41198d6bc849065ffecffaaabbf0ee0b6cdb6d2dda00c2",
            ),
            (
                "00000000000000000000000000000abc",
                T::connection_id(),
                "bc0a0000000000000000000000000000",
            ),
            ("2025-02-10T15:45:30Z", T::timestamp(), "807a1299cb2d0600"),
            (
                "2025-02-10 15:45:30.123+02:00",
                T::timestamp(),
                "f812edebc92d0600",
            ),
            (
                "2025-02-10T15:45:30.123456789Z",
                T::timestamp(),
                "c05c1499cb2d0600",
            ),
            (
                "2021-06-01T11:10:00.000001Z",
                T::timestamp(),
                "01720a62b2c30500",
            ),
            (
                "01888d6e5c0070008000000000000001",
                T::uuid(),
                "01000000000000800070005c6e8d8801",
            ),
            (
                "01888d6e-5c00-7000-8000-000000000001",
                T::uuid(),
                "01000000000000800070005c6e8d8801",
            ),
            (
                "{01888D6E-5C00-7000-8000-000000000001}",
                T::uuid(),
                "01000000000000800070005c6e8d8801",
            ),
            (
                "urn:uuid:01888d6e-5c00-7000-8000-000000000001",
                T::uuid(),
                "01000000000000800070005c6e8d8801",
            ),
        ];
        for (text, ty, expected) in vectors {
            let bytes = encode(text, &ty).unwrap_or_else(|| panic!("{text} as {}", ty.type_name()));
            assert_eq!(hex(&bytes), expected, "{text} as {}", ty.type_name());
        }
    }

    #[test]
    fn integers_are_exact_and_in_range() {
        use AlgebraicType as T;
        for (text, ty) in [
            ("1.0", T::U8),
            ("1E+2", T::U8),
            ("2550e-1", T::U8),
            ("-0", T::U8),
            ("0e99999999999999999999", T::U8),
            ("-128", T::I8),
            ("0.00e-5", T::I8),
            (
                "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
                T::I256,
            ),
            (
                "115792089237316195423570985008687907853269984665640564039457584007913129639935",
                T::U256,
            ),
        ] {
            assert!(encode(text, &ty).is_some(), "{text} as {}", ty.type_name());
        }
        for (text, ty) in [
            ("-1", T::U8),
            ("1e3", T::U8),
            ("0.1", T::U8),
            ("1e-3", T::I32),
            ("-129", T::I8),
            ("FF", T::U32),
            ("str", T::U32),
            ("", T::U32),
            ("+", T::U32),
            (".", T::U32),
            ("1e", T::U32),
            ("1_000", T::U32),
            (" 1", T::U32),
            ("1e999999999999999999999999", T::U256),
            ("1e-999999999999999999999999", T::U256),
            (
                "57896044618658097711785492504343953926634992332820282019728792003956564819968",
                T::I256,
            ),
            (
                "-57896044618658097711785492504343953926634992332820282019728792003956564819969",
                T::I256,
            ),
            (
                "115792089237316195423570985008687907853269984665640564039457584007913129639936",
                T::U256,
            ),
            ("NaN", T::F64),
            ("inf", T::F64),
            ("infinity", T::F32),
            ("abc", T::bytes()),
            ("zz", T::bytes()),
            ("0x1", T::identity()),
            ("2025-02-10", T::timestamp()),
            ("2025-02-10T15:45:30", T::timestamp()),
            ("01888d6e5c007000800000000000000", T::uuid()),
            ("01888d6e5-c00-7000-8000-000000000001", T::uuid()),
            ("1", T::time_duration()),
            ("1", T::option(T::U64)),
            ("1", T::Bool),
            ("true", T::Bool),
        ] {
            assert!(encode(text, &ty).is_none(), "{text} as {}", ty.type_name());
        }
        assert_eq!(encode("-0", &T::F64), encode("0", &T::F64));
        assert_eq!(encode("-1e-400", &T::F64), encode("0", &T::F64));
    }
}
