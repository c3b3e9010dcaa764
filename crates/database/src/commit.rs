//! Committing a transaction: its record, its changes, and the clock of its round.

use std::ops::Range;

use lightcone_engine::record::put_clock;
use lightcone_engine::{CommitOutput, Datastore, DatastoreError};
use lightcone_types::Timestamp;

/// A transaction that was committed.
pub(crate) struct Committed {
    /// Its changes in [`CommitOutput::deltas`], for fan-out.
    pub changes: Range<usize>,
    /// It changed something, so it has a record.
    pub has_record: bool,
}

/// Seals the open transaction, which has to be [finished](Datastore::finish). `output` collects a round: the first record of each
/// follows a record of the time, which does not stay without it. Gives whether there is a record.
///
/// # Errors
/// Its record is too large for the log; it is taken back.
pub(crate) fn seal(
    datastore: &mut Datastore,
    output: &mut CommitOutput,
    now: Timestamp,
) -> Result<bool, DatastoreError> {
    let is_first = output.records.is_empty();
    if is_first {
        put_clock(&mut output.records, now.0);
    }
    let sealed = datastore.seal(output);
    if is_first && !matches!(sealed, Ok(true)) {
        output.records.clear();
    }
    sealed
}
