//! The clock that stops endless loops.
//!
//! One thread of the process counts ticks for all engines. A call notes the tick at which it has to end, so no call reads a clock;
//! engines look for overdue calls once per tick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Milliseconds between two ticks.
pub const TICK_MS: u64 = 10;

/// After a pause the thread catches up with at most so many ticks, so that a pause of the whole machine does not end the calls that
/// it interrupted.
const CATCH_UP_TICKS_MAX: u32 = 100;

static NOW: AtomicU64 = AtomicU64::new(1);
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

type Listener = Box<dyn FnMut(Tick) -> bool + Send>;

#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Ticks since the start.
    pub now: u64,
    /// Ticks since the last call: more than one after a pause.
    pub passed: u32,
}

/// Once for the process.
pub fn start() -> std::io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock();
    if !*started {
        std::thread::Builder::new()
            .name("lc-clock".into())
            .spawn(run)?;
        *started = true;
    }
    Ok(())
}

/// Calls `listener` at every tick until it answers false. It must be quick, as engines are called one after the other.
pub fn every_tick(listener: impl FnMut(Tick) -> bool + Send + 'static) {
    LISTENERS.lock().push(Box::new(listener));
}

#[inline]
pub fn now() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// The ticks of so many milliseconds, without the present one.
pub fn ticks(ms: u64) -> u64 {
    // Far from an overflow of "now + ticks", and above any sensible limit.
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
        let mut listeners = LISTENERS.lock();
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
