//! Queries on several tables that are evaluated in pieces.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{Progress, Query, Run};
use lightcone_table::{TableView, Tables};
use lightcone_types::{Identity, TableId};

use crate::budget::{Charge, ClientBudget};
use crate::error::{ReadError, Refusal};
use crate::frozen::{FrozenTable, FrozenTables};

/// What a query keeps beside its result to find it: hash tables of joins. Part of the client's budget.
pub(crate) const QUERY_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Steps between two looks at the clock: less than a millisecond.
const PIECE_STEPS: usize = 1 << 17;

/// Tables in one state, for a thread of its own.
struct Frozen(Vec<(TableId, Arc<FrozenTable>)>);

impl Tables for Frozen {
    fn table(&self, id: TableId) -> Option<&TableView> {
        let mut tables = self.0.iter();
        let (_, table) = tables.find(|(frozen, _)| *frozen == id)?;
        Some(table)
    }
}

/// A query on several tables that is being evaluated.
pub(crate) struct RunningQuery {
    run: Run,
    tables: Frozen,
    /// For what it keeps beside its result.
    charge: Charge,
}

impl RunningQuery {
    /// Freezes the tables of a query. Those that are gone are left out.
    pub fn new(
        datastore: &mut Datastore,
        frozen: &mut FrozenTables,
        query: &Arc<Query>,
        sender: Identity,
        matches_max: Option<u64>,
    ) -> RunningQuery {
        let mut ids: Vec<_> = query.read_tables().map(|table| table.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let freeze = |id| Some((id, frozen.freeze(datastore, id)?));
        let mut run = Run::new(query.clone(), sender, QUERY_MEMORY_BYTES_MAX);
        if let Some(matches_max) = matches_max {
            run.limit_matches(matches_max);
        }
        RunningQuery {
            run,
            tables: Frozen(ids.into_iter().filter_map(freeze).collect()),
            charge: Charge::default(),
        }
    }

    /// Works for less than a millisecond, and calls `visit` with what comes out until it returns false. False: there is no
    /// more.
    pub fn step(
        &mut self,
        budget: &Arc<ClientBudget>,
        visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, ReadError> {
        if self.tables.0.iter().any(|(_, table)| table.is_ended()) {
            return Err(ReadError::Ended);
        }
        let mut steps = PIECE_STEPS;
        let progress = self.run.run(&self.tables, &mut steps, visit);
        let progress = progress.map_err(|error| Refusal(error.to_string()))?;
        let more = self.run.memory_bytes().saturating_sub(self.charge.bytes());
        if more > 0 {
            self.charge.grow_in(budget, more)?;
        }
        Ok(progress == Progress::Paused)
    }
}
