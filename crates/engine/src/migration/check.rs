//! What is looked at before the first step: that the stored tables are those of the running program, and what values columns have.

use lightcone_schema::{ModuleDef, Step, TableDef, TableKind, TableSchema};

use super::stored::{part, table_of};
use super::work::{Done, MigrationError, MigrationWork};
use crate::catalog::{schema_of, without_ids};
use crate::datastore::Datastore;
use crate::hidden::is_hidden;
use crate::sequence::column_range;

impl Datastore {
    /// That the tables of the user are those of a definition (02 §14.1, 5). Those of views are not looked at.
    ///
    /// # Errors
    /// They are not; the text says which table differs, and in what.
    pub fn check_tables(&self, def: &ModuleDef) -> Done {
        let is_user = |schema: &&std::sync::Arc<TableSchema>| {
            let is_user = schema.kind == TableKind::User && schema.view.is_none();
            is_user && !is_hidden(&schema.name)
        };
        for schema in self.schemas().filter(is_user) {
            let differs = match def.table(&schema.name) {
                None => Some("is not in the definition"),
                Some(def) => difference(schema, def),
            };
            if let Some(differs) = differs {
                return Err(MigrationError::NotAsDefined(format!(
                    "table `{}` {differs}",
                    schema.name
                )));
            }
        }
        for table in &def.tables {
            self.stored_table(&table.name).map_err(|_| {
                MigrationError::NotAsDefined(format!("table `{}` is missing", table.name))
            })?;
        }
        Ok(())
    }

    /// What must hold of rows before a step is taken, before any is (02 §14.5).
    ///
    /// # Errors
    /// A sequence could issue a value that a row has.
    pub fn precheck(&self, step: &Step, new: &ModuleDef, work: &mut MigrationWork<'_>) -> Done {
        let Step::AddSequence { table, sequence } = step else {
            return Ok(());
        };
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let sequence = part(&def.sequences, sequence)?;
        let table = &self.state(schema.id)?.table;
        let position = usize::from(sequence.column.0);
        let Some(column) = def.columns.get(position) else {
            return Err(MigrationError::Plan("a sequence without column".to_owned()));
        };
        let (_, max) = column_range(&column.ty);
        let integer = |bytes: &[u8]| column.ty.integer()?.to_i128(bytes);
        let is_in_range = |value: &i128| (1..=max).contains(value);
        let found = match schema.columns.get(position) {
            // A new column: all rows get its default.
            None if table.rows().row_count() == 0 => None,
            None => column.default.as_ref().and_then(|bytes| integer(bytes)),
            Some(_) => work.ticking(|tick| {
                let mut found = None;
                let mut go_on = true;
                table.rows().walk(None, |_, row| {
                    let value = integer(table.layout().column(row, position));
                    found = value.filter(is_in_range);
                    go_on = tick(1);
                    found.is_none() && go_on
                });
                go_on.then_some(found).ok_or(MigrationError::TooLong)
            })?,
        };
        match found.filter(is_in_range) {
            None => Ok(()),
            Some(value) => Err(MigrationError::SequenceInRange {
                sequence: sequence.name.clone(),
                detail: format!(
                    "a row of `{}` has {value} in `{}`, and the sequence issues values from 1 to {max}",
                    schema.name, column.name
                ),
            }),
        }
    }
}

/// In what a stored table is not that of the definition.
fn difference(stored: &TableSchema, def: &TableDef) -> Option<&'static str> {
    let (a, b) = (bare(stored.clone()), bare(schema_of(def)));
    let checks = [
        ("has another primary key", a.primary_key == b.primary_key),
        ("has another access", a.access == b.access),
        ("is an event table, or is none", a.is_event == b.is_event),
        ("has other columns", a.columns == b.columns),
        ("has other indexes", same(&a.indexes, &b.indexes)),
        (
            "has other constraints",
            same(&a.constraints, &b.constraints),
        ),
        ("has other sequences", same(&a.sequences, &b.sequences)),
        ("has another schedule", a.schedule == b.schedule),
        ("has another outbox", a.outbox == b.outbox),
    ];
    let different = checks.into_iter().find(|(_, is_same)| !is_same);
    different.map(|(text, _)| text)
}

/// A table without what is not compared: ids, and names in code.
fn bare(schema: TableSchema) -> TableSchema {
    let mut bare = without_ids(schema);
    for column in &mut bare.columns {
        column.accessor = None;
    }
    for index in &mut bare.indexes {
        index.accessor = None;
    }
    bare
}

/// Whether two lists of different things have the same, in whatever order.
fn same<T: PartialEq>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().all(|each| b.contains(each))
}
