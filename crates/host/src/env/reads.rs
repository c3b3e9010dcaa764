//! Names and reads (spec 03 §8.1, §8.2).

use lightcone_engine::{
    is_hidden, is_restricted, Datastore, DatastoreError, RangeBounds, RowBuffer, Scan, ST_ENV_ID,
    ST_ENV_INDEX_ID,
};
use lightcone_table::{Index, ReadSet, Table};
use lightcone_types::{IndexId, TableId};

use super::{failed, HostEnv, PointRead};
use crate::{AbiError, Advance, Errno, HostTrap};

impl HostEnv {
    /// `table_id_from_name`
    pub fn table_id_from_name(&self, name: &str) -> Result<TableId, AbiError> {
        if let Some(datastore) = self.access.making() {
            return Ok(datastore.table_id_for_rows(name));
        }
        let datastore = self.access.read()?;
        let found = datastore.table_id_from_name(name);
        found
            .filter(|_| !is_hidden(name) && !is_restricted(name))
            .or_else(|| datastore.absent_old_table(name))
            .ok_or(AbiError::Errno(Errno::NO_SUCH_TABLE))
    }

    /// `index_id_from_name`
    pub fn index_id_from_name(&self, name: &str) -> Result<IndexId, AbiError> {
        if let Some(datastore) = self.access.making() {
            return Ok(datastore.index_id_for_rows(name));
        }
        let datastore = self.access.read()?;
        let found = datastore.index_id_from_name(name);
        found
            .filter(|_| !is_hidden(name) && !is_restricted(name))
            .or_else(|| datastore.absent_old_index(name))
            .ok_or(AbiError::Errno(Errno::NO_SUCH_INDEX))
    }

    /// `datastore_table_row_count`
    pub fn table_row_count(&mut self, table: TableId) -> Result<u64, AbiError> {
        let datastore = self.access.read()?;
        reachable(table)?;
        let mut count = datastore.row_count(table).map_err(failed)?;
        if self.hides(datastore, table) {
            count = 0;
        }
        if let Some(reads) = &mut self.reads {
            reads.count(table);
        }
        Ok(count)
    }

    /// `datastore_table_scan_bsatn`; the result is an iterator.
    pub fn table_scan(&mut self, table: TableId) -> Result<u32, AbiError> {
        self.access.read()?;
        reachable(table)?;
        if let Some(reads) = &mut self.reads {
            reads.table(table);
        }
        if self.hides(self.access.read()?, table) {
            return self.scan(|_, _, _, _| Ok(()));
        }
        self.scan(|datastore, scan, bytes_max, buffer| {
            datastore.begin_scan(table, scan, bytes_max, buffer)
        })
    }

    /// Whether a view would read an event table: its rows are gone at the end of the transaction, so a view never sees them.
    fn hides(&self, datastore: &Datastore, table: TableId) -> bool {
        let table = self.reads.is_some().then(|| datastore.table(table));
        table.flatten().is_some_and(|table| table.schema.is_event)
    }

    /// Notes a read by an index, for a view. Whether it would read an event table. The index is one that modules can reach.
    #[inline]
    fn is_hidden(
        &mut self,
        index: IndexId,
        note: impl FnOnce(&mut ReadSet, (&Table, &Index)),
    ) -> Result<bool, AbiError> {
        if index == ST_ENV_INDEX_ID {
            self.access.read()?;
            return Err(Errno::NO_SUCH_TABLE.into());
        }
        match self.reads.is_some() {
            true => self.note_read(index, note),
            false => Ok(false),
        }
    }

    #[cold]
    fn note_read(
        &mut self,
        index: IndexId,
        note: impl FnOnce(&mut ReadSet, (&Table, &Index)),
    ) -> Result<bool, AbiError> {
        let found = self.access.read()?.index_of(index);
        let (Some(reads), Some(found)) = (&mut self.reads, found) else {
            return Ok(false);
        };
        note(reads, found);
        Ok(found.0.schema.is_event)
    }

    /// `datastore_index_scan_point_bsatn`; the result is an iterator.
    #[inline]
    pub fn index_scan_point(&mut self, index: IndexId, point: &[u8]) -> Result<u32, AbiError> {
        if self.is_hidden(index, |reads, found| reads.point(found, index, point))? {
            return self.scan(|_, _, _, _| Ok(()));
        }
        self.scan(|datastore, scan, bytes_max, buffer| {
            datastore.begin_point_scan(index, point, scan, bytes_max, buffer)
        })
    }

