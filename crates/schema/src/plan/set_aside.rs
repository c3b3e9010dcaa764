//! Tables that a migration function replaces (02 §14.8): which ones, and whether they are what the function takes them for.

use std::collections::BTreeMap;

use lightcone_types::AlgebraicType;

use super::bounded::clipped;
use super::compatible::upgradable;
use super::planner::Planner;
use super::refused::Refusal;
use super::step::{Step, StepKind};
use crate::def::{MigrationDef, ModuleDef, TableDef};
use crate::error::clip;
use crate::validate::old_name;

/// How the steps would change a table for which the function has an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The steps do it, with the rows as they are.
    Done,
    /// The steps rewrite the rows, so the function may do it, if it runs at all.
    Rewritten,
    /// The steps do it, unless rows forbid it, which the function can mend.
    MayFail,
    /// The steps cannot, or not for all rows.
    NeedsFunction,
}

impl<'a> Planner<'a> {
    /// Finds the tables that the function is to replace. Without any, it does not run.
    pub(super) fn find_set_aside(&mut self) {
        let (old, new) = (self.old, self.new);
        let Some(migration) = &new.migration else {
            return;
        };
        let mut found = BTreeMap::new();
        for (table, declared) in pairs(old, migration) {
            let change = change(old, new, table);
            if is_used_up(old, declared) {
                if change == Change::NeedsFunction && new.table(&table.name).is_some() {
                    self.refuse(Refusal::OldTableUsedUp {
                        table: clip(&table.name),
                        declared: clip(&declared.name),
                    });
                }
                continue;
            }
            found
                .entry(table.name.as_str())
                .or_insert((table, declared, change));
        }
        let needs = |(table, declared, change): &(&TableDef, &TableDef, Change)| match change {
            Change::NeedsFunction => true,
            Change::MayFail => difference(table, declared).is_none(),
            Change::Done | Change::Rewritten => false,
        };
        if !found.values().any(needs) {
            return;
        }
        for table in old.tables.iter().filter(|table| is_called_old(table)) {
            self.refuse(Refusal::TableCalledOld {
                table: clip(&table.name),
            });
        }
        for (name, (table, declared, change)) in found {
            match (change, difference(table, declared)) {
                (Change::Done, _) | (Change::Rewritten | Change::MayFail, Some(_)) => {}
                (_, None) => {
                    if table.outbox.is_some() {
                        self.refuse(Refusal::OutboxSetAside { table: clip(name) });
                    }
                    self.refuse_by_rows(table);
                    self.set_aside.insert(name, declared);
                }
                (Change::NeedsFunction, Some(difference)) => {
                    self.refuse(Refusal::OldTable {
                        table: clip(name),
                        declared: clip(&declared.name),
                        difference,
                    });
                    self.set_aside.insert(name, declared);
                }
            }
        }
    }

    /// Rows of schedule tables and of event tables cannot be migrated one by one.
    fn refuse_by_rows(&mut self, table: &TableDef) {
        let migration = self.new.migration.as_ref();
        if !migration.is_some_and(MigrationDef::is_by_rows) {
            return;
        }
        let new = self.new.table(&table.name);
        let why = if table.schedule.is_some() {
            "its rows call a function at their times"
        } else if new.is_some_and(|new| new.schedule.is_some()) {
            "its rows are to call a function at their times"
        } else if new.is_some_and(|new| new.is_event) {
            "it is to be an event table, which keeps no rows"
        } else {
            return;
        };
        self.refuse(Refusal::NotByRows {
            table: clip(&table.name),
            why,
        });
    }

    /// The steps for a table that is set aside: an empty one takes its place, if the new definition has one.
    pub(super) fn replace(&mut self, table: &str, declared: &TableDef) {
        self.step(Step::SetAsideTable {
            table: table.to_owned(),
            old: declared.name.clone(),
        });
        if self.new.table(table).is_some() {
            self.step(Step::AddTable {
                table: table.to_owned(),
            });
        }
        self.step(Step::RemoveOldTable {
            table: declared.name.clone(),
        });
        self.disconnect();
    }
}

/// The tables of the database that the function has an old one for: by their canonical names, or else those in the code.
fn pairs<'a>(
    old: &'a ModuleDef,
    migration: &'a MigrationDef,
) -> impl Iterator<Item = (&'a TableDef, &'a TableDef)> {
    let by_source = old.tables.iter();
    let by_source = by_source.map(|table| (table.source_name.as_str(), table));
    let by_source: BTreeMap<&str, &TableDef> = by_source.collect();
    let declared = migration.old_tables.iter();
    declared.filter_map(move |declared| {
        let name = old_name(&declared.source_name)?;
        let table = old.table(name).or_else(|| by_source.get(name).copied())?;
        // It has no rows.
        (!table.is_event).then_some((table, declared))
    })
}

/// Whether a table of the running program, which has no migration function then, has a name of those that this one's reads.
fn is_called_old(table: &TableDef) -> bool {
    let mut names = [&table.name, &table.source_name].into_iter();
    names.any(|name| old_name(name).is_some())
}

/// Whether the running program has the same declaration: what it was for is done, and its function is not to do it again.
fn is_used_up(old: &ModuleDef, declared: &TableDef) -> bool {
    fn columns(table: &TableDef) -> impl Iterator<Item = (&String, &AlgebraicType)> {
        table
            .columns
            .iter()
            .map(|column| (&column.name, &column.ty))
    }
    let migrations = old.migration.iter();
    let mut known = migrations.flat_map(|migration| &migration.old_tables);
    known.any(|known| {
        known.source_name == declared.source_name && columns(known).eq(columns(declared))
    })
}

fn change(old: &ModuleDef, new: &ModuleDef, table: &TableDef) -> Change {
    let Some(new_table) = new.table(&table.name) else {
        return Change::NeedsFunction;
    };
    let mut planner = Planner::new(old, new);
    planner.table(table, new_table);
    let mut kinds = planner.steps.iter().map(Step::kind);
    let may_fail = |kind| matches!(kind, StepKind::AddConstraint | StepKind::AddSequence);
    let rewrites =
        |step: &Step| matches!(step.kind(), StepKind::AddColumns | StepKind::ChangeColumns);
    if !planner.refused.reasons.is_empty() {
        Change::NeedsFunction
    } else if kinds.any(may_fail) {
        Change::MayFail
    } else if planner.steps.iter().any(rewrites) {
        Change::Rewritten
    } else {
        Change::Done
    }
}

/// Where the declaration differs from the table. Types may have grown, as in the steps.
fn difference(table: &TableDef, declared: &TableDef) -> Option<String> {
    let (has, says) = (table.columns.len(), declared.columns.len());
    for (position, (column, other)) in table.columns.iter().zip(&declared.columns).enumerate() {
        let (name, said) = (clip(&column.name), clip(&other.name));
        if name != said {
            return Some(format!("column {position} is `{name}`, and not `{said}`"));
        }
        if upgradable(&column.ty, &other.ty).is_err() {
            let (ty, said) = (clipped(&column.ty), clipped(&other.ty));
            return Some(format!("column `{name}` is {ty}, and not {said}"));
        }
    }
    (has != says).then(|| format!("it has {has} columns, and not {says}"))
}
