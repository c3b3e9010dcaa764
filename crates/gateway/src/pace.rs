//! How slowly a client may send, or take, what is under way between it and the server.
//!
//! A client that keeps the minimum rate may take as long as it takes. Others have an allowance of time, which pauses use up and
//! progress earns back; it never exceeds what it was at the start, so a fast beginning buys no slow end.

use std::time::Duration;

use lightcone_node::config::Limits;

/// A transfer that is at least so fast may take as long as it takes.
pub(crate) const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// The bounds of one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Longest pause.
    pub pause_max: Duration,
    /// Longest time in all, for a transfer slower than [`BYTES_PER_SECOND_MIN`].
    pub total_max: Duration,
}

impl Pace {
    pub(crate) fn of(limits: &Limits) -> Pace {
        Pace {
            pause_max: limits.body_timeout,
            total_max: limits.body_total_timeout,
        }
    }
}

/// What one transfer has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pace: Pace,
    left: Duration,
}

impl Patience {
    pub(crate) fn new(pace: Pace) -> Patience {
        Patience {
            pace,
            left: pace.total_max,
        }
    }

    /// How long to wait for the client's next step; zero when it has used up its time.
    pub(crate) fn wait_max(&self) -> Duration {
        self.left.min(self.pace.pause_max)
    }

    /// The client has moved so many bytes after so long a wait.
    pub(crate) fn moved(&mut self, waited: Duration, bytes: usize) {
        let earned_us = (bytes as u64).saturating_mul(1_000_000) / BYTES_PER_SECOND_MIN;
        let earned = Duration::from_micros(earned_us);
        // In this order, so that who waits longer than he has is left with nothing, whatever he moved.
        let left = self.left.saturating_add(earned).min(self.pace.total_max);
        self.left = left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        pause_max: Duration::from_secs(30),
        total_max: Duration::from_secs(60),
    };

    #[test]
    fn who_keeps_the_rate_is_never_cut() {
        let mut patience = Patience::new(PACE);
        for _ in 0..10_000 {
            patience.moved(Duration::from_secs(10), 10 * BYTES_PER_SECOND_MIN as usize);
        }
        assert_eq!(patience.wait_max(), PACE.pause_max);
    }

    #[test]
    fn a_fast_beginning_buys_no_slow_end() {
        let mut patience = Patience::new(PACE);
        patience.moved(Duration::from_secs(1), 256 << 20);
        let mut waited = Duration::ZERO;
        // Who moves a byte in the time that it earns keeps the rate.
        while patience.wait_max() > Duration::from_millis(1) {
            let wait = patience.wait_max().min(Duration::from_secs(29));
            patience.moved(wait, 1);
            waited += wait;
        }
        assert!(waited < Duration::from_secs(61), "{waited:?}");
    }

    #[test]
    fn a_configured_time_beyond_all_clocks_is_none() {
        let mut patience = Patience::new(Pace {
            pause_max: Duration::MAX,
            total_max: Duration::MAX,
        });
        patience.moved(Duration::from_secs(1), usize::MAX);
        assert!(patience.wait_max() > Duration::from_secs(u64::MAX / 2));
    }
}
