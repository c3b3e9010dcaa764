//! Identifiers (02 §8.1).

use unicode_normalization::UnicodeNormalization;

/// Submodule namespaces may be this long (02 §8.11).
pub const NAMESPACE_BYTES_MAX: usize = 63;

/// Other identifiers may be this long. The reference has no limit; generated names repeat table and
/// column names, so an unlimited one would let a small definition ask for much memory.
pub const IDENTIFIER_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    #[error("an identifier must not be empty")]
    Empty,
    #[error("`{0}` is not in Unicode normalization form C")]
    NotNormalized(String),
    #[error("`{name}` must start with a letter or `_`, not with {first:?}")]
    BadStart { name: String, first: char },
    #[error("`{name}` must consist of letters, digits and `_`, but has {bad:?}")]
    BadContinue { name: String, bad: char },
    #[error("a name of {0} bytes is longer than the limit of {IDENTIFIER_BYTES_MAX} bytes; shorten it [LC0205]")]
    TooLong(usize),
}

pub fn check_identifier(name: &str) -> Result<(), IdentifierError> {
    if name.len() > IDENTIFIER_BYTES_MAX {
        return Err(IdentifierError::TooLong(name.len()));
    }
    let mut chars = name.chars();
    let first = chars.next().ok_or(IdentifierError::Empty)?;
    // Code point by code point over the common length, as the format defines it.
    if !name.is_ascii() && !name.nfc().zip(name.chars()).all(|(a, b)| a == b) {
        return Err(IdentifierError::NotNormalized(name.to_owned()));
    }
    if first != '_' && !unicode_ident::is_xid_start(first) {
        return Err(IdentifierError::BadStart {
            name: name.to_owned(),
            first,
        });
    }
    match chars.find(|c| !unicode_ident::is_xid_continue(*c)) {
        Some(bad) => Err(IdentifierError::BadContinue {
            name: name.to_owned(),
            bad,
        }),
        None => Ok(()),
    }
}
