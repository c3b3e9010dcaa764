//! What all steps use: stored tables by their names, rows of the catalog, and tables that follow these.

use std::sync::Arc;

use lightcone_schema::{
    ColumnSchema, ConstraintSchema, IndexSchema, ModuleDef, SequenceDef, SequenceSchema, TableDef,
    TableSchema,
};
use lightcone_types::{ColId, Encode, TableId};

use super::work::{Done, MigrationError, MigrationWork, INDEX_BYTES_PER_ROW};
use crate::datastore::Datastore;
use crate::error::Result;
use crate::system as st;

impl Datastore {
    /// The table of this canonical name.
    pub(crate) fn stored_table(&self, name: &str) -> Result<Arc<TableSchema>, MigrationError> {
        let schema = self
            .table_id_from_name(name)
            .and_then(|id| self.schema(id))
            .filter(|schema| schema.name == name);
        schema
            .cloned()
            .ok_or_else(|| MigrationError::Plan(format!("there is no table `{name}`")))
    }

    /// Has a table follow the catalog.
    pub(crate) fn follow(&mut self, table: TableId, work: &mut MigrationWork<'_>) -> Done {
        self.take_index_bytes(table, work)?;
        work.ticking(|tick| self.follow_catalog(table, tick))?;
        Ok(())
    }

    /// Reserves the memory of what is built over all rows when a table follows the catalog.
    fn take_index_bytes(&self, id: TableId, work: &mut MigrationWork<'_>) -> Done {
        let Ok(state) = self.state(id) else {
            return Ok(());
        };
        let rows = state.table.rows().row_count();
        if rows == 0 {
            return Ok(());
        }
        let Some(described) = self.describe(id)? else {
            return Ok(());
        };
        let indexes = state.table.indexes_to_build(&described.schema) as u64;
        let bytes = rows.saturating_mul(indexes * INDEX_BYTES_PER_ROW);
        work.take_bytes(&state.table.schema.name, bytes)
    }

    /// Deletes the rows of a system table that have this value in a column.
    pub(super) fn delete_catalog_rows(
        &mut self,
        (table, column): (TableId, ColId),
        value: &impl Encode,
    ) -> Result<u32> {
        self.note_catalog();
        let found = self.catalog_ids(table, column, &value.to_vec());
        let slot = self.slot(table)?;
        self.delete_found(slot, &found)
    }

    /// Deletes the rows of a system table that begin with this id or name.
    pub(super) fn delete_catalog_of(&mut self, table: TableId, key: &impl Encode) -> Result<u32> {
        self.delete_catalog_rows((table, ColId(0)), key)
    }

    /// Where a restart would have the sequences of a stored table go on, in their order. One that it has not yet begins.
    pub(super) fn allocated(&self, schema: &TableSchema) -> Vec<i128> {
        let state = self.state(schema.id).expect("the table was just looked up");
        let of = |sequence: &SequenceSchema| {
            let mut stored = state.sequences.iter();
            let stored = stored.find(|stored| stored.schema.id == sequence.id);
            stored.map_or(sequence.start, |stored| stored.allocated)
        };
        schema.sequences.iter().map(of).collect()
    }

    /// Has the catalog say of a table what `new` says, which has its id and those of the parts that stay. Rows of columns, which are
    /// many, are not touched if all stay.
    pub(crate) fn rewrite_table(&mut self, old: &TableSchema, mut new: TableSchema) -> Done {
        let allocated = self.allocated(&new);
        // A table may have many columns with large types, and each new accessor of one is a step.
        let are_same = |(a, b): (&ColumnSchema, &ColumnSchema)| a.name == b.name && a.ty == b.ty;
        let have_columns_changed = old.columns.len() != new.columns.len()
            || !old.columns.iter().zip(&new.columns).all(are_same);
        let have_names_changed = old.name != new.name || old.columns != new.columns;
        if have_columns_changed {
            self.delete_catalog_of(st::ST_COLUMN_ID, &old.id.0)?;
        }
        if have_names_changed {
            self.delete_catalog_of(st::ST_COLUMN_ACCESSOR_ID, &old.name)?;
        }
        self.delete_rows_but_columns(old)?;
        self.put_table_row(&new)?;
        if have_columns_changed {
            self.put_columns(&new)?;
        }
        if have_names_changed {
            self.put_column_accessors(&new)?;
        }
        self.put_parts(&mut new, &allocated)?;
        Ok(())
    }

    /// Deletes all that the catalog says of a table.
    pub(crate) fn delete_table_rows(&mut self, schema: &TableSchema) -> Done {
        self.delete_catalog_of(st::ST_COLUMN_ID, &schema.id.0)?;
        self.delete_catalog_of(st::ST_COLUMN_ACCESSOR_ID, &schema.name)?;
        self.delete_rows_but_columns(schema)
    }

    fn delete_rows_but_columns(&mut self, schema: &TableSchema) -> Done {
        for index in &schema.indexes {
            self.delete_catalog_of(st::ST_INDEX_ID, &index.id.0)?;
            self.delete_catalog_of(st::ST_INDEX_ACCESSOR_ID, &index.name)?;
        }
        for constraint in &schema.constraints {
            self.delete_catalog_of(st::ST_CONSTRAINT_ID, &constraint.id.0)?;
        }
        for sequence in &schema.sequences {
            self.delete_catalog_of(st::ST_SEQUENCE_ID, &sequence.id.0)?;
        }
        if let Some(schedule) = &schema.schedule {
            self.delete_catalog_of(st::ST_SCHEDULED_ID, &schedule.id.0)?;
        }
        self.delete_catalog_of(st::ST_OUTBOX_ID, &schema.id.0)?;
        self.delete_catalog_of(st::ST_EVENT_TABLE_ID, &schema.id.0)?;
        self.delete_catalog_of(st::ST_TABLE_ACCESSOR_ID, &schema.name)?;
        self.delete_catalog_of(st::ST_TABLE_ID, &schema.id.0)?;
        Ok(())
    }
}

/// A table of the new definition.
pub(crate) fn table_of<'d>(new: &'d ModuleDef, name: &str) -> Result<&'d TableDef, MigrationError> {
    new.table(name)
        .ok_or_else(|| MigrationError::Plan(format!("the new definition has no table `{name}`")))
}

/// What belongs to a table and has a name.
pub(super) trait Part {
    /// The word for it.
    const WHAT: &'static str;

    fn name(&self) -> &str;
}

macro_rules! parts {
    ($($part:ty = $what:literal),*) => {$(
        impl Part for $part {
            const WHAT: &'static str = $what;

            fn name(&self) -> &str {
                &self.name
            }
        }
    )*};
}
parts!(
    ColumnSchema = "column",
    IndexSchema = "index",
    ConstraintSchema = "constraint",
    SequenceSchema = "sequence",
    SequenceDef = "sequence"
);

fn no_part<P: Part>(name: &str) -> MigrationError {
    MigrationError::Plan(format!("there is no {} `{name}`", P::WHAT))
}

/// A part of a table, by its name.
pub(super) fn part<'p, P: Part>(parts: &'p [P], name: &str) -> Result<&'p P, MigrationError> {
    let found = parts.iter().find(|part| part.name() == name);
    found.ok_or_else(|| no_part::<P>(name))
}

pub(super) fn part_mut<'p, P: Part>(
    parts: &'p mut [P],
    name: &str,
) -> Result<&'p mut P, MigrationError> {
    let found = parts.iter_mut().find(|part| part.name() == name);
    found.ok_or_else(|| no_part::<P>(name))
}
