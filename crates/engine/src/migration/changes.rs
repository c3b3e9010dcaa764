//! Steps for tables that stay: each says what the description of a table is to be, and the table follows.

use lightcone_schema::{
    ConstraintSchema, IndexSchema, ModuleDef, RawVersion, SequentialIds, TableSchema,
};
use lightcone_types::{ColId, TableId};

use super::stored::{part, table_of, Part};
use super::work::{Done, MigrationError, MigrationWork, INDEX_BYTES_PER_ROW};
use crate::catalog::{schema_of, without_ids};
use crate::datastore::Datastore;
use crate::error::SchemaError;

/// A table, or the table of a view, as the new definition has it, without ids.
pub(super) fn declared(new: &ModuleDef, name: &str) -> Result<TableSchema, MigrationError> {
    match new.view(name) {
        Some(view) if new.table(name).is_none() => {
            let has_keys = new.version == RawVersion::V10;
            let schema = view.to_backing_schema(has_keys, &mut SequentialIds::default());
            Ok(without_ids(schema))
        }
        _ => table_of(new, name).map(schema_of),
    }
}

fn other_columns(table: &str) -> MigrationError {
    MigrationError::Plan(format!("`{table}` has other columns"))
}

/// Takes a part out, by its name.
pub(super) fn remove<P: Part>(parts: &mut Vec<P>, name: &str) -> Done {
    part(parts, name)?;
    parts.retain(|part| part.name() != name);
    Ok(())
}

/// Adds those constraints of the definition on these columns that are not there. Whether there were some.
fn add_missing_constraints(
    schema: &mut TableSchema,
    declared: &TableSchema,
    columns: &[ColId],
) -> bool {
    let is_there = |name: &str| schema.constraints.iter().any(|c| c.name == name);
    let wanted = declared.constraints.iter().filter(|c| c.columns == columns);
    let missing: Vec<_> = wanted.filter(|c| !is_there(&c.name)).cloned().collect();
    let some = !missing.is_empty();
    schema.constraints.extend(missing);
    some
}

/// Where the column is that was at this place, by its name.
fn column_after(old: &TableSchema, new: &TableSchema, column: ColId) -> Option<ColId> {
    let name = &old.column(column)?.name;
    let found = new.columns.iter().position(|column| column.name == *name)?;
    u16::try_from(found).ok().map(ColId)
}

impl Datastore {
    /// Has the catalog say something else of a table, and the table follow.
    pub(super) fn change(
        &mut self,
        table: &str,
        work: &mut MigrationWork<'_>,
        change: impl FnOnce(&mut TableSchema) -> Done,
    ) -> Done {
        let old = self.stored_table(table)?;
        let mut new = TableSchema::clone(&old);
        change(&mut new)?;
        self.rewrite_table(&old, new)?;
        self.follow(old.id, work)
    }

    /// As [`change`](Self::change), where the catalog may want keys to be unique from now on.
    fn change_unique(
        &mut self,
        table: &str,
        what: &str,
        work: &mut MigrationWork<'_>,
        change: impl FnOnce(&mut TableSchema) -> Done,
    ) -> Done {
        let changed = self.change(table, work, change);
        changed.map_err(|error| match error {
            MigrationError::Schema(reason @ SchemaError::NotUnique { .. }) => {
                MigrationError::NotUnique {
                    what: what.to_owned(),
                    reason: Box::new(reason),
                }
            }
            error => error,
        })
    }

    pub(super) fn add_index(
        &mut self,
        table: &str,
        index: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let def = schema_of(table_of(new, table)?);
        let added = part(&def.indexes, index)?;
        self.change_unique(table, &format!("index `{index}`"), work, |schema| {
            schema.indexes.push(added.clone());
            // It is built once: a constraint that comes with it is there from the start.
            if added.unique {
                add_missing_constraints(schema, &def, &added.algorithm.column_set());
            }
            Ok(())
        })
    }

