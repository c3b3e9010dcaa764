//! What a changed definition means for a database (02 §14): the steps that lead from the old one to the new one, or
//! the reasons why there are none.
//!
//! Objects are matched by canonical name, namespace included, columns by canonical name. Functions never count: a
//! module whose reducers, procedures or handlers changed can take the place of the old one as it is.

mod bounded;
mod compatible;
mod refused;
mod set_aside;
mod step;
mod tables;
mod text;
mod token;
mod views;

use std::collections::{BTreeMap, BTreeSet};

use crate::def::{MigrationDef, ModuleDef};

pub use compatible::{upgradable, Incompatible, Layout, Mismatch};
pub use refused::{Refusal, Refused};
pub use step::{Step, StepKind};
pub use text::PlanStyle;
pub use token::migration_token;

/// The steps of a migration, in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationPlan {
    /// Sorted by kind in the order of [`Step`]'s variants, then by namespace path and name (02 §14.5).
    pub steps: Vec<Step>,
}

impl MigrationPlan {
    /// True if nothing that is stored changes but the program.
    pub fn keeps_schema(&self, old: &ModuleDef, new: &ModuleDef) -> bool {
        let rules_stay = old.row_level_security == new.row_level_security;
        self.steps.iter().all(|step| match step {
            Step::UpdateView { .. } => true,
            Step::RemoveRowLevelSecurity { .. } | Step::AddRowLevelSecurity { .. } => rules_stay,
            _ => false,
        })
    }

    /// True if clients cannot go on: they are disconnected when the plan has been carried out.
    pub fn breaks_clients(&self) -> bool {
        self.steps.last() == Some(&Step::DisconnectAllUsers)
    }

    /// The tables that the migration function replaces, each with the name that it has while the function runs.
    pub fn set_aside(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            Step::SetAsideTable { table, old } => Some((table.as_str(), old.as_str())),
            _ => None,
        })
    }

    /// True if rows are migrated one by one behind the running module, before the steps are taken.
    pub fn is_backfill(&self) -> bool {
        self.steps.contains(&Step::Backfill)
    }

    /// The tables that the plan makes.
    pub fn added_tables(&self) -> BTreeSet<&str> {
        let added = self.steps.iter().filter_map(|step| match step {
            Step::AddTable { table } => Some(table.as_str()),
            _ => None,
        });
        added.collect()
    }

    /// True if code of the old definition may not go on with the tables: they have other rows, names or keys than it knows.
    pub fn changes_tables(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.kind().changes_tables())
    }
}

/// The plan that leads from `old` to `new`.
///
/// # Errors
/// There is none: every reason is listed.
pub fn plan(old: &ModuleDef, new: &ModuleDef) -> Result<MigrationPlan, Refused> {
    let mut planner = Planner::new(old, new);
    planner.find_set_aside();
    planner.tables();
    planner.views();
    planner.row_level_security();
    planner.finish()
}

/// What is known of a plan so far.
struct Planner<'a> {
    old: &'a ModuleDef,
    new: &'a ModuleDef,
    steps: Vec<Step>,
    disconnects: bool,
    refused: Refused,
    set_aside: set_aside::SetAside<'a>,
}

impl<'a> Planner<'a> {
    fn new(old: &'a ModuleDef, new: &'a ModuleDef) -> Planner<'a> {
        Planner {
            old,
            new,
            steps: Vec::new(),
            disconnects: false,
            refused: Refused::default(),
            set_aside: Default::default(),
        }
    }

    fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn disconnect(&mut self) {
        self.disconnects = true;
    }

    fn refuse(&mut self, reason: Refusal) {
        self.refused.push(reason);
    }

    fn row_level_security(&mut self) {
        let (old, new) = (self.old, self.new);
        let set = |module: &'_ ModuleDef| -> BTreeSet<String> {
            module.row_level_security.iter().cloned().collect()
        };
        if set(old) != set(new) {
            self.disconnect();
        }
        for sql in &old.row_level_security {
            self.step(Step::RemoveRowLevelSecurity { sql: sql.clone() });
        }
        for sql in &new.row_level_security {
            self.step(Step::AddRowLevelSecurity { sql: sql.clone() });
        }
    }

    fn finish(mut self) -> Result<MigrationPlan, Refused> {
        if !self.refused.reasons.is_empty() {
            return Err(self.refused);
        }
        if !self.set_aside.is_empty() {
            let migration = self.new.migration.as_ref();
            let is_by_rows = migration.is_some_and(MigrationDef::is_by_rows);
            self.steps.push(match is_by_rows {
                true => Step::Backfill,
                false => Step::RunMigration,
            });
        }
        if self.disconnects {
            self.steps.push(Step::DisconnectAllUsers);
        }
        self.steps.sort_by(Step::order);
        Ok(MigrationPlan { steps: self.steps })
    }
}

enum Pair<'a, T> {
    Added,
    Removed,
    Both(&'a T, &'a T),
}

/// Visits the objects of both sides, matched by name, in order of their names.
fn by_name<'a, T: 'a>(
    old: impl Iterator<Item = (&'a String, &'a T)>,
    new: impl Iterator<Item = (&'a String, &'a T)>,
    mut visit: impl FnMut(String, Pair<'a, T>),
) {
    let mut pairs: BTreeMap<&String, (Option<&T>, Option<&T>)> = BTreeMap::new();
    for (name, object) in old {
        pairs.entry(name).or_default().0 = Some(object);
    }
    for (name, object) in new {
        pairs.entry(name).or_default().1 = Some(object);
    }
    for (name, pair) in pairs {
        match pair {
            (Some(old), Some(new)) => visit(name.clone(), Pair::Both(old, new)),
            (Some(_), None) => visit(name.clone(), Pair::Removed),
            (None, Some(_)) => visit(name.clone(), Pair::Added),
            (None, None) => {}
        }
    }
}