    /// `datastore_index_scan_range_bsatn`; the result is an iterator.
    pub fn index_scan_range(
        &mut self,
        index: IndexId,
        range: RangeBounds<'_>,
    ) -> Result<u32, AbiError> {
        if self.is_hidden(index, |reads, found| reads.range(found, index, range))? {
            return self.scan(|_, _, _, _| Ok(()));
        }
        self.scan(|datastore, scan, bytes_max, buffer| {
            datastore.begin_range_scan(index, range, scan, bytes_max, buffer)
        })
    }

    #[inline]
    fn scan(
        &mut self,
        begin: impl FnOnce(&Datastore, &mut Scan, usize, &mut RowBuffer) -> Result<(), DatastoreError>,
    ) -> Result<u32, AbiError> {
        let datastore = self.access.read()?;
        let limits = &self.config.limits;
        self.iterators.open(
            limits.iterators_max,
            limits.iterator_bytes_max,
            |scan, bytes_max, buffer| begin(datastore, scan, bytes_max, buffer).map_err(failed),
        )
    }

    /// Before a table changes: its iterators fetch the rows as they are now.
    #[inline]
    pub(super) fn finish_scans_of(&mut self, table: TableId) -> Result<(), AbiError> {
        if !self.iterators.has_unfinished() {
            return Ok(());
        }
        self.finish_scans(Some(table))
    }

    /// As above, by an index of the table.
    #[inline]
    pub(super) fn finish_scans_by(&mut self, index: IndexId) -> Result<(), AbiError> {
        if !self.iterators.has_unfinished() {
            return Ok(());
        }
        let datastore = self.access.read();
        let table = datastore.map_or(None, |datastore| datastore.table_of_index(index));
        self.finish_scans(table)
    }

    #[cold]
    fn finish_scans(&mut self, table: Option<TableId>) -> Result<(), AbiError> {
        let Ok(datastore) = self.access.write() else {
            return Ok(());
        };
        self.iterators.finish(
            self.config.limits.iterator_bytes_max,
            |scan| Some(scan.table()) == table,
            |scan, bytes_max, buffer| {
                let proceeded = datastore.continue_scan(scan, bytes_max, buffer);
                proceeded.map_err(failed)
            },
        )
    }

    /// Scan and read without an iterator (docs/js-abi.md): the key is at the start of `buffer`, and the rows overwrite it.
    #[inline]
    pub fn point_read(
        &mut self,
        index: IndexId,
        buffer: &mut [u8],
        key_len: usize,
    ) -> Result<PointRead, AbiError> {
        let key = buffer.get(..key_len).ok_or(HostTrap::OutOfBounds)?;
        if self.is_hidden(index, |reads, found| reads.point(found, index, key))? {
            return Ok(PointRead::Rows(0));
        }
        let datastore = self.access.read()?;
        self.point_rows.clear();
        datastore
            .index_scan_point(index, key, &mut self.point_rows)
            .map_err(failed)?;
        let rows = &self.point_rows.bytes;
        let Some(start) = buffer.get_mut(..rows.len()) else {
            return Ok(PointRead::TooSmall(rows.len()));
        };
        start.copy_from_slice(rows);
        Ok(PointRead::Rows(rows.len()))
    }

    /// Checked before guest memory is touched.
    #[inline]
    pub fn row_iter_exists(&self, iterator: u32) -> Result<(), AbiError> {
        let exists = self.iterators.exists(iterator).then_some(());
        exists.ok_or(AbiError::Errno(Errno::NO_SUCH_ITER))
    }

    /// `row_iter_bsatn_advance`
    #[inline]
    pub fn row_iter_advance(
        &mut self,
        iterator: u32,
        buffer: &mut [u8],
    ) -> Result<Advance, AbiError> {
        if self.iterators.is_used_up(iterator) {
            let datastore = self.access.read().map_err(|_| Errno::NO_SUCH_ITER)?;
            let bytes_max = self.config.limits.iterator_bytes_max;
            self.iterators
                .refill(iterator, bytes_max, |scan, bytes_max, rows| {
                    let proceeded = datastore.continue_scan(scan, bytes_max, rows);
                    proceeded.map_err(failed)
                })?;
        }
        Ok(self.iterators.advance(iterator, buffer)?)
    }

    /// `row_iter_bsatn_close`
    pub fn row_iter_close(&mut self, iterator: u32) -> Result<(), AbiError> {
        Ok(self.iterators.close(iterator)?)
    }
}

/// Whether modules can read a table.
#[inline]
fn reachable(table: TableId) -> Result<(), AbiError> {
    match table == ST_ENV_ID {
        true => Err(Errno::NO_SUCH_TABLE.into()),
        false => Ok(()),
    }
}
