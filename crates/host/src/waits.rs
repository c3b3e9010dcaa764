//! What a procedure waits for, and what ends a call from outside.
//!
//! An engine that can suspend a call gets a [`Waiting`], leaves the thread to others and goes on when it is ready. Other engines
//! block their thread.

use std::sync::atomic::{AtomicU8, Ordering};

use lightcone_accounts::Counted;
use lightcone_limits::HostLimits;
use lightcone_types::Timestamp;
use tokio::sync::oneshot;

use crate::{HostTrap, HttpRequest, HttpResponse, LimitKind};

/// What a call may wait for.
#[derive(Debug)]
pub enum Ask {
    /// The tables, to write in.
    Transaction,
    /// The end of the open transaction, which is given back to be committed.
    Commit,
    Until(Timestamp),
    /// The answer to a request, with its body.
    Http(Box<(HttpRequest, Counted<Vec<u8>>)>),
}

/// Ready, or dropped, at the end of the wait. The next call of the transactions has the result.
pub type Waiting = oneshot::Receiver<()>;

/// Head and body of the response, or why there is none.
pub type HttpAnswer = Result<(HttpResponse, Counted<Vec<u8>>), String>;

/// Ends the running call of an instance from another thread, at the next tick of the clock.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

/// Why a call is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InterruptReason {
    /// Its transaction holds up the writer for too long.
    TransactionTime = 1,
    /// It ran or waited for too long altogether.
    ProcedureTime = 2,
    /// The database stops.
    Stopping = 3,
    /// A caller with the right to do so has cancelled it.
    Cancelled = 4,
}

impl Interrupt {
    /// The first reason stays.
    pub fn set(&self, reason: InterruptReason) {
        let _ = self
            .0
            .compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Why the running call has to end, if it has.
    #[inline]
    pub fn reason(&self) -> Option<InterruptReason> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(InterruptReason::TransactionTime),
            2 => Some(InterruptReason::ProcedureTime),
            4 => Some(InterruptReason::Cancelled),
            _ => Some(InterruptReason::Stopping),
        }
    }
}

impl InterruptReason {
    pub fn trap(self, limits: &HostLimits) -> HostTrap {
        match self {
            InterruptReason::TransactionTime => HostTrap::Limit {
                kind: LimitKind::TransactionTime,
                limit: limits.procedure_transaction_ms_max,
            },
            InterruptReason::ProcedureTime => HostTrap::Limit {
                kind: LimitKind::ProcedureTime,
                limit: limits.procedure_seconds_max,
            },
            InterruptReason::Stopping => HostTrap::Stopping,
            InterruptReason::Cancelled => HostTrap::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.reason(), None);
        interrupt.set(InterruptReason::TransactionTime);
        interrupt.set(InterruptReason::Stopping);
        assert_eq!(interrupt.reason(), Some(InterruptReason::TransactionTime));
        interrupt.clear();
        interrupt.set(InterruptReason::Stopping);
        assert_eq!(interrupt.reason(), Some(InterruptReason::Stopping));
    }
}
