//! A database without work gives memory back.

use std::time::Duration;

use super::timers::Timer;
use super::Writer;

/// Without any work for so long, the instance of the module rests. Work in between costs one alarm in this time.
const REST_AFTER: Duration = Duration::from_secs(10);

impl Writer {
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
        let due = self.shared.environment().instant() + REST_AFTER;
        self.state.timers.set(Timer::Rest, Some(due));
        self.state.has_worked = false;
    }

    /// The alarm has rung. If the time is over, the instance rests, unless there was work.
    pub(super) fn rest_if_due(&mut self) {
        let now = self.shared.environment().instant();
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
