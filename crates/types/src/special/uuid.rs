//! UUIDs as the host sees them: storage, order and text (01 §1.10). Modules generate them.

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

impl Uuid {
    /// Parses 32 digits, the hyphenated form, the hyphenated form in braces and `urn:uuid:`, with
    /// digits of either case.
    pub fn parse_text(text: &str) -> Result<Self, UuidError> {
        let parsed = uuid::Uuid::try_parse(text).map_err(|_| UuidError)?;
        Ok(Self(parsed.as_u128()))
    }
}

/// Hyphenated, lower case.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_u128(self.0).fmt(f)
    }
}
