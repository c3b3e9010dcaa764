//! The clock that stops endless loops.
//!
//! One thread for the whole process counts up the epoch of every engine. A call sets its deadline in ticks from now, so
//! neither starting a call nor checking for its end reads a clock.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use wasmtime::{Engine, EngineWeak};

/// Time between two ticks, in milliseconds.
pub const TICK_MS: u64 = 10;

/// After the thread was held up it catches up with at most so many ticks, so that a pause of the whole machine does not
/// end the calls that it interrupted.
const CATCH_UP_TICKS_MAX: u32 = 100;

static ENGINES: OnceLock<Mutex<Vec<EngineWeak>>> = OnceLock::new();

/// How many ticks a call of so many milliseconds may last. The tick that is under way does not count.
pub(crate) fn ticks(ms: u64) -> u64 {
    // Far below the overflow of "current epoch + ticks", and far above any sensible limit.
    const TICKS_MAX: u64 = 1 << 40;
    (ms.div_ceil(TICK_MS) + 1).min(TICKS_MAX)
}

/// Counts up the engine's epoch from now on, for as long as the engine lives.
pub(crate) fn register(engine: &Engine) -> std::io::Result<()> {
    let mut started = Ok(());
    let engines = ENGINES.get_or_init(|| Mutex::new(Vec::new()));
    let mut list = engines.lock().unwrap_or_else(PoisonError::into_inner);
    if list.is_empty() {
        // The thread ends when the list is empty, which it can only find out under the same lock.
        started = std::thread::Builder::new()
            .name("lc-wasm-ticker".into())
            .spawn(move || run(engines))
            .map(drop);
    }
    if started.is_ok() {
        list.push(engine.weak());
    }
    started
}

fn run(engines: &Mutex<Vec<EngineWeak>>) {
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
        let mut list = engines.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|weak| match weak.upgrade() {
            Some(engine) => {
                for _ in 0..due {
                    engine.increment_epoch();
                }
                true
            }
            None => false,
        });
        if list.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_gets_at_least_its_time() {
        assert_eq!(ticks(0), 1);
        assert_eq!(ticks(1), 2);
        assert_eq!(ticks(10), 2);
        assert_eq!(ticks(10_000), 1001);
        assert_eq!(ticks(u64::MAX), 1 << 40);
    }
}
