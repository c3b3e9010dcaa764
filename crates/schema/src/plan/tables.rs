//! The changes of tables (02 §14.4).

use std::collections::{BTreeMap, HashMap};

use lightcone_types::ColId;

use super::bounded::clipped;
use super::compatible::upgradable;
use super::planner::{by_name, Pair, Planner};
use super::refused::Refusal;
use super::step::Step;
use crate::def::*;
use crate::error::clip;
use crate::table::{IndexAlgorithm, OutboxDef};

impl Planner<'_> {
    pub(super) fn tables(&mut self) {
        let (old, new) = (self.old, self.new);
        let set_aside = std::mem::take(&mut self.set_aside);
        by_name(
            [&old.tables, &new.tables],
            |table| &table.name,
            |table, pair| match pair {
                Pair::Removed | Pair::Both(..) if set_aside.contains_key(table.as_str()) => {
                    self.replace(&table, set_aside[table.as_str()]);
                }
                Pair::Added => self.step(Step::AddTable { table }),
                Pair::Removed => {
                    self.step(Step::RemoveTable { table });
                    self.disconnect();
                }
                Pair::Both(old, new) => self.table(old, new),
            },
        );
        self.set_aside = set_aside;
    }

    pub(super) fn table(&mut self, old: &TableDef, new: &TableDef) {
        let table = || new.name.clone();
        if old.is_event != new.is_event {
            // Whatever else changed, the columns of the one kind say nothing about those of the other.
            return self.refuse(Refusal::EventFlag {
                table: table(),
                is_event: new.is_event,
            });
        }
        if old.access != new.access {
            self.step(Step::ChangeAccess { table: table() });
        }
        if old.source_name != new.source_name {
            self.step(Step::ChangeTableAccessorName { table: table() });
        }
        if new.is_event {
            self.event_columns(old, new);
        } else {
            self.columns(old, new);
        }
        let key = |table: &TableDef| table.primary_key.map(|key| column_name(table, key));
        if key(old) != key(new) {
            self.step(Step::ChangePrimaryKey { table: table() });
        }
        self.indexes(old, new);
        self.constraints(old, new);
        self.sequences(old, new);
        self.schedule(old, new);
        self.outbox(old, new);
    }

    /// A table without rows: anything goes.
    fn event_columns(&mut self, old: &TableDef, new: &TableDef) {
        let shape = |table: &TableDef| -> Vec<_> {
            let columns = table.columns.iter();
            columns.map(|c| (c.name.clone(), c.ty.clone())).collect()
        };
        if shape(old) == shape(new) {
            return self.column_accessors(&new.name, &old.columns, &new.columns);
        }
        self.step(Step::ReschemaEventTable {
            table: new.name.clone(),
        });
        self.disconnect();
    }

    fn columns(&mut self, old: &TableDef, new: &TableDef) {
        let (old_at, new_at) = (positions(&old.columns), positions(&new.columns));
        self.order(old, new, &new_at);
        let mut changes_types = false;
        for column in &old.columns {
            match new_at.get(column.name.as_str()) {
                Some(&at) => changes_types |= self.column_type(&new.name, column, &new.columns[at]),
                None => self.refuse(Refusal::ColumnRemoved {
                    table: new.name.clone(),
                    column: column.name.clone(),
                }),
            }
        }
        let is_added = |column: &&ColumnDef| !old_at.contains_key(column.name.as_str());
        let added: Vec<&ColumnDef> = new.columns.iter().filter(is_added).collect();
        for column in added.iter().filter(|column| column.default.is_none()) {
            self.refuse(Refusal::ColumnWithoutDefault {
                table: new.name.clone(),
                column: column.name.clone(),
            });
        }
        let table = new.name.clone();
        if !added.is_empty() {
            self.step(Step::AddColumns { table });
            self.disconnect();
        } else if changes_types {
            self.step(Step::ChangeColumns { table });
        }
        self.column_accessors(&new.name, &old.columns, &new.columns);
    }

    /// Refuses columns that are at another place than before.
    fn order(&mut self, old: &TableDef, new: &TableDef, new_at: &BTreeMap<&str, usize>) {
        let stayed = old.columns.iter().enumerate();
        let stayed: Vec<(&str, usize, usize)> = stayed
            .filter_map(|(before, column)| {
                let name = column.name.as_str();
                new_at.get(name).map(|&after| (name, before, after))
            })
            .collect();
        let in_order = stayed.windows(2).all(|pair| pair[0].2 < pair[1].2);
        if in_order && stayed.len() < old.columns.len() {
            // They moved because others are gone, which is refused by itself.
            return;
        }
        for (column, before, after) in stayed {
            if before != after {
                self.refuse(Refusal::ColumnMoved {
                    table: new.name.clone(),
                    column: column.to_owned(),
                    old: before,
                    new: after,
                });
            }
        }
    }

    /// True if the type changed in a way that leaves the rows as they are.
    pub(super) fn column_type(&mut self, table: &str, old: &ColumnDef, new: &ColumnDef) -> bool {
        if old.ty == new.ty {
            return false;
        }
        match upgradable(&old.ty, &new.ty) {
            Ok(()) => true,
            Err(why) => {
                self.refuse(Refusal::ColumnType {
                    table: table.to_owned(),
                    column: old.name.clone(),
                    old: clipped(&old.ty),
                    new: clipped(&new.ty),
                    why,
                });
                false
            }
        }
    }

    pub(super) fn column_accessors(&mut self, table: &str, old: &[ColumnDef], new: &[ColumnDef]) {
        let old: HashMap<&str, &ColumnDef> = old.iter().map(|c| (c.name.as_str(), c)).collect();
        for column in new {
            let before = old.get(column.name.as_str());
            if before.is_some_and(|before| before.source_name != column.source_name) {
                self.step(Step::ChangeColumnAccessorName {
                    table: table.to_owned(),
                    column: column.name.clone(),
                });
            }
        }
    }

    fn indexes(&mut self, old: &TableDef, new: &TableDef) {
        by_name(
            [&old.indexes, &new.indexes],
            |index| &index.name,
            |index, pair| {
                let table = new.name.clone();
                let (before, after) = match pair {
                    Pair::Added => return self.step(Step::AddIndex { table, index }),
                    Pair::Removed => return self.step(Step::RemoveIndex { table, index }),
                    Pair::Both(before, after) => (before, after),
                };
                if before.accessor_name != after.accessor_name {
                    self.refuse(Refusal::IndexAccessor {
                        table: table.clone(),
                        index: clip(&index),
                        old: before.accessor_name.as_deref().map(clip),
                        new: after.accessor_name.as_deref().map(clip),
                    });
                }
                if organisation(old, &before.algorithm) != organisation(new, &after.algorithm) {
                    self.step(Step::RemoveIndex {
                        table: table.clone(),
                        index: index.clone(),
                    });
                    // With its new source name, if that changed too.
                    self.step(Step::AddIndex { table, index });
                } else if before.source_name != after.source_name {
                    self.step(Step::ChangeIndexSourceName { table, index });
                }
            },
        );
    }

    fn constraints(&mut self, old: &TableDef, new: &TableDef) {
        by_name(
            [&old.constraints, &new.constraints],
            |constraint| &constraint.name,
            |constraint, pair| {
                let table = new.name.clone();
                match pair {
                    Pair::Added => self.step(Step::AddConstraint { table, constraint }),
                    Pair::Removed => self.step(Step::RemoveConstraint { table, constraint }),
                    Pair::Both(before, after) => {
                        let mut names = [
                            column_names(old, &before.columns),
                            column_names(new, &after.columns),
                        ];
                        // A set: columns of an event table may have changed places.
                        names.iter_mut().for_each(|names| names.sort_unstable());
                        let [before, after] = names;
                        if before != after {
                            self.refuse(Refusal::ConstraintColumns {
                                table,
                                constraint: clip(&constraint),
                                old: before,
                                new: after,
                            });
                        }
                    }
                }
            },
        );
    }

    fn sequences(&mut self, old: &TableDef, new: &TableDef) {
        by_name(
            [&old.sequences, &new.sequences],
            |sequence| &sequence.name,
            |sequence, pair| {
                let table = new.name.clone();
                match pair {
                    Pair::Added => self.step(Step::AddSequence { table, sequence }),
                    Pair::Removed => self.step(Step::RemoveSequence { table, sequence }),
                    Pair::Both(before, after) => {
                        if column_name(old, before.column) != column_name(new, after.column) {
                            self.step(Step::RemoveSequence {
                                table: table.clone(),
                                sequence: sequence.clone(),
                            });
                            self.step(Step::AddSequence { table, sequence });
                        }
                    }
                }
            },
        );
    }

    fn schedule(&mut self, old: &TableDef, new: &TableDef) {
        let parts = |table: &TableDef| {
            let schedule = table.schedule.as_ref()?;
            let at = column_name(table, schedule.at_column);
            let name = schedule.name.clone();
            let function = schedule.function_name.clone();
            Some((name, function, schedule.function_kind, at))
        };
        let (before, after) = (parts(old), parts(new));
        if before == after {
            return;
        }
        let table = || new.name.clone();
        if before.is_some() {
            self.step(Step::RemoveSchedule { table: table() });
        }
        if after.is_some() {
            self.step(Step::AddSchedule { table: table() });
        }
    }

    /// What waits in an outbox table was inserted for its key and its target.
    fn outbox(&mut self, old: &TableDef, new: &TableDef) {
        let table = || new.name.clone();
        let (before, after) = match (&old.outbox, &new.outbox) {
            (None, None) => return,
            (Some(before), Some(after)) => (before, after),
            (_, after) => {
                return self.refuse(Refusal::Outbox {
                    table: table(),
                    is_added: after.is_some(),
                });
            }
        };
        let key = |table: &TableDef| table.primary_key.map(|key| column_name(table, key));
        let target =
            |table: &TableDef, outbox: &OutboxDef| Some(column_name(table, outbox.target_column));
        let kept = [
            ("primary key", key(old), key(new)),
            ("target column", target(old, before), target(new, after)),
        ];
        for (what, old, new) in kept {
            if old != new {
                self.refuse(Refusal::OutboxColumn {
                    what,
                    table: table(),
                    old: old.unwrap_or_default(),
                    new: new.unwrap_or_default(),
                });
            }
        }
        if before != after {
            self.step(Step::ChangeOutbox { table: table() });
        }
    }
}

fn positions(columns: &[ColumnDef]) -> BTreeMap<&str, usize> {
    let names = columns.iter().map(|column| column.name.as_str());
    names.zip(0..).collect()
}

/// The organisation of an index, by names: positions of columns differ between definitions.
fn organisation(table: &TableDef, algorithm: &IndexAlgorithm) -> (&'static str, Vec<String>) {
    (algorithm.suffix(), column_names(table, algorithm.columns()))
}

pub(super) fn column_name(table: &TableDef, column: ColId) -> String {
    table
        .columns
        .get(column.index())
        .map_or_else(|| format!("col_{column}"), |c| c.name.clone())
}

pub(super) fn column_names(table: &TableDef, columns: &[ColId]) -> Vec<String> {
    let columns = columns.iter();
    columns.map(|column| column_name(table, *column)).collect()
}
