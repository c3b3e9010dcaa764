//! Tables that are frozen for readers, and the memory that this may cost.
//!
//! A frozen table costs what the writer copies because of it. Readers take their time, so that is limited: past the limit the
//! oldest frozen table is ended, and its reader gets an error that says so.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use lightcone_engine::Datastore;
use lightcone_table::TableView;
use lightcone_types::TableId;

/// A table as it was between two transactions. All who asked before the next change share it.
pub(crate) struct FrozenTable {
    table: Arc<TableView>,
    is_ended: AtomicBool,
}

impl FrozenTable {
    /// Whether it costs too much, so that its reader is to stop.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

impl Deref for FrozenTable {
    type Target = TableView;

    fn deref(&self) -> &TableView {
        &self.table
    }
}

/// The frozen tables that are still read, the oldest first.
#[derive(Default)]
pub(crate) struct FrozenTables(Vec<Held>);

struct Held {
    id: TableId,
    table: Weak<FrozenTable>,
    /// What the table had released when it was frozen.
    released_bytes: u64,
}

impl FrozenTables {
    /// Freezes the committed rows of a table and its indexes.
    pub fn freeze(&mut self, datastore: &mut Datastore, id: TableId) -> Option<Arc<FrozenTable>> {
        let table = datastore.freeze_table(id)?;
        let last = self.0.iter().rev().find(|held| held.id == id);
        let last = last.and_then(|held| held.table.upgrade());
        if let Some(last) = last.filter(|last| Arc::ptr_eq(&last.table, &table)) {
            return Some(last);
        }
        let frozen = Arc::new(FrozenTable {
            table,
            is_ended: AtomicBool::new(false),
        });
        self.0.push(Held {
            id,
            table: Arc::downgrade(&frozen),
            released_bytes: released_bytes(datastore, id),
        });
        Some(frozen)
    }

    /// Ends the oldest tables until the rest hold at most `bytes_max` alone. To do between rounds.
    pub fn enforce(&mut self, datastore: &Datastore, bytes_max: usize) {
        if self.0.is_empty() {
            return;
        }
        self.0.retain(|held| held.table.strong_count() > 0);
        let mut bytes = 0_u64;
        for held in self.0.iter().rev() {
            // What an older one shares with a newer one is counted twice, so the limit is never passed unnoticed.
            bytes += released_bytes(datastore, held.id).saturating_sub(held.released_bytes);
            if bytes > bytes_max as u64 {
                if let Some(table) = held.table.upgrade() {
                    table.is_ended.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Nothing for a table that is gone: it grows no more, even while it is read.
fn released_bytes(datastore: &Datastore, id: TableId) -> u64 {
    let table = datastore.table(id);
    table.map_or(0, |table| table.released_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Items;

    #[test]
    fn the_oldest_is_ended_when_too_much_was_copied() {
        let mut items = Items::new(20_000, 100);
        let mut tables = FrozenTables::default();
        let id = items.datastore.table_id_from_name("items").expect("made");
        let first = tables.freeze(&mut items.datastore, id).expect("a table");
        let same = tables.freeze(&mut items.datastore, id).expect("a table");
        assert!(Arc::ptr_eq(&first, &same), "nothing has changed");
        drop(same);
        items.delete(id, 0);
        let second = tables.freeze(&mut items.datastore, id).expect("a table");
        assert!(!Arc::ptr_eq(&first, &second));
        tables.enforce(&items.datastore, 1 << 20);
        assert!(!first.is_ended() && !second.is_ended());
        for row in 1..19_000 {
            items.delete(id, row);
        }
        tables.enforce(&items.datastore, 6 << 20);
        assert!(first.is_ended(), "most pages were copied for both");
        assert!(!second.is_ended());
        assert_eq!(first.rows().row_count(), 20_000);
        drop((first, second));
        tables.enforce(&items.datastore, 0);
        assert!(tables.0.is_empty(), "they are read no more");
    }
}
