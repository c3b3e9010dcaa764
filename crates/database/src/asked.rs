//! Queries that are run once: on one table as ever, on several by the executor for joins.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{Progress, Query, Run, SelectPlan, Tables};
use lightcone_schema::TableSchema;
use lightcone_table::TableView;
use lightcone_types::{Identity, ProductType, TableId};

use crate::answer::ReadError;
use crate::budget::{Charge, ClientBudget};
use crate::frozen::{FrozenTable, FrozenTables};
use crate::windows::WindowShape;

/// What a query keeps beside its result to find it: hash tables of joins. Part of the client's budget.
pub(crate) const QUERY_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Steps between two looks at the clock: less than a millisecond.
const PIECE_STEPS: usize = 1 << 17;

/// A query as a client has asked it.
#[derive(Clone)]
pub(crate) enum Asked {
    /// On one table.
    Plan(Arc<SelectPlan>),
    /// On several, or in several fragments.
    Query(Arc<Query>, Identity),
    /// A live window. The writer knows its rows.
    Window(Arc<WindowRows>),
}

/// A window that is subscribed to, or is about to be. The query finds its rows where no index does.
pub(crate) struct WindowRows {
    pub query: Query,
    pub sender: Identity,
    pub shape: Arc<WindowShape>,
    pub key: Box<[u8]>,
}

impl Asked {
    pub fn new(query: Query, sender: Identity) -> Asked {
        match query.only_select_plan(&sender) {
            Some(plan) => Asked::Plan(Arc::new(plan)),
            None => Asked::Query(Arc::new(query), sender),
        }
    }

    /// Bytes at the start of each row that is found which are not for the client.
    pub fn hidden_bytes(&self) -> usize {
        match self {
            Asked::Plan(plan) => plan.table.hidden_bytes(),
            Asked::Window(rows) => rows.shape.table.hidden_bytes(),
            // The executor gives rows as they are declared.
            Asked::Query(..) => 0,
        }
    }

    /// The tables that its text names, in its order.
    pub fn named_tables(&self) -> Vec<&Arc<TableSchema>> {
        match self {
            Asked::Plan(plan) => vec![&plan.table],
            Asked::Query(query, _) => query.named_tables().collect(),
            Asked::Window(rows) => rows.query.named_tables().collect(),
        }
    }

    /// The tables that it reads; some more than once.
    pub fn read_tables(&self) -> Vec<&Arc<TableSchema>> {
        match self {
            Asked::Plan(plan) => vec![&plan.table],
            Asked::Query(query, _) => query.read_tables().collect(),
            Asked::Window(rows) => vec![&rows.shape.table],
        }
    }

    /// Whether it reads views, of whose rows the caller may see a part only.
    pub fn reads_views(&self) -> bool {
        match self {
            Asked::Plan(plan) => plan.table.view.is_some(),
            Asked::Query(query, _) => query.read_tables().any(|table| table.view.is_some()),
            Asked::Window(rows) => rows.shape.table.view.is_some(),
        }
    }

    /// Whether row-level security rules are drawn in.
    pub fn has_rules(&self) -> bool {
        match self {
            Asked::Plan(plan) => plan.fragment.is_some(),
            Asked::Query(query, _) => query.has_rules(),
            Asked::Window(rows) => rows.query.has_rules(),
        }
    }

    /// Bytes of memory that are its own.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Asked::Plan(plan) => plan.memory_bytes(),
            Asked::Query(query, _) => query.memory_bytes(),
            Asked::Window(rows) => {
                size_of::<WindowRows>() + rows.query.memory_bytes() + rows.key.len()
            }
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Asked::Plan(plan) => &plan.text,
            Asked::Query(query, _) => &query.text,
            Asked::Window(rows) => &rows.query.text,
        }
    }

    /// The table whose rows come out.
    pub fn table(&self) -> Option<&Arc<TableSchema>> {
        match self {
            Asked::Plan(plan) => Some(&plan.table),
            Asked::Query(query, _) => query.returned_table(),
            Asked::Window(rows) => Some(&rows.shape.table),
        }
    }

    pub fn output_type(&self) -> ProductType {
        match self {
            Asked::Plan(plan) => plan.output_type(),
            Asked::Query(query, _) => query.output_type(),
            Asked::Window(rows) => rows.query.output_type(),
        }
    }
}

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
pub(crate) struct Running {
    run: Run,
    tables: Frozen,
    /// For what it keeps beside its result.
    charge: Charge,
}

impl Running {
    /// Freezes the tables of a query. Those that are gone are left out.
    pub fn new(
        datastore: &mut Datastore,
        frozen: &mut FrozenTables,
        query: &Arc<Query>,
        sender: Identity,
        matches_max: Option<u64>,
    ) -> Running {
        let mut ids: Vec<_> = query.read_tables().map(|table| table.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let freeze = |id| Some((id, frozen.freeze(datastore, id)?));
        let mut run = Run::new(query.clone(), sender, QUERY_MEMORY_BYTES_MAX);
        if let Some(matches_max) = matches_max {
            run.limit_matches(matches_max);
        }
        Running {
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
        let progress = progress.map_err(|error| ReadError::Query(error.to_string()))?;
        let more = self.run.memory_bytes().saturating_sub(self.charge.bytes());
        if more > 0 {
            let charged = self.charge.grow_in(budget, more);
            charged.map_err(ReadError::Exceeded)?;
        }
        Ok(progress == Progress::Paused)
    }
}
