//! A database that nobody asks for a while gives memory back.

use std::time::Duration;

use super::state::Rest;
use super::Writer;
use crate::inbox::Notice;

/// Without any work for so long, the instance of the module rests. Work in between costs one alarm in this time.
const REST_AFTER: Duration = Duration::from_secs(10);

impl Writer {
    /// Sets the alarm, if there was work and none is set.
    #[inline]
    pub(super) fn plan_rest(&mut self) {
        let rest = &self.state.rest;
        if rest.has_worked && rest.alarm.is_none() && self.instance.rests() {
            self.set_rest_alarm();
        }
    }

    #[cold]
    fn set_rest_alarm(&mut self) {
        // The sender alone would keep the inbox open, all that is shared would stay with it.
        let shared = std::sync::Arc::downgrade(&self.shared);
        let ring = move || {
            if let Some(shared) = shared.upgrade() {
                // A database that has stopped keeps nothing.
                let _ = shared.inbox.notice(Notice::RestDue);
            }
        };
        let alarm = self.shared.environment().alarm(REST_AFTER, Box::new(ring));
        self.state.rest = Rest {
            has_worked: false,
            alarm: Some(alarm),
        };
    }

    /// The time is over: the instance rests, if there was no work in it.
    pub(super) fn rest_is_due(&mut self) {
        self.state.rest.alarm = None;
        if !self.state.rest.has_worked {
            self.instance.rest();
        }
    }
}
