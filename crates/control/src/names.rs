//! Names of databases, and path segments that are a name or an identity (06 §4.1, §4.3; 01 §1.8.2).

use lightcone_types::Identity;

/// Longer names are refused when they are registered: the reference breaks on them (06 §8).
pub const NAME_BYTES_MAX: usize = 64;

/// A valid database name: `^[a-z0-9]+(-[a-z0-9]+)*$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseName(String);

/// Why a text is no database name. The texts are those of 06 §4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("database names cannot be empty")]
    Empty,
    #[error("invalid characters in database name")]
    Characters,
    #[error("invalid hyphen in database name")]
    Hyphen,
    #[error("database names cannot be identities")]
    Identity,
}

impl DatabaseName {
    pub fn parse(text: &str) -> Result<DatabaseName, NameError> {
        if Identity::parse_text(text).is_ok() {
            return Err(NameError::Identity);
        }
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'-' {
                let after_ok = bytes.get(at + 1).is_some_and(|&next| allowed(next));
                if at == 0 || !after_ok {
                    return Err(NameError::Hyphen);
                }
            } else if !allowed(byte) {
                return Err(NameError::Characters);
            }
        }
        Ok(DatabaseName(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a request names a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOrIdentity {
    Identity(Identity),
    Name(DatabaseName),
}

impl NameOrIdentity {
    pub fn parse(text: &str) -> Result<NameOrIdentity, NameError> {
        match Identity::parse_text(text) {
            Ok(identity) => Ok(NameOrIdentity::Identity(identity)),
            Err(_) => DatabaseName::parse(text).map(NameOrIdentity::Name),
        }
    }

    pub fn name(&self) -> Option<&DatabaseName> {
        match self {
            NameOrIdentity::Identity(_) => None,
            NameOrIdentity::Name(name) => Some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let hex = "c20035600353a2e93544d898c6ed0eac323e200c0468300f22958f8b472a265d";
        for good in ["a", "my-db", "0", "a-b-c9", &"x".repeat(65)] {
            assert_eq!(
                DatabaseName::parse(good).map(|name| name.0),
                Ok(good.to_owned())
            );
        }
        for (bad, error) in [
            ("", NameError::Empty),
            (hex, NameError::Identity),
            (&format!("0x{hex}"), NameError::Identity),
            ("-a", NameError::Hyphen),
            ("a-", NameError::Hyphen),
            ("a--b", NameError::Hyphen),
            ("a-B", NameError::Hyphen),
            ("A", NameError::Characters),
            ("a_b", NameError::Characters),
            ("a/b", NameError::Characters),
            ("ä", NameError::Characters),
        ] {
            assert_eq!(DatabaseName::parse(bad), Err(error), "{bad}");
        }
        assert!(matches!(
            NameOrIdentity::parse(hex),
            Ok(NameOrIdentity::Identity(_))
        ));
        assert!(matches!(
            NameOrIdentity::parse(&hex.to_uppercase()),
            Ok(NameOrIdentity::Identity(_))
        ));
        assert!(matches!(
            NameOrIdentity::parse(&format!("0x{hex}")),
            Ok(NameOrIdentity::Identity(_))
        ));
        assert!(matches!(
            NameOrIdentity::parse("my-db"),
            Ok(NameOrIdentity::Name(_))
        ));
    }
}
