//! Indexes that are held beside those of the schema, and building one without the table's writer.
//!
//! An [`IndexBuild`] takes in the rows of a frozen table, on any thread. Meanwhile the table notes what changes in the column
//! ([`IndexChanges`]); these are applied in the same way, again and again until few are left, and then the table takes the index.

use std::sync::Arc;

use lightcone_types::ColId;

use super::held::{empty_index, held_index, Building, HeldIndex, IndexChanges};
use super::{Table, TableView};
use crate::index::Index;
use crate::layout::RowLayout;
use crate::row_id::RowId;

/// An index on one column under construction, beside the table.
pub struct IndexBuild {
    index: Index,
    layout: Arc<RowLayout>,
    /// The last row that was taken in.
    after: Option<RowId>,
}

impl IndexBuild {
    /// An empty one, for a table of these columns.
    pub fn new(table: &TableView, column: ColId) -> IndexBuild {
        IndexBuild {
            index: empty_index(column, &table.layout),
            layout: table.layout.clone(),
            after: None,
        }
    }

    /// Takes in the next rows of the frozen table, which is the same each time. False: there are no more.
    pub fn add_rows(&mut self, table: &TableView, rows_max: usize) -> bool {
        let (rows, mut count) = (table.rows(), 0);
        rows.walk(self.after, |id, _| {
            self.index.insert(rows, &self.layout, id);
            self.after = Some(id);
            count += 1;
            count < rows_max
        });
        count == rows_max
    }

    /// Applies changes from a position on, at most so many. Returns the position behind them.
    pub fn apply(&mut self, changes: &IndexChanges, start: usize, count_max: usize) -> usize {
        let end = changes.len().min(start.saturating_add(count_max));
        let mut key_start = match start.checked_sub(1) {
            Some(before) => changes.changes[before].key_end,
            None => 0,
        };
        for change in &changes.changes[start..end] {
            let key = &changes.keys[key_start..change.key_end];
            self.index
                .change_point(&self.layout, key, change.row, change.is_insert)
                .expect("keys are columns of rows");
            key_start = change.key_end;
        }
        end
    }
}

impl Table {
    /// Makes sure that there is an index on this column until as many have let go of it. Builds it if need be, which takes as
    /// long as the table is large.
    pub fn hold_index(&mut self, column: ColId) {
        let has_index = self.position_on(column).is_some();
        let TableView {
            rows, layout, held, ..
        } = &mut self.view;
        if let Some(known) = held.iter_mut().find(|held| held.column == column) {
            known.holders += 1;
            return;
        }
        // Unused ones were kept in case a holder comes back.
        held.retain(|held| held.holders > 0);
        held.push(HeldIndex {
            column,
            index: (!has_index).then(|| held_index(column, rows, layout)),
            holders: 1,
        });
    }

    /// Undoes one [`hold_index`](Self::hold_index). The index stays until another one is built, in case a holder comes back.
    pub fn release_index(&mut self, column: ColId) {
        let held = &mut self.view.held;
        if let Some(known) = held.iter_mut().find(|held| held.column == column) {
            known.holders = known.holders.saturating_sub(1);
        }
    }

    /// Drops all held indexes, and those that are being built.
    pub fn forget_held(&mut self) {
        self.view.held.clear();
        self.building.clear();
    }

    /// Holds the indexes that another table of the same columns holds, for as many.
    pub fn hold_as(&mut self, other: &Table) {
        let held = other.view.held.iter().map(|held| HeldIndex {
            column: held.column,
            index: None,
            holders: held.holders,
        });
        self.view.held = held.collect();
        self.fit_held(false);
    }

    pub fn held_indexes(&self) -> usize {
        let held = self.view.held.iter();
        held.filter(|held| held.is_used()).count()
    }

    /// Whether an index on this column is held that the schema does not have.
    pub fn holds_index(&self, column: ColId) -> bool {
        let mut held = self.view.held.iter();
        held.any(|held| held.column == column && held.is_used())
    }

    /// From now on, what changes in this column is noted for an index that is built from the rows as they are now, up to so many
    /// bytes.
    pub fn begin_index(&mut self, column: ColId, changes_bytes_max: usize) {
        self.give_up_index(column);
        self.building.push(Building {
            column,
            changes: IndexChanges::default(),
            changes_bytes_max,
            is_lost: false,
        });
    }

    /// The changes since the last call, or since the beginning. None: the build begins again, as there were too many, or the
    /// table is another.
    pub fn take_index_changes(&mut self, column: ColId) -> Option<IndexChanges> {
        let mut building = self.building.iter_mut();
        let building = building.find(|building| building.column == column)?;
        (!building.is_lost).then(|| std::mem::take(&mut building.changes))
    }

    /// No index is built on this column any more.
    pub fn give_up_index(&mut self, column: ColId) {
        self.building.retain(|building| building.column != column);
    }

    /// Takes an index that all changes were applied to, and holds it once. Gives the indexes without holders: freeing them
    /// takes its time.
    pub fn take_index(&mut self, column: ColId, build: IndexBuild) -> Vec<Index> {
        self.give_up_index(column);
        let has_index = self.position_on(column).is_some();
        let held = &mut self.view.held;
        if let Some(known) = held.iter_mut().find(|held| held.column == column) {
            known.holders += 1;
            return vec![build.index];
        }
        let (used, unused): (Vec<_>, Vec<_>) = held.drain(..).partition(|held| held.holders > 0);
        *held = used;
        held.push(HeldIndex {
            column,
            index: (!has_index).then_some(build.index),
            holders: 1,
        });
        unused.into_iter().filter_map(|held| held.index).collect()
    }
}
