//! Dense pages: rows of one size at constant places, found without a lookup.

use super::{RowId, PAGE_BYTES, ROW_IDS_MAX};
use crate::layout::RowLayout;
use crate::page::PageTable;

/// Rows of one size. A page holds a power of two of them, then one presence bit each.
pub(super) struct DenseRows {
    pub pages: PageTable,
    pub row_bytes: usize,
    /// Rows per page is `1 << shift`.
    pub shift: u32,
    pub free: Vec<RowId>,
    /// All ids below this one were used at some time.
    next: RowId,
    pub live: u64,
}

pub(super) fn dense_rows(
    page: &[u8],
    row_bytes: usize,
    rows_per_page: usize,
    mut visit: impl FnMut(usize, &[u8]),
) {
    let (rows, bitmap) = page.split_at(row_bytes * rows_per_page);
    for (word_index, word) in bitmap.chunks_exact(8).enumerate() {
        let mut word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        while word != 0 {
            let slot = word_index * 64 + word.trailing_zeros() as usize;
            visit(slot, &rows[slot * row_bytes..(slot + 1) * row_bytes]);
            word &= word - 1;
        }
    }
}

impl DenseRows {
    pub fn new(row_bytes: usize) -> DenseRows {
        // At least 64 rows, so that the bitmap is whole words; at most 32,768 for rows of a byte or none.
        let rows = (PAGE_BYTES / row_bytes.max(2)).max(64);
        DenseRows {
            pages: PageTable::default(),
            row_bytes,
            shift: rows.ilog2(),
            free: Vec::new(),
            next: 0,
            live: 0,
        }
    }

    fn page_bytes(&self) -> usize {
        (self.row_bytes << self.shift) + ((1 << self.shift) / 8)
    }

    #[inline]
    fn place(&self, id: RowId) -> (usize, usize) {
        (
            (id >> self.shift) as usize,
            (id & ((1 << self.shift) - 1)) as usize,
        )
    }

    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
        let (page, slot) = self.place(id);
        self.pages
            .slice(page, slot * self.row_bytes, self.row_bytes)
    }

    #[inline]
    pub fn get_mut(&mut self, id: RowId) -> &mut [u8] {
        let (page, slot) = self.place(id);
        let start = slot * self.row_bytes;
        &mut self.pages.bytes_mut(page)[start..start + self.row_bytes]
    }

    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        let id = match self.free.pop() {
            Some(id) => id,
            None if self.next < ROW_IDS_MAX => {
                let id = self.next;
                if (id >> self.shift) as usize == self.pages.len() {
                    let len = self.page_bytes();
                    self.pages.push_zeroed(len);
                }
                self.next += 1;
                id
            }
            None => return None,
        };
        let (page, slot) = self.place(id);
        let (row_bytes, bitmap) = (self.row_bytes, self.row_bytes << self.shift);
        let bytes = self.pages.bytes_mut(page);
        bytes[slot * row_bytes..(slot + 1) * row_bytes].copy_from_slice(row);
        bytes[bitmap + slot / 8] |= 1 << (slot % 8);
        self.live += 1;
        Some(id)
    }

    pub fn delete(&mut self, id: RowId) {
        let (page, slot) = self.place(id);
        let bitmap = self.row_bytes << self.shift;
        self.pages.bytes_mut(page)[bitmap + slot / 8] &= !(1 << (slot % 8));
        self.free.push(id);
        self.live -= 1;
    }

    pub fn load_page(&mut self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        if image.len() != self.page_bytes() {
            return Err(format!(
                "{} bytes long, expected {}",
                image.len(),
                self.page_bytes()
            ));
        }
        if (self.pages.len() as u64) << self.shift >= u64::from(ROW_IDS_MAX) {
            return Err("the table has more pages than row ids can name".into());
        }
        let mut problem = None;
        let mut live = 0;
        dense_rows(image, self.row_bytes, 1 << self.shift, |slot, row| {
            live += 1;
            if let Err(error) = layout.validate(row) {
                problem.get_or_insert_with(|| format!("row {slot}: {error}"));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        let index = self.pages.push_zeroed(image.len());
        self.pages.bytes_mut(index).copy_from_slice(image);
        let bitmap = self.row_bytes << self.shift;
        let base = (index as u64) << self.shift;
        let rows = 1_u64 << self.shift;
        let ids_end = (base + rows).min(u64::from(ROW_IDS_MAX));
        self.free.extend(
            (base..ids_end)
                .rev()
                .filter(|id| {
                    let slot = (id - base) as usize;
                    image[bitmap + slot / 8] >> (slot % 8) & 1 == 0
                })
                .map(|id| id as RowId),
        );
        self.next = ids_end as RowId;
        self.live += live;
        Ok(())
    }
}
