//! Whether a function runs on the writer or beside it.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// So many brief runs in a row, and a function runs on the writer.
const BRIEF_RUNS: i32 = 8;
/// So many more for one that ran there and was not brief.
const PENALTY_RUNS: i32 = 256;
/// A run that computes for longer is not brief.
const BRIEF_MAX: Duration = Duration::from_millis(5);
/// A run on the writer that holds it up for longer was not brief; others may have had the processor meanwhile.
const HELD_UP_MAX: Duration = Duration::from_millis(250);

/// What is known of how a function runs.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Brief runs in a row; below zero after one that was expected to be brief and was not.
    brief_runs: AtomicI32,
    /// It waited once. It may wait again, and does not run on the writer any more.
    waits: AtomicBool,
}

impl Placement {
    /// It holds up nobody, as far as one can know.
    pub fn is_brief(&self) -> bool {
        !self.waits() && self.brief_runs.load(Ordering::Relaxed) >= BRIEF_RUNS
    }

    /// It was seen to wait.
    pub fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// It waits for a time or a request.
    pub fn note_wait(&self) {
        self.waits.store(true, Ordering::Relaxed);
    }

    /// A run beside the writer has ended that computed for so long.
    pub fn note_run(&self, computed: Duration) {
        match computed < BRIEF_MAX {
            true if self.brief_runs.load(Ordering::Relaxed) < BRIEF_RUNS => {
                self.brief_runs.fetch_add(1, Ordering::Relaxed);
            }
            true => {}
            false => {
                self.brief_runs.fetch_min(0, Ordering::Relaxed);
            }
        }
    }

    /// A run on the writer has ended that held it up for so long.
    pub fn note_run_on_writer(&self, held_up: Duration) {
        if held_up >= HELD_UP_MAX {
            self.brief_runs.store(-PENALTY_RUNS, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief(placement: &Placement, runs: i32) {
        for _ in 0..runs {
            placement.note_run(Duration::from_micros(10));
        }
    }

    #[test]
    fn a_function_earns_its_place_on_the_writer_and_loses_it() {
        let placement = Placement::default();
        assert!(!placement.is_brief());
        brief(&placement, BRIEF_RUNS - 1);
        placement.note_run(BRIEF_MAX);
        brief(&placement, BRIEF_RUNS - 1);
        assert!(!placement.is_brief());
        brief(&placement, 100);
        assert!(placement.is_brief());
        placement.note_run_on_writer(HELD_UP_MAX / 2);
        assert!(placement.is_brief());
        placement.note_run_on_writer(HELD_UP_MAX);
        brief(&placement, PENALTY_RUNS);
        assert!(!placement.is_brief());
        brief(&placement, BRIEF_RUNS);
        assert!(placement.is_brief());
        placement.note_wait();
        brief(&placement, 1000);
        assert!(!placement.is_brief());
    }
}
