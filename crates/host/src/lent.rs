//! What a call may touch.

use lightcone_engine::Datastore;
use lightcone_types::Timestamp;

use crate::{Ask, HostTrap, HttpAnswer, Waiting};

/// Lent to an instance for one call (see [`crate::lend`]).
pub enum Lent<'a> {
    /// In the load phase.
    Nothing,
    Read(ReadView<'a>),
    /// The open transaction of a reducer.
    Transaction(OpenTransaction<'a>),
    /// The transactions that a procedure or HTTP handler opens itself.
    Transactions(&'a mut dyn Transactions),
}

/// The tables inside of a transaction, to read. The borrow is exclusive because an instance may go to another thread, and threads
/// do not share a datastore.
pub struct ReadView<'a>(pub(crate) &'a mut Datastore);

impl<'a> ReadView<'a> {
    /// # Panics
    /// If no transaction is open.
    pub fn of(datastore: &'a mut Datastore) -> ReadView<'a> {
        assert!(
            datastore.in_transaction(),
            "what reads is part of a transaction"
        );
        ReadView(datastore)
    }
}

/// A datastore with its open transaction. The lender ends the transaction; a module cannot.
pub struct OpenTransaction<'a>(pub(crate) &'a mut Datastore);

impl<'a> OpenTransaction<'a> {
    /// # Panics
    /// If no transaction is open.
    pub fn of(datastore: &'a mut Datastore) -> OpenTransaction<'a> {
        assert!(
            datastore.in_transaction(),
            "a transaction begins before it is lent"
        );
        OpenTransaction(datastore)
    }

    /// For an instance that is written in Rust.
    pub fn into_datastore(self) -> &'a mut Datastore {
        self.0
    }
}

/// The transactions of one procedure or HTTP handler, one after the other (spec 03 §10). The database implements it, so that
/// procedures commit as reducers do.
pub trait Transactions: Send {
    /// Begins a wait. `None`: there is nothing to wait for, or it is not available.
    fn ask(&mut self, ask: Ask) -> Option<Waiting> {
        let _ = ask;
        None
    }

    /// After a wait: why the call has to end, if it has.
    fn ended(&self) -> Option<HostTrap> {
        None
    }

    /// The answer to the last request.
    fn http_answer(&mut self) -> HttpAnswer {
        Err(HTTP_DISABLED_TEXT.to_owned())
    }

    /// Opens the requested transaction. On an error the call has to end.
    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap>;

    /// After [`Ask::Commit`]: commits the transaction. On an error it is rolled back, and the call has to end. A call that blocks
    /// its thread may learn of it later.
    fn commit(&mut self) -> Result<(), HostTrap>;

    fn rollback(&mut self);

    fn now(&self) -> Timestamp;

    /// Bytes of changes that this call has committed.
    fn committed_bytes(&self) -> usize;
}

/// The text where there is no outbound HTTP (spec 03 §13.2).
pub const HTTP_DISABLED_TEXT: &str = "module outbound HTTP requests are disabled";
