//! What an isolate takes of the memory that several have together, as those of a database's procedures do.

use std::cell::Cell;
use std::sync::Arc;

use lightcone_host::{HostTrap, LimitKind, SharedMemory};

/// It is taken and given back in parts of this size, so that others are asked seldom.
const STEP_BYTES: usize = 1 << 20;

/// The part of one isolate; given back when dropped.
pub(crate) struct Share {
    /// None: the isolate has its own limit only.
    memory: Option<Arc<SharedMemory>>,
    taken_bytes: Cell<usize>,
}

impl Share {
    pub(crate) fn of(memory: Option<Arc<SharedMemory>>) -> Share {
        Share {
            memory,
            taken_bytes: Cell::new(0),
        }
    }

    /// Whether the isolate may have so much; what it lacks of it is taken.
    #[inline]
    pub(crate) fn covers(&self, bytes: usize) -> bool {
        bytes <= self.taken_bytes.get() || self.take(bytes)
    }

    #[cold]
    fn take(&self, bytes: usize) -> bool {
        let Some(memory) = &self.memory else {
            return true;
        };
        let wanted = steps(bytes);
        let has_room = memory.take(wanted - self.taken_bytes.get());
        if has_room {
            self.taken_bytes.set(wanted);
        }
        has_room
    }

    /// Gives back what the isolate does not use any more.
    pub(crate) fn settle(&self, used_bytes: usize) {
        let (taken, needed) = (self.taken_bytes.get(), steps(used_bytes));
        if let Some(memory) = self.memory.as_ref().filter(|_| needed < taken) {
            memory.give_back(taken - needed);
            self.taken_bytes.set(needed);
        }
    }

    /// Why a call ends for which there is not enough.
    pub(crate) fn limit(&self) -> HostTrap {
        HostTrap::Limit {
            kind: LimitKind::ProcedureMemory,
            limit: self.memory.as_ref().map_or(0, |memory| memory.bytes_max()) as u64,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle(0);
    }
}

fn steps(bytes: usize) -> usize {
    bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_takes_others_lack_until_it_goes() {
        let memory = SharedMemory::new(10 * STEP_BYTES);
        let (one, other) = (
            Share::of(Some(memory.clone())),
            Share::of(Some(memory.clone())),
        );
        assert!(one.covers(6 * STEP_BYTES + 1) && other.covers(3 * STEP_BYTES));
        assert_eq!(memory.bytes(), 10 * STEP_BYTES);
        assert!(!other.covers(3 * STEP_BYTES + 1));
        one.settle(STEP_BYTES);
        assert!(other.covers(9 * STEP_BYTES));
        assert!(!one.covers(2 * STEP_BYTES) && one.covers(STEP_BYTES));
        drop(other);
        drop(one);
        assert_eq!(memory.bytes(), 0);
        assert!(Share::of(None).covers(usize::MAX));
    }
}
