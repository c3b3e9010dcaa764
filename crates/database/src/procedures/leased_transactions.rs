//! The transactions of a call, which asks for the tables for each of them.

use std::sync::Arc;

use lightcone_host::{
    Ask, HostTrap, HttpAnswer, OpenTransaction, Transactions, Waiting, HTTP_DISABLED_TEXT,
};
use lightcone_types::Timestamp;
use tokio::sync::{oneshot, OwnedSemaphorePermit};

use super::fiber::{Asks, FiberRequest};
use super::lease::{Lease, LeaseSlot};
use super::{Control, Job, LeaseRequest, Waits};
use crate::inbox::Input;
use crate::shared::Shared;

/// The transactions of a call.
pub(super) struct LeasedTransactions {
    shared: Arc<Shared>,
    tables_version: u64,
    waits: Waits,
    /// Where the thread that runs the call looks for what it wants. None: the call blocks its own thread, and asks the writer itself.
    asks: Option<Asks>,
    slot: LeaseSlot,
    lease: Option<Lease>,
    /// Transactions that were given back to be committed.
    commits: u64,
}

impl LeasedTransactions {
    pub fn new(
        shared: &Arc<Shared>,
        job: &Job,
        control: &Arc<Control>,
        suspended: Option<(Asks, OwnedSemaphorePermit)>,
    ) -> LeasedTransactions {
        let (asks, running) = suspended.unzip();
        LeasedTransactions {
            shared: shared.clone(),
            tables_version: job.module.tables_version,
            waits: Waits::new(shared, control, running),
            asks,
            slot: LeaseSlot::default(),
            lease: None,
            commits: 0,
        }
    }

    fn ask_lease(&mut self) -> Waiting {
        let (ready, waiting) = oneshot::channel();
        let request = Box::new(LeaseRequest {
            tables_version: self.tables_version,
            control: self.waits.control().clone(),
            slot: self.slot.clone(),
            ready,
        });
        match &self.asks {
            Some(asks) => asks.set(FiberRequest::Tables(request)),
            None => {
                // If the database has stopped, the sender is dropped, and the slot stays empty.
                let _ = self.shared.inbox.send(Input::Lease(request));
            }
        }
        waiting
    }

    fn give_back(&mut self) {
        if let Some(mut lease) = self.lease.take() {
            self.commits += u64::from(lease.give_back(true));
        }
    }

    /// Gives the transaction back and waits until it is committed, unless the call blocks its thread.
    fn ask_commit(&mut self) -> Option<Waiting> {
        let asks = self.asks.clone()?;
        let (committed, waiting) = oneshot::channel();
        self.give_back();
        asks.set(FiberRequest::Commit(committed));
        Some(waiting)
    }

    fn not_refused(&self) -> Result<(), HostTrap> {
        match self.waits.control().refused() {
            Some(reason) => Err(HostTrap::Datastore((&*reason).into())),
            None => Ok(()),
        }
    }
}

impl Transactions for LeasedTransactions {
    fn ask(&mut self, ask: Ask) -> Option<Waiting> {
        let waiting = match ask {
            Ask::Transaction => return Some(self.ask_lease()),
            Ask::Commit => return self.ask_commit(),
            Ask::Until(time) => Some(self.waits.until(time)),
            Ask::Http(request) => self.waits.http(*request, self.commits),
        };
        if let (Some(asks), Some(_)) = (&self.asks, &waiting) {
            asks.set(FiberRequest::Else);
        }
        waiting
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
        let granted = self.slot.lock().take().ok_or(HostTrap::Stopping)?;
        let lease = granted.map_err(|refusal| HostTrap::Datastore(refusal.0.into()))?;
        // The writer has done the one before by now.
        self.not_refused()?;
        let lease = self.lease.insert(lease);
        let datastore = lease.datastore.as_mut().expect("it was just lent");
        datastore.begin();
        Ok(OpenTransaction::of(datastore))
    }

    /// A call that blocks its thread goes on, and hears of a refusal when it asks for the tables again, or at its end.
    fn commit(&mut self) -> Result<(), HostTrap> {
        self.give_back();
        self.not_refused()
    }

    fn rollback(&mut self) {
        self.lease = None;
    }

    fn now(&self) -> Timestamp {
        self.shared.environment().now()
    }

    fn committed_bytes(&self) -> usize {
        self.waits.control().committed_bytes()
    }
}
