//! The way back: rollback of the open transaction, and savepoints in it.

use std::ops::Range;

use lightcone_table::{Inserted, RowId};
use rustc_hash::FxHashMap;

use crate::datastore::Datastore;
use crate::table_state::TableSlot;
use crate::transaction::{Change, ChangeKind, SchemaChange, SchemaUndo, StateBefore};

/// Rows that came back under another id than earlier changes know them by.
type MovedRows = FxHashMap<(TableSlot, RowId), RowId>;

/// A point of the open transaction that it can go back to.
#[derive(Clone, Copy)]
pub struct Savepoint {
    changes: usize,
    arena: usize,
    inserted_bytes: usize,
}

impl Datastore {
    /// Undoes everything the open transaction did. Sequence values stay consumed (02 §12).
    pub fn rollback(&mut self) {
        self.undo_schema_changes();
        self.transaction.reset();
    }

    /// Where the open transaction is.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            changes: self.transaction.changes.len(),
            arena: self.transaction.arena.len(),
            inserted_bytes: self.transaction.inserted_bytes,
        }
    }

    /// Undoes what the open transaction did behind a point; no table was changed there.
    pub fn undo_to(&mut self, point: Savepoint) {
        let end = self.transaction.changes.len();
        self.undo_changes(point.changes..end, &mut MovedRows::default());
        let transaction = &mut self.transaction;
        transaction.changes.truncate(point.changes);
        transaction.arena.truncate(point.arena);
        transaction.inserted_bytes = point.inserted_bytes;
    }

    /// Takes back some changes, when those behind them are.
    fn undo_changes(&mut self, changes: Range<usize>, moved: &mut MovedRows) {
        let transaction = std::mem::take(&mut self.transaction);
        for change in transaction.changes[changes].iter().rev() {
            let table = &mut self.at_mut(change.slot).table;
            let key = (change.slot, change.row);
            let row = moved.get(&key).copied().unwrap_or(change.row);
            let back = match change.kind {
                ChangeKind::Insert => {
                    table.delete(row);
                    moved.remove(&key);
                    continue;
                }
                ChangeKind::Delete => match table.put_back(change.row, transaction.old(change.old))
                {
                    Ok(Inserted::New(id) | Inserted::Same(id)) => id,
                    Err(error) => panic!("a deleted row fits back into its table: {error}"),
                },
                ChangeKind::Replace => table
                    .replace(row, transaction.old(change.old))
                    .expect("the old image of a row fits back into its table"),
            };
            if back == change.row {
                moved.remove(&key);
            } else {
                moved.insert(key, back);
            }
        }
        self.transaction = transaction;
    }

    /// Takes back what the open transaction has done to rows and tables, in turns.
    fn undo_schema_changes(&mut self) {
        let mut moved = MovedRows::default();
        let mut end = self.transaction.changes.len();
        while let Some(SchemaChange { changes, undo }) = self.transaction.schema_changes.pop() {
            self.undo_changes(changes..end, &mut moved);
            end = changes;
            match undo {
                SchemaUndo::Created(slot) => drop(self.remove_table(slot)),
                SchemaUndo::Dropped(slot, state) => self.restore_table(slot, *state),
                SchemaUndo::Altered(slot, before) => self.undo_alter(slot, *before, changes),
            }
        }
        self.undo_changes(0..end, &mut moved);
        let Some(before) = self.transaction.catalog_before.take() else {
            return;
        };
        self.table_names = before.table_names;
        self.index_names = before.index_names;
        // The ids that were taken are free again: nothing outside the transaction has seen them.
        for (slot, sequences) in before.sequences {
            self.at_mut(slot).sequences = sequences;
        }
    }

    fn undo_alter(&mut self, slot: TableSlot, before: StateBefore, changes: usize) {
        let is_of = |change: &Change| change.slot == slot;
        let rows_changed = self.transaction.changes[changes..].iter().any(is_of);
        let schema = before.table.schema().clone();
        let state = self.at_mut(slot);
        let altered = state.table.schema.clone();
        state.table.undo_alter(before.table, rows_changed);
        state.sequences = before.sequences;
        state.schedule = before.schedule;
        state.outbox = before.outbox;
        state.declared = before.declared;
        state.is_writable = before.is_writable;
        self.register_indexes(slot, Some(&altered), &schema);
    }
}
