//! A bound on the bytes that all half-received requests and messages may hold together, so that many clients that
//! each stay below their own limit cannot use up the memory.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct ByteBudget {
    used: AtomicUsize,
    max: usize,
}

/// Some bytes of the budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

/// Charges go in steps of this size, so small requests touch the shared counter seldom.
const STEP_BYTES: usize = 64 * 1024;

impl ByteBudget {
    pub(crate) fn new(max: usize) -> Arc<ByteBudget> {
        Arc::new(ByteBudget {
            used: AtomicUsize::new(0),
            max,
        })
    }

    /// Nobody may hold more than is left for all others, so a few slow ones cannot use up everything.
    fn allows(&self, used: usize, share: usize) -> bool {
        used <= self.max && share <= self.max - used
    }
}

impl Charge {
    pub(crate) fn none(budget: &Arc<ByteBudget>) -> Charge {
        Charge {
            budget: budget.clone(),
            bytes: 0,
        }
    }

    /// Adjusts the charge to `bytes` held; the first step is free. False when the budget is used up.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let wanted = bytes / STEP_BYTES * STEP_BYTES;
        if wanted > self.bytes {
            let more = wanted - self.bytes;
            let before = self.budget.used.fetch_add(more, Relaxed);
            if !self.budget.allows(before.saturating_add(more), wanted) {
                self.budget.used.fetch_sub(more, Relaxed);
                return false;
            }
            self.bytes = wanted;
        } else if wanted < self.bytes {
            self.budget.used.fetch_sub(self.bytes - wanted, Relaxed);
            self.bytes = wanted;
        }
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_given_back() {
        let budget = ByteBudget::new(4 * STEP_BYTES);
        let (mut a, mut b) = (Charge::none(&budget), Charge::none(&budget));
        assert!(a.hold(STEP_BYTES - 1), "small requests are free");
        assert_eq!(budget.used.load(Relaxed), 0);
        assert!(a.hold(2 * STEP_BYTES));
        assert!(!b.hold(2 * STEP_BYTES), "as much as is left for others");
        assert!(b.hold(STEP_BYTES));
        assert!(a.hold(0));
        assert!(b.hold(2 * STEP_BYTES));
        drop((a, b));
        assert_eq!(budget.used.load(Relaxed), 0);
    }
}
