//! Writes of the open transaction: rows change in place, and the undo log says how.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use lightcone_table::{InsertError, Inserted, RangeBounds, RowId, Table};
use lightcone_types::bsatn::Reader;
use lightcone_types::{IndexId, TableId};

use crate::datastore::{Clock, Datastore};
use crate::error::{DatastoreError, Result};
use crate::hidden;
use crate::table_state::{TableSlot, TableState};
use crate::transaction::{Change, ChangeKind, Transaction};

impl Datastore {
    /// Opens the transaction.
    ///
    /// # Panics
    /// If one is open: there is one writer and it runs one call at a time.
    pub fn begin(&mut self) {
        assert!(
            !self.transaction.open,
            "the writer runs one transaction at a time"
        );
        self.transaction.only_inserts = true;
        self.transaction.open = true;
    }

    pub fn in_transaction(&self) -> bool {
        self.transaction.open
    }

    /// The number of row changes the open transaction has made.
    pub fn change_count(&self) -> usize {
        self.transaction.changes.len()
    }

    /// Has a counter follow the number of row changes of a long transaction, about; none: no more.
    pub fn count_changes(&mut self, counter: Option<Arc<AtomicU64>>) {
        self.transaction.counted = counter;
    }

    /// How many rows the open transaction has changed in each table since it had made `since` changes, by names. Tables that are
    /// gone again are left out.
    pub fn changes_by_table(&self, since: usize) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<TableSlot, u64> = BTreeMap::new();
        for change in self.transaction.changes.get(since..).unwrap_or_default() {
            *counts.entry(change.slot).or_default() += 1;
        }
        let named = counts.into_iter().filter_map(|(slot, count)| {
            let state = self.tables[slot.index()].as_ref()?;
            Some((state.table.schema.name.clone(), count))
        });
        named.collect()
    }

    fn require_room(&self, bytes: usize) -> Result<()> {
        let Transaction {
            arena,
            inserted_bytes,
            changes,
            ..
        } = &self.transaction;
        let used = arena.len() + inserted_bytes + changes.len() * std::mem::size_of::<Change>();
        let bytes_max = self.transaction_bytes_max;
        match used.saturating_add(bytes) > bytes_max {
            true => Err(DatastoreError::TransactionTooLarge { bytes_max }),
            false => Ok(()),
        }
    }

    /// Inserts a row (03 §8.4). Values drawn from sequences are appended to `generated` in column order.
    ///
    /// # Errors
    /// No transaction, no such table, undecodable row, a unique index holds the key. Nothing is changed then.
    pub fn insert(&mut self, table: TableId, row: &[u8], generated: &mut Vec<u8>) -> Result<()> {
        self.require_transaction()?;
        let slot = self.writable_slot(table)?;
        self.insert_found(slot, row, generated)
    }

    /// [`insert`](Self::insert) into any table.
    pub(crate) fn insert_found(
        &mut self,
        slot: TableSlot,
        row: &[u8],
        generated: &mut Vec<u8>,
    ) -> Result<()> {
        let length = self.at(slot).table.layout().validate(row)?;
        self.require_room(length)?;
        let row = &row[..length];
        self.with_sequences(slot, row, generated, |state, transaction, clock, row| {
            match insert_row(state, row)? {
                // Nothing knows of the row yet, so it goes as it came.
                Inserted::New(id) if comes_too_late(state, row, clock) => {
                    state.table.delete(id);
                    return Err(DatastoreError::ScheduleDelayTooLong);
                }
                Inserted::New(id) => {
                    transaction.inserted_bytes += length;
                    transaction.note(slot, id, ChangeKind::Insert, &[]);
                }
                Inserted::Same(_) => {}
            }
            Ok(())
        })
    }

    /// Stores a row with what its sequences give for zeros, which is appended to `generated` unless that fails.
    #[inline]
    fn with_sequences(
        &mut self,
        slot: TableSlot,
        row: &[u8],
        generated: &mut Vec<u8>,
        store: impl FnOnce(&mut TableState, &mut Transaction, &Clock, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Datastore {
            tables,
            transaction,
            clock,
            ..
        } = self;
        let state = tables[slot.index()]
            .as_mut()
            .expect("slots in use hold tables");
        let mut scratch = std::mem::take(&mut transaction.row);
        let first_generated = generated.len();
        let (row, are_unsaved) = fill_sequences(state, row, &mut scratch, generated);
        if are_unsaved {
            transaction.save_sequences_of(slot, state);
        }
        let outcome = store(state, transaction, clock, row);
        transaction.row = scratch;
        if outcome.is_err() {
            generated.truncate(first_generated);
        }
        outcome
    }

    /// Replaces the row that has the new row's key in `index` (03 §8.5).
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and: `index` is not one of the table, is not unique, or has no such row.
    pub fn update(
        &mut self,
        table: TableId,
        index: IndexId,
        row: &[u8],
        generated: &mut Vec<u8>,
    ) -> Result<()> {
        self.require_transaction()?;
        let slot = self.writable_slot(table)?;
        let length = self.at(slot).table.layout().validate(row)?;
        let (index_slot, position) = self.index_slot(index)?;
        if index_slot != slot {
            return Err(DatastoreError::NoSuchIndex);
        }
        if !self.at(slot).table.indexes()[position].is_unique() {
            return Err(DatastoreError::IndexNotUnique);
        }
        self.require_room(2 * length)?;
        let row = &row[..length];
        self.with_sequences(slot, row, generated, |state, transaction, clock, row| {
            replace_by_key(state, (slot, position), row, transaction, clock)
        })
    }

    /// Deletes what the point scan finds (03 §8.6) and returns how many rows went.
    ///
    /// # Errors
    /// As the point scan.
    pub fn delete_by_index_point(&mut self, index: IndexId, point: &[u8]) -> Result<u32> {
        self.delete_rows_found(|datastore, found| {
            let (table, by) = datastore.index(index)?;
            by.for_point(table.rows(), table.layout(), point, |id| found.push(id))?;
            datastore.slot(table.schema.id)
        })
    }

    /// Deletes what the range scan finds (03 §8.6) and returns how many rows went.
    ///
    /// # Errors
    /// As the range scan.
    pub fn delete_by_index_range(&mut self, index: IndexId, range: RangeBounds<'_>) -> Result<u32> {
        self.delete_rows_found(|datastore, found| {
            let (table, by) = datastore.index(index)?;
            by.for_range(table.rows(), table.layout(), range, |id| found.push(id))?;
            datastore.slot(table.schema.id)
        })
    }

    /// Deletes each row of the BSATN array `rows` that is visible (03 §8.6); returns how many rows went.
    ///
    /// # Errors
    /// No transaction, no such table, undecodable rows. Nothing is changed then.
    pub fn delete_all_by_eq(&mut self, table: TableId, rows: &[u8]) -> Result<u32> {
        self.delete_rows_found(|datastore, found| {
            let slot = datastore.slot(table)?;
            find_listed(&datastore.at(slot).table, rows, found)?;
            Ok(slot)
        })
    }

    /// Deletes all visible rows and returns how many there were.
    ///
    /// # Errors
    /// No transaction; no such table.
    pub fn clear(&mut self, table: TableId) -> Result<u64> {
        let deleted = self.delete_rows_found(|datastore, found| {
            let slot = datastore.slot(table)?;
            let rows = datastore.at(slot).table.rows();
            rows.for_each(|id, _| found.push(id));
            Ok(slot)
        })?;
        Ok(u64::from(deleted))
    }

    /// Deletes rows of a table by their ids.
    ///
    /// # Errors
    /// No transaction; no such table; the transaction is too large. Nothing is changed then.
    ///
    /// # Panics
    /// If an id is not of a row of the table: ids are good until that row, or the table, is next written to.
    pub fn delete_by_id(&mut self, table: TableId, rows: &[RowId]) -> Result<u32> {
        self.require_transaction()?;
        let slot = self.slot(table)?;
        self.delete_rows(slot, rows)
    }

    /// Deletes the rows of one table that `find` puts into the empty list.
    #[inline]
    fn delete_rows_found(
        &mut self,
        find: impl FnOnce(&Datastore, &mut Vec<RowId>) -> Result<TableSlot>,
    ) -> Result<u32> {
        self.require_transaction()?;
        let mut found = std::mem::take(&mut self.transaction.found);
        let slot = find(self, &mut found);
        let result = slot.and_then(|slot| self.delete_rows(slot, &found));
        found.clear();
        found.shrink_to(1 << 16);
        self.transaction.found = found;
        result
    }

    /// The slot of a table that is not the database's own to write.
    #[inline]
    fn writable_slot(&self, table: TableId) -> Result<TableSlot> {
        let slot = self.slot(table)?;
        match self.at(slot).is_writable {
            true => Ok(slot),
            false => Err(self.not_writable(slot)),
        }
    }

    #[cold]
    fn not_writable(&self, slot: TableSlot) -> DatastoreError {
        let state = self.at(slot);
        let name = state.table.schema.name.clone();
        // A copy that lacks the table's rows has to know that they are wanted.
        self.note_read(&state.table);
        match (state.is_view(), hidden::is_hidden(&name)) {
            (true, _) => DatastoreError::View { view: name },
            (_, true) => DatastoreError::Hidden {
                table: hidden::shown(&name),
            },
            _ => DatastoreError::OldTable { table: name },
        }
    }

    pub(crate) fn delete_rows(&mut self, slot: TableSlot, rows: &[RowId]) -> Result<u32> {
        match self.at(slot).is_writable {
            true => self.delete_found(slot, rows),
            false => Err(self.not_writable(slot)),
        }
    }

    /// [`delete_rows`](Self::delete_rows) of any table.
    pub(crate) fn delete_found(&mut self, slot: TableSlot, rows: &[RowId]) -> Result<u32> {
        let table = &self.at(slot).table;
        self.require_room(rows.iter().map(|&id| table.row(id).len()).sum())?;
        let (tables, transaction) = (&mut self.tables, &mut self.transaction);
        let state = tables[slot.index()].as_mut();
        let table = &mut state.expect("slots in use hold tables").table;
        for &id in rows {
            transaction.note(slot, id, ChangeKind::Delete, table.row(id));
            table.delete(id);
        }
        Ok(rows.len() as u32)
    }
}

