//! The clock that stops endless loops.
//!
//! One thread for the whole process counts ticks. A call notes the tick at which it has to end, so that neither starting
//! nor ending a call reads a clock; the thread looks at every isolate once per tick and stops what is overdue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time between two ticks, in milliseconds.
pub const TICK_MS: u64 = 10;

/// After the thread was held up it catches up with at most so many ticks, so that a pause of the whole machine does not
/// end the calls that it interrupted.
const CATCH_UP_TICKS_MAX: u32 = 100;

/// No call runs.
const IDLE: u64 = 0;
/// The thread is about to stop the call.
const STOPPING: u64 = u64::MAX - 1;
/// The thread has stopped the call.
const STOPPED: u64 = u64::MAX;

static TICK: AtomicU64 = AtomicU64::new(1);
static WATCHED: OnceLock<Mutex<Vec<Weak<Watch>>>> = OnceLock::new();

/// The time limit of one isolate's calls.
pub struct Watch {
    deadline: AtomicU64,
    isolate: ::v8::IsolateHandle,
}

impl Watch {
    /// Watches an isolate for as long as the result lives.
    pub fn new(isolate: ::v8::IsolateHandle) -> Arc<Watch> {
        let watch = Arc::new(Watch {
            deadline: AtomicU64::new(IDLE),
            isolate,
        });
        let list = WATCHED.get_or_init(Mutex::default);
        list.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&watch));
        watch
    }

    /// A call starts that may last so many ticks.
    #[inline]
    pub fn begin(&self, ticks: u64) {
        let deadline = TICK.load(Ordering::Relaxed) + ticks;
        self.deadline.store(deadline, Ordering::Release);
    }

    /// The call is over. Returns whether it was stopped; then the termination is still to be cancelled.
    #[inline]
    pub fn end(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline < STOPPING
            && self
                .deadline
                .compare_exchange(deadline, IDLE, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        {
            return false;
        }
        // The thread is between its decision and the termination; the next call must not be hit by it.
        while self.deadline.load(Ordering::Acquire) != STOPPED {
            std::hint::spin_loop();
        }
        self.deadline.store(IDLE, Ordering::Release);
        true
    }

    /// The tick at which the running call has to end; `None` if none runs.
    #[cfg(test)]
    pub(super) fn deadline(&self) -> Option<u64> {
        Some(self.deadline.load(Ordering::Acquire)).filter(|deadline| *deadline != IDLE)
    }

    fn check(&self, tick: u64) {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline == IDLE || deadline >= STOPPING || deadline > tick {
            return;
        }
        if self
            .deadline
            .compare_exchange(deadline, STOPPING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            self.isolate.terminate_execution();
            self.deadline.store(STOPPED, Ordering::Release);
        }
    }
}

/// How many ticks a call of so many milliseconds may last. The tick that is under way does not count.
pub fn ticks(ms: u64) -> u64 {
    const TICKS_MAX: u64 = 1 << 40;
    (ms.div_ceil(TICK_MS) + 1).min(TICKS_MAX)
}

/// Starts the thread, once for the process.
pub fn start() -> std::io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        std::thread::Builder::new()
            .name("lc-v8-watchdog".into())
            .spawn(run)?;
        *started = true;
    }
    Ok(())
}

fn run() {
    let tick = Duration::from_millis(TICK_MS);
    let mut next = Instant::now() + tick;
    loop {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut due = 0;
        let now = Instant::now();
        while next <= now {
            due += 1;
            next += tick;
            if due == CATCH_UP_TICKS_MAX {
                next = now + tick;
            }
        }
        let tick = TICK.fetch_add(u64::from(due), Ordering::Relaxed) + u64::from(due);
        let list = WATCHED.get_or_init(Mutex::default);
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|weak| match weak.upgrade() {
            Some(watch) => {
                watch.check(tick);
                true
            }
            None => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_gets_at_least_its_time() {
        assert_eq!(ticks(0), 1);
        assert_eq!(ticks(1), 2);
        assert_eq!(ticks(10_000), 1001);
        assert_eq!(ticks(u64::MAX), 1 << 40);
    }
}
