//! Which host call may touch what (spec 03 §6.1), and the only access to it.
//!
//! | host calls | asked here | load phase | reducer | view | procedure | its transaction |
//! |---|---|---|---|---|---|---|
//! | lookups, row count, scans, `get_jwt` | [`Access::read`] | errno 2 | yes | yes | errno 2 | yes |
//! | insert, update, deletes, clear | [`Access::write`] | errno 2 | yes | errno 19 | errno 2 | yes |
//! | `procedure_start_mut_tx` | [`Access::ask_transaction`] | trap | errno 17 | errno 17 | yes | errno 17 |
//! | `procedure_commit_mut_tx`, `…_abort_mut_tx` | [`Access::ask_commit`], [`Access::rollback`] | errno 18 | errno 18 | errno 18 | errno 18 | yes |
//! | `procedure_http_request` | [`Access::may_request`] | trap | errno 17 | errno 17 | yes | errno 17 |
//! | `env_get` | [`Access::has_tables`], [`Access::read`] | trap | yes | yes | yes | yes |
//! | `procedure_sleep_until` | [`Access::may_sleep`] | trap | trap | trap | yes | trap |
//!
//! All others need nothing. A function for rows (02 §14.9) is a reducer that looks up names and inserts ([`Access::making`]); all
//! else is a trap. A reducer in WebAssembly gets a trap for HTTP, by its adapter.
//!
//! Engines keep the state of host calls for ever, so it cannot hold the borrow of a call: [`lend`] leaves a pointer, and takes it
//! back before the borrow ends.

use std::ptr::NonNull;

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_types::Timestamp;

use crate::lent::{Lent, Transactions};
use crate::{AbiError, Ask, Errno, HostTrap, LimitKind, Waiting};

pub(crate) struct Access {
    open: Open,
    /// Of a procedure. Not used while a transaction is open.
    transactions: Option<NonNull<dyn Transactions>>,
    /// The transactions of a call that may be suspended, which has no caller's stack to borrow from.
    owned: Option<OwnedTransactions>,
    /// Address of the loan of all this; 0 without one.
    loan: usize,
}

/// A leaked box, reached through [`Access::transactions`].
struct OwnedTransactions(NonNull<dyn Transactions>);

