//! What a record does to the tables: in recovery, in a follower, in a restore, and in a copy of the past.

use lightcone_log::LogOffset;
use lightcone_table::{Index, Inserted, RowId, Table};
use lightcone_types::TableId;

use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::record::{Group, GroupKind, Record};
use crate::system::{
    ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID, ST_INBOUND_MSG_ID, ST_INBOUND_STREAM_ID,
    ST_OUTBOUND_MSG_ID, ST_OUTBOUND_STREAM_ID, ST_SEQUENCE_ID, ST_TABLE_ID, SYSTEM_TABLE_ID_MAX,
};
use crate::table_state::TableSlot;
use crate::transaction::{ChangeKind, Transaction};
use crate::write::replace_noted;

impl Datastore {
    /// Makes the changes of a record, which is that of the transaction `offset`, or says when those that follow were committed. The
    /// only way in which records change tables. Sequences follow when [`finish_replay`](Self::finish_replay) is called.
    ///
    /// In an open transaction they are noted, and sealing it gives the deltas that sealing the transaction of the record gave: so a
    /// follower tells its subscribers. The rows of a table may come in another order.
    ///
    /// # Errors
    /// The record does not fit the tables, or a transaction is open and it does not [only change rows](Record::changes_only_rows). Some of
    /// it may have been applied: outside of a transaction there is no way back.
    pub fn apply(&mut self, offset: LogOffset, record: &Record<'_>) -> Result<(), RecoveryError> {
        let wrong = |detail: String| RecoveryError::Record { offset, detail };
        if self.transaction.open {
            if !record.changes_only_rows() {
                let detail = "it changes more than rows, in an open transaction".to_owned();
                return Err(wrong(detail));
            }
            self.transaction.is_repeated = true;
        }
        match record {
            Record::Clock(_) => Ok(()),
            Record::Transaction(groups) => self.apply_groups(groups).map_err(wrong),
            Record::Transaction1(groups) => self.apply_first_version(groups, wrong),
        }
    }

    fn apply_first_version(
        &mut self,
        groups: &[Group<'_>],
        wrong: impl Fn(String) -> RecoveryError,
    ) -> Result<(), RecoveryError> {
        let (catalog, user) = split_first_version(groups);
        self.apply_groups(catalog).map_err(&wrong)?;
        if catalog.iter().any(|group| group.table == ST_TABLE_ID) {
            self.sync_with_catalog()?;
        }
        self.apply_groups(user).map_err(&wrong)
    }

    fn apply_groups(&mut self, groups: &[Group<'_>]) -> Result<(), String> {
        for table_groups in of_tables(groups) {
            let group = &table_groups[0];
            match group.kind {
                GroupKind::Schema => self.apply_schema_group(group)?,
                GroupKind::Copy => self.apply_copy_group(group)?,
                _ => self.apply_rows(table_groups)?,
            }
        }
        Ok(())
    }

    /// The groups of rows of one table: first everything that goes, then everything that comes, so that no unique key is held twice
    /// in between.
    pub(crate) fn apply_rows(&mut self, groups: &[Group<'_>]) -> Result<(), String> {
        for group in groups {
            self.remove_rows(group)?;
        }
        groups.iter().try_for_each(|group| self.add_rows(group))
    }

    pub(crate) fn apply_schema_group(&mut self, group: &Group<'_>) -> Result<(), String> {
        require_end(group.rows)?;
        // What it was is not needed again.
        let changed = self.apply_catalog(group.table, &mut |_| true);
        changed.map(drop).map_err(text)
    }

    fn apply_copy_group(&mut self, group: &Group<'_>) -> Result<(), String> {
        let (from, suffix) = copy_of(group)?;
        let copied = self.apply_copy((from, group.table), suffix, &mut |_| true);
        copied.map_err(text)
    }

    fn remove_rows(&mut self, group: &Group<'_>) -> Result<(), String> {
        if matches!(group.kind, GroupKind::Insert | GroupKind::Event) {
            return Ok(());
        }
        let slot = self.slot_of(group)?;
        let (table, mut noted) = self.table_and_transaction(slot);
        let in_place = is_put_in_place(group, table);
        let mut rest = group.rows;
        for _ in 0..group.row_count {
            let (length, found) = find_replaced(table, group, rest)?;
            match (found, &mut noted) {
                (Some(id), Some(transaction)) if in_place => {
                    let row = &rest[..length];
                    replace_noted(table, (slot, id), row, transaction).map_err(text)?;
                }
                (Some(id), None) if in_place => {
                    table.replace(id, &rest[..length]).map_err(text)?;
                }
                (Some(id), transaction) => {
                    if let Some(transaction) = transaction {
                        transaction.note(slot, id, ChangeKind::Delete, table.row(id));
                    }
                    table.delete(id);
                }
                (None, _) if group.kind == GroupKind::Put => {}
                (None, _) => {
                    return Err(format!("table {} has no such row to delete", group.table))
                }
            }
            rest = &rest[length..];
        }
        require_end(rest)
    }

    fn add_rows(&mut self, group: &Group<'_>) -> Result<(), String> {
        let is_kept = matches!(group.kind, GroupKind::Insert | GroupKind::Put);
        // Events are told, and go when the transaction is sealed.
        let is_told = group.kind == GroupKind::Event && self.transaction.open;
        if !is_kept && !is_told {
            return Ok(());
        }
        let slot = self.slot_of(group)?;
        let (table, mut noted) = self.table_and_transaction(slot);
        let in_place = is_put_in_place(group, table);
        let mut rest = group.rows;
        for _ in 0..group.row_count {
            let length = row_length(table, rest)?;
            match table.insert(&rest[..length]) {
                Ok(Inserted::New(id)) => {
                    if let Some(transaction) = &mut noted {
                        transaction.note(slot, id, ChangeKind::Insert, &[]);
                    }
                }
                // `remove_rows` has put it there.
                Ok(Inserted::Same(_)) if in_place => {}
                Ok(Inserted::Same(_)) => {
                    return Err(format!(
                        "table {} holds an inserted row already",
                        group.table
                    ))
                }
                Err(error) => return Err(format!("table {}: {error}", group.table)),
            }
            rest = &rest[length..];
        }
        require_end(rest)
    }

    /// A table, and the transaction if one is open.
    fn table_and_transaction(&mut self, slot: TableSlot) -> (&mut Table, Option<&mut Transaction>) {
        let (tables, transaction) = (&mut self.tables, &mut self.transaction);
        let state = tables[slot.index()].as_mut();
        let state = state.expect("slots in use hold tables");
        let is_open = transaction.open;
        (&mut state.table, is_open.then_some(transaction))
    }

    fn slot_of(&self, group: &Group<'_>) -> Result<TableSlot, String> {
        let slot = self.slot(group.table);
        slot.map_err(|_| format!("table {} does not exist", group.table))
    }

    /// Ends a run of [`apply`](Self::apply): the tables are ready for transactions.
    ///
    /// # Errors
    /// The catalog is inconsistent.
    pub fn finish_replay(&mut self) -> Result<(), RecoveryError> {
        self.sync_with_catalog()?;
        self.restore_sequences();
        Ok(())
    }
}

impl Record<'_> {
    /// Whether tables, program and settings stay what they are.
    pub fn changes_only_rows(&self) -> bool {
        let of_rows = [
            ST_SEQUENCE_ID,
            ST_CLIENT_ID,
            ST_CONNECTION_CREDENTIALS_ID,
            ST_OUTBOUND_STREAM_ID,
            ST_OUTBOUND_MSG_ID,
            ST_INBOUND_STREAM_ID,
            ST_INBOUND_MSG_ID,
        ];
        let is_of_rows = |group: &Group<'_>| {
            let is_user = group.table.0 > SYSTEM_TABLE_ID_MAX;
            group.kind < GroupKind::Schema && (is_user || of_rows.contains(&group.table))
        };
        match self {
            Record::Clock(_) => true,
            Record::Transaction(groups) => groups.iter().all(is_of_rows),
            Record::Transaction1(_) => false,
        }
    }
}

/// Groups of rows of one table behind each other belong together.
pub(crate) fn of_tables<'r, 'g>(groups: &'r [Group<'g>]) -> impl Iterator<Item = &'r [Group<'g>]> {
    let is_of_rows = |group: &Group<'_>| group.kind < GroupKind::Schema;
    groups.chunk_by(move |a, b| a.table == b.table && is_of_rows(a) && is_of_rows(b))
}

