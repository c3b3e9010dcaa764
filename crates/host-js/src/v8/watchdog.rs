//! Ends endless loops: once per tick, the [`clock`] stops overdue calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_host::{clock, Interrupt};

const IDLE: u64 = 0;
/// The clock is about to stop the call.
const STOPPING: u64 = u64::MAX - 1;
/// The clock has stopped the call.
const STOPPED: u64 = u64::MAX;

/// The time limit of one isolate's calls.
pub struct Watch {
    deadline: AtomicU64,
    isolate: ::v8::IsolateHandle,
    interrupt: Arc<Interrupt>,
}

impl Watch {
    /// Watches an isolate while the result lives.
    pub fn new(isolate: ::v8::IsolateHandle, interrupt: Arc<Interrupt>) -> Arc<Watch> {
        let watch = Arc::new(Watch {
            deadline: AtomicU64::new(IDLE),
            isolate,
            interrupt,
        });
        let watched = Arc::downgrade(&watch);
        clock::every_tick(move |tick| match watched.upgrade() {
            Some(watch) => {
                watch.check(tick.now);
                true
            }
            None => false,
        });
        watch
    }

    /// Starts a call that may last so many ticks.
    #[inline]
    pub fn begin(&self, ticks: u64) {
        let deadline = clock::now() + ticks;
        self.deadline.store(deadline, Ordering::Release);
    }

    /// Stops the time until [`Watch::begin`], for a wait. False: the call was stopped just now.
    #[inline]
    pub fn pause(&self) -> bool {
        self.replace(IDLE, |deadline| deadline < STOPPING)
    }

    /// Ends the call. Returns whether it was stopped; its termination must be cancelled then.
    #[inline]
    pub fn end(&self) -> bool {
        if self.pause() {
            return false;
        }
        // The clock is between its decision and the termination, which must not hit the next call.
        while self.deadline.load(Ordering::Acquire) != STOPPED {
            std::hint::spin_loop();
        }
        self.deadline.store(IDLE, Ordering::Release);
        true
    }

    /// Whether the deadline was one that `is_meant` and is replaced.
    #[inline]
    fn replace(&self, by: u64, is_meant: impl FnOnce(u64) -> bool) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let replaced =
            || (self.deadline).compare_exchange(deadline, by, Ordering::AcqRel, Ordering::Acquire);
        is_meant(deadline) && replaced().is_ok()
    }

    /// The deadline of the running call.
    #[cfg(test)]
    pub(super) fn deadline(&self) -> Option<u64> {
        Some(self.deadline.load(Ordering::Acquire)).filter(|deadline| *deadline != IDLE)
    }

    fn check(&self, tick: u64) {
        let is_overdue = |deadline| {
            let is_due = deadline <= tick || self.interrupt.reason().is_some();
            deadline != IDLE && deadline < STOPPING && is_due
        };
        if self.replace(STOPPING, is_overdue) {
            self.isolate.terminate_execution();
            self.deadline.store(STOPPED, Ordering::Release);
        }
    }
}
