//! Terms of writers.

use std::fmt;

/// The term of a writer. Each new writer of a log takes a higher one, and the log fences writers with a lower one. Epochs are
/// compared; there is no arithmetic.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Epoch(u64);

impl Epoch {
    pub const fn new(number: u64) -> Epoch {
        Epoch(number)
    }

    /// As on the disk.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
