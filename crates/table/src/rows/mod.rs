//! Row storage: dense pages for rows of one size, slotted pages for all others.
//!
//! Page layouts are drawn in `docs/on-disk-formats.md`; a page is written to snapshots exactly as it lies in memory.

mod dense;
mod slotted;

use self::dense::{dense_rows, DenseRows};
use self::slotted::{slotted_rows, SlottedRows};
use crate::layout::RowLayout;
use crate::page::PageImage;
use crate::Error;

/// Names a row for as long as it lives in the table.
pub type RowId = u32;

/// Target size of a page in bytes.
const PAGE_BYTES: usize = 64 * 1024;
/// Fixed-size rows above this size go to slotted pages, where an odd size wastes less.
const DENSE_ROW_BYTES_MAX: usize = 4096;
/// Slots of a slotted page; a row id is `page * SLOTS + slot`.
const SLOTS: usize = 2048;
/// The most row ids of a table.
pub(crate) const ROW_IDS_MAX: u32 = u32::MAX - SLOTS as u32;

/// The rows of one table. Row bytes are valid rows of the table's layout; the caller has checked them.
pub struct RowStore(Kind);

enum Kind {
    Dense(DenseRows),
    Slotted(SlottedRows),
}

/// A frozen copy of a table's rows; cheap to take, safe to read on another thread.
pub struct RowSnapshot {
    layout: SnapshotLayout,
    pages: Vec<PageImage>,
    row_count: u64,
}

enum SnapshotLayout {
    Dense {
        row_bytes: usize,
        rows_per_page: usize,
    },
    Slotted,
}

impl RowStore {
    pub fn new(layout: &RowLayout) -> RowStore {
        match layout.fixed_size() {
            Some(size) if size <= DENSE_ROW_BYTES_MAX => {
                RowStore(Kind::Dense(DenseRows::new(size)))
            }
            _ => RowStore(Kind::Slotted(SlottedRows::default())),
        }
    }

    #[inline]
    pub fn row_count(&self) -> u64 {
        match &self.0 {
            Kind::Dense(rows) => rows.live,
            Kind::Slotted(rows) => rows.live,
        }
    }

