//! UUIDs as the host sees them: storage, order and text (01 §1.10). Modules generate them.

use crate::bsatn::encode_as_inner;
use crate::hex;
use std::fmt;

/// The 16 UUID bytes read as one big-endian number; any number is legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// Text that is no UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a UUID: expected 32 hex digits, 8-4-4-4-12 digits with hyphens, `{{…}}` or `urn:uuid:…`"
)]
pub struct UuidError;

/// Byte positions of the hyphens in the hyphenated form.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uuid {
    /// All zeros.
    pub const NIL: Uuid = Uuid(0);

    /// Parses 32 digits, the hyphenated form, the hyphenated form in braces and `urn:uuid:`, with
    /// digits of either case.
    pub fn parse_text(text: &str) -> Result<Self, UuidError> {
        let hyphenated = match text.len() {
            32 => return Self::from_digits(text.bytes()),
            36 => text,
            38 => text
                .strip_prefix('{')
                .and_then(|t| t.strip_suffix('}'))
                .ok_or(UuidError)?,
            45 => text.strip_prefix("urn:uuid:").ok_or(UuidError)?,
            _ => return Err(UuidError),
        };
        let bytes = hyphenated.as_bytes();
        if HYPHENS
            .iter()
            .any(|&position| bytes.get(position) != Some(&b'-'))
        {
            return Err(UuidError);
        }
        let digits = bytes
            .iter()
            .enumerate()
            .filter(|(i, _)| !HYPHENS.contains(i))
            .map(|(_, b)| *b);
        Self::from_digits(digits)
    }

    fn from_digits(digits: impl Iterator<Item = u8>) -> Result<Self, UuidError> {
        let mut number = 0u128;
        for byte in digits {
            number = number << 4 | u128::from(hex::digit(byte).ok_or(UuidError)?);
        }
        Ok(Self(number))
    }
}

/// Hyphenated, lower case.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (n >> 96) as u32,
            (n >> 80) as u16,
            (n >> 64) as u16,
            (n >> 48) as u16,
            n as u64 & 0xffff_ffff_ffff
        )
    }
}

impl std::str::FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Self, UuidError> {
        Self::parse_text(text)
    }
}

encode_as_inner!(Uuid);
