//! The transactions of a call beside the writer, which asks for the tables for each of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use lightcone_host::{
    Ask, HostTrap, HttpAnswer, OpenTransaction, Transactions, Waiting, HTTP_DISABLED_TEXT,
};
use lightcone_types::Timestamp;
use tokio::sync::{oneshot, OwnedSemaphorePermit};

use super::lease::Ready;
use super::{Control, Granted, Job, Lease, LeaseRequest, LeaseSlot, Waits};
use crate::inbox::Notice;
use crate::module::{Function, Module};
use crate::shared::Shared;

/// So long a call that comes too late for the tables waits for them on its thread, which others need too.
const THREAD_KEPT_MAX: Duration = Duration::from_millis(5);

/// The transactions of a call beside the writer.
pub(super) struct LeasedTransactions {
    shared: Arc<Shared>,
    module: Arc<Module>,
    function: Function,
    waits: Waits,
    slot: LeaseSlot,
    /// What was in it, when the call had a thread.
    granted: Option<Granted>,
    lease: Option<Lease>,
    committed_bytes: Arc<AtomicUsize>,
    /// Transactions that were given back to be committed.
    commits: u64,
    asked: Option<Instant>,
    /// From when on the call has run, and how long it has waited for the writer.
    started: Instant,
    waited: Duration,
}

impl LeasedTransactions {
    pub fn new(
        shared: &Arc<Shared>,
        job: &Job,
        control: &Arc<Control>,
        running: Option<OwnedSemaphorePermit>,
    ) -> LeasedTransactions {
        LeasedTransactions {
            shared: shared.clone(),
            module: job.module.clone(),
            function: job.function,
            waits: Waits::new(shared, control, running),
            slot: LeaseSlot::default(),
            granted: None,
            lease: None,
            committed_bytes: Arc::default(),
            commits: 0,
            asked: None,
            started: shared.environment().instant(),
            waited: Duration::ZERO,
        }
    }

    fn ask_lease(&mut self) -> Waiting {
        let (ready, waiting) = oneshot::channel();
        let now = self.shared.environment().instant();
        self.asked.get_or_insert(now);
        self.send_request(Ready::Suspended(ready));
        waiting
    }

    fn send_request(&self, ready: Ready) {
        let request = LeaseRequest {
            tables_version: self.module.tables_version,
            slot: self.slot.clone(),
            ready,
            control: self.waits.control().clone(),
            committed_bytes: self.committed_bytes.clone(),
        };
        // If the database has stopped, the sender is dropped, and the slot stays empty.
        let _ = self.shared.inbox.notice(Notice::Lease(Box::new(request)));
    }

    fn take_slot(&self) -> Granted {
        std::mem::take(&mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks again, and keeps the thread meanwhile; for so long, if it is others' thread too. None: that was too short.
    fn granted_here(&self, time_max: Option<Duration>) -> Option<Granted> {
        let (ready, waiting) = sync_channel(1);
        self.send_request(Ready::Blocked(ready));
        // If the database has stopped, nothing is in the slot.
        let is_told = match time_max {
            Some(time_max) => waiting.recv_timeout(time_max) != Err(RecvTimeoutError::Timeout),
            None => waiting.recv().is_ok(),
        };
        // From here on the writer hears that nobody waits.
        drop(waiting);
        match self.take_slot() {
            Granted::Nothing if !is_told && time_max.is_some() => None,
            granted => Some(granted),
        }
    }

    /// What was asked for. If the writer had to go on meanwhile, it is asked again.
    fn granted(&mut self) -> Granted {
        let mut granted = self.granted.take().unwrap_or_else(|| self.take_slot());
        while matches!(granted, Granted::Withdrawn) && self.waits.ended().is_none() {
            granted = self.granted_here(None).unwrap_or_default();
        }
        granted
    }
}

/// The call has ended.
impl Drop for LeasedTransactions {
    fn drop(&mut self) {
        let elapsed = self.shared.environment().instant() - self.started;
        let computed = elapsed.saturating_sub(self.waited);
        self.module.placement(self.function).note_run(computed);
    }
}

impl Transactions for LeasedTransactions {
    fn ask(&mut self, ask: Ask) -> Option<Waiting> {
        if !matches!(ask, Ask::Transaction) {
            self.module.placement(self.function).note_wait();
        }
        match ask {
            Ask::Transaction => Some(self.ask_lease()),
            Ask::Until(time) => Some(self.waits.until(time)),
            Ask::Http(request) => self.waits.http(*request, self.commits),
        }
    }

    fn ask_again(&mut self) -> Option<Waiting> {
        let mut granted = self.take_slot();
        while matches!(granted, Granted::Withdrawn) && self.waits.ended().is_none() {
            match self.granted_here(Some(THREAD_KEPT_MAX)) {
                Some(again) => granted = again,
                // The writer is busy, perhaps with one that needs this thread.
                None => return Some(self.ask_lease()),
            }
        }
        self.granted = Some(granted);
        None
    }

    fn ended(&self) -> Option<HostTrap> {
        self.waits.ended()
    }

    fn http_answer(&mut self) -> HttpAnswer {
        self.waits
            .http_answer()
            .unwrap_or_else(|| Err(HTTP_DISABLED_TEXT.to_owned()))
    }

    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
        let lease = match self.granted() {
            Granted::Tables(lease) => lease,
            Granted::Refused(reason) => return Err(HostTrap::Datastore(reason.into())),
            Granted::Withdrawn => return Err(self.ended().unwrap_or(HostTrap::Stopping)),
            Granted::Nothing => return Err(HostTrap::Stopping),
        };
        if let Some(asked) = self.asked.take() {
            self.waited += self.shared.environment().instant() - asked;
        }
        // The writer has done the one before by now.
        if let Some(reason) = self.waits.control().refused() {
            return Err(HostTrap::Datastore((&*reason).into()));
        }
        let lease = self.lease.insert(*lease);
        let datastore = lease.datastore.as_mut().expect("it was just lent");
        datastore.begin();
        Ok(OpenTransaction::of(datastore))
    }

    fn commit(&mut self) -> Result<(), HostTrap> {
        if let Some(mut lease) = self.lease.take() {
            self.commits += u64::from(lease.give_back(true));
        }
        Ok(())
    }

    fn rollback(&mut self) {
        self.lease = None;
    }

    fn now(&self) -> Timestamp {
        self.shared.environment().now()
    }

    fn committed_bytes(&self) -> usize {
        self.committed_bytes.load(Ordering::Relaxed)
    }
}
