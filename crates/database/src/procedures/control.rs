//! Ending a call from outside.

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::{Interrupt, InterruptReason};
use lightcone_log::LogOffset;
use tokio::sync::{watch, Notify};

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
    settled: watch::Sender<Settled>,
}

/// What has become of the transactions of a call, as the writer tells it.
#[derive(Clone, Default)]
pub(crate) struct Settled {
    /// How many that are to be committed were given back to the writer and are done.
    commits: u64,
    /// What the call was begun with, has read and has written rests on all transactions before this one.
    pub rests_on: LogOffset,
    /// One of them could not be committed.
    refused: Option<Arc<str>>,
}

impl Control {
    /// The call has seen all transactions before this one.
    pub fn saw(&self, next_offset: LogOffset) {
        let later = |settled: &mut Settled| {
            settled.rests_on = settled.rests_on.max(next_offset);
        };
        self.settled.send_modify(later);
    }

    /// A transaction of the call is committed, and comes before this one, or why it is not.
    pub fn committed(&self, outcome: Result<LogOffset, String>) {
        self.settled.send_modify(|settled| {
            settled.commits += 1;
            match outcome {
                Ok(next_offset) => settled.rests_on = settled.rests_on.max(next_offset),
                Err(reason) => settled.refused = Some(reason.into()),
            }
        });
    }

    /// Waits until so many transactions of the call are done.
    ///
    /// # Errors
    /// One was refused; the call is to end.
    pub async fn settled(&self, commits: u64) -> Result<LogOffset, Arc<str>> {
        let mut settled = self.settled.subscribe();
        let done = settled.wait_for(|settled| settled.commits >= commits).await;
        let done = done.expect("the sender is borrowed");
        match &done.refused {
            None => Ok(done.rests_on),
            Some(reason) => Err(reason.clone()),
        }
    }

    /// Why a transaction that the call has given back is not committed, if the writer has refused one.
    pub fn refused(&self) -> Option<Arc<str>> {
        self.settled.borrow().refused.clone()
    }

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
