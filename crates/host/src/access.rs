//! Which host call may touch what (spec 03 §6.1), and the only way to it.
//!
//! | host calls | asked here | load phase | reducer | view | procedure | its transaction |
//! |---|---|---|---|---|---|---|
//! | lookups, row count, scans, `get_jwt` | [`Access::read`] | errno 2 | yes | yes | errno 2 | yes |
//! | insert, update, deletes, clear | [`Access::write`] | errno 2 | yes | errno 19 | errno 2 | yes |
//! | `procedure_start_mut_tx` | [`Access::ask_transaction`] | trap | errno 17 | errno 17 | yes | errno 17 |
//! | `procedure_commit_mut_tx`, `…_abort_mut_tx` | [`Access::commit`], [`Access::rollback`] | errno 18 | errno 18 | errno 18 | errno 18 | yes |
//! | `procedure_http_request` | [`Access::may_request`] | trap | errno 17 | errno 17 | yes | errno 17 |
//! | `procedure_sleep_until` | [`Access::may_sleep`] | trap | trap | trap | yes | trap |
//!
//! All others need nothing. A function for rows (02 §14.9) is a reducer that looks names up and inserts ([`Access::making`]), and gets a
//! trap for all else. A reducer in WebAssembly gets a trap for HTTP, which its adapter sees to.
//!
//! Engines keep the state of host calls for ever, so the borrow of a call cannot reach them as one: [`lend`] leaves a pointer,
//! and takes it back before the borrow ends.

use std::ptr::NonNull;

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_types::Timestamp;

use crate::lent::{Lent, Transactions};
use crate::{AbiError, Ask, Errno, HostTrap, LimitKind, Waiting};

/// What the running call may touch.
pub(crate) struct Access {
    open: Open,
    /// Where the transactions of a procedure come from. Not used while one is open.
    transactions: Option<NonNull<dyn Transactions>>,
    /// They are the call's own, which has no stack of a caller to borrow from.
    owned: Option<OwnedTransactions>,
    /// Address of the loan that all this is from; 0 if nothing is lent.
    loan: usize,
}

/// A box whose content is reached through [`Access::transactions`].
struct OwnedTransactions(NonNull<dyn Transactions>);

impl Drop for OwnedTransactions {
    fn drop(&mut self) {
        // SAFETY: it was leaked from a box by `own`, and the copy of the pointer goes with it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[derive(Clone, Copy)]
enum Open {
    Nothing,
    Read(NonNull<Datastore>),
    Write(NonNull<Datastore>),
    /// Rows are made of one row.
    Making(NonNull<Datastore>),
}

// SAFETY: the pointers stand for the references in a `Lent`, which may all go to another thread (checked below).
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

    /// Pointers to what is lent; the lifetime is lost here.
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

    /// Whether it is from this loan.
    #[inline]
    pub(crate) fn is_of(&self, loan: usize) -> bool {
        self.loan == loan
    }

    /// The tables, for host calls that read.
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

    /// The tables, where rows are made of one row, for host calls that may do that.
    #[cold]
    pub(crate) fn making(&self) -> Option<&Datastore> {
        match &self.open {
            // SAFETY: as in `read`.
            Open::Making(datastore) => Some(unsafe { datastore.as_ref() }),
            _ => None,
        }
    }

    /// The same, to write.
    #[cold]
    pub(crate) fn making_mut(&mut self) -> Option<&mut Datastore> {
        match &mut self.open {
            // SAFETY: as in `read`.
            Open::Making(datastore) => Some(unsafe { datastore.as_mut() }),
            _ => None,
        }
    }

    /// The transaction, for host calls that write.
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

    /// Asks for a transaction of a procedure that has committed less than `bytes_max`.
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
            return Err(HostTrap::Limit {
                kind: LimitKind::ProcedureBytes,
                limit: bytes_max as u64,
            }
            .into());
        }
        Ok(transactions.ask(Ask::Transaction))
    }

    /// Opens the transaction that was asked for. Gives its time.
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

    /// Where a procedure without an open transaction waits.
    pub(crate) fn waits(&mut self) -> Option<&mut dyn Transactions> {
        match (&self.open, &mut self.transactions) {
            // SAFETY: lent for longer than `self` is borrowed, and no transaction that came from it is open.
            (Open::Nothing, Some(transactions)) => Some(unsafe { transactions.as_mut() }),
            _ => None,
        }
    }

    /// Takes what a call touches that may be suspended: it has it until [`Access::disown`].
    ///
    /// # Panics
    /// If something is lent already.
    pub(crate) fn own(&mut self, transactions: Box<dyn Transactions>) {
        assert!(
            self.transactions.is_none() && matches!(self.open, Open::Nothing),
            "an instance has one call at a time"
        );
        let owned = OwnedTransactions(NonNull::from(Box::leak(transactions)));
        self.transactions = Some(owned.0);
        self.owned = Some(owned);
    }

    /// Gives back what [`Access::own`] took; none of its transactions is open any more.
    pub(crate) fn disown(&mut self) {
        // Without one there is nothing to undo.
        let _ = self.rollback();
        self.transactions = None;
        self.owned = None;
    }

    /// Commits what [`Access::begin`] opened. A reducer's transaction is not the module's to end.
    pub(crate) fn commit(&mut self) -> Result<(), AbiError> {
        Ok(self.close()?.commit()?)
    }

    /// Undoes what [`Access::begin`] opened.
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

    /// Whether a transaction is open.
    pub(crate) fn has_transaction(&self) -> bool {
        matches!(self.open, Open::Write(_))
    }

    /// Whether a procedure or HTTP handler runs.
    pub(crate) fn is_procedure(&self) -> bool {
        self.transactions.is_some()
    }

    /// HTTP requests are for procedures, and must not hold up a transaction (spec 03 §13).
    pub(crate) fn may_request(&self) -> Result<(), AbiError> {
        match (&self.open, self.is_procedure()) {
            (Open::Nothing, true) => Ok(()),
            (Open::Nothing, false) => Err(HostTrap::AsyncOnly("procedure_http_request").into()),
            _ => Err(Errno::WOULD_BLOCK_TRANSACTION.into()),
        }
    }

    /// So is sleeping, which has no errno. Gives the time.
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
