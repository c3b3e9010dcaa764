//! Points in time and durations (01 §1.9). Both are signed microseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01T00:00:00 UTC; negative is before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// Microseconds; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeDuration(pub i64);

impl Timestamp {
    /// 1970-01-01T00:00:00 UTC.
    pub const UNIX_EPOCH: Timestamp = Timestamp(0);

    /// The system clock, saturating at the ends of the range.
    pub fn now() -> Self {
        Self::from_system_time(SystemTime::now())
    }

    /// A point of the system clock, saturating at the ends of the range.
    pub fn from_system_time(time: SystemTime) -> Self {
        let micros = |d: std::time::Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(micros(after)),
            Err(before) => Self(-micros(before.duration())),
        }
    }

    /// Microseconds since the epoch.
    #[inline]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The later time, saturating at the ends of the range.
    #[inline]
    pub fn saturating_add(self, duration: TimeDuration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// The time from `earlier` to `self`, saturating.
    #[inline]
    pub fn saturating_since(self, earlier: Timestamp) -> TimeDuration {
        TimeDuration(self.0.saturating_sub(earlier.0))
    }
}

impl TimeDuration {
    /// Microseconds.
    #[inline]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The magnitude, saturating; the period of a `ScheduleAt` interval.
    pub fn saturating_abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// The magnitude as a standard duration.
    pub fn unsigned_abs(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.unsigned_abs())
    }
}
