//! Ending a call from outside.

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::{Interrupt, InterruptReason};
use tokio::sync::Notify;

use crate::environment::Alarm;

/// What ends one call, wherever it is: computing, waiting, or not yet begun.
#[derive(Default)]
pub(crate) struct Control {
    reason: Interrupt,
    /// Of the instance that runs it.
    instance: Mutex<Option<Arc<Interrupt>>>,
    /// Wakes whatever waits for the call.
    wake: Notify,
    alarm: Mutex<Option<Alarm>>,
}

impl Control {
    /// Ends the call; the first reason stays.
    pub fn end(&self, reason: InterruptReason) {
        self.reason.set(reason);
        if let Some(instance) = &*self.instance() {
            instance.set(reason);
        }
        self.wake.notify_waiters();
    }

    /// Why the call is to end, if it is.
    pub fn reason(&self) -> Option<InterruptReason> {
        self.reason.reason()
    }

    /// Ready when the call is to end.
    pub async fn ended(&self) {
        let notified = self.wake.notified();
        tokio::pin!(notified);
        // From here on it hears of it.
        notified.as_mut().enable();
        if self.reason().is_none() {
            notified.await;
        }
    }

    /// The call runs in an instance now.
    pub fn attach(&self, interrupt: Arc<Interrupt>) {
        interrupt.clear();
        let mut instance = self.instance();
        if let Some(reason) = self.reason() {
            interrupt.set(reason);
        }
        *instance = Some(interrupt);
    }

    /// It does not any more.
    pub fn detach(&self) {
        *self.instance() = None;
    }

    pub fn set_alarm(&self, alarm: Alarm) {
        *self.alarm.lock().unwrap_or_else(PoisonError::into_inner) = Some(alarm);
    }

    fn instance(&self) -> std::sync::MutexGuard<'_, Option<Arc<Interrupt>>> {
        self.instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
