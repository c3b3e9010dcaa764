//! The steps of a plan (02 §14.5).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::def::ModuleDef;

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident $({ $($name:ident),* })? $effect:ident $(=> $text:literal)?,)*) => {
        /// One step. Names are canonical, with namespace; the definitions have everything else about the object.
        ///
        /// `table` may be the name of a view in [`Step::ChangeColumns`], [`Step::ChangeTableAccessorName`],
        /// [`Step::ChangeColumnAccessorName`] and [`Step::ChangeAccess`]: the table that holds its rows is meant then.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $( $(#[$doc])* $step $({ $($name: String),* })?, )*
        }

        /// The kinds of steps, in the order in which they are taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StepKind {
            $( $step, )*
        }

        impl StepKind {
            /// For answers and reports.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( StepKind::$step => stringify!($step), )*
                }
            }

            /// Whether code of the old definition could not use the table any more.
            pub(super) fn changes_tables(self) -> bool {
                match self {
                    $( StepKind::$step => $effect, )*
                }
            }
        }

        impl Step {
            pub fn kind(&self) -> StepKind {
                match self {
                    $( Step::$step { .. } => StepKind::$step, )*
                }
            }

            /// What the module's log says of it, if it says something (02 §14.5).
            #[allow(unused_variables)]
            pub fn log_text(&self) -> Option<String> {
                match self {
                    $( Step::$step $({ $($name),* })? => [$(format!($text))?].into_iter().next(), )*
                }
            }

            /// The first name of one of these kinds.
            fn name_of(&self, kinds: &[&str]) -> Option<&str> {
                match self {
                    $( Step::$step $({ $($name),* })? => {
                        let names: &[(&str, &str)] = &[$($((stringify!($name), $name)),*)?];
                        let found = names.iter().find(|(kind, _)| kinds.contains(kind));
                        found.map(|(_, name)| *name)
                    } )*
                }
            }
        }
    };
}

/// Code of the old definition could not use the table any more.
const CHANGES: bool = true;
/// It could: additions do no harm to it, it finds columns by position, and no name of an object that stays is given to another one
/// without a step that changes the table. What comes with a table that was set aside counts there.
const KEEPS: bool = false;

// In the order in which they are taken, each with the names that it is about, what it does to the table, and what
// the module's log says of it.
steps! {
    /// The table gets the name `old`, under which the migration function reads it; it is not written any more. Planned calls of a
    /// schedule table are dropped.
    SetAsideTable { table, old } CHANGES => "Setting table `{table}` aside as `{old}`",
    RemoveIndex { table, index } CHANGES => "Dropping index `{index}` on table `{table}`",
    RemoveConstraint { table, constraint } CHANGES => "Dropping constraint `{constraint}` on table `{table}`",
    RemoveSequence { table, sequence } CHANGES => "Dropping sequence `{sequence}` from table `{table}`",
    RemoveSchedule { table } KEEPS => "Dropping schedule of table `{table}`",
    RemoveView { view } KEEPS,
    /// For every rule of the old definition.
    RemoveRowLevelSecurity { sql } KEEPS => "Removing row-level security `{sql}`",
    /// The table must be empty. Its indexes, constraints, sequences and schedule have no steps of their own.
    RemoveTable { table } CHANGES => "Dropping table `{table}`",
    /// Types of columns changed so that every stored row means the same in the new types; rows stay as they are.
    ChangeColumns { table } CHANGES => "Changing columns of table `{table}`",
    /// Columns of an event table changed in any way; it has no rows. What still refers to a column, such as an index
    /// that stays, follows the column's name to its new position; a primary key whose column is gone is dropped.
    ReschemaEventTable { table } CHANGES => "Changing schema of event table `{table}`",
    /// New columns at the end, with defaults. Types of the old ones may have changed as in `ChangeColumns`, which has
    /// no step of its own then.
    AddColumns { table } CHANGES,
    ChangeIndexSourceName { table, index } CHANGES => "Changing source name of index `{index}` on table `{table}`",
    ChangeTableAccessorName { table } CHANGES => "Changing accessor name of table `{table}`",
    ChangeColumnAccessorName { table, column } KEEPS => "Changing accessor name of column `{column}` of table `{table}`",
    /// With everything that belongs to it.
    AddTable { table } KEEPS => "Creating table `{table}`",
    AddIndex { table, index } KEEPS => "Creating index `{index}` on table `{table}`",
    AddConstraint { table, constraint } KEEPS => "Adding constraint `{constraint}` on table `{table}`",
    /// To a table that there was: no row may have a value that the sequence could issue.
    AddSequence { table, sequence } CHANGES => "Adding sequence `{sequence}` to table `{table}`",
    AddSchedule { table } KEEPS => "Adding schedule to table `{table}`",
    /// Other fields of an outbox than its target.
    ChangeOutbox { table } KEEPS => "Changing outbox metadata for table `{table}`",
    AddView { view } KEEPS,
    /// For every rule of the new definition.
    AddRowLevelSecurity { sql } KEEPS => "Adding row-level security `{sql}`",
    ChangeAccess { table } KEEPS,
    ChangePrimaryKey { table } CHANGES => "Changing primary key for table `{table}`",
    /// For every view that stays: its live instances are evaluated again.
    UpdateView { view } KEEPS,
    /// Of the new definition, when all but the old tables is in its new form.
    RunMigration KEEPS => "Running the migration function",
    /// Instead, if rows were migrated one by one: the new tables get their names.
    Backfill KEEPS => "All rows are migrated",
    /// With its rows, as it was set aside. `table` is the name that it has then.
    RemoveOldTable { table } KEEPS => "Dropping old table `{table}`",
    DisconnectAllUsers KEEPS => "Disconnecting all users",
}

impl Step {
    pub fn table(&self) -> Option<&str> {
        self.name_of(&["table", "view"])
    }

    /// The part of the table that changes: an index, constraint, sequence or column; or the rule.
    pub fn part(&self) -> Option<&str> {
        self.name_of(&["index", "constraint", "sequence", "column", "sql"])
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
