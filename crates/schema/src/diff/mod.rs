//! Comparing the running definition with a new one (02 §14.4).
//!
//! Objects are matched by canonical name, namespace included. Functions never differ: a module whose
//! reducers, procedures or handlers changed can take the place of the old one as it is.

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lightcone_types::ColId;

use crate::def::*;
use crate::table::IndexAlgorithm;

pub use change::{SchemaChange, TableChange, ViewChange};

/// Every difference between two definitions, by table and view, in order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaDiff {
    pub changes: Vec<SchemaChange>,
}

impl SchemaDiff {
    /// True if the new module may take the old one's place without touching stored data.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for SchemaDiff {
    /// One line per difference, each beginning `- `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, change) in self.changes.iter().enumerate() {
            write!(f, "{}- {change}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Everything in which `new` differs from `old`.
pub fn diff(old: &ModuleDef, new: &ModuleDef) -> SchemaDiff {
    let mut changes = Vec::new();
    by_name(
        old.tables.iter().map(|t| (&t.name, t)),
        new.tables.iter().map(|t| (&t.name, t)),
        |table, pair| match pair {
            Pair::Added(_) => changes.push(SchemaChange::TableAdded { table }),
            Pair::Removed => changes.push(SchemaChange::TableRemoved { table }),
            Pair::Both(old, new) => {
                let mut found = Vec::new();
                diff_table(old, new, &mut found);
                changes.extend(found.into_iter().map(|change| SchemaChange::Table {
                    table: table.clone(),
                    change,
                }));
            }
        },
    );
    by_name(
        old.views.iter().map(|v| (&v.name, v)),
        new.views.iter().map(|v| (&v.name, v)),
        |view, pair| match pair {
            Pair::Added(_) => changes.push(SchemaChange::ViewAdded { view }),
            Pair::Removed => changes.push(SchemaChange::ViewRemoved { view }),
            Pair::Both(old, new) => {
                let found = diff_view(old, new);
                changes.extend(found.into_iter().map(|change| SchemaChange::View {
                    view: view.clone(),
                    change,
                }));
            }
        },
    );
    let old_rules: BTreeSet<&String> = old.row_level_security.iter().collect();
    let new_rules: BTreeSet<&String> = new.row_level_security.iter().collect();
    let gone = old_rules.difference(&new_rules);
    changes.extend(gone.map(|sql| SchemaChange::RowLevelSecurityRemoved {
        sql: (*sql).clone(),
    }));
    let added = new_rules.difference(&old_rules);
    changes.extend(added.map(|sql| SchemaChange::RowLevelSecurityAdded {
        sql: (*sql).clone(),
    }));
    SchemaDiff { changes }
}

enum Pair<'a, T> {
    Added(&'a T),
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
            (None, Some(new)) => visit(name.clone(), Pair::Added(new)),
            (None, None) => {}
        }
    }
}

fn diff_table(old: &TableDef, new: &TableDef, out: &mut Vec<TableChange>) {
    use TableChange as T;
    if old.is_event != new.is_event {
        out.push(T::EventFlag { new: new.is_event });
    }
    if old.access != new.access {
        out.push(T::Access {
            old: old.access,
            new: new.access,
        });
    }
    if old.source_name != new.source_name {
        out.push(T::Accessor {
            old: old.source_name.clone(),
            new: new.source_name.clone(),
        });
    }
    diff_columns(old, new, out);
    let old_key = old.primary_key.map(|key| column_name(&old.columns, key));
    let new_key = new.primary_key.map(|key| column_name(&new.columns, key));
    if old_key != new_key {
        out.push(T::PrimaryKey {
            old: old_key,
            new: new_key,
        });
    }
    diff_indexes(old, new, out);
    diff_constraints(old, new, out);
    diff_sequences(old, new, out);
    match (&old.schedule, &new.schedule) {
        (None, None) => {}
        (None, Some(new)) => out.push(T::ScheduleAdded {
            function: new.function_name.clone(),
        }),
        (Some(old), None) => out.push(T::ScheduleRemoved {
            function: old.function_name.clone(),
        }),
        (Some(old_schedule), Some(new_schedule)) => {
            let old = schedule_text(old, old_schedule);
            let new = schedule_text(new, new_schedule);
            if old != new {
                out.push(T::ScheduleChanged { old, new });
            }
        }
    }
}

