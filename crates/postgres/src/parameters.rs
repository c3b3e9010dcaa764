//! Values of parameters: from what a driver sends to literals of our language.
//!
//! Every literal that leaves this file is one token, or a sign and a number, whatever the driver sent.

use lightcone_query::postgresql::{oid, write_literal, Format, EPOCH_2000_US};
use lightcone_types::{hex_encode, AlgebraicType, Timestamp};

use super::failure::{state, Failure};

/// The literal for a value of a column of type `ty`, which was sent as a value of the type `sent_as`.
pub(super) fn literal(
    ty: &AlgebraicType,
    sent_as: u32,
    format: Format,
    value: Option<&[u8]>,
) -> Result<String, Failure> {
    let Some(value) = value else {
        let message = "a parameter is NULL, and there are no NULLs here";
        return Err(Failure::new(state::NULL_NOT_ALLOWED, message));
    };
    let text = match format {
        Format::Text => text_of(value)?.to_owned(),
        Format::Binary => from_binary(sent_as, value)?,
    };
    write_literal(ty, &text).ok_or_else(|| {
        let ty = ty.type_name();
        let message = format!("a parameter of type {ty} cannot have this value");
        Failure::new(state::INVALID_TEXT, message)
    })
}

fn text_of(value: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(value)
        .map_err(|_| Failure::new("22021", "the text of a parameter is not UTF-8"))
}

/// As many bytes as a value has.
fn array<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

/// The text of a value that was sent in binary.
fn from_binary(sent_as: u32, value: &[u8]) -> Result<String, Failure> {
    let text = match sent_as {
        oid::BOOL => value.first().map(|byte| (*byte != 0).to_string()),
        oid::INT2 => array(value).map(|bytes| i16::from_be_bytes(bytes).to_string()),
        oid::INT4 => array(value).map(|bytes| i32::from_be_bytes(bytes).to_string()),
        oid::OID => array(value).map(|bytes| u32::from_be_bytes(bytes).to_string()),
        oid::INT8 => array(value).map(|bytes| i64::from_be_bytes(bytes).to_string()),
        oid::FLOAT4 => array(value).map(|bytes| f32::from_be_bytes(bytes).to_string()),
        oid::FLOAT8 => array(value).map(|bytes| f64::from_be_bytes(bytes).to_string()),
        oid::NUMERIC => numeric(value),
        oid::BYTEA => Some(hex_encode(value)),
        oid::UUID if value.len() == 16 => Some(hex_encode(value)),
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let us = array(value).map(i64::from_be_bytes);
            let us = us.and_then(|us| us.checked_add(EPOCH_2000_US));
            us.map(|us| Timestamp(us).to_rfc3339())
        }
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN | oid::JSON | 0 => {
            return text_of(value).map(str::to_owned)
        }
        // A version, then text.
        oid::JSONB => return text_of(value.get(1..).unwrap_or_default()).map(str::to_owned),
        _ => {
            return Err(Failure::unsupported(format!(
            "binary parameters of the type with oid {sent_as} are not supported: send it as text"
        )))
        }
    };
    text.ok_or_else(|| {
        let message = format!("a binary parameter of the type with oid {sent_as} is malformed");
        Failure::new(state::INVALID_BINARY, message)
    })
}

/// So many digits to the base of 10,000 are more than any value of ours has.
const NUMERIC_DIGITS_MAX: i32 = 200;

