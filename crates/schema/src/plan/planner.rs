//! Shared by all parts of planning: the steps, and the reasons against a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::refused::{Refusal, Refused};
use super::step::{MigrationPlan, Step};
use crate::def::{MigrationDef, ModuleDef, TableDef};

/// The tables that are set aside, with their old definitions in the function.
type SetAside<'a> = BTreeMap<&'a str, &'a TableDef>;

/// A plan in the making.
pub(super) struct Planner<'a> {
    pub old: &'a ModuleDef,
    pub new: &'a ModuleDef,
    pub steps: Vec<Step>,
    disconnects: bool,
    pub refused: Refused,
    pub set_aside: SetAside<'a>,
}

impl<'a> Planner<'a> {
    pub fn new(old: &'a ModuleDef, new: &'a ModuleDef) -> Planner<'a> {
        Planner {
            old,
            new,
            steps: Vec::new(),
            disconnects: false,
            refused: Refused::default(),
            set_aside: Default::default(),
        }
    }

    pub fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub fn disconnect(&mut self) {
        self.disconnects = true;
    }

    pub fn refuse(&mut self, reason: Refusal) {
        self.refused.push(reason);
    }

    pub fn row_level_security(&mut self) {
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

    pub fn finish(mut self) -> Result<MigrationPlan, Refused> {
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

pub(super) enum Pair<'a, T> {
    Added,
    Removed,
    Both(&'a T, &'a T),
}

/// Visits the objects of both sides, matched by name, in order of their names.
pub(super) fn by_name<'a, T>(
    [old, new]: [&'a [T]; 2],
    name: fn(&T) -> &String,
    mut visit: impl FnMut(String, Pair<'a, T>),
) {
    let mut pairs: BTreeMap<&String, (Option<&T>, Option<&T>)> = BTreeMap::new();
    for object in old {
        pairs.entry(name(object)).or_default().0 = Some(object);
    }
    for object in new {
        pairs.entry(name(object)).or_default().1 = Some(object);
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
