//! What all steps use: stored tables by their names, rows of the catalog, and tables that follow these.

use std::sync::Arc;

use lightcone_schema::{ModuleDef, TableDef, TableSchema};
use lightcone_types::{ColId, Encode, TableId};

use super::work::{Done, MigrationError, MigrationWork, INDEX_BYTES_PER_ROW};
use crate::datastore::Datastore;
use crate::error::DatastoreError;

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
        table: TableId,
        column: ColId,
        value: &impl Encode,
    ) -> Result<u32, DatastoreError> {
        self.note_catalog();
        let found = self.catalog_ids(table, column, &value.to_vec());
        let slot = self.slot(table)?;
        self.delete_found(slot, &found)
    }

    /// Deletes the rows of a system table that begin with this id.
    pub(super) fn delete_catalog_of(
        &mut self,
        table: TableId,
        id: u32,
    ) -> Result<u32, DatastoreError> {
        self.delete_catalog_rows(table, ColId(0), &id)
    }

    /// Deletes the rows of a system table that begin with this name.
    pub(super) fn delete_catalog_named(
        &mut self,
        table: TableId,
        name: &str,
    ) -> Result<u32, DatastoreError> {
        self.delete_catalog_rows(table, ColId(0), &name)
    }
}

/// A table of the new definition.
pub(crate) fn table_of<'d>(new: &'d ModuleDef, name: &str) -> Result<&'d TableDef, MigrationError> {
    new.table(name)
        .ok_or_else(|| MigrationError::Plan(format!("the new definition has no table `{name}`")))
}

/// A part of a table, by its name.
pub(super) fn part<'p, P>(
    parts: &'p [P],
    name_of: impl Fn(&P) -> &str,
    what: &str,
    name: &str,
) -> Result<&'p P, MigrationError> {
    parts
        .iter()
        .find(|part| name_of(part) == name)
        .ok_or_else(|| MigrationError::Plan(format!("there is no {what} `{name}`")))
}
