//! What the writer counts and others read meanwhile, without any of them waiting.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread changes and all may read: adding to it is a load and a store.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// For one thread alone: what two add at once may be lost.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What is known of a table as of the last commit that changed its rows.
#[derive(Debug, Default)]
pub struct TableCounters {
    /// Rows that came, since the table was made in this process. A row that was replaced came and went.
    pub inserted: Counter,
    pub deleted: Counter,
    pub rows: Counter,
    /// Memory of the pages that hold the rows, without indexes.
    pub bytes: Counter,
}
