//! The tables on loan: for one transaction of a call beside the writer.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use lightcone_engine::Datastore;
use tokio::sync::oneshot;

use super::Control;

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
    pub fn new(datastore: Datastore, back: SyncSender<Returned>) -> Lease {
        Lease {
            datastore: Some(datastore),
            back,
        }
    }

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

/// Where the writer puts what was asked for.
pub(crate) type LeaseSlot = Arc<Mutex<Granted>>;

/// What a call finds in its slot.
#[derive(Default)]
pub(crate) enum Granted {
    /// The database has stopped.
    #[default]
    Nothing,
    Tables(Box<Lease>),
    Refused(String),
    /// They were there, and nobody came for them in time.
    Withdrawn,
}

/// How a call hears that something is in its slot.
pub(crate) enum Ready {
    /// It is suspended, and goes on when it has a thread.
    Suspended(oneshot::Sender<()>),
    /// It waits on its thread.
    Blocked(SyncSender<()>),
}

impl Ready {
    /// False: the call is gone.
    pub fn tell(self) -> bool {
        match self {
            Ready::Suspended(ready) => ready.send(()).is_ok(),
            Ready::Blocked(ready) => ready.send(()).is_ok(),
        }
    }
}

/// Why a call of a replaced program gets no tables any more.
pub(crate) const TABLES_CHANGED_TEXT: &str = "the module was updated while the call was under way, and tables were changed, which its code does not know: what it committed before stays, and it was ended [LC0233]";

/// A call asks for the tables.
pub(crate) struct LeaseRequest {
    /// Of the module whose code will read and write in them.
    pub tables_version: u64,
    pub slot: LeaseSlot,
    /// Told when they are in the slot.
    pub ready: Ready,
    pub control: Arc<Control>,
    /// How much its transactions have changed so far, which the writer adds to.
    pub committed_bytes: Arc<AtomicUsize>,
}
