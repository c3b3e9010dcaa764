//! Text forms of times and durations (01 §1.9).
//!
//! Written out here because a [`Timestamp`] covers ±292 000 years, more than the date types of the
//! usual crates.

use super::time::{TimeDuration, Timestamp};
use std::fmt;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Text that is not an RFC 3339 time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time with offset, such as `2025-02-10T15:45:30.25Z`")]
pub struct TimestampError;

impl Timestamp {
    /// RFC 3339 in UTC with offset `+00:00` and 0, 3 or 6 fraction digits as needed. Years outside
    /// 0–9999 have a sign.
    pub fn to_rfc3339(self) -> String {
        self.to_string()
    }

    /// Parses RFC 3339 with `Z` or an offset; `T` may be a space, digits below a microsecond are
    /// dropped.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimestampError> {
        parse(text).ok_or(TimestampError).map(Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(MICROS_PER_SECOND);
        let micros = self.0.rem_euclid(MICROS_PER_SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+05}")?;
        }
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros % 1000 != 0 {
            write!(f, ".{micros:06}")?;
        } else if micros != 0 {
            write!(f, ".{:03}", micros / 1000)?;
        }
        f.write_str("+00:00")
    }
}

impl TimeDuration {
    /// ISO 8601 in seconds: `PT1440S`, `-PT1.5S`, and `P0D` for zero.
    pub fn to_iso8601(self) -> String {
        if self.0 == 0 {
            return "P0D".to_owned();
        }
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        let (seconds, micros) = (magnitude / 1_000_000, magnitude % 1_000_000);
        if micros == 0 {
            return format!("{sign}PT{seconds}S");
        }
        let fraction = format!("{micros:06}");
        format!("{sign}PT{seconds}.{}S", fraction.trim_end_matches('0'))
    }
}

/// Sign, seconds and six fraction digits: `-1.500000`.
impl fmt::Display for TimeDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        let magnitude = self.0.unsigned_abs();
        write!(
            f,
            "{sign}{}.{:06}",
            magnitude / 1_000_000,
            magnitude % 1_000_000
        )
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar. Years start in March here,
/// so that the leap day is the last day of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, accepted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        accepted.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    fn digit(&mut self) -> Option<i64> {
        self.take(b"0123456789").map(|b| i64::from(b - b'0'))
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        (0..digits).try_fold(0, |n, _| Some(n * 10 + self.digit()?))
    }
}

fn parse(text: &str) -> Option<i64> {
    let mut c = Cursor(text.as_bytes());
    let year = c.number(4)?;
    c.take(b"-")?;
    let month = c.number(2)?;
    c.take(b"-")?;
    let day = c.number(2)?;
    c.take(b"Tt ")?;
    let hour = c.number(2)?;
    c.take(b":")?;
    let minute = c.number(2)?;
    c.take(b":")?;
    let second = c.number(2)?;
    let micros = match c.take(b".") {
        Some(_) => parse_fraction(&mut c)?,
        None => 0,
    };
    let offset_seconds = match c.take(b"Zz+-")? {
        sign @ (b'+' | b'-') => {
            let hours = c.number(2)?;
            c.take(b":")?;
            let minutes = c.number(2)?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if sign == b'-' { -1 } else { 1 }
        }
        _ => 0,
    };
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        // A leap second counts as the first second of the next minute.
        && second <= 60;
    if !in_range || !c.0.is_empty() {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second - offset_seconds;
    Some(
        (days_from_civil(year, month, day) * SECONDS_PER_DAY + of_day) * MICROS_PER_SECOND + micros,
    )
}

fn parse_fraction(c: &mut Cursor<'_>) -> Option<i64> {
    let mut micros = c.digit()? * 100_000;
    let mut place = 10_000;
    while let Some(digit) = c.digit() {
        micros += digit * place;
        place /= 10;
    }
    Some(micros)
}
