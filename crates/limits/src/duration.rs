//! Durations in the human form that configuration files and query strings use: `15s`, `1m 30s`, `250ms`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Parses a human duration. A number without a unit is refused (06 §5.3).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = |what: &str| {
        format!("{what} in duration {text:?}; write it like \"15s\", \"250ms\" or \"1m 30s\"")
    };
    let mut total_nanos: u128 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong("nothing"));
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(wrong("expected a number"));
        }
        let number: u64 = rest[..digits]
            .parse()
            .map_err(|_| wrong("number too large"))?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit_nanos: u128 = match &rest[..letters] {
            "ns" | "nsec" => 1,
            "us" | "usec" => 1_000,
            "ms" | "msec" | "millis" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
            "d" | "day" | "days" => 86_400_000_000_000,
            "" => return Err(wrong("time unit needed")),
            _ => return Err(wrong("unknown time unit")),
        };
        rest = rest[letters..].trim_start();
        total_nanos += u128::from(number) * unit_nanos;
    }
    let seconds =
        u64::try_from(total_nanos / 1_000_000_000).map_err(|_| wrong("number too large"))?;
    Ok(Duration::new(seconds, (total_nanos % 1_000_000_000) as u32))
}

/// The shortest text with one unit, such as `90s`.
pub(crate) fn text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    match units.iter().find(|(_, unit)| nanos.is_multiple_of(*unit)) {
        Some((letters, unit)) => format!("{}{letters}", nanos / unit),
        None => format!("{nanos}ns"),
    }
}

/// For `#[serde(deserialize_with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_forms() {
        assert_eq!(parse_duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(
            parse_duration("1h5ms"),
            Ok(Duration::from_millis(3_600_005))
        );
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in [
            "",
            "5",
            "s",
            "5x",
            "-1s",
            "99999999999999999999s",
            "18446744073709551615d",
            "5é",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_duration_is_written_as_it_is_read() {
        for written in ["2h", "90s", "1m", "250ms", "7us", "1001ns"] {
            let read = parse_duration(written).expect("a duration");
            assert_eq!(text(read), written);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = parse_duration(&text);
        }
    }
}
