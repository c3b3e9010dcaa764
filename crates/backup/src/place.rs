//! Places in the history of a database, as texts.

use std::fmt;
use std::str::FromStr;

use lightcone_log::{LogHash, LogOffset};
use serde::{Deserialize, Serialize};

/// A place between two frames of a log: two databases with the same one have the same transactions before it. Its text is the offset of
/// the next transaction and 32 hexadecimal digits, with a `-` between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Place {
    pub offset: LogOffset,
    /// Of all transactions before.
    pub hash: LogHash,
}

/// No database has so many transactions.
const OFFSET_MAX: LogOffset = LogOffset::new(1 << 62);

pub(crate) fn is_possible(offset: LogOffset) -> bool {
    offset < OFFSET_MAX
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.offset, self.hash)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let parsed = || {
            let (offset, hash) = text.split_once('-')?;
            let offset = LogOffset::new(offset.parse().ok()?);
            let digits = (hash.len() == 32).then_some(hash)?;
            let hash = u128::from_str_radix(digits, 16).ok()?;
            is_possible(offset).then(|| Place {
                offset,
                hash: LogHash::from_le_bytes(hash.to_le_bytes()),
            })
        };
        let place = parsed().filter(|place| place.to_string() == text);
        place.ok_or_else(|| format!("`{text}` is not a place in the history of a database"))
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        place.to_string()
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Place, String> {
        text.parse()
    }
}