impl Drop for OwnedTransactions {
    fn drop(&mut self) {
        // SAFETY: `own` leaked it from a box, and the copy of the pointer is dropped with it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[derive(Clone, Copy)]
enum Open {
    Nothing,
    Read(NonNull<Datastore>),
    Write(NonNull<Datastore>),
    /// For a function for rows.
    Making(NonNull<Datastore>),
}

// SAFETY: the pointers stand for the references in a `Lent`, which may be sent to another thread (checked below).
unsafe impl Send for Access {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Lent<'static>>();
};

impl Access {
    pub(crate) const NOTHING: Access = Access {
        open: Open::Nothing,
        transactions: None,
        owned: None,
        loan: 0,
    };

    /// Pointers to what is lent, without its lifetime.
    ///
    /// # Safety
    /// They are used within that lifetime.
    #[inline]
    pub(crate) unsafe fn to(lent: Lent<'_>, loan: usize) -> Access {
        let (open, transactions) = match lent {
            Lent::Nothing => (Open::Nothing, None),
            Lent::Read(view) => (Open::Read(NonNull::from(view.0)), None),
            Lent::Transaction(transaction) if transaction.0.is_making() => {
                (Open::Making(NonNull::from(transaction.0)), None)
            }
            Lent::Transaction(transaction) => (Open::Write(NonNull::from(transaction.0)), None),
            Lent::Transactions(transactions) => {
                let pointer = NonNull::from(transactions);
                // SAFETY: the types differ in the lifetime of the trait object only.
                let pointer = unsafe {
                    std::mem::transmute::<NonNull<dyn Transactions + '_>, NonNull<dyn Transactions>>(
                        pointer,
                    )
                };
                (Open::Nothing, Some(pointer))
            }
        };
        Access {
            open,
            transactions,
            owned: None,
            loan,
        }
    }

    #[inline]
    pub(crate) fn is_of(&self, loan: usize) -> bool {
        self.loan == loan
    }

    /// The tables, to read.
    #[inline]
    pub(crate) fn read(&self) -> Result<&Datastore, AbiError> {
        match &self.open {
            // SAFETY: what is lent is borrowed until the loan ends, which sets `open` back; no other code has a reference, and
            // `self` is borrowed like the result.
            Open::Read(datastore) | Open::Write(datastore) => Ok(unsafe { datastore.as_ref() }),
            Open::Making(_) => Err(not_for_rows()),
            Open::Nothing => Err(Errno::NOT_IN_TRANSACTION.into()),
        }
    }

    /// The tables, for a function for rows.
    #[cold]
    pub(crate) fn making(&self) -> Option<&Datastore> {
        match &self.open {
            // SAFETY: as in `read`.
            Open::Making(datastore) => Some(unsafe { datastore.as_ref() }),
            _ => None,
        }
    }

    /// As above, to write.
    #[cold]
    pub(crate) fn making_mut(&mut self) -> Option<&mut Datastore> {
        match &mut self.open {
            // SAFETY: as in `read`.
            Open::Making(datastore) => Some(unsafe { datastore.as_mut() }),
            _ => None,
        }
    }

    /// The tables, to write.
    #[inline]
    pub(crate) fn write(&mut self) -> Result<&mut Datastore, AbiError> {
        match &mut self.open {
            // SAFETY: as in `read`.
            Open::Write(datastore) => Ok(unsafe { datastore.as_mut() }),
            Open::Read(_) => Err(Errno::TRANSACTION_IS_READ_ONLY.into()),
            Open::Making(_) => Err(not_for_rows()),
            Open::Nothing => Err(Errno::NOT_IN_TRANSACTION.into()),
        }
    }

    /// Requests a transaction for a procedure that has committed less than `bytes_max`.
    pub(crate) fn ask_transaction(
        &mut self,
        bytes_max: usize,
    ) -> Result<Option<Waiting>, AbiError> {
        if !matches!(self.open, Open::Nothing) {
            return Err(Errno::WOULD_BLOCK_TRANSACTION.into());
        }
        let Some(transactions) = &mut self.transactions else {
            return Err(HostTrap::AsyncOnly("procedure_start_mut_tx").into());
        };
        // SAFETY: lent for longer than `self` is borrowed, and nothing that came from it is in use.
        let transactions = unsafe { transactions.as_mut() };
        if transactions.committed_bytes() >= bytes_max {
            return Err(HostTrap::limit(LimitKind::ProcedureBytes, bytes_max).into());
        }
        Ok(transactions.ask(Ask::Transaction))
    }

    /// Opens the requested transaction. Returns its time.
    pub(crate) fn begin(&mut self) -> Result<Timestamp, AbiError> {
        let (Open::Nothing, Some(transactions)) = (&self.open, &mut self.transactions) else {
            return Err(HostTrap::AsyncOnly("procedure_start_mut_tx").into());
        };
        // SAFETY: as above.
        let transactions = unsafe { transactions.as_mut() };
        let now = transactions.now();
        self.open = Open::Write(NonNull::from(transactions.begin()?.0));
        Ok(now)
    }

    /// The transactions of a procedure, while none is open.
    pub(crate) fn waits(&mut self) -> Option<&mut dyn Transactions> {
        match (&self.open, &mut self.transactions) {
            // SAFETY: lent for longer than `self` is borrowed, and no transaction that came from it is open.
            (Open::Nothing, Some(transactions)) => Some(unsafe { transactions.as_mut() }),
            _ => None,
        }
    }

    /// Takes the transactions of a call that may be suspended, until [`Access::disown`].
    ///
    /// # Panics
    /// If something is lent.
    pub(crate) fn own(&mut self, transactions: Box<dyn Transactions>) {
        assert!(
            self.transactions.is_none() && matches!(self.open, Open::Nothing),
            "an instance has one call at a time"
        );
        let owned = OwnedTransactions(NonNull::from(Box::leak(transactions)));
        self.transactions = Some(owned.0);
        self.owned = Some(owned);
    }

    /// Drops what [`Access::own`] took.
    pub(crate) fn disown(&mut self) {
        // Without an open transaction there is nothing to undo.
        let _ = self.rollback();
        self.transactions = None;
        self.owned = None;
    }

    /// Gives back what [`Access::begin`] opened, to be committed: what to wait for. A module cannot end a reducer's transaction.
    pub(crate) fn ask_commit(&mut self) -> Result<Option<Waiting>, AbiError> {
        Ok(self.close()?.ask(Ask::Commit))
    }

    /// After the wait: commits it.
    pub(crate) fn commit(&mut self) -> Result<(), AbiError> {
        let transactions = self.waits().ok_or(Errno::TRANSACTION_NOT_ANONYMOUS)?;
        Ok(transactions.commit()?)
    }

    /// Rolls back what [`Access::begin`] opened.
    #[inline]
    pub(crate) fn rollback(&mut self) -> Result<(), AbiError> {
        self.close()?.rollback();
        Ok(())
    }

    #[inline]
    fn close(&mut self) -> Result<&mut dyn Transactions, AbiError> {
        match (&mut self.transactions, &self.open) {
            (Some(transactions), Open::Write(_)) => {
                self.open = Open::Nothing;
                // SAFETY: as in `begin`; the pointer to the transaction that came from it is gone.
                Ok(unsafe { transactions.as_mut() })
            }
            _ => Err(Errno::TRANSACTION_NOT_ANONYMOUS.into()),
        }
    }

    /// Whether there are tables to read, or is a reason why they are not.
    pub(crate) fn has_tables(&self) -> bool {
        !matches!(self.open, Open::Nothing)
    }

    /// Whether a call runs.
    pub(crate) fn is_lent(&self) -> bool {
        self.has_tables() || self.is_procedure()
    }

    pub(crate) fn has_transaction(&self) -> bool {
        matches!(self.open, Open::Write(_))
    }

    pub(crate) fn is_procedure(&self) -> bool {
        self.transactions.is_some()
    }

    /// Requests are for procedures, and not inside of a transaction (spec 03 §13).
    pub(crate) fn may_request(&self) -> Result<(), AbiError> {
        match (&self.open, self.is_procedure()) {
            (Open::Nothing, true) => Ok(()),
            (Open::Nothing, false) => Err(HostTrap::AsyncOnly("procedure_http_request").into()),
            _ => Err(Errno::WOULD_BLOCK_TRANSACTION.into()),
        }
    }

    /// As for requests, but without an errno. Returns the time.
    pub(crate) fn may_sleep(&self) -> Result<Timestamp, HostTrap> {
        match (&self.open, &self.transactions) {
            // SAFETY: lent for longer than `self` is borrowed, and no transaction that came from it is open.
            (Open::Nothing, Some(transactions)) => Ok(unsafe { transactions.as_ref() }.now()),
            _ => Err(HostTrap::AsyncOnly("procedure_sleep_until")),
        }
    }
}

#[cold]
fn not_for_rows() -> AbiError {
    HostTrap::Datastore(DatastoreError::NotForRows.to_string().into()).into()
}
