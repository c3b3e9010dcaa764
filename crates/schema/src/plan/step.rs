//! The steps of a plan (02 §14.5).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::def::ModuleDef;

/// One step. Names are canonical, with namespace; the definitions have everything else about the object.
///
/// `table` may be the name of a view in [`Step::ChangeColumns`], [`Step::ChangeTableAccessorName`],
/// [`Step::ChangeColumnAccessorName`] and [`Step::ChangeAccess`]: the table that holds its rows is meant then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The table gets the name `old`, under which the migration function reads it; it is not written any more. Planned calls of a
    /// schedule table are dropped.
    SetAsideTable {
        table: String,
        old: String,
    },
    RemoveIndex {
        table: String,
        index: String,
    },
    RemoveConstraint {
        table: String,
        constraint: String,
    },
    RemoveSequence {
        table: String,
        sequence: String,
    },
    RemoveSchedule {
        table: String,
    },
    RemoveView {
        view: String,
    },
    /// For every rule of the old definition.
    RemoveRowLevelSecurity {
        sql: String,
    },
    /// The table must be empty. Its indexes, constraints, sequences and schedule have no steps of their own.
    RemoveTable {
        table: String,
    },
    /// Types of columns changed so that every stored row means the same in the new types; rows stay as they are.
    ChangeColumns {
        table: String,
    },
    /// Columns of an event table changed in any way; it has no rows. What still refers to a column, such as an index
    /// that stays, follows the column's name to its new position; a primary key whose column is gone is dropped.
    ReschemaEventTable {
        table: String,
    },
    /// New columns at the end, with defaults. Types of the old ones may have changed as in `ChangeColumns`, which has
    /// no step of its own then.
    AddColumns {
        table: String,
    },
    ChangeIndexSourceName {
        table: String,
        index: String,
    },
    ChangeTableAccessorName {
        table: String,
    },
    ChangeColumnAccessorName {
        table: String,
        column: String,
    },
    /// With everything that belongs to it.
    AddTable {
        table: String,
    },
    AddIndex {
        table: String,
        index: String,
    },
    AddConstraint {
        table: String,
        constraint: String,
    },
    /// To a table that there was: no row may have a value that the sequence could issue.
    AddSequence {
        table: String,
        sequence: String,
    },
    AddSchedule {
        table: String,
    },
    AddView {
        view: String,
    },
    /// For every rule of the new definition.
    AddRowLevelSecurity {
        sql: String,
    },
    ChangeAccess {
        table: String,
    },
    ChangePrimaryKey {
        table: String,
    },
    /// For every view that stays: its live instances are evaluated again.
    UpdateView {
        view: String,
    },
    /// Runs the function of the new definition, when all but the old tables is in its new form.
    RunMigration,
    /// Instead, if rows were migrated one by one: the new tables get their names.
    Backfill,
    /// With its rows, as it was set aside. `table` is the name that it has then.
    RemoveOldTable {
        table: String,
    },
    DisconnectAllUsers,
}

/// The kinds of steps, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    SetAsideTable,
    RemoveIndex,
    RemoveConstraint,
    RemoveSequence,
    RemoveSchedule,
    RemoveView,
    RemoveRowLevelSecurity,
    RemoveTable,
    ChangeColumns,
    ReschemaEventTable,
    AddColumns,
    ChangeIndexSourceName,
    ChangeTableAccessorName,
    ChangeColumnAccessorName,
    AddTable,
    AddIndex,
    AddConstraint,
    AddSequence,
    AddSchedule,
    AddView,
    AddRowLevelSecurity,
    ChangeAccess,
    ChangePrimaryKey,
    UpdateView,
    RunMigration,
    Backfill,
    RemoveOldTable,
    DisconnectAllUsers,
}

impl StepKind {
    /// Whether code of the old definition could not use the table any more. Additions do no harm to it.
    pub(super) fn changes_tables(self) -> bool {
        match self {
            StepKind::SetAsideTable
            | StepKind::RemoveIndex
            | StepKind::RemoveConstraint
            | StepKind::RemoveSequence
            | StepKind::RemoveTable
            | StepKind::ChangeColumns
            | StepKind::ReschemaEventTable
            | StepKind::AddColumns
            | StepKind::ChangeIndexSourceName
            | StepKind::ChangeTableAccessorName
            | StepKind::AddSequence
            | StepKind::ChangePrimaryKey => true,
            // No name of an object that stays is given to another one without a step of the above.
            StepKind::AddTable
            | StepKind::AddIndex
            | StepKind::AddConstraint
            | StepKind::AddSchedule
            | StepKind::RemoveSchedule
            | StepKind::AddView
            | StepKind::RemoveView
            | StepKind::UpdateView
            | StepKind::AddRowLevelSecurity
            | StepKind::RemoveRowLevelSecurity
            | StepKind::ChangeAccess
            // Code finds columns by position.
            | StepKind::ChangeColumnAccessorName
            // They come with a table that was set aside.
            | StepKind::RunMigration
            | StepKind::Backfill
            | StepKind::RemoveOldTable
            | StepKind::DisconnectAllUsers => false,
        }
    }

