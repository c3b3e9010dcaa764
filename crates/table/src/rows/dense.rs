//! Dense pages: rows of one size at constant places, found without a lookup.

use super::{PAGE_BYTES, ROW_IDS_MAX};
use crate::layout::RowLayout;
use crate::page::{PageHash, PageTable};
use crate::row_id::{PageNumber, RowId, Slot};

/// Rows of one size. A page holds a power of two of them, then one presence bit each.
pub(super) struct DenseRows {
    /// All of them have `page_bytes` bytes.
    pages: PageTable,
    row_bytes: usize,
    /// A page has `1 << slot_bits` slots.
    slot_bits: u32,
    /// Ids that are free again.
    free: Vec<RowId>,
    /// All ids below this one were used at some time.
    next: RowId,
    row_count: u64,
}

/// Calls `visit` with every row of a page.
pub(super) fn dense_rows(
    page: &[u8],
    row_bytes: usize,
    slots: usize,
    mut visit: impl FnMut(Slot, &[u8]),
) {
    let (rows, bitmap) = page.split_at(row_bytes * slots);
    for (word_index, word) in bitmap.chunks_exact(8).enumerate() {
        let mut word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        while word != 0 {
            let slot = word_index * 64 + word.trailing_zeros() as usize;
            visit(
                Slot::new(slot),
                &rows[slot * row_bytes..(slot + 1) * row_bytes],
            );
            word &= word - 1;
        }
    }
}

impl DenseRows {
    pub fn new(row_bytes: usize) -> DenseRows {
        // At least 64 rows, so that the bitmap is whole words; at most 32,768 for rows of a byte or none.
        let slots = (PAGE_BYTES / row_bytes.max(2)).max(64);
        DenseRows {
            pages: PageTable::default(),
            row_bytes,
            slot_bits: slots.ilog2(),
            free: Vec::new(),
            next: RowId::MIN,
            row_count: 0,
        }
    }

    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    pub fn slot_bits(&self) -> u32 {
        self.slot_bits
    }

    pub fn slots(&self) -> usize {
        1 << self.slot_bits
    }

    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Where the presence bits of a page begin.
    fn bitmap_start(&self) -> usize {
        self.row_bytes << self.slot_bits
    }

    fn page_bytes(&self) -> usize {
        self.bitmap_start() + self.slots() / 8
    }

    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
        let start = id.slot(self.slot_bits).index() * self.row_bytes;
        // SAFETY: `slice` checks the page. Every page has `page_bytes` bytes, and begins with `1 << slot_bits` rows of
        // `row_bytes`. A slot has only `slot_bits` bits, so its row is one of these, whatever the id.
        unsafe {
            self.pages
                .slice(id.page(self.slot_bits), start, self.row_bytes)
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: RowId) -> &mut [u8] {
        let start = id.slot(self.slot_bits).index() * self.row_bytes;
        let page = self.pages.bytes_mut(id.page(self.slot_bits));
        &mut page[start..start + self.row_bytes]
    }

    /// Calls `visit` with every row of one page.
    pub fn for_each_of_page(&self, page: PageNumber, visit: impl FnMut(Slot, &[u8])) {
        dense_rows(self.pages.bytes(page), self.row_bytes, self.slots(), visit);
    }

    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        let id = match self.free.pop() {
            Some(id) => id,
            None if self.next.number() < ROW_IDS_MAX => {
                let id = self.next;
                if id.page(self.slot_bits).index() == self.pages.len() {
                    let len = self.page_bytes();
                    self.pages.push_zeroed(len);
                }
                self.next = id.next();
                id
            }
            None => return None,
        };
        let slot = id.slot(self.slot_bits).index();
        let (row_bytes, bitmap) = (self.row_bytes, self.bitmap_start());
        let bytes = self.pages.bytes_mut(id.page(self.slot_bits));
        bytes[slot * row_bytes..(slot + 1) * row_bytes].copy_from_slice(row);
        bytes[bitmap + slot / 8] |= 1 << (slot % 8);
        self.row_count += 1;
        Some(id)
    }

    pub fn delete(&mut self, id: RowId) {
        let slot = id.slot(self.slot_bits).index();
        let bitmap = self.bitmap_start();
        let bytes = self.pages.bytes_mut(id.page(self.slot_bits));
        bytes[bitmap + slot / 8] &= !(1 << (slot % 8));
        self.free.push(id);
        self.row_count -= 1;
    }

    pub fn freeze(&mut self) -> DenseRows {
        DenseRows {
            pages: self.pages.freeze(),
            free: Vec::new(),
            ..*self
        }
    }

    pub fn clear(&mut self) {
        self.pages.clear();
        self.free.clear();
        (self.next, self.row_count) = (RowId::MIN, 0);
    }

    pub fn into_pages(self) -> PageTable {
        self.pages
    }

    pub fn page(&self, page: PageNumber) -> &[u8] {
        self.pages.bytes(page)
    }

    pub fn released_bytes(&self) -> u64 {
        self.pages.released_bytes()
    }

    pub fn load_page(
        &mut self,
        image: &[u8],
        hash: Option<PageHash>,
        layout: &RowLayout,
    ) -> Result<(), String> {
        if image.len() != self.page_bytes() {
            return Err(format!(
                "{} bytes long, expected {}",
                image.len(),
                self.page_bytes()
            ));
        }
        if (self.pages.len() as u64) << self.slot_bits >= u64::from(ROW_IDS_MAX) {
            return Err("the table has more pages than row ids can name".into());
        }
        let mut problem = None;
        let mut rows = 0;
        dense_rows(image, self.row_bytes, self.slots(), |slot, row| {
            rows += 1;
            if let Err(error) = layout.validate(row) {
                problem.get_or_insert_with(|| format!("row {}: {error}", slot.index()));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        let page = self.pages.push_image(image, hash);
        let bitmap = self.bitmap_start();
        let base = (page.index() as u64) << self.slot_bits;
        let ids_end = (base + self.slots() as u64).min(u64::from(ROW_IDS_MAX));
        let is_free = |id: &u64| {
            let slot = (id - base) as usize;
            image[bitmap + slot / 8] >> (slot % 8) & 1 == 0
        };
        let free = (base..ids_end).rev().filter(is_free);
        self.free
            .extend(free.map(|id| RowId::from_number(id as u32)));
        self.next = RowId::from_number(ids_end as u32);
        self.row_count += rows;
        Ok(())
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes() + self.free.capacity() * 4
    }
}
