//! Whether a function of a WebAssembly module begins on the writer.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// So many calls of a function begin beside the writer after one that began on it and held it up for too long.
const BESIDE_CALLS: u32 = 32;

/// So many calls in a row that compute count as one that is too long: one alone may have had no processor.
const COMPUTING_CALLS_MAX: u32 = 3;
/// A call that took no longer on the writer is brief.
const BRIEF_MAX: Duration = Duration::from_millis(1);

/// What is known of how a function runs. Only the writer changes it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// So many more calls begin beside the writer.
    beside: AtomicU32,
    /// So many of the last calls that began on the writer computed.
    computing: AtomicU32,
    /// The last one was brief.
    brief: AtomicBool,
}

impl Pace {
    /// Whether the next call begins on the writer.
    pub fn begins_on_writer(&self) -> bool {
        let beside = self.beside.load(Ordering::Relaxed);
        self.beside
            .store(beside.saturating_sub(1), Ordering::Relaxed);
        beside == 0
    }

    /// The function is another one now.
    pub fn reset(&self) {
        self.beside.store(0, Ordering::Relaxed);
        self.computing.store(0, Ordering::Relaxed);
        self.brief.store(false, Ordering::Relaxed);
    }

    pub fn was_brief(&self) -> bool {
        self.brief.load(Ordering::Relaxed)
    }

    /// A call that began on the writer was there for so long, which may be too long, or have been spent on computing.
    pub fn note(&self, took: Duration, is_long: bool, computes: bool) {
        self.brief.store(took <= BRIEF_MAX, Ordering::Relaxed);
        let computing = self.computing.load(Ordering::Relaxed) + 1;
        let computing = if computes { computing } else { 0 };
        let is_long = is_long || computing >= COMPUTING_CALLS_MAX;
        self.computing
            .store(if is_long { 0 } else { computing }, Ordering::Relaxed);
        if is_long {
            self.beside.store(BESIDE_CALLS, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_loses_its_place_on_the_writer_for_a_while() {
        let pace = Pace::default();
        assert!(pace.begins_on_writer() && pace.begins_on_writer());
        for computes in [true, true, false, true, true] {
            pace.note(BRIEF_MAX, false, computes);
            assert!(pace.was_brief() && pace.begins_on_writer());
        }
        pace.note(BRIEF_MAX * 3, false, true);
        assert!(!pace.was_brief());
        let calls = std::iter::repeat_with(|| pace.begins_on_writer());
        assert_eq!(calls.take_while(|begins| !begins).count(), 32);
        assert!(pace.begins_on_writer());
    }
}
