//! Writes (spec 03 §8.4 to §8.6).

use lightcone_engine::{
    Datastore, RangeBounds, ST_ENV_ID, SYSTEM_INDEX_ID_MAX, SYSTEM_TABLE_ID_MAX,
};
use lightcone_types::{IndexId, TableId};

use super::{failed, HostEnv};
use crate::{AbiError, Errno, HostTrap};

impl HostEnv {
    /// The datastore for a write to this table. System tables are refused: a database without its catalog cannot be opened again.
    #[inline]
    fn writable(&mut self, table: TableId) -> Result<(&mut Datastore, &mut Vec<u8>), AbiError> {
        let datastore = self.access.write()?;
        if table.0 <= SYSTEM_TABLE_ID_MAX {
            return Err(not_writable(datastore, table));
        }
        Ok((datastore, &mut self.generated))
    }

    /// As above, by an index of the table.
    #[inline]
    fn writable_by(&mut self, index: IndexId) -> Result<&mut Datastore, AbiError> {
        let datastore = self.access.write()?;
        if index.0 <= SYSTEM_INDEX_ID_MAX {
            return Err(match datastore.table_of_index(index) {
                Some(table) => not_writable(datastore, table),
                None => Errno::NO_SUCH_INDEX.into(),
            });
        }
        Ok(datastore)
    }

    /// `datastore_insert_bsatn`: overwrites the start of `row` with the generated column values and returns their size.
    #[inline]
    pub fn insert(&mut self, table: TableId, row: &mut [u8]) -> Result<usize, AbiError> {
        self.finish_scans_of(table)?;
        let (datastore, generated) = match self.writable(table) {
            Ok(writable) => writable,
            Err(error) => return self.insert_made(table, row, error),
        };
        generated.clear();
        datastore.insert(table, row, generated).map_err(failed)?;
        write_back(generated, row)
    }

    /// The insert of a function for rows (02 §14.9); all others have failed.
    #[cold]
    fn insert_made(
        &mut self,
        table: TableId,
        row: &mut [u8],
        error: AbiError,
    ) -> Result<usize, AbiError> {
        let datastore = self.access.making_mut().ok_or(error)?;
        self.generated.clear();
        let inserted = datastore.insert_made(table, row, &mut self.generated);
        inserted.map_err(failed)?;
        write_back(&self.generated, row)
    }

    /// `datastore_update_bsatn`: like [`HostEnv::insert`], replacing the row with the same key in `index`.
    #[inline]
    pub fn update(
        &mut self,
        table: TableId,
        index: IndexId,
        row: &mut [u8],
    ) -> Result<usize, AbiError> {
        self.finish_scans_of(table)?;
        let (datastore, generated) = self.writable(table)?;
        generated.clear();
        datastore
            .update(table, index, row, generated)
            .map_err(failed)?;
        write_back(generated, row)
    }

    /// `datastore_delete_by_index_scan_point_bsatn`
    pub fn delete_by_index_point(&mut self, index: IndexId, point: &[u8]) -> Result<u32, AbiError> {
        self.finish_scans_by(index)?;
        self.writable_by(index)?
            .delete_by_index_point(index, point)
            .map_err(failed)
    }

    /// `datastore_delete_by_index_scan_range_bsatn`
    pub fn delete_by_index_range(
        &mut self,
        index: IndexId,
        range: RangeBounds<'_>,
    ) -> Result<u32, AbiError> {
        self.finish_scans_by(index)?;
        self.writable_by(index)?
            .delete_by_index_range(index, range)
            .map_err(failed)
    }

    /// `datastore_delete_all_by_eq_bsatn`
    pub fn delete_all_by_eq(&mut self, table: TableId, relation: &[u8]) -> Result<u32, AbiError> {
        self.finish_scans_of(table)?;
        self.writable(table)?
            .0
            .delete_all_by_eq(table, relation)
            .map_err(failed)
    }

    /// `datastore_clear`
    pub fn clear(&mut self, table: TableId) -> Result<u64, AbiError> {
        self.finish_scans_of(table)?;
        self.writable(table)?.0.clear(table).map_err(failed)
    }
}

/// The generated values always fit, as they are part of the row.
#[inline]
fn write_back(generated: &[u8], row: &mut [u8]) -> Result<usize, AbiError> {
    match row.get_mut(..generated.len()) {
        Some(start) => {
            start.copy_from_slice(generated);
            Ok(generated.len())
        }
        None => {
            Err(HostTrap::Internal("generated columns are longer than their row".into()).into())
        }
    }
}

#[cold]
fn not_writable(datastore: &Datastore, table: TableId) -> AbiError {
    match datastore.schema(table) {
        // It is not there for modules.
        Some(_) if table == ST_ENV_ID => Errno::NO_SUCH_TABLE.into(),
        Some(schema) => HostTrap::SystemTable(schema.name.as_str().into()).into(),
        None => Errno::NO_SUCH_TABLE.into(),
    }
}