    /// For answers and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::SetAsideTable => "SetAsideTable",
            StepKind::RunMigration => "RunMigration",
            StepKind::Backfill => "Backfill",
            StepKind::RemoveOldTable => "RemoveOldTable",
            StepKind::RemoveIndex => "RemoveIndex",
            StepKind::RemoveConstraint => "RemoveConstraint",
            StepKind::RemoveSequence => "RemoveSequence",
            StepKind::RemoveSchedule => "RemoveSchedule",
            StepKind::RemoveView => "RemoveView",
            StepKind::RemoveRowLevelSecurity => "RemoveRowLevelSecurity",
            StepKind::RemoveTable => "RemoveTable",
            StepKind::ChangeColumns => "ChangeColumns",
            StepKind::ReschemaEventTable => "ReschemaEventTable",
            StepKind::AddColumns => "AddColumns",
            StepKind::ChangeIndexSourceName => "ChangeIndexSourceName",
            StepKind::ChangeTableAccessorName => "ChangeTableAccessorName",
            StepKind::ChangeColumnAccessorName => "ChangeColumnAccessorName",
            StepKind::AddTable => "AddTable",
            StepKind::AddIndex => "AddIndex",
            StepKind::AddConstraint => "AddConstraint",
            StepKind::AddSequence => "AddSequence",
            StepKind::AddSchedule => "AddSchedule",
            StepKind::AddView => "AddView",
            StepKind::AddRowLevelSecurity => "AddRowLevelSecurity",
            StepKind::ChangeAccess => "ChangeAccess",
            StepKind::ChangePrimaryKey => "ChangePrimaryKey",
            StepKind::UpdateView => "UpdateView",
            StepKind::DisconnectAllUsers => "DisconnectAllUsers",
        }
    }
}

impl Step {
    pub fn kind(&self) -> StepKind {
        match self {
            Step::SetAsideTable { .. } => StepKind::SetAsideTable,
            Step::RunMigration => StepKind::RunMigration,
            Step::Backfill => StepKind::Backfill,
            Step::RemoveOldTable { .. } => StepKind::RemoveOldTable,
            Step::RemoveIndex { .. } => StepKind::RemoveIndex,
            Step::RemoveConstraint { .. } => StepKind::RemoveConstraint,
            Step::RemoveSequence { .. } => StepKind::RemoveSequence,
            Step::RemoveSchedule { .. } => StepKind::RemoveSchedule,
            Step::RemoveView { .. } => StepKind::RemoveView,
            Step::RemoveRowLevelSecurity { .. } => StepKind::RemoveRowLevelSecurity,
            Step::RemoveTable { .. } => StepKind::RemoveTable,
            Step::ChangeColumns { .. } => StepKind::ChangeColumns,
            Step::ReschemaEventTable { .. } => StepKind::ReschemaEventTable,
            Step::AddColumns { .. } => StepKind::AddColumns,
            Step::ChangeIndexSourceName { .. } => StepKind::ChangeIndexSourceName,
            Step::ChangeTableAccessorName { .. } => StepKind::ChangeTableAccessorName,
            Step::ChangeColumnAccessorName { .. } => StepKind::ChangeColumnAccessorName,
            Step::AddTable { .. } => StepKind::AddTable,
            Step::AddIndex { .. } => StepKind::AddIndex,
            Step::AddConstraint { .. } => StepKind::AddConstraint,
            Step::AddSequence { .. } => StepKind::AddSequence,
            Step::AddSchedule { .. } => StepKind::AddSchedule,
            Step::AddView { .. } => StepKind::AddView,
            Step::AddRowLevelSecurity { .. } => StepKind::AddRowLevelSecurity,
            Step::ChangeAccess { .. } => StepKind::ChangeAccess,
            Step::ChangePrimaryKey { .. } => StepKind::ChangePrimaryKey,
            Step::UpdateView { .. } => StepKind::UpdateView,
            Step::DisconnectAllUsers => StepKind::DisconnectAllUsers,
        }
    }

