//! What a changed definition means for a database (02 §14): the steps that lead from the old one to the new one, or
//! the reasons why there are none.
//!
//! Objects are matched by canonical name, namespace included, columns by canonical name. Functions never count: a
//! module whose reducers, procedures or handlers changed can take the place of the old one as it is.

mod text;

pub use text::{migration_token, unchanged_plan_text, PlanStyle};

/// The steps of a migration, in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationPlan {
    /// Sorted by kind in the order of [`Step`]'s variants, then by namespace path and name (02 §14.5).
    pub steps: Vec<Step>,
}

/// One step. Names are canonical, with namespace; everything else about the object is in the old and new definition.
///
/// `table` may be the name of a view in [`Step::ChangeColumns`], [`Step::ChangeTableAccessorName`],
/// [`Step::ChangeColumnAccessorName`] and [`Step::ChangeAccess`]: the table that holds its rows is meant then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    RemoveIndex { table: String, index: String },
    RemoveConstraint { table: String, constraint: String },
    RemoveSequence { table: String, sequence: String },
    RemoveSchedule { table: String },
    RemoveView { view: String },
    /// Of every rule of the old definition.
    RemoveRowLevelSecurity { sql: String },
    /// The table must be empty. Its indexes, constraints, sequences and schedule have no steps of their own.
    RemoveTable { table: String },
    /// Types of columns changed so that every stored row means the same in the new types; rows stay as they are.
    ChangeColumns { table: String },
    /// Columns of an event table changed in any way; it has no rows. What still refers to a column, such as an index
    /// that stays, follows the column's name to its new position; a primary key whose column is gone is dropped.
    ReschemaEventTable { table: String },
    /// New columns at the end, with defaults. Types of the old ones may have changed as in `ChangeColumns`, which has
    /// no step of its own then.
    AddColumns { table: String },
    ChangeIndexSourceName { table: String, index: String },
    ChangeTableAccessorName { table: String },
    ChangeColumnAccessorName { table: String, column: String },
    /// With everything that belongs to it.
    AddTable { table: String },
    AddIndex { table: String, index: String },
    AddConstraint { table: String, constraint: String },
    /// To a table that there was: no row may have a value that the sequence could issue.
    AddSequence { table: String, sequence: String },
    AddSchedule { table: String },
    AddView { view: String },
    /// Of every rule of the new definition.
    AddRowLevelSecurity { sql: String },
    ChangeAccess { table: String },
    ChangePrimaryKey { table: String },
    /// Of every view that stays: its live instances are evaluated again.
    UpdateView { view: String },
    DisconnectAllUsers,
}

impl MigrationPlan {
    /// True if clients cannot go on: they are disconnected when the plan has been carried out.
    pub fn breaks_clients(&self) -> bool {
        self.steps.last() == Some(&Step::DisconnectAllUsers)
    }
}

