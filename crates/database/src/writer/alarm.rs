//! What is due is done when the one alarm has rung that wakes the writer.

use std::sync::Arc;
use std::time::Duration;

use super::timers::Timer;
use super::Writer;
use crate::inbox::Input;

/// Times of day that are turned into instants again and again differ a little. An alarm that is late by less is not set anew.
const LATE_MAX: Duration = Duration::from_micros(100);
/// Without any work for so long, the instance of the module rests, to give memory back. Work in between costs one alarm in this time.
const REST_AFTER: Duration = Duration::from_secs(10);

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
                let _ = shared.inbox.send(Input::AlarmDue);
            }
        };
        timers.alarm = Some((due, environment.alarm(delay, Box::new(ring))));
    }

    /// The alarm has rung. What is due is done at the end of the round.
    pub(super) fn alarm_due(&mut self) {
        self.state.timers.alarm = None;
        self.rest_if_due();
        self.end_away();
        let due = self.state.timers.due(Timer::Procedures);
        if due.is_some_and(|due| due <= self.now.instant) {
            self.end_late_calls();
        }
    }

    /// At the end of a round: if there was work, the time begins after which the instance rests.
    #[inline]
    pub(super) fn plan_rest(&mut self) {
        let is_planned = self.state.timers.due(Timer::Rest).is_some();
        if self.state.has_worked && !is_planned && self.guest.instance.rests() {
            self.begin_rest_time();
        }
    }

    #[cold]
    fn begin_rest_time(&mut self) {
        let due = self.now.instant + REST_AFTER;
        self.state.timers.set(Timer::Rest, Some(due));
        self.state.has_worked = false;
    }

    /// The alarm has rung. If the time is over, the instance rests, unless there was work.
    pub(super) fn rest_if_due(&mut self) {
        let now = self.now.instant;
        let timers = &mut self.state.timers;
        if timers.due(Timer::Rest).is_none_or(|due| due > now) {
            return;
        }
        timers.set(Timer::Rest, None);
        if !self.state.has_worked {
            self.guest.rest();
        }
    }
}