    pub fn table(&self) -> Option<&str> {
        match self {
            Step::SetAsideTable { table, .. }
            | Step::RemoveOldTable { table }
            | Step::RemoveIndex { table, .. }
            | Step::RemoveConstraint { table, .. }
            | Step::RemoveSequence { table, .. }
            | Step::RemoveSchedule { table }
            | Step::RemoveView { view: table }
            | Step::RemoveTable { table }
            | Step::ChangeColumns { table }
            | Step::ReschemaEventTable { table }
            | Step::AddColumns { table }
            | Step::ChangeIndexSourceName { table, .. }
            | Step::ChangeTableAccessorName { table }
            | Step::ChangeColumnAccessorName { table, .. }
            | Step::AddTable { table }
            | Step::AddIndex { table, .. }
            | Step::AddConstraint { table, .. }
            | Step::AddSequence { table, .. }
            | Step::AddSchedule { table }
            | Step::AddView { view: table }
            | Step::ChangeAccess { table }
            | Step::ChangePrimaryKey { table }
            | Step::UpdateView { view: table } => Some(table),
            Step::RemoveRowLevelSecurity { .. }
            | Step::AddRowLevelSecurity { .. }
            | Step::RunMigration
            | Step::Backfill
            | Step::DisconnectAllUsers => None,
        }
    }

    /// The part of the table that changes: an index, constraint, sequence or column; or the rule.
    pub fn part(&self) -> Option<&str> {
        match self {
            Step::RemoveIndex { index: part, .. }
            | Step::ChangeIndexSourceName { index: part, .. }
            | Step::AddIndex { index: part, .. }
            | Step::RemoveConstraint {
                constraint: part, ..
            }
            | Step::AddConstraint {
                constraint: part, ..
            }
            | Step::RemoveSequence { sequence: part, .. }
            | Step::AddSequence { sequence: part, .. }
            | Step::ChangeColumnAccessorName { column: part, .. }
            | Step::RemoveRowLevelSecurity { sql: part }
            | Step::AddRowLevelSecurity { sql: part } => Some(part),
            _ => None,
        }
    }

    /// Which of two steps is taken first: by kind, then by namespace path and name. The root's objects come before those of
    /// submodules.
    pub(super) fn order(&self, other: &Step) -> Ordering {
        let paths = || {
            namespace(self.table())
                .split('.')
                .cmp(namespace(other.table()).split('.'))
        };
        self.kind()
            .cmp(&other.kind())
            .then_with(paths)
            .then_with(|| self.name().cmp(&other.name()))
    }

    /// The order among steps of one kind. Columns have no names of their own.
    fn name(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Step::ChangeColumnAccessorName { table, column } => (Some(table), Some(column)),
            _ => (self.part().or(self.table()), self.table()),
        }
    }
}

/// Empty for what is in no submodule, which is the smallest path.
fn namespace(name: Option<&str>) -> &str {
    name.and_then(|name| name.rsplit_once('.'))
        .map_or("", |(path, _)| path)
}

/// The steps of a migration, in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationPlan {
    /// Sorted by kind in the order of [`Step`]'s variants, then by namespace path and name (02 §14.5).
    pub steps: Vec<Step>,
}

impl MigrationPlan {
    /// Whether nothing that is stored changes but the program.
    pub fn keeps_schema(&self, old: &ModuleDef, new: &ModuleDef) -> bool {
        let rules_stay = old.row_level_security == new.row_level_security;
        self.steps.iter().all(|step| match step {
            Step::UpdateView { .. } => true,
            Step::RemoveRowLevelSecurity { .. } | Step::AddRowLevelSecurity { .. } => rules_stay,
            _ => false,
        })
    }

    /// Whether clients are disconnected after the plan.
    pub fn breaks_clients(&self) -> bool {
        self.steps.last() == Some(&Step::DisconnectAllUsers)
    }

    /// The tables that the migration function replaces, with their names while it runs.
    pub fn set_aside(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            Step::SetAsideTable { table, old } => Some((table.as_str(), old.as_str())),
            _ => None,
        })
    }

    /// Whether rows are migrated one by one behind the running module, before the steps.
    pub fn is_backfill(&self) -> bool {
        self.steps.contains(&Step::Backfill)
    }

    pub fn added_tables(&self) -> BTreeSet<&str> {
        let added = self.steps.iter().filter_map(|step| match step {
            Step::AddTable { table } => Some(table.as_str()),
            _ => None,
        });
        added.collect()
    }

    /// Whether code of the old definition could not use the tables: their rows, names or keys differ.
    pub fn changes_tables(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.kind().changes_tables())
    }
}
