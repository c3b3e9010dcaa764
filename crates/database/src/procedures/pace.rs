//! Whether a function of a WebAssembly module begins on the writer.

use std::sync::atomic::{AtomicU32, Ordering};

/// So many calls of a function begin beside the writer after one that began on it and held it up for too long.
const BESIDE_CALLS: u32 = 32;

/// What is known of how a function runs.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// So many more calls begin beside the writer. Only the writer changes it.
    beside: AtomicU32,
}

impl Pace {
    /// Whether the next call begins on the writer.
    pub fn begins_on_writer(&self) -> bool {
        let beside = self.beside.load(Ordering::Relaxed);
        self.beside
            .store(beside.saturating_sub(1), Ordering::Relaxed);
        beside == 0
    }

    /// One that began there held it up for too long.
    pub fn note_long(&self) {
        self.beside.store(BESIDE_CALLS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_loses_its_place_on_the_writer_for_a_while() {
        let pace = Pace::default();
        assert!(pace.begins_on_writer() && pace.begins_on_writer());
        pace.note_long();
        let calls = std::iter::repeat_with(|| pace.begins_on_writer());
        assert_eq!(calls.take_while(|begins| !begins).count(), 32);
        assert!(pace.begins_on_writer());
    }
}
