//! The checked plans of statements that write.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::ColId;

use crate::query::Query;
use crate::select_plan::SelectPlan;

/// A checked statement that changes rows. Its caller may.
#[derive(Clone, Debug)]
pub struct WritePlan {
    pub table: Arc<TableSchema>,
    pub change: RowChange,
}

/// A column and its new value, in BSATN.
pub type NewValue = (ColId, Box<[u8]>);

/// The rows of its table that a statement changes.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Those of which a condition is true.
    Plan(Box<SelectPlan>),
    /// The same, of a condition with subqueries.
    Query(Arc<Query>),
}

impl Targets {
    /// The plan of a condition without subqueries.
    pub fn plan(&self) -> Option<&SelectPlan> {
        match self {
            Targets::Plan(plan) => Some(plan),
            Targets::Query(_) => None,
        }
    }
}

/// What a statement does with rows of its table.
#[derive(Clone, Debug)]
pub enum RowChange {
    /// Inserts these rows, in BSATN, in this order.
    Insert(Vec<Box<[u8]>>),
    /// Gives these columns these values in the rows that the query finds.
    Update {
        rows: Targets,
        values: Vec<NewValue>,
    },
    /// Deletes the rows that the query finds.
    Delete { rows: Targets },
    /// Inserts this row in place of the one with the same primary key.
    Put(Box<[u8]>),
}
