//! Dense pages: rows of one size at constant places, found without a lookup.
//!
//! A row takes the first free slot of all. So rows that are inserted one after the other have ascending ids, also where others
//! were deleted, and are found in the order in which they came as long as no single slots are free between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::layout::RowLayout;
use crate::page::{FrozenPage, PageTable, PAGE_BYTES};
use crate::row_id::{PageNumber, RowId, Slot, ROW_IDS_MAX};

/// Rows of one size. A page holds a power of two of them, then one presence bit each.
pub(super) struct DenseRows {
    /// All of them have `page_bytes` bytes.
    pub pages: PageTable,
    row_bytes: usize,
    /// A page has `1 << slot_bits` slots.
    slot_bits: u32,
    /// Pages with free slots.
    open: BinaryHeap<Reverse<PageNumber>>,
    /// By page.
    free: Vec<FreeSlots>,
    pub row_count: u64,
}

/// The slots of a page without a row.
#[derive(Clone, Copy)]
struct FreeSlots {
    count: u32,
    /// None are in the words of the bitmap before this one.
    first_word: u32,
}

/// The free slot in the lowest place of a bitmap that has one at `first_word` or behind it.
fn first_free(bitmap: &[u8], first_word: usize) -> usize {
    let words = bitmap.chunks_exact(8).enumerate().skip(first_word);
    let mut slots = words.filter_map(|(index, word)| {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        (word != u64::MAX).then(|| index * 64 + word.trailing_ones() as usize)
    });
    slots.next().expect("the page counts a free slot")
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
            open: BinaryHeap::new(),
            free: Vec::new(),
            row_count: 0,
        }
    }

    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub fn slot_bits(&self) -> u32 {
        self.slot_bits
    }

    pub fn slots(&self) -> usize {
        1 << self.slot_bits
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
        let page = match self.open.peek() {
            Some(Reverse(page)) => *page,
            None => self.new_page()?,
        };
        let bitmap = self.bitmap_start();
        let free = &mut self.free[page.index()];
        let bytes = self.pages.bytes(page);
        let slot = first_free(&bytes[bitmap..], free.first_word as usize);
        free.first_word = (slot / 64) as u32;
        free.count -= 1;
        if free.count == 0 {
            self.open.pop();
        }
        Some(self.fill(page, Slot::new(slot), row))
    }

    /// Puts a row where one was that was deleted. None if there is another now.
    pub fn put_back(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        let (page, slot) = (id.page(self.slot_bits), id.slot(self.slot_bits));
        let bits = self.pages.bytes(page)[self.bitmap_start() + slot.index() / 8];
        if bits >> (slot.index() % 8) & 1 == 1 {
            return None;
        }
        let free = &mut self.free[page.index()];
        free.count -= 1;
        if free.count == 0 {
            self.open.retain(|open| open.0 != page);
        }
        Some(self.fill(page, slot, row))
    }

    fn fill(&mut self, page: PageNumber, slot: Slot, row: &[u8]) -> RowId {
        let (row_bytes, bitmap) = (self.row_bytes, self.bitmap_start());
        let id = RowId::new(page, slot, self.slot_bits);
        let slot = slot.index();
        let bytes = self.pages.bytes_mut(page);
        bytes[slot * row_bytes..(slot + 1) * row_bytes].copy_from_slice(row);
        bytes[bitmap + slot / 8] |= 1 << (slot % 8);
        self.row_count += 1;
        id
    }

    fn new_page(&mut self) -> Option<PageNumber> {
        if !self.has_room() {
            return None;
        }
        let page = self.pages.push_zeroed(self.page_bytes());
        self.open_page(page, self.slots());
        Some(page)
    }

    /// Takes in a page that was appended, with so many free slots.
    fn open_page(&mut self, page: PageNumber, free: usize) {
        self.free.push(FreeSlots {
            count: free as u32,
            first_word: 0,
        });
        if free > 0 {
            self.open.push(Reverse(page));
        }
    }

    pub fn delete(&mut self, id: RowId) {
        let (page, slot) = (id.page(self.slot_bits), id.slot(self.slot_bits).index());
        let bitmap = self.bitmap_start();
        let bytes = self.pages.bytes_mut(page);
        bytes[bitmap + slot / 8] &= !(1 << (slot % 8));
        let free = &mut self.free[page.index()];
        free.count += 1;
        free.first_word = free.first_word.min((slot / 64) as u32);
        if free.count == 1 {
            self.open.push(Reverse(page));
        }
        self.row_count -= 1;
    }

    pub fn freeze(&mut self) -> DenseRows {
        DenseRows {
            pages: self.pages.freeze(),
            open: BinaryHeap::new(),
            free: Vec::new(),
            ..*self
        }
    }

    pub fn clear(&mut self) {
        self.pages.clear();
        self.open.clear();
        self.free.clear();
        self.row_count = 0;
    }

    /// Whether these bytes are a possible page.
    pub fn check_page(&self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        if image.len() != self.page_bytes() {
            return Err(format!(
                "{} bytes long, expected {}",
                image.len(),
                self.page_bytes()
            ));
        }
        let mut problem = None;
        dense_rows(image, self.row_bytes, self.slots(), |slot, row| {
            if let Err(error) = layout.validate(row) {
                problem.get_or_insert_with(|| format!("row {}: {error}", slot.index()));
            }
        });
        problem.map_or(Ok(()), Err)
    }

    /// Whether the table may have one page more.
    fn has_room(&self) -> bool {
        (self.pages.len() as u64 + 1) << self.slot_bits <= u64::from(ROW_IDS_MAX)
    }

    /// Appends a page that was checked. False: there are as many as row ids can name.
    pub fn append(&mut self, page: FrozenPage) -> bool {
        if !self.has_room() {
            return false;
        }
        let bitmap = &page.bytes()[self.bitmap_start()..];
        let rows: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
        let page = self.pages.push(page);
        self.open_page(page, self.slots() - rows as usize);
        self.row_count += u64::from(rows);
        true
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes()
            + self.free.capacity() * size_of::<FreeSlots>()
            + self.open.capacity() * size_of::<PageNumber>()
    }
}
