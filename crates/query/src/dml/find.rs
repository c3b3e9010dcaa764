//! Finding the rows that a statement with subqueries changes.

use lightcone_table::{RowId, Tables};
use lightcone_types::Identity;

use crate::execute::{ExecuteError, Execution, Progress};
use crate::planner::Samples;
use crate::query::Query;

/// Steps between two looks at the clock: less than a millisecond.
const PIECE_STEPS: usize = 1 << 17;

/// The rows of its first relation that a query of the owner finds, each once. `go_on` is called now and then; after false, what is
/// found so far comes back. Tables that are gone have no rows.
///
/// # Errors
/// It takes more memory than it may.
pub fn find_targets(
    query: &Query,
    sender: &Identity,
    tables: &dyn Tables,
    memory_bytes_max: usize,
    mut go_on: impl FnMut() -> bool,
) -> Result<Vec<RowId>, ExecuteError> {
    let mut found = Vec::new();
    for fragment in &query.fragments {
        let Some(tables) = fragment.read(tables) else {
            continue;
        };
        let samples = &mut Samples::default();
        let mut execution =
            Execution::new(fragment, sender, &tables, None, samples, memory_bytes_max);
        let target = fragment.own[0];
        loop {
            let mut steps = PIECE_STEPS;
            let progress = execution.run(&tables, &mut steps, |row| {
                found.extend(row.id(target));
                true
            })?;
            if progress == Progress::Done || !go_on() {
                break;
            }
        }
    }
    Ok(found)
}