/// Groups come in order of table ids there, so the catalog is complete before the rows of its tables.
pub(crate) fn split_first_version<'r, 'g>(
    groups: &'r [Group<'g>],
) -> (&'r [Group<'g>], &'r [Group<'g>]) {
    groups.split_at(groups.partition_point(|group| group.table.0 <= SYSTEM_TABLE_ID_MAX))
}

/// Which table a copy is of, and what is put behind each of its rows.
pub(crate) fn copy_of<'g>(group: &Group<'g>) -> Result<(TableId, &'g [u8]), String> {
    match group.rows.split_first_chunk() {
        Some((from, suffix)) => Ok((TableId(u32::from_le_bytes(*from)), suffix)),
        None => Err("a copy without the table that it is of".to_owned()),
    }
}

/// Whether new rows take the places of the old ones, as nothing can be in the way: the common case of a log of updates.
fn is_put_in_place(group: &Group<'_>, table: &Table) -> bool {
    group.kind == GroupKind::Put && table.indexes().len() == 1
}

/// The index by whose keys the rows of a group are named.
fn identity_index<'t>(table: &'t Table, group: &Group<'_>) -> Result<&'t Index, String> {
    let index = match group.index {
        Some(position) => table.indexes().get(position),
        None => table.identity_index(),
    };
    let named = group.index.unwrap_or(0);
    index
        .filter(|index| index.is_unique())
        .ok_or_else(|| format!("table {} has no unique index {named}", group.table))
}

/// The length of the first row or key in `rows`, and the row that goes because of it.
fn find_replaced(
    table: &Table,
    group: &Group<'_>,
    rows: &[u8],
) -> Result<(usize, Option<RowId>), String> {
    if group.kind == GroupKind::DeleteByKey {
        let index = identity_index(table, group)?;
        let length = index.point_len(table.layout(), rows).map_err(text)?;
        let found = index.find_point(table.rows(), table.layout(), &rows[..length]);
        return Ok((length, found.map_err(text)?));
    }
    let length = row_length(table, rows)?;
    let row = &rows[..length];
    let found = match group.kind {
        GroupKind::DeleteRow => table.find_equal(row),
        _ => identity_index(table, group)?.find_row(table.rows(), table.layout(), row),
    };
    Ok((length, found))
}

/// The length of the first row in `rows`.
fn row_length(table: &Table, rows: &[u8]) -> Result<usize, String> {
    table.layout().validate_prefix(rows).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn require_end(rest: &[u8]) -> Result<(), String> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(format!("{} bytes follow the rows of a group", rest.len())),
    }
}
