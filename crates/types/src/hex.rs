//! Hex text of fixed-size byte strings.

use ethnum::{I256, U256};

/// Text that is not the expected number of hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    #[error("expected {expected} hex digits, found {given} characters")]
    Length { expected: usize, given: usize },
    #[error("character {character:?} at position {position} is not a hex digit")]
    Digit { character: char, position: usize },
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case hex, two digits per byte, no prefix.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    encode_into(bytes, &mut out);
    out
}

/// Appends lower-case hex, two digits per byte.
pub(crate) fn encode_into(bytes: &[u8], out: &mut String) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
}

#[inline]
pub(crate) fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Exactly `2 * N` digits of either case, no prefix.
pub(crate) fn decode_exact<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    if text.len() != N * 2 {
        return Err(HexError::Length {
            expected: N * 2,
            given: text.chars().count(),
        });
    }
    let mut out = [0; N];
    for (position, character) in text.char_indices() {
        let value = u8::try_from(character)
            .ok()
            .and_then(digit)
            .ok_or(HexError::Digit {
                character,
                position,
            })?;
        out[position / 2] = out[position / 2] << 4 | value;
    }
    Ok(out)
}

/// An even number of digits of either case, no prefix; `None` for anything else.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

/// Removes one leading `0x` or `X'` (01 §1.8.2); nothing else is stripped.
pub(crate) fn strip_prefix(text: &str) -> &str {
    text.strip_prefix("0x")
        .or_else(|| text.strip_prefix("X'"))
        .unwrap_or(text)
}

/// Plain-JSON form of an `N`-byte number (01 §1.7.7): hex text without prefix or a byte array.
pub(crate) fn deserialize<'de, const N: usize, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    struct Visitor<const N: usize>;

    impl<'de, const N: usize> serde::de::Visitor<'de> for Visitor<N> {
        type Value = [u8; N];

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{} hex digits or an array of {N} bytes", N * 2)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<[u8; N], E> {
            decode_exact(text).map_err(E::custom)
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<[u8; N], A::Error> {
            let mut out = [0; N];
            for (index, byte) in out.iter_mut().enumerate() {
                *byte = seq
                    .next_element()?
                    .ok_or_else(|| serde::de::Error::invalid_length(index, &self))?;
            }
            match seq.next_element::<serde::de::IgnoredAny>()? {
                None => Ok(out),
                Some(_) => Err(serde::de::Error::invalid_length(N + 1, &self)),
            }
        }
    }

    deserializer.deserialize_any(Visitor::<N>)
}

/// The texts of a type that has `from_be_bytes` and `to_be_bytes`: two hex digits a byte.
macro_rules! hex_text {
    ($name:ident) => {
        impl $name {
            /// Lower-case hex digits, no prefix.
            pub fn to_hex(self) -> String {
                crate::hex::encode(&self.to_be_bytes())
            }

            /// The first 8 bytes of the hex text, for logs.
            pub fn to_abbreviated_hex(self) -> String {
                crate::hex::encode(&self.to_be_bytes()[..8])
            }

            /// Exactly two hex digits of either case a byte, no prefix (01 §1.7.7).
            pub fn from_hex(text: &str) -> Result<Self, crate::hex::HexError> {
                crate::hex::decode_exact(text).map(Self::from_be_bytes)
            }

            /// Like [`from_hex`](Self::from_hex), after removing one leading `0x` or `X'` (01 §1.8.2).
            pub fn parse_text(text: &str) -> Result<Self, crate::hex::HexError> {
                Self::from_hex(crate::hex::strip_prefix(text))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.to_hex())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        /// Accepts what `parse_text` accepts.
        impl std::str::FromStr for $name {
            type Err = crate::hex::HexError;

            fn from_str(text: &str) -> Result<Self, crate::hex::HexError> {
                Self::parse_text(text)
            }
        }

        /// The plain-JSON form: the hex digits (01 §1.7.7).
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        /// Hex digits without prefix, or an array of big-endian bytes (01 §1.7.7).
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::hex::deserialize(deserializer).map(Self::from_be_bytes)
            }
        }
    };
}
pub(crate) use hex_text;

/// JSON form of a `U256` (01 §1.7.5): optional `+`, `0x`, one or more digits, in range.
pub(crate) fn parse_u256(text: &str) -> Option<U256> {
    let digits = text.strip_prefix('+').unwrap_or(text).strip_prefix("0x")?;
    parse_magnitude(digits)
}

/// JSON form of an `I256` (01 §1.7.5): like `U256` with an optional `-` or `+`.
pub(crate) fn parse_i256(text: &str) -> Option<I256> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = parse_magnitude(rest.strip_prefix("0x")?)?;
    let limit = U256::ONE << 255u32;
    if negative {
        (magnitude <= limit).then(|| magnitude.as_i256().wrapping_neg())
    } else {
        (magnitude < limit).then(|| magnitude.as_i256())
    }
}

fn parse_magnitude(digits: &str) -> Option<U256> {
    if digits.is_empty() {
        return None;
    }
    let significant = digits.trim_start_matches('0').as_bytes();
    if significant.len() > 64 {
        return None;
    }
    let mut be = [0u8; 32];
    for (position, byte) in significant.iter().rev().enumerate() {
        be[31 - position / 2] |= digit(*byte)? << (4 * (position % 2));
    }
    Some(U256::from_be_bytes(be))
}
