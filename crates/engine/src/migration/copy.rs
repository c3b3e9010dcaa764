//! Copies of a database that a migration is tried on.

use lightcone_table::TableSnapshot;

use super::work::{MigrationError, MigrationWork, INDEX_BYTES_PER_ROW};
use crate::datastore::Datastore;
use crate::snapshot::DatastoreSnapshot;
use crate::system::SYSTEM_TABLE_ID_MAX;

impl Datastore {
    /// A database of its own with these rows, in memory: those of the catalog, and of the tables of the user that are wanted. Others
    /// are empty, and cannot be written to; views are empty. What is copied counts as work of the migration.
    ///
    /// # Errors
    /// `work` has ended, or the wanted tables take more than it leaves.
    pub fn copy_of(
        frozen: &DatastoreSnapshot,
        work: &mut MigrationWork<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Datastore, MigrationError> {
        let mut copy = Datastore::new();
        let is_system = |table: &&TableSnapshot| table.schema.id.0 <= SYSTEM_TABLE_ID_MAX;
        for table in frozen.tables.iter().filter(is_system) {
            copy.copy_pages(table)?;
        }
        let followed = copy.sync_with_catalog();
        followed.map_err(|error| MigrationError::Plan(error.to_string()))?;
        for table in frozen.tables.iter().filter(|table| !is_system(table)) {
            if is_wanted(&table.schema.name) || table.rows.row_count() == 0 {
                work.ask()?;
                work.take_copy_bytes(&table.schema.name, copied_bytes(table))?;
                copy.copy_pages(table)?;
            } else {
                copy.leave_out(table)?;
            }
        }
        copy.restore_sequences();
        Ok(copy)
    }

    fn copy_pages(&mut self, table: &TableSnapshot) -> Result<(), MigrationError> {
        let slot = self.slot(table.schema.id)?;
        let copied = self.at_mut(slot).table.load(table.rows.pages());
        copied.map_err(|error| MigrationError::Plan(error.to_string()))
    }

    fn leave_out(&mut self, table: &TableSnapshot) -> Result<(), MigrationError> {
        let slot = self.slot(table.schema.id)?;
        self.at_mut(slot).is_writable = false;
        self.left_out.insert(table.schema.id);
        Ok(())
    }

    /// The tables that the migration function has read or wanted to write, and whose rows this copy does not have.
    pub fn missed_tables(&self) -> impl Iterator<Item = &str> {
        let names = self.missed.iter().filter_map(|id| self.schema(*id));
        names.map(|schema| schema.name.as_str())
    }
}

/// What a table takes with its indexes, about.
fn copied_bytes(table: &TableSnapshot) -> u64 {
    let indexes = &table.schema.indexes;
    let has_set = !indexes.iter().any(|index| index.unique);
    let structures = indexes.len() as u64 + u64::from(has_set);
    let of_rows = table.rows.heap_bytes() as u64;
    of_rows + table.rows.row_count() * structures * INDEX_BYTES_PER_ROW
}
