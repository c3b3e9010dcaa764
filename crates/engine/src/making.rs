//! What the datastore keeps while a function of a backfill makes rows.

/// A function that makes rows of one row runs.
#[derive(Default)]
pub(crate) struct Making {
    /// The function runs again for a row that goes: what it inserts is deleted.
    pub is_undo: bool,
    /// The values that counters gave, in order.
    pub generated: Vec<u8>,
    /// So many of their bytes were used.
    pub used: usize,
    /// The first insert that failed. The backfill ends even if the function has caught the error, as what it makes would depend on
    /// other rows.
    pub failure: Option<String>,
}
