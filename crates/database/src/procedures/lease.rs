//! The tables on loan: for one transaction of a call.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use lightcone_engine::Datastore;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Control;
use crate::error::Refusal;

/// The tables. The writer has them back when this goes, whatever happens to the call.
pub(crate) struct Lease {
    pub datastore: Option<Datastore>,
    back: SyncSender<Returned>,
}

/// The tables, back from a loan.
pub(crate) struct Returned {
    pub datastore: Datastore,
    /// The open transaction is to be committed. Otherwise none is open.
    pub commit: bool,
}

impl Lease {
    /// Whether there is a transaction that the writer commits.
    pub fn give_back(&mut self, commit: bool) -> bool {
        let Some(mut datastore) = self.datastore.take() else {
            return false;
        };
        let is_open = datastore.in_transaction();
        if is_open && !commit {
            datastore.rollback();
        }
        let commit = commit && is_open;
        // The writer waits for it.
        let _ = self.back.send(Returned { datastore, commit });
        commit
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(false);
    }
}

/// What the writer has for loans: one transaction at a time is lent.
pub(crate) struct Loans {
    /// Of the present loan. Its lease alone has the sender: if the tables are lost, the writer hears it.
    pub returned: Receiver<Returned>,
    /// In the place of the tables while they are lent.
    spare: Option<Datastore>,
}

impl Default for Loans {
    fn default() -> Loans {
        Loans {
            returned: sync_channel(1).1,
            spare: None,
        }
    }
}

impl Loans {
    /// Takes the tables, and leaves the spare ones.
    pub fn lend(&mut self, tables: &mut Datastore) -> Lease {
        let (back, returned) = sync_channel(1);
        self.returned = returned;
        let spare = self.spare.take().unwrap_or_default();
        Lease {
            datastore: Some(std::mem::replace(tables, spare)),
            back,
        }
    }

    /// Puts tables that are back into their place.
    pub fn end(&mut self, tables: &mut Datastore, back: Datastore) {
        self.spare = Some(std::mem::replace(tables, back));
    }
}

/// Where the writer puts the tables that were asked for, or why there are none. Empty: the database has stopped.
pub(super) type LeaseSlot = Arc<Mutex<Option<Result<Lease, Refusal>>>>;

/// Why a call of a replaced program gets no tables any more.
pub(crate) const TABLES_CHANGED_TEXT: &str = "the module was updated while the call was under way, and tables were changed, which its code does not know: what it committed before stays, and it was ended [LC0233]";

/// A call asks for the tables.
pub(crate) struct LeaseRequest {
    /// Of the module whose code will read and write in them.
    pub tables_version: u64,
    pub control: Arc<Control>,
    pub(super) slot: LeaseSlot,
    /// Told when something is in the slot.
    pub(super) ready: oneshot::Sender<()>,
}

impl LeaseRequest {
    /// From here on the call alone has what it is granted: when it goes, the tables come back.
    pub fn answer(self, granted: Result<Lease, Refusal>) {
        *self.slot.lock() = Some(granted);
        drop(self.slot);
        // The call may be gone.
        let _ = self.ready.send(());
    }
}
