//! Whether the clock may be believed when it says that files are old.

use std::time::{Duration, Instant, SystemTime};

/// For so long the clock must have run evenly. A machine that starts with a wrong one has the right one by then.
const EVEN_TIME: Duration = Duration::from_secs(60 * 60);
/// The clock was set if it went so much further, or less far, than the time that has passed.
const STEP: Duration = Duration::from_secs(60);

/// The clock, as it was at a look.
pub(super) struct EvenClock {
    /// Since then it was not set.
    since: Instant,
    seen: (SystemTime, Instant),
}

impl EvenClock {
    pub fn new(time: SystemTime, now: Instant) -> EvenClock {
        EvenClock {
            since: now,
            seen: (time, now),
        }
    }

    /// Looks at the clock, and says whether it may be believed.
    pub fn is_even(&mut self, time: SystemTime, now: Instant) -> bool {
        let (before, then) = self.seen;
        let expected = before + now.saturating_duration_since(then);
        let difference = match time.duration_since(expected) {
            Ok(ahead) => ahead,
            Err(error) => error.duration(),
        };
        if difference > STEP {
            self.since = now;
        }
        self.seen = (time, now);
        now.saturating_duration_since(self.since) >= EVEN_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_not_believed_at_once() {
        let (time, now) = (SystemTime::now(), Instant::now());
        let minutes = |number: u64| Duration::from_secs(60 * number);
        let mut clock = EvenClock::new(time, now);
        assert!(!clock.is_even(time, now));
        assert!(!clock.is_even(time + minutes(59), now + minutes(59)));
        // A clock that is brought up to date little by little was not set.
        let later = time + minutes(61) + Duration::from_secs(30);
        assert!(clock.is_even(later, now + minutes(61)));
        let years = minutes(3 * 365 * 24 * 60);
        assert!(!clock.is_even(time + years, now + minutes(62)));
        assert!(!clock.is_even(time + years + minutes(59), now + minutes(121)));
        // It is set back.
        assert!(!clock.is_even(time + minutes(123), now + minutes(123)));
        assert!(clock.is_even(time + minutes(183), now + minutes(183)));
    }
}
