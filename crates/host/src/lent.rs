//! What a call may touch: nothing, a read view, an open transaction, or transactions that it opens itself.

use lightcone_engine::Datastore;
use lightcone_types::Timestamp;

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
    /// Opens a transaction. None is open.
    fn begin(&mut self) -> OpenTransaction<'_>;

    /// Commits the open transaction.
    fn commit(&mut self);

    /// Takes back all that the open transaction did.
    fn rollback(&mut self);

    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Bytes of changes that this call has committed so far.
    fn committed_bytes(&self) -> usize;
}
