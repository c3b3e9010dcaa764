//! Which state of a database is meant.

use std::fmt;
use std::str::FromStr;

use crate::Timestamp;

/// A state of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The one before the transaction with this number.
    Offset(u64),
    /// The one before the first transaction that was committed after this moment.
    Moment(Timestamp),
}

impl FromStr for AsOf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<AsOf, &'static str> {
        if let Ok(offset) = text.parse() {
            return Ok(AsOf::Offset(offset));
        }
        let moment = Timestamp::parse_rfc3339(text).map(AsOf::Moment);
        moment.map_err(|_| {
            "expected the number of a transaction, or a time like 2026-11-22T10:00:00Z"
        })
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsOf::Offset(offset) => write!(f, "before transaction {offset}"),
            AsOf::Moment(moment) => write!(f, "at {}", moment.to_rfc3339()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_or_times() {
        assert_eq!("1234".parse(), Ok(AsOf::Offset(1234)));
        let moment = AsOf::Moment(Timestamp(1_795_341_600_000_000));
        assert_eq!("2026-11-22T10:00:00Z".parse(), Ok(moment));
        assert_eq!("2026-11-22T11:00:00+01:00".parse(), Ok(moment));
        for text in ["", "yesterday", "-1", "2026-11-22"] {
            assert!(text.parse::<AsOf>().is_err(), "{text}");
        }
    }
}
