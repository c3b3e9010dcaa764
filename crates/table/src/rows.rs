//! Row storage: dense pages for rows of one size, slotted pages for all others.
//!
//! Page layouts are drawn in `docs/on-disk-formats.md`; a page is written to snapshots exactly as it lies in memory.

use crate::layout::RowLayout;
use crate::page::{PageImage, PageTable};
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
    Dense { row_bytes: usize, rows_per_page: usize },
    Slotted,
}

impl RowStore {
    pub fn new(layout: &RowLayout) -> RowStore {
        match layout.fixed_size() {
            Some(size) if size <= DENSE_ROW_BYTES_MAX => RowStore(Kind::Dense(DenseRows::new(size))),
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
                    dense_rows(rows.pages.bytes(page), rows.row_bytes, 1 << rows.shift, |slot, row| {
                        visit(base + slot as RowId, row);
                    });
                }
            }
            Kind::Slotted(rows) => {
                for page in 0..rows.pages.len() {
                    let base = (page * SLOTS) as RowId;
                    slotted_rows(rows.pages.bytes(page), |slot, row| visit(base + slot as RowId, row));
                }
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

    /// Calls `visit` with every row, until it returns false.
    pub fn for_each_while(&self, mut visit: impl FnMut(&[u8]) -> bool) {
        for page in &self.pages {
            let mut go_on = true;
            let mut step = |_: usize, row: &[u8]| go_on = go_on && visit(row);
            match self.layout {
                SnapshotLayout::Dense { row_bytes, rows_per_page } => {
                    dense_rows(page.bytes(), row_bytes, rows_per_page, &mut step);
                }
                SnapshotLayout::Slotted => slotted_rows(page.bytes(), &mut step),
            }
            if !go_on {
                return;
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------

/// Rows of one size. A page holds a power of two of them, then one presence bit each.
struct DenseRows {
    pages: PageTable,
    row_bytes: usize,
    /// Rows per page is `1 << shift`.
    shift: u32,
    free: Vec<RowId>,
    /// All ids below this one were used at some time.
    next: RowId,
    live: u64,
}

fn dense_rows(page: &[u8], row_bytes: usize, rows_per_page: usize, mut visit: impl FnMut(usize, &[u8])) {
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
    fn new(row_bytes: usize) -> DenseRows {
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
        ((id >> self.shift) as usize, (id & ((1 << self.shift) - 1)) as usize)
    }

    #[inline]
    fn get(&self, id: RowId) -> &[u8] {
        let (page, slot) = self.place(id);
        self.pages.slice(page, slot * self.row_bytes, self.row_bytes)
    }

    #[inline]
    fn get_mut(&mut self, id: RowId) -> &mut [u8] {
        let (page, slot) = self.place(id);
        let start = slot * self.row_bytes;
        &mut self.pages.bytes_mut(page)[start..start + self.row_bytes]
    }

    fn insert(&mut self, row: &[u8]) -> Option<RowId> {
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

    fn delete(&mut self, id: RowId) {
        let (page, slot) = self.place(id);
        let bitmap = self.row_bytes << self.shift;
        self.pages.bytes_mut(page)[bitmap + slot / 8] &= !(1 << (slot % 8));
        self.free.push(id);
        self.live -= 1;
    }

    fn load_page(&mut self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        if image.len() != self.page_bytes() {
            return Err(format!("{} bytes long, expected {}", image.len(), self.page_bytes()));
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
        let base = (index << self.shift) as RowId;
        let rows = 1_u32 << self.shift;
        self.free.extend(
            (0..rows)
                .rev()
                .filter(|slot| image[bitmap + *slot as usize / 8] >> (slot % 8) & 1 == 0)
                .map(|slot| base + slot),
        );
        self.next = base + rows;
        self.live += live;
        Ok(())
    }
}

// ---------------------------------------------------------------------------------------------------------------------

/// Rows of varying size in slotted pages; a row too large for a page gets a page of its own.
#[derive(Default)]
struct SlottedRows {
    pages: PageTable,
    /// Pages with room, the one to try first at the end.
    open: Vec<u32>,
    /// Pages that held a large row and hold nothing now.
    vacant: Vec<u32>,
    live: u64,
}

/// Page header: kind u16 (0 slotted, 1 one large row), slot count u16, end of data u32, garbage bytes u32, live rows u32.
const HEADER_BYTES: usize = 16;
const SLOT_BYTES: usize = 4;
const KIND_SLOTTED: u16 = 0;
const KIND_LARGE: u16 = 1;
/// Length of a slot that holds no row.
const SLOT_FREE: u16 = u16::MAX;
/// Rows above this size in bytes get a page of their own.
const SLOTTED_ROW_BYTES_MAX: usize = 16 * 1024;
/// A page with less room in bytes than this is not tried again until rows are deleted from it.
const OPEN_PAGE_BYTES_MIN: usize = 512;
/// A page with this much reclaimable room in bytes is tried again.
const REOPEN_PAGE_BYTES_MIN: usize = 16 * 1024;
/// So many pages with room are tried for a row before a new page is made.
const OPEN_PAGES_TRIED_MAX: usize = 4;

fn u16_at(page: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
}

fn u32_at(page: &[u8], at: usize) -> usize {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes")) as usize
}

fn put_u16(page: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).expect("page offsets fit 16 bits");
    page[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

fn put_u32(page: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value).expect("page sizes fit 32 bits");
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn slot_at(slot: usize) -> usize {
    PAGE_BYTES - (slot + 1) * SLOT_BYTES
}

fn slot(page: &[u8], slot: usize) -> Option<(usize, usize)> {
    let at = slot_at(slot);
    let len = u16_at(page, at + 2);
    (len != usize::from(SLOT_FREE)).then(|| (u16_at(page, at), len))
}

fn slotted_rows(page: &[u8], mut visit: impl FnMut(usize, &[u8])) {
    if u32_at(page, 12) == 0 {
        return;
    }
    if u16_at(page, 0) == usize::from(KIND_LARGE) {
        return visit(0, &page[HEADER_BYTES..]);
    }
    for index in 0..u16_at(page, 2) {
        if let Some((start, len)) = slot(page, index) {
            visit(index, &page[start..start + len]);
        }
    }
}

/// Bytes that a new row could use: between data and slots, and in holes.
fn room(page: &[u8]) -> usize {
    slot_at(u16_at(page, 2)).saturating_sub(u32_at(page, 4)) + u32_at(page, 8)
}

/// Moves all rows of a page together; slots keep their numbers.
fn compact(page: &mut [u8]) {
    let old = page.to_vec();
    let mut end = HEADER_BYTES;
    for index in 0..u16_at(&old, 2) {
        if let Some((start, len)) = slot(&old, index) {
            page[end..end + len].copy_from_slice(&old[start..start + len]);
            put_u16(page, slot_at(index), end);
            end += len;
        }
    }
    put_u32(page, 4, end);
    put_u32(page, 8, 0);
}

/// Puts row bytes into a slot; the caller has checked that there is room.
fn place_row(page: &mut [u8], index: usize, row: &[u8]) {
    let limit = slot_at(u16_at(page, 2).max(index + 1) - 1);
    if u32_at(page, 4) + row.len() > limit {
        compact(page);
    }
    let start = u32_at(page, 4);
    page[start..start + row.len()].copy_from_slice(row);
    put_u32(page, 4, start + row.len());
    put_u16(page, slot_at(index), start);
    put_u16(page, slot_at(index) + 2, row.len());
}

impl SlottedRows {
    #[inline]
    fn get(&self, id: RowId) -> &[u8] {
        let page = self.pages.bytes(id as usize / SLOTS);
        if u16_at(page, 0) == usize::from(KIND_LARGE) {
            return &page[HEADER_BYTES..];
        }
        let (start, len) = slot(page, id as usize % SLOTS).expect("a live row has a used slot");
        &page[start..start + len]
    }

    fn new_page(&mut self, len: usize) -> Option<usize> {
        if let Some(index) = self.vacant.pop() {
            self.pages.replace_zeroed(index as usize, len);
            return Some(index as usize);
        }
        let ids_end = (self.pages.len() + 1) * SLOTS;
        (ids_end <= ROW_IDS_MAX as usize).then(|| self.pages.push_zeroed(len))
    }

    fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        let id = if row.len() > SLOTTED_ROW_BYTES_MAX {
            self.insert_large(row)?
        } else {
            self.insert_small(row)?
        };
        self.live += 1;
        Some(id)
    }

    fn insert_large(&mut self, row: &[u8]) -> Option<RowId> {
        let index = self.new_page(HEADER_BYTES + row.len())?;
        let page = self.pages.bytes_mut(index);
        put_u16(page, 0, usize::from(KIND_LARGE));
        put_u32(page, 12, 1);
        page[HEADER_BYTES..].copy_from_slice(row);
        Some((index * SLOTS) as RowId)
    }

    fn insert_small(&mut self, row: &[u8]) -> Option<RowId> {
        for tried in 0..self.open.len().min(OPEN_PAGES_TRIED_MAX) {
            let position = self.open.len() - 1 - tried;
            let index = self.open[position] as usize;
            if let Some(slot) = Self::free_slot(self.pages.bytes(index), row.len()) {
                return Some(self.fill_slot(index, slot, row));
            }
            let page = self.pages.bytes(index);
            if room(page) < OPEN_PAGE_BYTES_MIN || u16_at(page, 2) == SLOTS {
                self.open.swap_remove(position);
                return self.insert_small(row);
            }
        }
        let index = self.new_page(PAGE_BYTES)?;
        put_u32(self.pages.bytes_mut(index), 4, HEADER_BYTES);
        self.open.push(index as u32);
        Some(self.fill_slot(index, 0, row))
    }

    /// A slot of the page that can take a row of `len` bytes.
    fn free_slot(page: &[u8], len: usize) -> Option<usize> {
        let slots = u16_at(page, 2);
        let live = u32_at(page, 12);
        if live < slots && room(page) + SLOT_BYTES >= len {
            let free = (0..slots).find(|&index| slot(page, index).is_none());
            // Room is counted as if a slot had to be added, so add it back for a slot that is there.
            return free.filter(|_| room(page) + SLOT_BYTES >= len);
        }
        (slots < SLOTS && room(page) >= len).then_some(slots)
    }

    fn fill_slot(&mut self, index: usize, slot: usize, row: &[u8]) -> RowId {
        let page = self.pages.bytes_mut(index);
        place_row(page, slot, row);
        let (slots, live) = (u16_at(page, 2).max(slot + 1), u32_at(page, 12) + 1);
        put_u16(page, 2, slots);
        put_u32(page, 12, live);
        (index * SLOTS + slot) as RowId
    }

    fn replace(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        let (index, slot_index) = (id as usize / SLOTS, id as usize % SLOTS);
        let small = row.len() <= SLOTTED_ROW_BYTES_MAX;
        let slotted = u16_at(self.pages.bytes(index), 0) == usize::from(KIND_SLOTTED);
        if small && slotted {
            let page = self.pages.bytes_mut(index);
            let (start, len) = slot(page, slot_index).expect("a live row has a used slot");
            if row.len() <= len {
                page[start..start + row.len()].copy_from_slice(row);
                put_u16(page, slot_at(slot_index) + 2, row.len());
                let garbage = u32_at(page, 8) + len - row.len();
                put_u32(page, 8, garbage);
                return Some(id);
            }
            if room(page) + SLOT_BYTES + len >= row.len() {
                put_u16(page, slot_at(slot_index) + 2, usize::from(SLOT_FREE));
                let garbage = u32_at(page, 8) + len;
                put_u32(page, 8, garbage);
                place_row(page, slot_index, row);
                return Some(id);
            }
        }
        let new = self.insert(row)?;
        self.delete(id);
        Some(new)
    }

    fn delete(&mut self, id: RowId) {
        self.live -= 1;
        let (index, slot_index) = (id as usize / SLOTS, id as usize % SLOTS);
        if u16_at(self.pages.bytes(index), 0) == usize::from(KIND_LARGE) {
            self.pages.replace_zeroed(index, HEADER_BYTES);
            self.vacant.push(index as u32);
            return;
        }
        let page = self.pages.bytes_mut(index);
        let (_, len) = slot(page, slot_index).expect("a live row has a used slot");
        let before = room(page);
        put_u16(page, slot_at(slot_index) + 2, usize::from(SLOT_FREE));
        let (garbage, live) = (u32_at(page, 8) + len, u32_at(page, 12) - 1);
        put_u32(page, 8, garbage);
        put_u32(page, 12, live);
        let after = room(page);
        let emptied = live == 0 && before < REOPEN_PAGE_BYTES_MIN;
        let crossed = before < REOPEN_PAGE_BYTES_MIN && after >= REOPEN_PAGE_BYTES_MIN;
        if (crossed || emptied) && !self.open.contains(&(index as u32)) {
            self.open.insert(0, index as u32);
        }
    }

    fn load_page(&mut self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        check_slotted_page(image, layout)?;
        let index = self.pages.push_zeroed(image.len());
        self.pages.bytes_mut(index).copy_from_slice(image);
        let large = u16_at(image, 0) == usize::from(KIND_LARGE);
        let live = u32_at(image, 12);
        self.live += live as u64;
        if image.len() == HEADER_BYTES || (large && live == 0) {
            self.vacant.push(index as u32);
        } else if !large && room(image) >= OPEN_PAGE_BYTES_MIN {
            self.open.push(index as u32);
        }
        Ok(())
    }
}

fn check_slotted_page(image: &[u8], layout: &RowLayout) -> Result<(), String> {
    if image.len() < HEADER_BYTES {
        return Err(format!("{} bytes are too few for a page", image.len()));
    }
    let check = |row: &[u8]| match layout.validate_prefix(row) {
        Ok(len) if len == row.len() => Ok(()),
        Ok(len) => Err(format!("a row of {len} bytes is stored in {} bytes", row.len())),
        Err(error) => Err(error.to_string()),
    };
    let (kind, slots, live) = (u16_at(image, 0), u16_at(image, 2), u32_at(image, 12));
    if image.len() == HEADER_BYTES {
        return if live == 0 { Ok(()) } else { Err("an empty page claims to hold rows".into()) };
    }
    if kind == usize::from(KIND_LARGE) {
        return if live == 0 { Ok(()) } else { check(&image[HEADER_BYTES..]) };
    }
    if kind != usize::from(KIND_SLOTTED) || image.len() != PAGE_BYTES || slots > SLOTS {
        return Err(format!("kind {kind}, {slots} slots, {} bytes is no page", image.len()));
    }
    let (data_end, garbage) = (u32_at(image, 4), u32_at(image, 8));
    if data_end < HEADER_BYTES || data_end > PAGE_BYTES - slots * SLOT_BYTES || garbage > data_end {
        return Err("the page header contradicts itself".into());
    }
    let mut found = 0;
    for index in 0..slots {
        let Some((start, len)) = slot(image, index) else { continue };
        if start < HEADER_BYTES || start + len > data_end {
            return Err(format!("slot {index} points outside the page's data"));
        }
        check(&image[start..start + len]).map_err(|error| format!("slot {index}: {error}"))?;
        found += 1;
    }
    if found == live { Ok(()) } else { Err(format!("the page holds {found} rows and claims {live}")) }
}

/// Maps a page error to the crate's error.
pub(crate) fn bad_page_error(table: &str, detail: String) -> Error {
    Error::BadPage { table: table.to_owned(), detail }
}
