//! Row storage: dense pages for rows of one size, slotted pages for all others.
//!
//! Page layouts are drawn in `docs/on-disk-formats.md`; a page is written to snapshots exactly as it lies in memory.

#[allow(unsafe_code)]
mod dense;
mod slotted;

use self::dense::DenseRows;
use self::slotted::SlottedRows;
use crate::layout::RowLayout;
use crate::page::{FrozenPage, PageTable};
use crate::row_id::{PageNumber, RowId, Slot, SLOT_BITS};

/// Fixed-size rows above this size go to slotted pages, where an odd size wastes less.
const DENSE_ROW_BYTES_MAX: usize = 4096;

/// The rows of one table, or a frozen copy of them. Row bytes are valid rows of the table's layout; the caller has checked
/// them.
pub struct RowStore(Kind);

enum Kind {
    Dense(DenseRows),
    Slotted(SlottedRows),
}

/// Evaluates an expression in which a name stands for the rows of either kind.
macro_rules! rows_of {
    ($store:expr, $rows:ident => $body:expr) => {
        match $store {
            Kind::Dense($rows) => $body,
            Kind::Slotted($rows) => $body,
        }
    };
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

    /// Whether rows of this layout lie in pages as these do.
    pub(crate) fn is_for(&self, layout: &RowLayout) -> bool {
        match (&self.0, layout.fixed_size()) {
            (Kind::Dense(rows), Some(size)) => rows.row_bytes() == size,
            (Kind::Dense(_), None) => false,
            (Kind::Slotted(_), size) => size.is_none_or(|size| size > DENSE_ROW_BYTES_MAX),
        }
    }

    #[inline]
    pub fn row_count(&self) -> u64 {
        rows_of!(&self.0, rows => rows.row_count)
    }

    /// The bytes of a live row.
    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
        rows_of!(&self.0, rows => rows.get(id))
    }

    /// Stores a row.
    ///
    /// # Errors
    /// None of the row ids is free.
    #[inline]
    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        rows_of!(&mut self.0, rows => rows.insert(row))
    }

    /// Stores a row where one was that was deleted, or elsewhere if there is another now. None: the table is full.
    pub fn put_back(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        let has_page = id.page(self.slot_bits()).index() < self.page_count();
        let back = match &mut self.0 {
            Kind::Dense(rows) if has_page => rows.put_back(id, row),
            Kind::Slotted(rows) if has_page => rows.put_back(id, row),
            _ => None,
        };
        back.or_else(|| self.insert(row))
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
        rows_of!(&mut self.0, rows => rows.delete(id))
    }

    /// Calls `visit` with every live row.
    pub fn for_each(&self, mut visit: impl FnMut(RowId, &[u8])) {
        (0..self.page_count()).for_each(|page| self.for_each_of_page(page, &mut visit));
    }

    /// Calls `visit` with every live row of one page, in the order of their ids.
    pub fn for_each_of_page(&self, page: usize, mut visit: impl FnMut(RowId, &[u8])) {
        let (page, slot_bits) = (PageNumber::new(page), self.slot_bits());
        let step = |slot: Slot, row: &[u8]| visit(RowId::new(page, slot, slot_bits), row);
        rows_of!(&self.0, rows => rows.for_each_of_page(page, step))
    }

    /// Like [`RowStore::for_each`], but only behind the row `after` if there is one, and only until `visit` returns false.
    /// Rows come in the order of their ids.
    pub fn walk(&self, after: Option<RowId>, mut visit: impl FnMut(RowId, &[u8]) -> bool) {
        let first = after.map_or(RowId::MIN, RowId::next);
        for page in first.page(self.slot_bits()).index()..self.page_count() {
            let mut go_on = true;
            // The rest of a page is passed over: pages are small.
            self.for_each_of_page(page, |id, row| {
                go_on = go_on && (id < first || visit(id, row));
            });
            if !go_on {
                return;
            }
        }
    }

    fn page_table(&self) -> &PageTable {
        rows_of!(&self.0, rows => &rows.pages)
    }

    /// The number of slot bits in row ids.
    fn slot_bits(&self) -> u32 {
        match &self.0 {
            Kind::Dense(rows) => rows.slot_bits(),
            Kind::Slotted(_) => SLOT_BITS,
        }
    }

    /// The number of pages, with and without rows.
    pub fn page_count(&self) -> usize {
        self.page_table().len()
    }

    /// All pages, in the layout of `docs/on-disk-formats.md`.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let pages = self.page_table();
        (0..pages.len()).map(move |page| pages.bytes(PageNumber::new(page)))
    }

    /// The pages of a frozen copy, each of which lets go of its bytes alone.
    pub fn into_pages(self) -> impl Iterator<Item = FrozenPage> {
        rows_of!(self.0, rows => rows.pages).into_pages()
    }

    /// The length of every row, if they all have the same by their type.
    pub fn row_bytes(&self) -> Option<usize> {
        match &self.0 {
            Kind::Dense(rows) => Some(rows.row_bytes()),
            Kind::Slotted(_) => None,
        }
    }

    pub fn clear(&mut self) {
        rows_of!(&mut self.0, rows => rows.clear())
    }

    /// The rows as they are now. The copy can be read on any thread, and is never written to.
    pub fn freeze(&mut self) -> RowStore {
        RowStore(match &mut self.0 {
            Kind::Dense(rows) => Kind::Dense(rows.freeze()),
            Kind::Slotted(rows) => Kind::Slotted(rows.freeze()),
        })
    }

    /// Bytes that frozen copies may hold alone; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        self.page_table().released_bytes()
    }

    /// Whether bytes from a snapshot are a possible page of this table.
    ///
    /// # Errors
    /// The error in the page.
    pub(crate) fn check_page(&self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        match &self.0 {
            Kind::Dense(rows) => rows.check_page(image, layout),
            Kind::Slotted(_) => slotted::check_page(image, layout),
        }
    }

    /// Appends a page that was checked. False: there are as many as row ids can name.
    pub(crate) fn append(&mut self, page: FrozenPage) -> bool {
        rows_of!(&mut self.0, rows => rows.append(page))
    }

    pub fn heap_bytes(&self) -> usize {
        rows_of!(&self.0, rows => rows.heap_bytes())
    }
}
