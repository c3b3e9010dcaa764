//! Steps for columns: their types, their names, and more of them.

use std::collections::HashMap;

use lightcone_schema::{
    ColumnDef, ConstraintSchema, IndexSchema, ModuleDef, SequenceSchema, TableDef, TableSchema,
};
use lightcone_types::{ConstraintId, IndexId, SequenceId, TableId};

use super::stored::{part, table_of};
use super::work::{Done, MigrationError, MigrationWork, INDEX_BYTES_PER_ROW};
use crate::datastore::Datastore;
use crate::system as st;

impl Datastore {
    /// The columns that a table or view has in the new definition, and how many hidden ones are before them.
    fn new_columns<'d>(
        new: &'d ModuleDef,
        name: &str,
    ) -> Result<(&'d [ColumnDef], usize), MigrationError> {
        match new.view(name) {
            Some(view) if new.table(name).is_none() => Ok((&view.columns, 1)),
            _ => Ok((&table_of(new, name)?.columns, 0)),
        }
    }

    /// Rows stay as they are, and mean the same in the new types.
    pub(super) fn change_columns(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let (columns, hidden) = Self::new_columns(new, table)?;
        if columns.len() + hidden != schema.columns.len() {
            return Err(MigrationError::Plan(format!("`{table}` has other columns")));
        }
        self.delete_catalog_of(st::ST_COLUMN_ID, schema.id.0)?;
        for (position, stored) in schema.columns.iter().enumerate() {
            let ty = match position.checked_sub(hidden) {
                Some(declared) => &columns[declared].ty,
                None => &stored.ty,
            };
            self.put_column(schema.id, position, &stored.name, ty)?;
        }
        // Rows may have to move.
        work.take_bytes(table, self.row_bytes(schema.id)?)?;
        self.follow(schema.id, work)
    }

    pub(super) fn change_column_accessor(
        &mut self,
        table: &str,
        column: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let (columns, _) = Self::new_columns(new, table)?;
        let changed = part(columns, |column| &column.name, "column", column)?;
        self.delete_column_accessor(&schema.name, &changed.name)?;
        self.put_column_accessor(&schema.name, changed)?;
        self.follow(schema.id, work)
    }

    /// The columns of an event table may change in any way: it has no rows. What stays of its parts follows their names.
    pub(super) fn reschema_event_table(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let rows = self.row_count(schema.id)?;
        if rows > 0 {
            return Err(MigrationError::NotEmpty {
                table: table.to_owned(),
                rows,
            });
        }
        self.delete_column_rows(&schema)?;
        self.put_columns(schema.id, def)?;
        for index in &schema.indexes {
            let kept = part(&def.indexes, |index| &index.name, "index", &index.name)?;
            let algorithm = kept.algorithm.clone();
            self.rewrite_index_row(
                schema.id,
                &IndexSchema {
                    algorithm,
                    ..index.clone()
                },
            )?;
        }
        for constraint in &schema.constraints {
            let name = &constraint.name;
            let kept = part(&def.constraints, |c| &c.name, "constraint", name)?;
            let columns = kept.columns.clone();
            self.delete_catalog_of(st::ST_CONSTRAINT_ID, constraint.id.0)?;
            self.put_constraint(
                schema.id,
                &ConstraintSchema {
                    columns,
                    ..constraint.clone()
                },
            )?;
        }
        for sequence in &schema.sequences {
            let kept = part(&def.sequences, |s| &s.name, "sequence", &sequence.name)?;
            let moved = SequenceSchema {
                column: kept.column,
                ..sequence.clone()
            };
            let allocated = self.allocated(schema.id, sequence.id);
            self.delete_catalog_of(st::ST_SEQUENCE_ID, sequence.id.0)?;
            self.put_sequence(schema.id, &moved, allocated)?;
        }
        let primary_key = schema.primary_key;
        let mut changed = TableSchema::clone(&schema);
        changed.primary_key = primary_key.and_then(|key| Self::column_after(&schema, def, key));
        self.rewrite_table_row(&changed)?;
        self.follow(schema.id, work)
    }

    fn rewrite_index_row(&mut self, table: TableId, index: &IndexSchema) -> Done {
        self.delete_catalog_of(st::ST_INDEX_ID, index.id.0)?;
        self.put_index(table, index)?;
        Ok(())
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
        let positions: HashMap<String, i128> = old
            .sequences
            .iter()
            .map(|sequence| (sequence.name.clone(), self.allocated(old.id, sequence.id)))
            .collect();
        self.delete_table_rows(&old)?;
        let id = self.put_table_like(&old, def, &positions)?;
        self.follow(id, work)?;
        work.ticking(|tick| self.copy_rows((old.id, id), &suffix, tick))?;
        self.carry_sequences_over(old.id, id)?;
        self.follow(old.id, work)
    }

    /// Writes the catalog rows of a table with the columns of `def` and all other parts as they are now.
    fn put_table_like(
        &mut self,
        old: &TableSchema,
        def: &TableDef,
        positions: &HashMap<String, i128>,
    ) -> Result<TableId, MigrationError> {
        let mut schema = old.clone();
        schema.id = TableId(0);
        let id = self.put_table_row(&schema)?;
        let accessor = old.accessor.as_deref().unwrap_or(&old.name);
        self.put_table_accessor(&old.name, accessor)?;
        self.put_columns(id, def)?;
        if let Some(schedule) = &def.schedule.as_ref().filter(|_| old.schedule.is_some()) {
            self.create_schedule(id, schedule)?;
        }
        if old.is_event {
            self.put_event_table(id)?;
        }
        for index in &old.indexes {
            self.put_index(
                id,
                &IndexSchema {
                    id: IndexId(0),
                    ..index.clone()
                },
            )?;
            let accessor = index.accessor.as_deref().unwrap_or(&index.name);
            self.put_index_accessor(&index.name, accessor)?;
        }
        for constraint in &old.constraints {
            self.put_constraint(
                id,
                &ConstraintSchema {
                    id: ConstraintId(0),
                    ..constraint.clone()
                },
            )?;
        }
        for sequence in &old.sequences {
            let schema = SequenceSchema {
                id: SequenceId(0),
                ..sequence.clone()
            };
            self.put_sequence(id, &schema, positions[&sequence.name])?;
        }
        Ok(id)
    }

    /// Where a restart would have a sequence go on.
    pub(crate) fn allocated(&self, table: TableId, sequence: SequenceId) -> i128 {
        let state = self.state(table).expect("the table was just looked up");
        let found = state.sequences.iter().find(|s| s.schema.id == sequence);
        found.expect("the sequence is one of the table").allocated
    }

    /// The sequences of a new table go on where those of the same names are.
    fn carry_sequences_over(&mut self, from: TableId, to: TableId) -> Done {
        let old = self.state(from)?.sequences.clone();
        let slot = self.slot(to)?;
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
}
