//! A window that belongs to one view, and is kept up to date from the rows that its owner lists.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::Tables;
use lightcone_types::ColId;

use super::fill::{Found, Wanted};
use super::shape::{Access, WindowShape};
use super::window::{Changes, Entry, Window};
use crate::joins::{Answers, Reading};

/// The window of one view.
pub struct OwnWindow {
    shape: Arc<WindowShape>,
    key: Box<[u8]>,
    window: Window,
    changes: Changes,
    entry: Vec<u8>,
}

impl OwnWindow {
    /// Without any rows so far, which have to be [filled](Self::fill) in.
    pub fn new(shape: Arc<WindowShape>, key: Box<[u8]>) -> OwnWindow {
        OwnWindow {
            shape,
            key,
            window: Window::default(),
            changes: Changes::default(),
            entry: Vec::new(),
        }
    }

    /// The column whose index has to be held to find its rows, if the table has none that helps.
    pub fn held_column(&self) -> Option<(Arc<TableSchema>, ColId)> {
        let column = self.shape.held_column()?;
        Some((self.shape.table.clone(), column))
    }

    /// Bytes of memory of its rows.
    pub fn memory_bytes(&self) -> usize {
        self.window.memory_bytes()
    }

    /// A row came that is the window's as far as the query's condition says.
    pub fn add(&mut self, row: &[u8]) {
        let key_len = self.shape.write_entry(row, &mut self.entry);
        let (window, entry) = (&mut self.window, &self.entry);
        if !window.is_beyond(entry) {
            let make = || Entry::new(entry, key_len);
            window.insert(entry, make, self.shape.extent, &mut self.changes);
        }
    }

    /// The same of a row that went. Rows that came go first, so that as few as possible have to be looked for.
    pub fn remove(&mut self, row: &[u8]) {
        self.shape.write_entry(row, &mut self.entry);
        let window = &mut self.window;
        window.remove(&self.entry, self.shape.extent, &mut self.changes);
    }

    /// Looks for the rows that it is short of: by an index of the table that does not show more than `rows_read_max`, else among
    /// all. False: it was late before all were found.
    #[must_use]
    pub fn fill(
        &mut self,
        tables: &dyn Tables,
        rows_read_max: usize,
        is_late: &mut dyn FnMut() -> bool,
    ) -> bool {
        let shape = self.shape.clone();
        self.window.trim(shape.extent);
        let (rows, _) = self.window.missing_rows(shape.extent);
        if rows == 0 {
            return true;
        }
        let wanted = Wanted {
            shape: &shape,
            key: &self.key,
            query: None,
            after: self.window.last(),
            rows,
            is_any_source: false,
        };
        let mut find = |access: &Access, rows_left: usize| {
            let mut reading = Reading {
                tables,
                answers: &mut Answers::default(),
                rows_left,
            };
            wanted.find(&mut reading, access, is_late)
        };
        let mut by_index = (shape.accesses.iter()).filter_map(|access| find(access, rows_read_max));
        let mut found = by_index.next();
        if found.is_none() {
            found = find(&Access::Scan, usize::MAX);
        }
        let Some(Found {
            entries,
            is_complete,
        }) = found
        else {
            return false;
        };
        let changes = &mut self.changes;
        self.window
            .extend(entries, is_complete, shape.extent, changes);
        true
    }

    /// Calls `visit` with what came into the window, and what went, since the last time.
    pub fn take_changes(&mut self, mut visit: impl FnMut(bool, &[u8])) {
        for (entry, weight) in self.changes.net() {
            visit(*weight > 0, entry.row());
        }
        self.changes.clear();
    }
}