/// The visible rows among the listed ones, each once.
fn find_listed(table: &Table, rows: &[u8], found: &mut Vec<RowId>) -> Result<()> {
    let mut reader = Reader::new(rows);
    let count = reader.read_count(0)?;
    let mut at = rows.len() - reader.remaining().len();
    for _ in 0..count {
        let length = table.layout().validate_prefix(&rows[at..])?;
        found.extend(table.find_equal(&rows[at..at + length]));
        at += length;
        if length == 0 {
            // A table without columns holds one row at most; the rest of the list repeats it.
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(())
}

/// Puts generated values where the row has zeros (02 §12). Returns the row to store, and whether a sequence that has issued one
/// has reserved values that are not in the catalog yet.
#[inline]
fn fill_sequences<'r>(
    state: &mut TableState,
    row: &'r [u8],
    scratch: &'r mut Vec<u8>,
    generated: &mut Vec<u8>,
) -> (&'r [u8], bool) {
    if state.sequences.is_empty() {
        return (row, false);
    }
    let mut are_unsaved = false;
    scratch.clear();
    scratch.extend_from_slice(row);
    let TableState {
        table, sequences, ..
    } = state;
    for sequence in sequences {
        let range = table
            .layout()
            .column_range(scratch, usize::from(sequence.schema.column.0));
        if scratch[range.clone()].iter().any(|&byte| byte != 0) {
            continue;
        }
        let value = sequence.next();
        are_unsaved |= sequence.unsaved;
        let (bytes, length) = sequence.column_value(value);
        scratch[range].copy_from_slice(&bytes[..length]);
        generated.extend_from_slice(&bytes[..length]);
    }
    (scratch, are_unsaved)
}

/// Whether a row of a schedule table names a time that is too far away (03 §8.4).
#[inline]
fn comes_too_late(state: &TableState, row: &[u8], clock: &Clock) -> bool {
    let schedule = state.schedule.as_ref();
    schedule.is_some_and(|schedule| schedule.at(&state.table, row).is_too_late(clock()))
}

fn insert_row(state: &mut TableState, row: &[u8]) -> Result<Inserted> {
    state.table.insert(row).map_err(|error| match error {
        InsertError::NotUnique { index, .. } => not_unique(&state.table, index),
        InsertError::Other(error) => error.into(),
    })
}

fn not_unique(table: &Table, index: usize) -> DatastoreError {
    DatastoreError::UniqueAlreadyExists {
        table: table.schema.name.clone(),
        index: table.schema.indexes[index].name.clone(),
    }
}

fn replace_by_key(
    state: &mut TableState,
    (slot, position): (TableSlot, usize),
    row: &[u8],
    transaction: &mut Transaction,
    clock: &Clock,
) -> Result<()> {
    let table = &state.table;
    let index = &table.indexes()[position];
    let Some(id) = index.find_row(table.rows(), table.layout(), row) else {
        return Err(DatastoreError::NoSuchRow);
    };
    if table.row(id) == row {
        return Ok(());
    }
    if let Some(other) = table.conflict(row, id, position) {
        return Err(not_unique(table, other));
    }
    if comes_too_late(state, row, clock) {
        return Err(DatastoreError::ScheduleDelayTooLong);
    }
    replace_noted(&mut state.table, (slot, id), row, transaction)
}

/// Replaces a row by one whose unique keys are free or its own, and notes it.
#[inline]
pub(crate) fn replace_noted(
    table: &mut Table,
    (slot, id): (TableSlot, RowId),
    row: &[u8],
    transaction: &mut Transaction,
) -> Result<()> {
    let old = table.row(id);
    if table.layout().fixed_size().is_some() {
        transaction.note(slot, id, ChangeKind::Replace, old);
        table.replace(id, row)?;
        transaction.inserted_bytes += row.len();
        return Ok(());
    }
    // The row may move: to the undo log that is a row that went and one that came.
    let changes = transaction.changes.len();
    transaction.note(slot, id, ChangeKind::Replace, old);
    match table.replace(id, row) {
        Ok(new) if new == id => {}
        Ok(new) => {
            transaction.changes[changes].kind = ChangeKind::Delete;
            transaction.note(slot, new, ChangeKind::Insert, &[]);
        }
        Err(error) => {
            transaction.changes.truncate(changes);
            return Err(error.into());
        }
    }
    transaction.inserted_bytes += row.len();
    Ok(())
}
