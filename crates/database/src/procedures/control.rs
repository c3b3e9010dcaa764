//! Ending a call from outside.

use std::sync::Arc;

use lightcone_engine::DatastoreError;
use lightcone_host::{Interrupt, InterruptReason};
use lightcone_log::LogOffset;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What ends one call, wherever it is: computing, waiting, or not yet begun.
#[derive(Default)]
pub(crate) struct Control {
    reason: Interrupt,
    /// Of the instance that runs it.
    instance: Mutex<Option<Arc<Interrupt>>>,
    /// Wakes whatever waits for its end, or for its transactions.
    wake: Notify,
    settled: Mutex<Settled>,
}

/// What has become of the transactions of a call, as the writer tells it.
#[derive(Default)]
struct Settled {
    /// How many that are to be committed were given back to the writer and are done.
    commits: u64,
    /// What the call was begun with, has read and has written rests on all transactions before this one.
    rests_on: LogOffset,
    /// Bytes of their changes.
    committed_bytes: usize,
    /// One of them could not be committed.
    refused: Option<Arc<str>>,
}

impl Control {
    /// The call has seen all transactions before this one.
    pub fn saw(&self, next_offset: LogOffset) {
        let mut settled = self.settled.lock();
        settled.rests_on = settled.rests_on.max(next_offset);
    }

    /// A transaction of the call with so many bytes of changes is committed, and comes before this one, or why it is not.
    pub fn committed(&self, outcome: Result<LogOffset, DatastoreError>, bytes: usize) {
        let mut settled = self.settled.lock();
        settled.commits += 1;
        settled.committed_bytes += bytes;
        match outcome {
            Ok(next_offset) => settled.rests_on = settled.rests_on.max(next_offset),
            Err(error) => settled.refused = Some(error.to_string().into()),
        }
        drop(settled);
        self.wake.notify_waiters();
    }

    /// Waits until so many transactions of the call are done.
    ///
    /// # Errors
    /// One was refused; the call is to end.
    pub async fn settled(&self, commits: u64) -> Result<LogOffset, Arc<str>> {
        let done = || {
            let settled = self.settled.lock();
            (settled.commits >= commits).then(|| match &settled.refused {
                None => Ok(settled.rests_on),
                Some(reason) => Err(reason.clone()),
            })
        };
        self.until(done).await
    }

    /// What the call has read and written rests on all transactions before this one.
    pub fn rests_on(&self) -> LogOffset {
        self.settled.lock().rests_on
    }

    /// Why a transaction that the call has given back is not committed, if the writer has refused one.
    pub fn refused(&self) -> Option<Arc<str>> {
        self.settled.lock().refused.clone()
    }

    /// How much its transactions have changed so far.
    pub fn committed_bytes(&self) -> usize {
        self.settled.lock().committed_bytes
    }

    /// Ends the call; the first reason stays.
    pub fn end(&self, reason: InterruptReason) {
        self.reason.set(reason);
        if let Some(instance) = &*self.instance.lock() {
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
        self.until(|| self.reason().map(drop)).await;
    }

    /// Looks again whenever something has changed.
    async fn until<T>(&self, ready: impl Fn() -> Option<T>) -> T {
        loop {
            let notified = self.wake.notified();
            tokio::pin!(notified);
            // From here on it hears of it.
            notified.as_mut().enable();
            match ready() {
                Some(found) => return found,
                None => notified.await,
            }
        }
    }

    /// The call runs in an instance now.
    pub fn attach(&self, interrupt: Arc<Interrupt>) {
        interrupt.clear();
        let mut instance = self.instance.lock();
        if let Some(reason) = self.reason() {
            interrupt.set(reason);
        }
        *instance = Some(interrupt);
    }

    /// It does not any more.
    pub fn detach(&self) {
        *self.instance.lock() = None;
    }
}
