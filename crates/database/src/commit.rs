//! Committing a transaction: its record, its changes, and the clock of its round.

use std::ops::Range;

use lightcone_engine::record::put_clock;
use lightcone_engine::{CommitOutput, Datastore, DatastoreError};

use crate::environment::Environment;

/// A transaction that was committed.
pub(crate) struct Committed {
    /// Its changes in [`CommitOutput::deltas`], for fan-out.
    pub changes: Range<usize>,
    /// It changed something, so it has a record.
    pub has_record: bool,
}

/// Commits the open transaction. `output` collects a round: the first record of each follows a record of the time, which does not
/// stay without it.
///
/// # Errors
/// Its record is too large for the log; it is taken back.
pub(crate) fn commit(
    datastore: &mut Datastore,
    output: &mut CommitOutput,
    environment: &dyn Environment,
) -> Result<Committed, DatastoreError> {
    let is_first = output.records.is_empty();
    if is_first {
        put_clock(&mut output.records, environment.now().0);
    }
    let start = output.deltas.position();
    let committed = datastore.commit(output);
    if is_first && !matches!(committed, Ok(true)) {
        output.records.clear();
    }
    let has_record = committed?;
    Ok(Committed {
        changes: start..output.deltas.position(),
        has_record,
    })
}