/// A numeric of PostgreSQL: digits to the base of 10,000, the first of them worth 10,000 to the power of the weight.
fn numeric(value: &[u8]) -> Option<String> {
    let (head, digits) = value.split_at_checked(8)?;
    let short = |at: usize| i32::from(i16::from_be_bytes([head[at], head[at + 1]]));
    let (count, weight, sign) = (short(0), short(2), short(4) & 0xffff);
    if sign & 0xbfff != 0 {
        // NaN and infinity are no values of ours.
        return None;
    }
    // Beyond this no type of ours has a value.
    if !(-100..=100).contains(&weight) || !(0..=NUMERIC_DIGITS_MAX).contains(&count) {
        return None;
    }
    let (digits, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let digits: Vec<u16> = digits
        .iter()
        .map(|pair| u16::from_be_bytes(*pair))
        .collect();
    if digits.len() != count as usize || digits.iter().any(|digit| *digit > 9_999) {
        return None;
    }
    let digit = |place: i32| {
        let at = usize::try_from(weight - place).ok();
        at.and_then(|at| digits.get(at)).copied().unwrap_or(0)
    };
    let mut text = String::from(if sign == 0x4000 { "-" } else { "" });
    let last = (weight - count + 1).min(0);
    for place in (last..=weight.max(0)).rev() {
        text.push_str(if place == -1 { "." } else { "" });
        text.push_str(&format!("{:04}", digit(place)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_query::postgresql::is_number;
    use proptest::prelude::*;
    use AlgebraicType as T;

    fn of_text(ty: &T, text: &str) -> Result<String, &'static str> {
        literal(ty, 0, Format::Text, Some(text.as_bytes())).map_err(|failure| failure.state)
    }

    #[test]
    fn texts_become_literals() {
        for (ty, text, expected) in [
            (T::U32, "7", Ok("7")),
            (T::I64, " -7 ", Ok("-7")),
            (T::F64, "1.5e-3", Ok("1.5e-3")),
            (T::U32, "7 OR TRUE", Err("22P02")),
            (T::U32, "", Err("22P02")),
            (T::F64, "NaN", Err("22P02")),
            (T::Bool, "t", Ok("TRUE")),
            (T::Bool, "2", Err("22P02")),
            (
                T::String,
                "O'Neil' OR '1' = '1",
                Ok("'O''Neil'' OR ''1'' = ''1'"),
            ),
            (T::bytes(), "\\xab", Ok("'ab'")),
            (
                T::timestamp(),
                "2025-02-10 15:45:30",
                Ok("'2025-02-10 15:45:30Z'"),
            ),
            (
                T::timestamp(),
                "2025-02-10 15:45:30.5+02",
                Ok("'2025-02-10 15:45:30.5+02:00'"),
            ),
            (T::timestamp(), "2025-02-10", Ok("'2025-02-10T00:00:00Z'")),
            (T::timestamp(), "é", Ok("'éT00:00:00Z'")),
        ] {
            assert_eq!(of_text(&ty, text), expected.map(str::to_owned), "{text}");
        }
        let null = literal(&T::U32, 0, Format::Text, None).expect_err("no NULLs");
        assert_eq!(null.state, "22004");
    }

    #[test]
    fn binary_becomes_literals() {
        let of = |ty: &T, oid, bytes: &[u8]| {
            literal(ty, oid, Format::Binary, Some(bytes)).map_err(|failure| failure.state)
        };
        assert_eq!(
            of(&T::U32, oid::INT8, &7_i64.to_be_bytes()),
            Ok("7".to_owned())
        );
        assert_eq!(of(&T::U32, oid::INT8, &[1]), Err("22P03"));
        assert_eq!(of(&T::Bool, oid::BOOL, &[1]), Ok("TRUE".to_owned()));
        assert_eq!(
            of(&T::F64, oid::FLOAT8, &0.5_f64.to_be_bytes()),
            Ok("0.5".to_owned())
        );
        assert_eq!(
            of(&T::F64, oid::FLOAT8, &f64::NAN.to_be_bytes()),
            Err("22P02")
        );
        assert_eq!(
            of(&T::uuid(), oid::UUID, &[0xab; 16]),
            Ok(format!("'{}'", "ab".repeat(16)))
        );
        assert_eq!(
            of(&T::timestamp(), oid::TIMESTAMP, &0_i64.to_be_bytes()),
            Ok("'2000-01-01T00:00:00+00:00'".to_owned())
        );
        let numeric = [0, 2, 0, 1, 0x40, 0, 0, 0, 0, 1, 0x09, 0x29];
        assert_eq!(
            of(&T::I128, oid::NUMERIC, &numeric),
            Ok("-00012345".to_owned())
        );
        let fraction = [0, 1, 0xff, 0xff, 0, 0, 0, 1, 0x13, 0x88];
        assert_eq!(
            of(&T::F64, oid::NUMERIC, &fraction),
            Ok("0000.5000".to_owned())
        );
        // Digits that are none, more than there are, and as many as a short can say.
        let head = |count: i16, weight: i16| {
            let mut head = count.to_be_bytes().to_vec();
            head.extend(weight.to_be_bytes());
            head.extend([0; 4]);
            head
        };
        let with = |mut head: Vec<u8>, digits: &[u8]| {
            head.extend_from_slice(digits);
            head
        };
        for malformed in [
            with(head(1, 0), &[0x27, 0x10]),
            with(head(1, 0), &[0xff, 0xff]),
            with(head(1, 0), &[0, 1, 0]),
            with(head(2, 0), &[0, 1]),
            with(head(-1, 0), &[]),
            with(head(i16::MAX, -100), &[0; 2 * i16::MAX as usize]),
            with(head(0, i16::MIN), &[]),
        ] {
            assert_eq!(of(&T::F64, oid::NUMERIC, &malformed), Err("22P03"));
        }
    }

    proptest! {
        #[test]
        fn a_literal_is_one_value(text in ".{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            for ty in [T::U32, T::F64, T::Bool, T::String, T::bytes(), T::identity(), T::timestamp()] {
                let mut literals = vec![of_text(&ty, &text)];
                for oid in [0, oid::INT4, oid::NUMERIC, oid::TEXT, oid::TIMESTAMP, oid::FLOAT8] {
                    let sent = literal(&ty, oid, Format::Binary, Some(&bytes));
                    literals.push(sent.map_err(|failure| failure.state));
                }
                for literal in literals.into_iter().flatten() {
                    let inner = literal.strip_prefix('\'').and_then(|l| l.strip_suffix('\''));
                    match inner {
                        Some(inner) => prop_assert!(!inner.replace("''", "").contains('\'')),
                        None => prop_assert!(
                            literal == "TRUE" || literal == "FALSE" || is_number(&literal)
                        ),
                    }
                }
            }
        }
    }
}
