//! What the datastore keeps while a function of a backfill makes rows.

/// A function that makes rows of one row runs.
#[derive(Default)]
pub(crate) struct Making {
    /// Not to make them, but to delete them again.
    pub is_undo: bool,
    /// The values that counters gave, in the order in which they were asked for.
    pub generated: Vec<u8>,
    /// So many of their bytes were used.
    pub used: usize,
    /// What the function may have caught, and must not go on from: what it makes would depend on other rows.
    pub failure: Option<String>,
}
