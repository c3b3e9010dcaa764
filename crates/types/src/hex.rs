//! Hex text of fixed-size byte strings.

/// Text that is not the expected number of hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    #[error("expected {expected} hex digits, found {given} characters")]
    Length { expected: usize, given: usize },
    #[error("character {character:?} at position {position} is not a hex digit")]
    Digit { character: char, position: usize },
}

/// The hex text of a type that is made from bytes and gives them, and its plain-JSON form (01 §1.7.7).
macro_rules! hex_text {
    ($name:ident, $to_bytes:expr, $from_bytes:expr) => {
        impl $name {
            /// Two lower-case hex digits a byte, no prefix.
            pub fn to_hex(self) -> String {
                $crate::hex::encode(&$to_bytes(self))
            }

            /// Exactly so many hex digits of either case, no prefix.
            pub fn from_hex(text: &str) -> Result<Self, $crate::hex::HexError> {
                $crate::hex::decode_exact(text).map($from_bytes)
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

        /// The hex text.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        /// The hex text, or an array of the bytes in its order.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::hex::deserialize(deserializer).map($from_bytes)
            }
        }
    };
}

/// The same of an id, whose text is its big-endian bytes, with the forms that people write.
macro_rules! hex_id {
    ($name:ident) => {
        $crate::hex::hex_text!($name, $name::to_be_bytes, $name::from_be_bytes);

        impl $name {
            /// The first 8 bytes of the hex text, for logs.
            pub fn to_abbreviated_hex(self) -> String {
                $crate::hex::encode(&self.to_be_bytes()[..8])
            }

            /// Like [`from_hex`](Self::from_hex), after removing one leading `0x` or `X'` (01 §1.8.2).
            pub fn parse_text(text: &str) -> Result<Self, $crate::hex::HexError> {
                Self::from_hex($crate::hex::strip_prefix(text))
            }
        }

        /// Accepts what `parse_text` accepts.
        impl std::str::FromStr for $name {
            type Err = $crate::hex::HexError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse_text(text)
            }
        }
    };
}

pub(crate) use {hex_id, hex_text};

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
pub fn decode(text: &str) -> Option<Vec<u8>> {
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

/// Reads an integer as JSON has the wide ones (01 §1.7.5): `0x` and one or more digits, with `+` or, if the type has a sign, `-`
/// before them. Gives its BSATN; `None` if there is none in so many bytes.
pub(crate) fn parse_number(text: &str, bytes: usize, is_signed: bool) -> Option<Vec<u8>> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) if is_signed => (true, rest),
        _ => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = rest
        .strip_prefix("0x")
        .filter(|digits| !digits.is_empty())?;
    let mut number = vec![0; bytes];
    for (position, byte) in digits.trim_start_matches('0').bytes().rev().enumerate() {
        *number.get_mut(position / 2)? |= digit(byte)? << (4 * (position % 2));
    }
    if is_negative {
        negate(&mut number);
    }
    let has_sign = is_signed && number.last().is_some_and(|byte| byte & 0x80 != 0);
    let is_zero = number.iter().all(|byte| *byte == 0);
    (has_sign == is_negative || is_zero).then_some(number)
}

/// Appends an integer in BSATN as JSON has the wide ones (01 §1.7.2): without leading zeros.
pub(crate) fn write_number(mut number: Vec<u8>, is_negative: bool, out: &mut String) {
    if is_negative {
        negate(&mut number);
        out.push('-');
    }
    let last = number.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    number.truncate(last + 1);
    number.reverse();
    let digits = encode(&number);
    out.push_str("0x");
    out.push_str(digits.strip_prefix('0').unwrap_or(&digits));
}

/// The negative of a number in two's complement, least byte first.
fn negate(number: &mut [u8]) {
    let mut carry = true;
    for byte in number {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}
