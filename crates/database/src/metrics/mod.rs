//! What a database counts about itself. Whoever reads it never makes a thread of the database wait.

mod histogram;

pub use self::histogram::{Histogram, HistogramSnapshot, BOUNDS_NS};

/// Counters of a database that no function of its module has.
#[derive(Default)]
pub(crate) struct Metrics {
    /// For how long the writer takes nothing from its inbox, each time.
    pub rounds: Histogram,
}
