//! What a function makes of one row: rows that are inserted, or, when the row goes, found again and deleted.

use lightcone_table::{RowId, Table};
use lightcone_types::bsatn::Reader;
use lightcone_types::{IndexId, TableId};

use super::tables::BackfillTable;
use crate::datastore::Datastore;
use crate::error::{DatastoreError, Result};
use crate::hidden::{new_name, shown, AGAIN, NEW};
use crate::making::Making;
use crate::old_names::{ABSENT_OLD_INDEX, ABSENT_OLD_TABLE};
use crate::schema_change::shown as value_shown;
use crate::table_state::TableSlot;

/// Columns of a row without a key that an error shows.
const SHOWN_COLUMNS_MAX: usize = 8;
/// Bytes of the hash of a row, which stands for it.
const HASH_BYTES: usize = 16;

impl Datastore {
    /// A function makes rows from here on: it inserts into the new tables, and does nothing else.
    pub fn begin_making(&mut self) {
        self.making = Some(Box::default());
    }

    /// The same function, for the same row: what it inserts is deleted. `generated` is what [`end_making`](Self::end_making) gave.
    pub fn begin_unmaking(&mut self, generated: Vec<u8>) {
        self.making = Some(Box::new(Making {
            is_undo: true,
            generated,
            ..Making::default()
        }));
    }

    /// The function has ended. Gives the values that counters gave.
    ///
    /// # Errors
    /// An insert failed, whether or not the function has told so.
    pub fn end_making(&mut self) -> Result<Vec<u8>, String> {
        let Some(making) = self.making.take() else {
            return Ok(Vec::new());
        };
        match making.failure {
            Some(failure) => Err(failure),
            None => Ok(making.generated),
        }
    }

    /// Whether a function that makes rows runs.
    #[inline]
    pub fn is_making(&self) -> bool {
        self.making.is_some()
    }

    /// The table that such a function knows by this name. Modules look all of theirs up before they use one, so there is an id for
    /// those too that are not there yet.
    pub fn table_id_for_rows(&self, name: &str) -> TableId {
        let new = self.table_id_from_name(&new_name(name));
        let known = new.or_else(|| self.table_id_from_name(name));
        known.unwrap_or(ABSENT_OLD_TABLE)
    }

    /// The same of an index.
    pub fn index_id_for_rows(&self, name: &str) -> IndexId {
        let new = self.index_id_from_name(&new_name(name));
        let known = new.or_else(|| self.index_id_from_name(name));
        known.unwrap_or(ABSENT_OLD_INDEX)
    }

    /// Inserts a row for a function that makes rows, or deletes it again. Generated values are appended in column order.
    ///
    /// # Errors
    /// The table is none that takes rows in; the row does not fit; the function makes other rows than it did. All of them end
    /// the backfill, whatever the function does then.
    pub fn insert_made(
        &mut self,
        table: TableId,
        row: &[u8],
        generated: &mut Vec<u8>,
    ) -> Result<()> {
        self.require_transaction()?;
        let result = self.new_table(table).and_then(|slot| match self.is_undo() {
            true => self.unmake_row(slot, row, generated),
            false => self.make_row(slot, row, generated),
        });
        if let (Err(error), Some(making)) = (&result, &mut self.making) {
            making
                .failure
                .get_or_insert_with(|| shown(&error.to_string()));
        }
        result
    }

    fn is_undo(&self) -> bool {
        self.making.as_ref().is_some_and(|making| making.is_undo)
    }

    fn new_table(&self, table: TableId) -> Result<TableSlot> {
        let slot = self.slot(table).map_err(|_| DatastoreError::NotForRows)?;
        match self.at(slot).table.schema.name.starts_with(NEW) {
            true => Ok(slot),
            false => Err(DatastoreError::NotForRows),
        }
    }

    fn make_row(&mut self, slot: TableSlot, row: &[u8], generated: &mut Vec<u8>) -> Result<()> {
        let (changes, first) = (self.transaction.changes.len(), generated.len());
        self.insert_found(slot, row, generated)?;
        if let Some(making) = &mut self.making {
            making.generated.extend_from_slice(&generated[first..]);
        }
        if self.transaction.changes.len() > changes {
            return Ok(());
        }
        let length = self.at(slot).table.layout().validate(row)?;
        // A counter has just given the row a value; that it is there already takes one that has begun anew.
        let row = match generated.len() > first {
            true => std::mem::take(&mut self.transaction.row),
            false => row[..length].to_vec(),
        };
        self.count_again(slot, &row, 1).map(drop)
    }

    fn unmake_row(&mut self, slot: TableSlot, row: &[u8], generated: &mut Vec<u8>) -> Result<()> {
        let length = self.at(slot).table.layout().validate(row)?;
        let mut row = row[..length].to_vec();
        self.fill_as_before(slot, &mut row, generated)?;
        if self.count_again(slot, &row, -1)? {
            return Ok(());
        }
        let table = &self.at(slot).table;
        let found = table.find_equal(&row).ok_or(DatastoreError::OtherRows)?;
        self.delete_found(slot, &[found]).map(drop)
    }