    pub(super) fn add_constraint(
        &mut self,
        table: &str,
        constraint: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, schema_of(table_of(new, table)?));
        let added = part(&def.constraints, constraint)?;
        let has_index = |index: &IndexSchema| index.algorithm.column_set() == added.columns;
        if !schema.indexes.iter().any(has_index) {
            return Err(MigrationError::Plan(format!(
                "the constraint `{constraint}` has no index"
            )));
        }
        let mut changed = TableSchema::clone(&schema);
        if !add_missing_constraints(&mut changed, &def, &added.columns) {
            return Ok(());
        }
        self.change_unique(
            table,
            &format!("constraint `{constraint}`"),
            work,
            |schema| {
                *schema = changed;
                Ok(())
            },
        )
    }

    /// Rows stay as they are, and mean the same in the new types.
    pub(super) fn change_columns(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let id = self.stored_table(table)?.id;
        let def = declared(new, table)?;
        // Rows may have to move.
        work.take_bytes(table, self.row_bytes(id)?)?;
        self.change(table, work, |schema| {
            if def.columns.len() != schema.columns.len() {
                return Err(other_columns(table));
            }
            for (stored, declared) in schema.columns.iter_mut().zip(def.columns) {
                stored.ty = declared.ty;
            }
            Ok(())
        })
    }

    /// The columns of an event table may change in any way: it has no rows. What stays of its parts follows their names.
    pub(super) fn reschema_event_table(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        self.require_empty(table)?;
        let def = schema_of(table_of(new, table)?);
        self.change(table, work, |schema| {
            let key = schema.primary_key;
            schema.primary_key = key.and_then(|key| column_after(schema, &def, key));
            for index in &mut schema.indexes {
                index.algorithm = part(&def.indexes, &index.name)?.algorithm.clone();
            }
            for constraint in &mut schema.constraints {
                let ConstraintSchema { name, columns, .. } = constraint;
                *columns = part(&def.constraints, name)?.columns.clone();
            }
            for sequence in &mut schema.sequences {
                sequence.column = part(&def.sequences, &sequence.name)?.column;
            }
            schema.columns = def.columns;
            Ok(())
        })
    }

    /// A new table takes the place of the old one, with its rows and the defaults of the new columns behind them.
    pub(super) fn add_columns(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (old, def) = (self.stored_table(table)?, table_of(new, table)?);
        let added = def.columns.get(old.columns.len()..).unwrap_or_default();
        let mut suffix = Vec::new();
        for column in added {
            let default = column.default.as_ref().ok_or_else(|| {
                MigrationError::Plan(format!("column `{}` has no default", column.name))
            })?;
            suffix.extend_from_slice(default);
        }
        let rows = self.row_count(old.id)?;
        let is_set = !old.indexes.iter().any(|index| index.unique);
        let indexes = (old.indexes.len() + usize::from(is_set)) as u64;
        let per_row = suffix.len() as u64 + indexes * INDEX_BYTES_PER_ROW;
        let bytes = self.row_bytes(old.id)? + rows.saturating_mul(per_row);
        work.take_bytes(table, bytes)?;
        let allocated = self.allocated(&old);
        self.delete_table_rows(&old)?;
        let declared = schema_of(def);
        let has_schedule = old.schedule.is_some();
        let mut wider = TableSchema {
            columns: declared.columns,
            schedule: declared.schedule.filter(|_| has_schedule),
            ..without_ids(TableSchema::clone(&old))
        };
        wider.accessor.get_or_insert_with(|| old.name.clone());
        for index in &mut wider.indexes {
            index.accessor.get_or_insert_with(|| index.name.clone());
        }
        self.put_table(&mut wider, &allocated)?;
        self.follow(wider.id, work)?;
        work.ticking(|tick| self.copy_rows((old.id, wider.id), &suffix, tick))?;
        self.carry_sequences_over(&old, &wider)?;
        self.move_outbound_streams(old.id, wider.id)?;
        self.follow(old.id, work)
    }

    /// The sequences of a new table go on where those of the same names are.
    fn carry_sequences_over(&mut self, from: &TableSchema, to: &TableSchema) -> Done {
        let old = self.state(from.id)?.sequences.clone();
        let slot = self.slot(to.id)?;
        let mut some_unsaved = false;
        for sequence in &mut self.at_mut(slot).sequences {
            let same = old
                .iter()
                .find(|old| old.schema.name == sequence.schema.name);
            if let Some(same) = same {
                *sequence = sequence.going_on(same);
                some_unsaved |= sequence.unsaved;
            }
        }
        if some_unsaved {
            self.save_sequences_of(slot);
        }
        Ok(())
    }

    pub(super) fn add_user_table(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let def = table_of(new, table)?;
        if !self.reveal(def, work)? {
            self.create_table(def)?;
        }
        Ok(())
    }

    pub(super) fn remove_user_table(&mut self, table: &str, work: &mut MigrationWork<'_>) -> Done {
        self.require_empty(table)?;
        self.remove_table_of(table, work)
    }

    fn require_empty(&self, table: &str) -> Done {
        let rows = self.row_count(self.stored_table(table)?.id)?;
        match rows {
            0 => Ok(()),
            rows => Err(MigrationError::NotEmpty {
                table: table.to_owned(),
                rows,
            }),
        }
    }

    /// Removes a table with its rows.
    pub(super) fn remove_table_of(&mut self, table: &str, work: &mut MigrationWork<'_>) -> Done {
        let schema = self.stored_table(table)?;
        self.delete_outbound_streams(schema.id)?;
        self.delete_table_rows(&schema)?;
        self.follow(schema.id, work)
    }

    /// The bytes that the rows of a table take, about.
    pub(super) fn row_bytes(&self, table: TableId) -> Result<u64, MigrationError> {
        Ok(self.state(table)?.table.rows().heap_bytes() as u64)
    }
}