    /// The bytes of a live row.
    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
        match &self.0 {
            Kind::Dense(rows) => rows.get(id),
            Kind::Slotted(rows) => rows.get(id),
        }
    }

    /// Stores a row.
    ///
    /// # Errors
    /// None of the row ids is free.
    #[inline]
    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        match &mut self.0 {
            Kind::Dense(rows) => rows.insert(row),
            Kind::Slotted(rows) => rows.insert(row),
        }
    }

    /// Replaces the bytes of a live row; the returned id differs if the row had to move.
    pub fn replace(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        match &mut self.0 {
            Kind::Dense(rows) => {
                rows.get_mut(id).copy_from_slice(row);
                Some(id)
            }
            Kind::Slotted(rows) => rows.replace(id, row),
        }
    }

    #[inline]
    pub fn delete(&mut self, id: RowId) {
        match &mut self.0 {
            Kind::Dense(rows) => rows.delete(id),
            Kind::Slotted(rows) => rows.delete(id),
        }
    }

    /// Calls `visit` with every live row.
    pub fn for_each(&self, mut visit: impl FnMut(RowId, &[u8])) {
        match &self.0 {
            Kind::Dense(rows) => {
                for page in 0..rows.pages.len() {
                    let base = (page << rows.shift) as RowId;
                    dense_rows(
                        rows.pages.bytes(page),
                        rows.row_bytes,
                        1 << rows.shift,
                        |slot, row| {
                            visit(base + slot as RowId, row);
                        },
                    );
                }
            }
            Kind::Slotted(rows) => {
                for page in 0..rows.pages.len() {
                    let base = (page * SLOTS) as RowId;
                    slotted_rows(rows.pages.bytes(page), |slot, row| {
                        visit(base + slot as RowId, row)
                    });
                }
            }
        }
    }

    /// Like [`RowStore::for_each`], but only behind the row `after` if there is one, and only until `visit` returns false.
    /// Rows come in the order of their ids.
    pub fn walk(&self, after: Option<RowId>, mut visit: impl FnMut(RowId, &[u8]) -> bool) {
        let (pages, shift) = match &self.0 {
            Kind::Dense(rows) => (rows.pages.len(), rows.shift),
            Kind::Slotted(rows) => (rows.pages.len(), SLOTS.ilog2()),
        };
        let first = after.map_or(0, |id| id + 1);
        for page in (first >> shift) as usize..pages {
            let base = (page << shift) as RowId;
            let mut go_on = true;
            // The rest of a page is passed over: pages are small.
            let step = |slot: usize, row: &[u8]| {
                let id = base + slot as RowId;
                go_on = go_on && (id < first || visit(id, row));
            };
            match &self.0 {
                Kind::Dense(rows) => {
                    dense_rows(rows.pages.bytes(page), rows.row_bytes, 1 << shift, step);
                }
                Kind::Slotted(rows) => slotted_rows(rows.pages.bytes(page), step),
            }
            if !go_on {
                return;
            }
        }
    }

    pub fn clear(&mut self) {
        match &mut self.0 {
            Kind::Dense(rows) => *rows = DenseRows::new(rows.row_bytes),
            Kind::Slotted(rows) => *rows = SlottedRows::default(),
        }
    }

    pub fn snapshot(&mut self) -> RowSnapshot {
        let row_count = self.row_count();
        match &mut self.0 {
            Kind::Dense(rows) => RowSnapshot {
                layout: SnapshotLayout::Dense {
                    row_bytes: rows.row_bytes,
                    rows_per_page: 1 << rows.shift,
                },
                pages: rows.pages.snapshot(),
                row_count,
            },
            Kind::Slotted(rows) => RowSnapshot {
                layout: SnapshotLayout::Slotted,
                pages: rows.pages.snapshot(),
                row_count,
            },
        }
    }

    /// Appends a page read from a snapshot, after checking that it is a possible page of this table.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub(crate) fn load_page(&mut self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        match &mut self.0 {
            Kind::Dense(rows) => rows.load_page(image, layout),
            Kind::Slotted(rows) => rows.load_page(image, layout),
        }
    }

    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Kind::Dense(rows) => rows.pages.heap_bytes() + rows.free.capacity() * 4,
            Kind::Slotted(rows) => rows.pages.heap_bytes() + rows.open.capacity() * 4,
        }
    }
}

impl RowSnapshot {
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    pub fn pages(&self) -> &[PageImage] {
        &self.pages
    }

    /// The length of every row, if they all have the same by their type.
    pub fn row_bytes(&self) -> Option<usize> {
        match self.layout {
            SnapshotLayout::Dense { row_bytes, .. } => Some(row_bytes),
            SnapshotLayout::Slotted => None,
        }
    }

    /// Calls `visit` with every row of one page.
    pub fn for_each_of_page(&self, page: &PageImage, mut visit: impl FnMut(&[u8])) {
        match self.layout {
            SnapshotLayout::Dense {
                row_bytes,
                rows_per_page,
            } => dense_rows(page.bytes(), row_bytes, rows_per_page, |_, row| visit(row)),
            SnapshotLayout::Slotted => slotted_rows(page.bytes(), |_, row| visit(row)),
        }
    }

    /// Calls `visit` with every row, until it returns false.
    pub fn for_each_while(&self, mut visit: impl FnMut(&[u8]) -> bool) {
        let mut go_on = true;
        for page in &self.pages {
            self.for_each_of_page(page, |row| go_on = go_on && visit(row));
            if !go_on {
                return;
            }
        }
    }
}

/// Maps a page error to the crate's error.
pub(crate) fn bad_page_error(table: &str, detail: String) -> Error {
    Error::BadPage {
        table: table.to_owned(),
        detail,
    }
}
