//! The clock of a connection: Pings, and the end of a client that is silent or too slow.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::signals::{ConnectionEnd, Signals};
use crate::pace::{Pace, Patience};

/// Sends Pings and ends the connection of a silent client (05 §3.5), and of one that does not end a message.
pub(super) async fn watch_clock(
    signals: &Signals,
    ping_interval: Duration,
    idle_timeout: Duration,
    pace: Pace,
) -> ConnectionEnd {
    let mut pings = tokio::time::interval(ping_interval);
    // The resolution of the idle time; cheaper than a clock read for every receive.
    let mut looks = tokio::time::interval((idle_timeout / 8).max(Duration::from_millis(1)));
    let mut last_active = Instant::now();
    let mut upload = Upload::new(pace);
    loop {
        tokio::select! {
            _ = pings.tick() => {
                if !signals.ping_pending.swap(true, Relaxed) {
                    signals.control(|control| control.ping = true);
                }
            }
            _ = looks.tick() => {
                if signals.active.swap(false, Relaxed) || signals.submitting.load(Relaxed) {
                    last_active = Instant::now();
                } else if last_active.elapsed() >= idle_timeout {
                    return ConnectionEnd::Idle;
                }
                if upload.is_over(signals) {
                    return ConnectionEnd::Idle;
                }
            }
        }
    }
}

/// How slowly a message comes, at the resolution of the clock's looks.
struct Upload {
    pace: Pace,
    patience: Patience,
    looked: Instant,
    message: u64,
    received_bytes: u64,
}

impl Upload {
    fn new(pace: Pace) -> Upload {
        Upload {
            pace,
            patience: Patience::new(pace),
            looked: Instant::now(),
            message: 0,
            received_bytes: 0,
        }
    }

    /// Looks at what has come. True if the client has used up its time for this message.
    fn is_over(&mut self, signals: &Signals) -> bool {
        let waited = self.looked.elapsed();
        self.looked = Instant::now();
        let message = signals.unfinished.load(Relaxed);
        let received_bytes = signals.received_bytes.load(Relaxed);
        let moved = received_bytes - std::mem::replace(&mut self.received_bytes, received_bytes);
        let is_the_same = message == std::mem::replace(&mut self.message, message);
        if message == 0 || !is_the_same || signals.submitting.load(Relaxed) {
            self.patience = Patience::new(self.pace);
            return false;
        }
        self.patience
            .moved(waited, usize::try_from(moved).unwrap_or(usize::MAX));
        self.patience.wait_max().is_zero()
    }
}
