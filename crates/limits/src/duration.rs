//! Durations in the human form that configuration files and query strings use: `15s`, `1m 30s`, `250ms`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Parses a human duration. A number without a unit is refused (06 §5.3).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text.trim()).map_err(|error| {
        format!("{error} in duration {text:?}; write it like \"15s\", \"250ms\" or \"1m 30s\"")
    })
}

/// As a value of a configuration file.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_forms() {
        assert_eq!(parse_duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse_duration(" 1m 30s"), Ok(Duration::from_secs(90)));
        let an_hour = Duration::from_millis(3_600_005);
        assert_eq!(parse_duration("1h5ms"), Ok(an_hour));
        let too_much = ["99999999999999999999s", "18446744073709551615d"];
        for bad in ["", "5", "s", "5x", "-1s", "5é"].iter().chain(&too_much) {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = parse_duration(&text);
        }
    }
}
