//! Row storage: dense pages for rows of one size, slotted pages for all others.
//!
//! Page layouts are drawn in `docs/on-disk-formats.md`; a page is written to snapshots exactly as it lies in memory.

#[allow(unsafe_code)]
mod dense;
mod slotted;

use self::dense::{dense_rows, DenseRows};
use self::slotted::{slotted_rows, SlottedRows};
use crate::layout::RowLayout;
use crate::page::PageImage;
use crate::row_id::{PageNumber, RowId, Slot};
use crate::Error;

/// Target size of a page in bytes.
const PAGE_BYTES: usize = 64 * 1024;
/// Fixed-size rows above this size go to slotted pages, where an odd size wastes less.
const DENSE_ROW_BYTES_MAX: usize = 4096;
/// The most row ids of a table. [`RowId::MAX`] is none of them, nor is any other id in its page.
pub(crate) const ROW_IDS_MAX: u32 = u32::MAX - slotted::SLOTS as u32;

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
    Dense { row_bytes: usize, slots: usize },
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
            Kind::Dense(rows) => rows.row_count(),
            Kind::Slotted(rows) => rows.row_count(),
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
        let slot_bits = self.slot_bits();
        for page in self.pages_from(RowId::MIN) {
            let step = |slot: Slot, row: &[u8]| visit(RowId::new(page, slot, slot_bits), row);
            match &self.0 {
                Kind::Dense(rows) => rows.for_each_of_page(page, step),
                Kind::Slotted(rows) => rows.for_each_of_page(page, step),
            }
        }
    }

    /// Like [`RowStore::for_each`], but only behind the row `after` if there is one, and only until `visit` returns false.
    /// Rows come in the order of their ids.
    pub fn walk(&self, after: Option<RowId>, mut visit: impl FnMut(RowId, &[u8]) -> bool) {
        let slot_bits = self.slot_bits();
        let first = after.map_or(RowId::MIN, RowId::next);
        for page in self.pages_from(first) {
            let mut go_on = true;
            // The rest of a page is passed over: pages are small.
            let step = |slot: Slot, row: &[u8]| {
                let id = RowId::new(page, slot, slot_bits);
                go_on = go_on && (id < first || visit(id, row));
            };
            match &self.0 {
                Kind::Dense(rows) => rows.for_each_of_page(page, step),
                Kind::Slotted(rows) => rows.for_each_of_page(page, step),
            }
            if !go_on {
                return;
            }
        }
    }

    /// How many bits of a row id are the slot.
    fn slot_bits(&self) -> u32 {
        match &self.0 {
            Kind::Dense(rows) => rows.slot_bits(),
            Kind::Slotted(_) => slotted::SLOT_BITS,
        }
    }

    /// The page of this row and all behind it.
    fn pages_from(&self, first: RowId) -> impl Iterator<Item = PageNumber> {
        let page_count = match &self.0 {
            Kind::Dense(rows) => rows.page_count(),
            Kind::Slotted(rows) => rows.page_count(),
        };
        (first.page(self.slot_bits()).index()..page_count).map(PageNumber::new)
    }

    pub fn clear(&mut self) {
        match &mut self.0 {
            Kind::Dense(rows) => *rows = DenseRows::new(rows.row_bytes()),
            Kind::Slotted(rows) => *rows = SlottedRows::default(),
        }
    }

    pub fn snapshot(&mut self) -> RowSnapshot {
        let row_count = self.row_count();
        match &mut self.0 {
            Kind::Dense(rows) => RowSnapshot {
                layout: SnapshotLayout::Dense {
                    row_bytes: rows.row_bytes(),
                    slots: rows.slots(),
                },
                pages: rows.snapshot(),
                row_count,
            },
            Kind::Slotted(rows) => RowSnapshot {
                layout: SnapshotLayout::Slotted,
                pages: rows.snapshot(),
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
            Kind::Dense(rows) => rows.heap_bytes(),
            Kind::Slotted(rows) => rows.heap_bytes(),
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
            SnapshotLayout::Dense { row_bytes, slots } => {
                dense_rows(page.bytes(), row_bytes, slots, |_, row| visit(row));
            }
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
