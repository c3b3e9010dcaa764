//! A bound on the bytes that all half-received requests and messages may hold together, so that many clients that
//! each stay below their own limit cannot use up the memory.

use std::sync::Arc;

use lightcone_accounts::{Account, Kind, Reservation, Terms};

/// Some bytes of an account that many have together; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    all: Arc<Account>,
    /// Made when there is more than a step: small requests are free.
    held: Option<Reservation>,
}

/// Charges go in steps of this size, so small requests touch the shared counter seldom.
const STEP_BYTES: usize = 64 * 1024;

/// No client may hold more than is left for all others, so a few slow ones cannot use up everything.
const TERMS: Terms = Terms {
    bytes_max: usize::MAX,
    step_bytes: STEP_BYTES,
    floor_bytes: STEP_BYTES - 1,
    leaves_as_much: true,
};

impl Charge {
    pub(crate) fn none(all: &Arc<Account>) -> Charge {
        Charge {
            all: all.clone(),
            held: None,
        }
    }

    /// Adjusts the charge to `bytes` held; the first step is free. False when there is no more.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        if self.held.is_none() && bytes < STEP_BYTES {
            return true;
        }
        let all = &self.all;
        let held = self
            .held
            .get_or_insert_with(|| Reservation::none(&all.open(Kind::Client, TERMS)));
        held.hold(bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_given_back() {
        let all = Account::root(Kind::Requests, 4 * STEP_BYTES);
        let (mut a, mut b) = (Charge::none(&all), Charge::none(&all));
        assert!(a.hold(STEP_BYTES - 1), "small requests are free");
        assert_eq!(all.used(), 0);
        assert!(a.hold(2 * STEP_BYTES));
        assert!(!b.hold(2 * STEP_BYTES), "as much as is left for others");
        assert!(b.hold(STEP_BYTES));
        assert!(a.hold(0));
        assert!(b.hold(2 * STEP_BYTES));
        drop((a, b));
        assert_eq!(all.used(), 0);
    }
}
