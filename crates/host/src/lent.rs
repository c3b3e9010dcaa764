//! What a call may touch: nothing, a read view, an open transaction, or transactions that it opens itself.

use lightcone_engine::Datastore;
use lightcone_types::Timestamp;

use crate::{Ask, HostTrap, HttpAnswer, Waiting};

/// What is lent to an instance for the time of one call (see [`crate::lend`]).
pub enum Lent<'a> {
    /// No transaction, and no way to open one: code of the load phase.
    Nothing,
    /// Tables to read.
    Read(ReadView<'a>),
    /// The transaction of a reducer.
    Transaction(OpenTransaction<'a>),
    /// Where a procedure or HTTP handler opens transactions.
    Transactions(&'a mut dyn Transactions),
}

/// The tables inside of a transaction, for reading only. The borrow is exclusive because an instance may go to another thread,
/// and threads do not share a datastore.
pub struct ReadView<'a>(pub(crate) &'a mut Datastore);

impl<'a> ReadView<'a> {
    /// A view of what the open transaction sees.
    ///
    /// # Panics
    /// If none is open.
    pub fn of(datastore: &'a mut Datastore) -> ReadView<'a> {
        assert!(
            datastore.in_transaction(),
            "what reads is part of a transaction"
        );
        ReadView(datastore)
    }
}

/// A datastore with its open transaction. Who lends it ends the transaction; a module cannot.
pub struct OpenTransaction<'a>(pub(crate) &'a mut Datastore);

impl<'a> OpenTransaction<'a> {
    /// The open transaction of a datastore.
    ///
    /// # Panics
    /// If none is open.
    pub fn of(datastore: &'a mut Datastore) -> OpenTransaction<'a> {
        assert!(
            datastore.in_transaction(),
            "a transaction begins before it is lent"
        );
        OpenTransaction(datastore)
    }

    /// The tables, for an instance that is no module's: one that is written in Rust.
    pub fn into_datastore(self) -> &'a mut Datastore {
        self.0
    }
}

/// The transactions of one procedure or HTTP handler, one after the other (spec 03 §10).
///
/// The database implements it, so that the commit of a procedure is the one of reducers: what it means for the log and for
/// subscribers stands there.
pub trait Transactions: Send {
    /// Begins something that takes its time. `None`: it takes none, or is not to be had.
    fn ask(&mut self, ask: Ask) -> Option<Waiting> {
        let _ = ask;
        None
    }

    /// Waits on this thread.
    fn block(&mut self, waiting: Waiting) {
        // Dropped or sent: the wait is over.
        let _ = waiting.blocking_recv();
    }

    /// Why the call is to end, after a wait.
    fn ended(&self) -> Option<HostTrap> {
        None
    }

    /// What came of the request that was asked last.
    fn http_answer(&mut self) -> HttpAnswer {
        Err(HTTP_DISABLED_TEXT.to_owned())
    }

    /// After the wait for a transaction of a call that was suspended: what to wait for once more, if it came too late.
    fn ask_again(&mut self) -> Option<Waiting> {
        None
    }

    /// Opens the transaction that was asked for. None is open.
    ///
    /// # Errors
    /// There is none; the call is to end.
    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap>;

    /// Commits the open transaction.
    ///
    /// # Errors
    /// It cannot be committed, and is taken back; the call is to end. A call beside the writer may hear of it later.
    fn commit(&mut self) -> Result<(), HostTrap>;

    /// Takes back all that the open transaction did.
    fn rollback(&mut self);

    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Bytes of changes that this call has committed so far.
    fn committed_bytes(&self) -> usize;
}

/// Why there is no outbound HTTP at all (spec 03 §13.2).
pub const HTTP_DISABLED_TEXT: &str = "module outbound HTTP requests are disabled";
