//! One alarm wakes the writer, for what is due first.

use std::sync::Arc;
use std::time::Duration;

use super::timers::Timer;
use super::Writer;
use crate::inbox::Notice;

/// Times of day that are turned into instants again and again differ a little. An alarm that is late by less is not set anew.
const LATE_MAX: Duration = Duration::from_micros(100);

impl Writer {
    /// At the end of a round, when all timers are set. At most one task sleeps, and none if nothing is due.
    pub(super) fn set_alarm(&mut self) {
        let timers = &mut self.state.timers;
        let Some(due) = timers.next_due() else {
            timers.alarm = None;
            return;
        };
        if matches!(&timers.alarm, Some((at, _)) if *at <= due + LATE_MAX) {
            return;
        }
        let environment = self.shared.environment();
        let delay = due.saturating_duration_since(environment.instant());
        // The sender alone would keep the inbox open, all that is shared would stay with it.
        let shared = Arc::downgrade(&self.shared);
        let ring = move || {
            if let Some(shared) = shared.upgrade() {
                // A database that has stopped does nothing more.
                let _ = shared.inbox.notice(Notice::AlarmDue);
            }
        };
        timers.alarm = Some((due, environment.alarm(delay, Box::new(ring))));
    }

    /// The alarm has rung. What is due is done at the end of the round.
    pub(super) fn alarm_due(&mut self) {
        self.state.timers.alarm = None;
        self.rest_if_due();
        let due = self.state.timers.due(Timer::Procedures);
        if due.is_some_and(|due| due <= self.now_instant()) {
            self.end_late_calls();
        }
    }
}