fn schedule_text(table: &TableDef, schedule: &ScheduleDef) -> String {
    let kind = match schedule.function_kind {
        ScheduledFunctionKind::Reducer => "reducer",
        ScheduledFunctionKind::Procedure => "procedure",
    };
    let column = column_name(&table.columns, schedule.at_column);
    format!("{kind} `{}` at column `{column}`", schedule.function_name)
}

fn diff_columns(old: &TableDef, new: &TableDef, out: &mut Vec<TableChange>) {
    use TableChange as T;
    // In column order rather than by name: that is how people read a table.
    let old_by_name: BTreeMap<&str, (ColId, &ColumnDef)> = columns(&old.columns).collect();
    let new_by_name: BTreeMap<&str, (ColId, &ColumnDef)> = columns(&new.columns).collect();
    for (name, (old_id, old)) in columns(&old.columns) {
        let column = name.to_owned();
        let Some(&(new_id, new)) = new_by_name.get(name) else {
            out.push(T::ColumnRemoved { column });
            continue;
        };
        if old.ty != new.ty {
            out.push(T::ColumnType {
                column: column.clone(),
                old: old.ty.clone(),
                new: new.ty.clone(),
            });
        }
        if old.source_name != new.source_name {
            let (old, new) = (old.source_name.clone(), new.source_name.clone());
            out.push(T::ColumnAccessor {
                column: column.clone(),
                old,
                new,
            });
        }
        if old_id != new_id {
            out.push(T::ColumnMoved {
                column,
                old: old_id,
                new: new_id,
            });
        }
    }
    for (name, (_, new)) in columns(&new.columns) {
        if !old_by_name.contains_key(name) {
            let (ty, has_default) = (new.ty.clone(), new.default.is_some());
            out.push(T::ColumnAdded {
                column: name.to_owned(),
                ty,
                has_default,
            });
        }
    }
}

fn columns(columns: &[ColumnDef]) -> impl Iterator<Item = (&str, (ColId, &ColumnDef))> {
    (0u16..=u16::MAX)
        .zip(columns)
        .map(|(i, column)| (column.name.as_str(), (ColId(i), column)))
}

fn column_name(columns: &[ColumnDef], column: ColId) -> String {
    columns
        .get(column.index())
        .map_or_else(|| format!("col_{column}"), |c| c.name.clone())
}

fn column_names(table: &TableDef, columns: &[ColId]) -> Vec<String> {
    columns
        .iter()
        .map(|column| column_name(&table.columns, *column))
        .collect()
}

fn diff_indexes(old: &TableDef, new: &TableDef, out: &mut Vec<TableChange>) {
    use TableChange as T;
    let text = |table: &TableDef, algorithm: &IndexAlgorithm| {
        format!(
            "{} on ({})",
            algorithm.suffix(),
            column_names(table, algorithm.columns()).join(", ")
        )
    };
    by_name(
        old.indexes.iter().map(|i| (&i.name, i)),
        new.indexes.iter().map(|i| (&i.name, i)),
        |index, pair| match pair {
            Pair::Added(_) => out.push(T::IndexAdded { index }),
            Pair::Removed => out.push(T::IndexRemoved { index }),
            Pair::Both(old_index, new_index) => {
                let (old, new) = (
                    text(old, &old_index.algorithm),
                    text(new, &new_index.algorithm),
                );
                if old != new {
                    out.push(T::IndexAlgorithm {
                        index: index.clone(),
                        old,
                        new,
                    });
                }
                if old_index.accessor_name != new_index.accessor_name {
                    let (old, new) = (
                        old_index.accessor_name.clone(),
                        new_index.accessor_name.clone(),
                    );
                    out.push(T::IndexAccessor {
                        index: index.clone(),
                        old,
                        new,
                    });
                }
                if old_index.source_name != new_index.source_name {
                    let (old, new) = (old_index.source_name.clone(), new_index.source_name.clone());
                    out.push(T::IndexSourceName { index, old, new });
                }
            }
        },
    );
}

