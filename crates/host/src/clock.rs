//! The clock that stops endless loops.
//!
//! One thread for the whole process counts ticks, for the engines of all languages. A call notes the tick at which it has to
//! end, so that neither starting nor ending a call reads a clock; the engines look at what is overdue once per tick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two ticks, in milliseconds.
pub const TICK_MS: u64 = 10;

/// After the thread was held up it catches up with at most so many ticks, so that a pause of the whole machine does not
/// end the calls that it interrupted.
const CATCH_UP_TICKS_MAX: u32 = 100;

static NOW: AtomicU64 = AtomicU64::new(1);
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

type Listener = Box<dyn FnMut(Tick) -> bool + Send>;

/// What listeners are told.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// How many ticks there have been.
    pub now: u64,
    /// How many of them since the last time: one, or more if the clock was held up.
    pub passed: u32,
}

/// Starts the clock, once for the process.
pub fn start() -> std::io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        std::thread::Builder::new()
            .name("lc-clock".into())
            .spawn(run)?;
        *started = true;
    }
    Ok(())
}

/// Calls `listener` at every tick until it answers false. It must be quick: all engines hear of the tick one after the other.
pub fn every_tick(listener: impl FnMut(Tick) -> bool + Send + 'static) {
    LISTENERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Box::new(listener));
}

/// How many ticks there have been.
#[inline]
pub fn now() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// How many ticks a call of so many milliseconds may last. The tick that is under way does not count.
pub fn ticks(ms: u64) -> u64 {
    // Far below the overflow of "now + ticks", and far above any sensible limit.
    const TICKS_MAX: u64 = 1 << 40;
    (ms.div_ceil(TICK_MS) + 1).min(TICKS_MAX)
}

fn run() {
    let tick = Duration::from_millis(TICK_MS);
    let mut next = Instant::now() + tick;
    loop {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut passed = 0;
        let now = Instant::now();
        while next <= now {
            passed += 1;
            next += tick;
            if passed == CATCH_UP_TICKS_MAX {
                next = now + tick;
            }
        }
        let now = NOW.fetch_add(u64::from(passed), Ordering::Relaxed) + u64::from(passed);
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain_mut(|listener| listener(Tick { now, passed }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_call_gets_at_least_its_time() {
        assert_eq!(ticks(0), 1);
        assert_eq!(ticks(1), 2);
        assert_eq!(ticks(10), 2);
        assert_eq!(ticks(10_000), 1001);
        assert_eq!(ticks(u64::MAX), 1 << 40);
    }

    #[test]
    fn listeners_hear_every_tick_until_they_decline() {
        start().expect("a thread");
        let (sender, receiver) = channel();
        every_tick(move |tick| {
            let _ = sender.send(tick);
            tick.now % 3 != 0
        });
        let heard: Vec<Tick> = receiver.iter().collect();
        let last = heard.last().expect("it is asked at least once");
        assert_eq!(last.now % 3, 0);
        for pair in heard.windows(2) {
            assert_eq!(pair[1].now - pair[0].now, u64::from(pair[1].passed));
        }
    }
}
