//! Statements that write, and `SET` and `SHOW`: what they say, and the checked plans of them (08 §5.3, §12.4, §12.5).

mod check;
mod find;
mod parse;

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::ColId;

use crate::ast::Expressions;
use crate::query::Query;
use crate::select_plan::SelectPlan;

pub use find::find_targets;

pub(crate) use check::{plan_set, plan_write, read_variable};

/// What a literal is written as. Where values are written, unlike in conditions, that matters (08 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Bool,
    Number,
    Text,
    Hex,
}

/// A literal that is to become the value of a column or variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub kind: ValueKind,
    /// As [`crate::ast::Literal::Text`]; `TRUE` or `FALSE` of a Bool.
    pub text: String,
}

/// A statement that changes rows, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Insert {
        table: String,
        columns: Option<Vec<String>>,
        rows: Vec<Vec<Value>>,
    },
    Update {
        table: String,
        /// Columns, dot-joined if they were qualified, and their values.
        assignments: Vec<(String, Value)>,
        condition: Option<Expressions>,
    },
    Delete {
        table: String,
        condition: Option<Expressions>,
    },
}

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