fn diff_constraints(old: &TableDef, new: &TableDef, out: &mut Vec<TableChange>) {
    use TableChange as T;
    by_name(
        old.constraints.iter().map(|c| (&c.name, c)),
        new.constraints.iter().map(|c| (&c.name, c)),
        |constraint, pair| match pair {
            Pair::Added(added) => out.push(T::ConstraintAdded {
                constraint,
                columns: column_names(new, &added.columns),
            }),
            Pair::Removed => out.push(T::ConstraintRemoved { constraint }),
            Pair::Both(old_constraint, new_constraint) => {
                let old = column_names(old, &old_constraint.columns);
                let new = column_names(new, &new_constraint.columns);
                if old != new {
                    out.push(T::ConstraintColumns {
                        constraint,
                        old,
                        new,
                    });
                }
            }
        },
    );
}

fn diff_sequences(old: &TableDef, new: &TableDef, out: &mut Vec<TableChange>) {
    use TableChange as T;
    let parameters = |table: &TableDef, sequence: &SequenceDef| {
        (
            column_name(&table.columns, sequence.column),
            sequence.effective(),
            sequence.increment,
        )
    };
    by_name(
        old.sequences.iter().map(|s| (&s.name, s)),
        new.sequences.iter().map(|s| (&s.name, s)),
        |sequence, pair| match pair {
            Pair::Added(added) => out.push(T::SequenceAdded {
                sequence,
                column: column_name(&new.columns, added.column),
            }),
            Pair::Removed => out.push(T::SequenceRemoved { sequence }),
            Pair::Both(old_sequence, new_sequence) => {
                if parameters(old, old_sequence) != parameters(new, new_sequence) {
                    out.push(T::SequenceChanged { sequence });
                }
            }
        },
    );
}

fn diff_view(old: &ViewDef, new: &ViewDef) -> Vec<ViewChange> {
    let mut out = Vec::new();
    if old.is_anonymous != new.is_anonymous {
        out.push(ViewChange::Kind {
            new_is_anonymous: new.is_anonymous,
        });
    }
    if old.is_public != new.is_public {
        out.push(ViewChange::Access {
            new_is_public: new.is_public,
        });
    }
    if old.source_name != new.source_name {
        out.push(ViewChange::Accessor {
            old: old.source_name.clone(),
            new: new.source_name.clone(),
        });
    }
    let (old_columns, new_columns) = (view_columns(old), view_columns(new));
    if old_columns != new_columns {
        out.push(ViewChange::Columns {
            old: old_columns,
            new: new_columns,
        });
    }
    // Params may hold refs, whose numbers mean nothing across definitions; a type that cannot be
    // resolved because it is recursive is compared as it stands.
    let params = |view: &ViewDef| {
        let resolved = view.params_typespace.resolve_product(&view.params);
        resolved.unwrap_or_else(|_| view.params.clone()).to_string()
    };
    let (old_params, new_params) = (params(old), params(new));
    if old_params != new_params {
        out.push(ViewChange::Parameters {
            old: old_params,
            new: new_params,
        });
    }
    let old_key = old.primary_key.map(|key| column_name(&old.columns, key));
    let new_key = new.primary_key.map(|key| column_name(&new.columns, key));
    if old_key != new_key {
        out.push(ViewChange::PrimaryKey {
            old: old_key,
            new: new_key,
        });
    }
    out
}

fn view_columns(view: &ViewDef) -> String {
    let columns: Vec<String> = view
        .columns
        .iter()
        .map(|c| format!("{}: {}", c.name, c.ty))
        .collect();
    format!("({})", columns.join(", "))
}
