//! The rows of views: what their backing tables hold, in the open transaction (03 §14.2).
//!
//! They follow from other tables, so neither log nor snapshots have them, and only what is in here writes them.

use lightcone_table::RowId;
use lightcone_types::bsatn::Reader;
use lightcone_types::{DecodeError, TableId};
use rustc_hash::FxHashSet;

use crate::datastore::Datastore;
use crate::error::{DatastoreError, Result};
use crate::table_state::TableSlot;

/// Instances with so many rows and bytes are brought into the order in which their view has returned them; others are so when
/// they are made, and new rows come where there is room.
const ORDERED_ROWS_MAX: usize = 1024;
const ORDERED_BYTES_MAX: usize = 64 << 10;

/// Says which instance of a view a row is of: the view's hash of arguments, as its rows begin.
pub type ViewInstance = [u8; lightcone_schema::VIEW_HASH_BYTES];

impl Datastore {
    /// Makes `rows`, a BSATN array of declared rows, those of an instance, in their order where that does not cost more than
    /// making them. Equal rows are one; rows that were there already stay untouched.
    ///
    /// # Errors
    /// Rows that do not decode, two rows with one primary key, too much for the transaction. The old rows stand then.
    pub fn replace_view_rows(
        &mut self,
        table: TableId,
        instance: &ViewInstance,
        rows: &[u8],
    ) -> Result<()> {
        let slot = self.view_slot(table)?;
        let listed = declared_rows(self, slot, rows)?;
        let savepoint = self.savepoint();
        let replaced = self.replace_rows_of_view(slot, instance, rows, &listed);
        if replaced.is_err() {
            self.undo_to(savepoint);
        }
        replaced
    }

    fn replace_rows_of_view(
        &mut self,
        slot: TableSlot,
        instance: &ViewInstance,
        rows: &[u8],
        listed: &[&[u8]],
    ) -> Result<()> {
        let mut new: FxHashSet<&[u8]> = listed.iter().copied().collect();
        let gone = self.rows_of_view(slot, instance, |row| !new.remove(row))?;
        if gone.is_empty() && new.is_empty() && listed.len() < 2 {
            return Ok(());
        }
        self.delete_rows_of_view(slot, &gone)?;
        let come = listed.iter().filter(|row| new.contains(*row));
        self.insert_all_into_view(slot, instance, come)?;
        if listed.len() > ORDERED_ROWS_MAX || rows.len() > ORDERED_BYTES_MAX {
            return Ok(());
        }
        // New rows have taken the places that were free, which may be between the others.
        let mut in_order = listed.iter();
        let mut is_ordered = true;
        let all = self.rows_of_view(slot, instance, |row| {
            is_ordered &= in_order.next() == Some(&row);
            true
        })?;
        if is_ordered {
            return Ok(());
        }
        let savepoint = self.savepoint();
        let ordered = self.delete_rows_of_view(slot, &all);
        let ordered =
            ordered.and_then(|()| self.insert_all_into_view(slot, instance, listed.iter()));
        if ordered.is_err() {
            // The transaction has no room for that: they stay as they are.
            self.undo_to(savepoint);
        }
        Ok(())
    }

    /// The rows of an instance for which `is_wanted` is true. It is called in the order in which they are found.
    fn rows_of_view(
        &self,
        slot: TableSlot,
        instance: &ViewInstance,
        mut is_wanted: impl FnMut(&[u8]) -> bool,
    ) -> Result<Vec<RowId>> {
        let table = &self.at(slot).table;
        let mut found = Vec::new();
        let visit = |id| {
            if is_wanted(&table.row(id)[instance.len()..]) {
                found.push(id);
            }
        };
        table.indexes()[0].for_point(table.rows(), table.layout(), instance, visit)?;
        Ok(found)
    }

    fn insert_all_into_view<'r>(
        &mut self,
        slot: TableSlot,
        instance: &ViewInstance,
        mut rows: impl Iterator<Item = &'r &'r [u8]>,
    ) -> Result<()> {
        let mut image = Vec::new();
        rows.try_for_each(|row| self.insert_into_view(slot, instance, row, &mut image))
    }

    /// Takes rows out of an instance and puts others in: how its query's result has changed. Rows are declared ones. Calls
    /// `was_there` with those that need not be put in.
    ///
    /// # Errors
    /// As [`replace_view_rows`](Self::replace_view_rows).
    pub fn change_view_rows<'r>(
        &mut self,
        table: TableId,
        instance: &ViewInstance,
        gone: impl Iterator<Item = &'r [u8]>,
        mut come: impl Iterator<Item = &'r [u8]>,
        mut was_there: impl FnMut(&'r [u8]),
    ) -> Result<()> {
        let slot = self.view_slot(table)?;
        let savepoint = self.savepoint();
        let mut found = Vec::new();
        let mut image = Vec::new();
        for row in gone {
            full_row(instance, row, &mut image);
            found.extend(self.at(slot).table.find_equal(&image));
        }
        let changed = self.delete_rows_of_view(slot, &found).and_then(|()| {
            come.try_for_each(|row| {
                let changes = self.transaction.changes.len();
                self.insert_into_view(slot, instance, row, &mut image)?;
                if self.transaction.changes.len() == changes {
                    was_there(row);
                }
                Ok(())
            })
        });
        if changed.is_err() {
            self.undo_to(savepoint);
        }
        changed
    }

    fn view_slot(&self, table: TableId) -> Result<TableSlot> {
        self.require_transaction()?;
        let slot = self.slot(table)?;
        match self.at(slot).is_view() {
            true => Ok(slot),
            false => Err(DatastoreError::NoSuchTable),
        }
    }

    fn delete_rows_of_view(&mut self, slot: TableSlot, rows: &[RowId]) -> Result<()> {
        self.transaction.has_view_changes = true;
        self.delete_found(slot, rows).map(drop)
    }

    fn insert_into_view(
        &mut self,
        slot: TableSlot,
        instance: &ViewInstance,
        row: &[u8],
        image: &mut Vec<u8>,
    ) -> Result<()> {
        full_row(instance, row, image);
        self.transaction.has_view_changes = true;
        self.insert_found(slot, image, &mut Vec::new())
    }
}

fn full_row(instance: &ViewInstance, row: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(instance);
    out.extend_from_slice(row);
}

/// The rows of a BSATN array in their order, each once.
fn declared_rows<'r>(
    datastore: &Datastore,
    slot: TableSlot,
    rows: &'r [u8],
) -> Result<Vec<&'r [u8]>> {
    let layout = datastore.at(slot).declared.as_ref();
    let layout = layout.expect("the table of a view knows the declared rows");
    let mut reader = Reader::new(rows);
    let count = reader.read_count(0)?;
    let mut rest = reader.remaining();
    // Hostile counts are of rows without bytes, of which there is one at most.
    let (mut listed, mut known) = (Vec::new(), FxHashSet::default());
    for _ in 0..count {
        let length = layout.validate_prefix(rest).map_err(|error| {
            DecodeError::Other(format!("a row does not decode: {error}").into())
        })?;
        let (row, behind) = rest.split_at(length);
        if known.insert(row) {
            listed.push(row);
        }
        rest = behind;
        if length == 0 {
            break;
        }
    }
    Ok(listed)
}