    /// Puts the values into a row that counters gave it when it was made.
    fn fill_as_before(
        &mut self,
        slot: TableSlot,
        row: &mut [u8],
        generated: &mut Vec<u8>,
    ) -> Result<()> {
        let Datastore { tables, making, .. } = self;
        let state = tables[slot.index()]
            .as_ref()
            .expect("slots in use hold tables");
        let making = making.as_mut().ok_or(DatastoreError::OtherRows)?;
        for sequence in &state.sequences {
            let column = usize::from(sequence.schema.column.0);
            let range = state.table.layout().column_range(row, column);
            if row[range.clone()].iter().any(|&byte| byte != 0) {
                continue;
            }
            let end = making.used + range.len();
            let value = making.generated.get(making.used..end);
            let value = value.ok_or(DatastoreError::OtherRows)?;
            row[range].copy_from_slice(value);
            generated.extend_from_slice(value);
            making.used = end;
        }
        Ok(())
    }

    /// Counts how many more times a row was made than once. False: it was made once at most, and there was nothing to be taken off.
    fn count_again(&mut self, slot: TableSlot, row: &[u8], by: i64) -> Result<bool> {
        let table = self.at(slot).table.schema.id;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&table.0.to_le_bytes());
        hasher.update(row);
        let key = hash_of(&hasher);
        let Some(again) = self.hidden_slot(AGAIN) else {
            return Ok(false);
        };
        let table = &self.at(again).table;
        if by < 0 && table.rows().row_count() == 0 {
            return Ok(false);
        }
        let found = find(table, &key);
        let count = found.map_or(0, |id| {
            let mut rest = Reader::new(&table.row(id)[HASH_BYTES..]);
            i64::from(rest.read_u32().unwrap_or_default())
        });
        if count + by < 0 {
            return Ok(false);
        }
        if let Some(id) = found {
            self.delete_found(again, &[id])?;
        }
        if count + by > 0 {
            let count = u32::try_from(count + by).unwrap_or(u32::MAX);
            let counted = [&key[..], &count.to_le_bytes()].concat();
            self.insert_found(again, &counted, &mut Vec::new())?;
        }
        Ok(true)
    }

    /// An old row, for people: its table, and its key, or all of it.
    pub fn shown_old_row(&self, of: &BackfillTable, row: &[u8]) -> String {
        let Some(table) = self.table(of.table) else {
            return of.old.clone();
        };
        let schema = &table.schema;
        let columns = match schema.primary_key {
            Some(key) => usize::from(key.0)..usize::from(key.0) + 1,
            None => 0..schema.columns.len().min(SHOWN_COLUMNS_MAX),
        };
        let values = columns.filter_map(|column| {
            let name = &schema.columns.get(column)?.name;
            Some(format!(
                "{name} = {}",
                value_shown(table.layout(), row, column)
            ))
        });
        let values: Vec<String> = values.collect();
        format!("row {} of `{}`", values.join(", "), schema.name)
    }

    // ---- Which old rows are done -----------------------------------------------------------------------------------------

    /// Whether an old row is still there.
    pub fn has_old_row(&self, of: &BackfillTable, row: &[u8]) -> bool {
        let table = self.table(of.table);
        table.is_some_and(|table| table.find_equal(row).is_some())
    }

    /// Whether an old row was migrated.
    pub fn is_backfilled(&self, of: &BackfillTable, row: &[u8]) -> bool {
        let done = self.table(of.done);
        done.is_some_and(|done| find(done, &row_hash(row)).is_some())
    }

    /// Notes that an old row was migrated, and what counters gave for it.
    ///
    /// # Errors
    /// The transaction is too large.
    pub fn note_backfilled(
        &mut self,
        of: &BackfillTable,
        row: &[u8],
        generated: &[u8],
    ) -> Result<()> {
        let slot = self.slot(of.done)?;
        let mut noted = row_hash(row).to_vec();
        if self.at(slot).table.schema.columns.len() > 1 {
            noted.extend_from_slice(&(generated.len() as u32).to_le_bytes());
            noted.extend_from_slice(generated);
        }
        self.insert_found(slot, &noted, &mut Vec::new())
    }

    /// Forgets that an old row was migrated, which is about to be undone. Gives what counters gave for it; none if it was not.
    ///
    /// # Errors
    /// The transaction is too large.
    pub fn forget_backfilled(&mut self, of: &BackfillTable, row: &[u8]) -> Result<Option<Vec<u8>>> {
        let slot = self.slot(of.done)?;
        let done = &self.at(slot).table;
        let Some(found) = find(done, &row_hash(row)) else {
            return Ok(None);
        };
        let mut rest = Reader::new(&done.row(found)[HASH_BYTES..]);
        let generated = match rest.remaining().is_empty() {
            true => Vec::new(),
            false => rest.read_bytes()?.to_vec(),
        };
        self.delete_found(slot, &[found])?;
        Ok(Some(generated))
    }
}

fn hash_of(hasher: &blake3::Hasher) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hasher.finalize_xof().fill(&mut hash);
    hash
}

/// A hash that stands for the row: it is long enough that no two rows have the same.
fn row_hash(row: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(row);
    hash_of(&hasher)
}

/// The row of a table whose first column is its key.
fn find(table: &Table, key: &[u8]) -> Option<RowId> {
    let index = table.indexes().first()?;
    index.find_point(table.rows(), table.layout(), key).ok()?
}
