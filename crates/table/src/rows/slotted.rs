//! Slotted pages: rows of varying size behind a table of slots; large rows have a page each.

use crate::layout::RowLayout;
use crate::page::{FrozenPage, PageTable, PAGE_BYTES};
use crate::row_id::{PageNumber, RowId, Slot, ROW_IDS_MAX, SLOT_BITS};

/// Rows of varying size in slotted pages; a row too large for a page gets a page of its own.
#[derive(Default)]
pub(super) struct SlottedRows {
    pub pages: PageTable,
    /// Pages with room, the one to try first at the end.
    open: Vec<PageNumber>,
    /// Pages that held a large row and hold nothing now.
    vacant: Vec<PageNumber>,
    pub row_count: u64,
}

/// The most slots of a page.
const SLOTS: usize = 1 << SLOT_BITS;

/// Every page begins with a header of this size: kind u16, slots u16, end of the data u32, garbage u32, live rows u32.
const HEADER_BYTES: usize = 16;
const KIND_AT: usize = 0;
/// The number of slots, with and without a row.
const SLOT_COUNT_AT: usize = 2;
/// Rows lie before this place.
const DATA_END_AT: usize = 4;
/// Bytes before the end of the data that belong to no row.
const GARBAGE_AT: usize = 8;
/// The number of slots with a row.
const LIVE_AT: usize = 12;

const KIND_SLOTTED: usize = 0;
/// One large row behind the header.
const KIND_LARGE: usize = 1;

/// Slots lie at the end of the page, the first one last: start of the row u16, length u16.
const SLOT_BYTES: usize = 4;
/// Length in a slot that holds no row.
const LENGTH_FREE: usize = u16::MAX as usize;

/// Rows above this size in bytes get a page of their own.
const SLOTTED_ROW_BYTES_MAX: usize = 16 * 1024;
/// A page with less room in bytes than this is not tried again until rows are deleted from it.
const OPEN_PAGE_BYTES_MIN: usize = 512;
/// A page with this much reclaimable room in bytes is tried again.
const REOPEN_PAGE_BYTES_MIN: usize = 16 * 1024;
/// Pages with room that are tried for a row before a new page is made.
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

fn is_large(page: &[u8]) -> bool {
    u16_at(page, KIND_AT) == KIND_LARGE
}

/// Where a slot lies.
fn slot_at(slot: Slot) -> usize {
    PAGE_BYTES - (slot.index() + 1) * SLOT_BYTES
}

/// Start and length of the row in a slot, if there is one.
fn extent(page: &[u8], slot: Slot) -> Option<(usize, usize)> {
    let at = slot_at(slot);
    let length = u16_at(page, at + 2);
    (length != LENGTH_FREE).then(|| (u16_at(page, at), length))
}

fn set_length(page: &mut [u8], slot: Slot, length: usize) {
    put_u16(page, slot_at(slot) + 2, length);
}

/// The slots of a page, with and without a row.
fn slots(page: &[u8]) -> impl Iterator<Item = Slot> {
    (0..u16_at(page, SLOT_COUNT_AT)).map(Slot::new)
}

/// Calls `visit` with every row of a page.
pub(super) fn slotted_rows(page: &[u8], mut visit: impl FnMut(Slot, &[u8])) {
    if u32_at(page, LIVE_AT) == 0 {
        return;
    }
    if is_large(page) {
        return visit(Slot::new(0), &page[HEADER_BYTES..]);
    }
    for slot in slots(page) {
        if let Some((start, length)) = extent(page, slot) {
            visit(slot, &page[start..start + length]);
        }
    }
}

/// Bytes between data and slots, and in holes.
fn free_bytes(page: &[u8]) -> usize {
    PAGE_BYTES - u16_at(page, SLOT_COUNT_AT) * SLOT_BYTES - u32_at(page, DATA_END_AT)
        + u32_at(page, GARBAGE_AT)
}

/// The longest row that still fits beside the slot that it may need.
fn row_bytes_max(page: &[u8]) -> usize {
    free_bytes(page).saturating_sub(SLOT_BYTES)
}

/// A slot that can take a row of `length` bytes.
fn slot_for(page: &[u8], length: usize) -> Option<Slot> {
    let slot_count = u16_at(page, SLOT_COUNT_AT);
    let live = u32_at(page, LIVE_AT);
    if live < slot_count && free_bytes(page) >= length {
        return slots(page).find(|&slot| extent(page, slot).is_none());
    }
    (slot_count < SLOTS && free_bytes(page) >= length + SLOT_BYTES).then(|| Slot::new(slot_count))
}

/// Whether every slot that a page can have holds a row.
fn slots_used_up(page: &[u8]) -> bool {
    u16_at(page, SLOT_COUNT_AT) == SLOTS && u32_at(page, LIVE_AT) == SLOTS
}

/// Moves all rows of a page together; slots keep their numbers.
fn compact(page: &mut [u8]) {
    let old = page.to_vec();
    let mut end = HEADER_BYTES;
    for slot in slots(&old) {
        if let Some((start, length)) = extent(&old, slot) {
            page[end..end + length].copy_from_slice(&old[start..start + length]);
            put_u16(page, slot_at(slot), end);
            end += length;
        }
    }
    put_u32(page, DATA_END_AT, end);
    put_u32(page, GARBAGE_AT, 0);
}

/// Puts row bytes into a slot; the caller has checked that there is room.
fn place_row(page: &mut [u8], slot: Slot, row: &[u8]) {
    let slot_count = u16_at(page, SLOT_COUNT_AT).max(slot.index() + 1);
    let slots_start = slot_at(Slot::new(slot_count - 1));
    if u32_at(page, DATA_END_AT) + row.len() > slots_start {
        compact(page);
    }
    let start = u32_at(page, DATA_END_AT);
    page[start..start + row.len()].copy_from_slice(row);
    put_u32(page, DATA_END_AT, start + row.len());
    put_u16(page, slot_at(slot), start);
    set_length(page, slot, row.len());
}

impl SlottedRows {
    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
        let page = self.pages.bytes(id.page(SLOT_BITS));
        if is_large(page) {
            return &page[HEADER_BYTES..];
        }
        let (start, length) = extent(page, id.slot(SLOT_BITS)).expect("a live row has a used slot");
        &page[start..start + length]
    }

    /// Calls `visit` with every row of one page.
    pub fn for_each_of_page(&self, page: PageNumber, visit: impl FnMut(Slot, &[u8])) {
        slotted_rows(self.pages.bytes(page), visit);
    }

    fn new_page(&mut self, len: usize) -> Option<PageNumber> {
        if let Some(page) = self.vacant.pop() {
            self.pages.replace_zeroed(page, len);
            return Some(page);
        }
        let ids_end = (self.pages.len() + 1) * SLOTS;
        (ids_end <= ROW_IDS_MAX as usize).then(|| self.pages.push_zeroed(len))
    }

    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
        let id = if row.len() > SLOTTED_ROW_BYTES_MAX {
            self.insert_large(row)?
        } else {
            self.insert_small(row)?
        };
        self.row_count += 1;
        Some(id)
    }

    fn insert_large(&mut self, row: &[u8]) -> Option<RowId> {
        let page = self.new_page(HEADER_BYTES + row.len())?;
        let bytes = self.pages.bytes_mut(page);
        put_u16(bytes, KIND_AT, KIND_LARGE);
        put_u32(bytes, LIVE_AT, 1);
        bytes[HEADER_BYTES..].copy_from_slice(row);
        Some(RowId::new(page, Slot::new(0), SLOT_BITS))
    }

    fn insert_small(&mut self, row: &[u8]) -> Option<RowId> {
        let mut position = self.open.len();
        let mut tried = 0;
        while position > 0 && tried < OPEN_PAGES_TRIED_MAX {
            position -= 1;
            let page = self.open[position];
            let bytes = self.pages.bytes(page);
            if let Some(slot) = slot_for(bytes, row.len()) {
                return Some(self.fill_slot(page, slot, row));
            }
            if row_bytes_max(bytes) < OPEN_PAGE_BYTES_MIN || slots_used_up(bytes) {
                self.open.remove(position);
            } else {
                tried += 1;
            }
        }
        let page = self.new_page(PAGE_BYTES)?;
        put_u32(self.pages.bytes_mut(page), DATA_END_AT, HEADER_BYTES);
        self.open.push(page);
        Some(self.fill_slot(page, Slot::new(0), row))
    }

    /// Puts a row where one was that was deleted. None if there is another now, or no room.
    pub fn put_back(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        let (page, slot) = (id.page(SLOT_BITS), id.slot(SLOT_BITS));
        let bytes = self.pages.bytes(page);
        let has_slot = bytes.len() == PAGE_BYTES
            && !is_large(bytes)
            && slot.index() < u16_at(bytes, SLOT_COUNT_AT);
        if !has_slot || extent(bytes, slot).is_some() || free_bytes(bytes) < row.len() {
            return None;
        }
        self.row_count += 1;
        Some(self.fill_slot(page, slot, row))
    }

    fn fill_slot(&mut self, page: PageNumber, slot: Slot, row: &[u8]) -> RowId {
        let bytes = self.pages.bytes_mut(page);
        place_row(bytes, slot, row);
        let slot_count = u16_at(bytes, SLOT_COUNT_AT).max(slot.index() + 1);
        let live = u32_at(bytes, LIVE_AT) + 1;
        put_u16(bytes, SLOT_COUNT_AT, slot_count);
        put_u32(bytes, LIVE_AT, live);
        RowId::new(page, slot, SLOT_BITS)
    }

    pub fn replace(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
        let (page, slot) = (id.page(SLOT_BITS), id.slot(SLOT_BITS));
        let is_small = row.len() <= SLOTTED_ROW_BYTES_MAX;
        let was_small = !is_large(self.pages.bytes(page));
        if is_small && was_small && replace_in_slot(self.pages.bytes_mut(page), slot, row) {
            return Some(id);
        }
        if !is_small && !was_small && self.pages.bytes(page).len() == HEADER_BYTES + row.len() {
            // Rows of one size must stay where they are, however large.
            self.pages.bytes_mut(page)[HEADER_BYTES..].copy_from_slice(row);
            return Some(id);
        }
        let new = self.insert(row)?;
        self.delete(id);
        Some(new)
    }

    pub fn delete(&mut self, id: RowId) {
        self.row_count -= 1;
        let (page, slot) = (id.page(SLOT_BITS), id.slot(SLOT_BITS));
        if is_large(self.pages.bytes(page)) {
            self.pages.replace_zeroed(page, HEADER_BYTES);
            self.vacant.push(page);
            return;
        }
        let bytes = self.pages.bytes_mut(page);
        let (_, length) = extent(bytes, slot).expect("a live row has a used slot");
        let before = row_bytes_max(bytes);
        set_length(bytes, slot, LENGTH_FREE);
        let (garbage, live) = (
            u32_at(bytes, GARBAGE_AT) + length,
            u32_at(bytes, LIVE_AT) - 1,
        );
        put_u32(bytes, GARBAGE_AT, garbage);
        put_u32(bytes, LIVE_AT, live);
        let after = row_bytes_max(bytes);
        let emptied = live == 0 && before < REOPEN_PAGE_BYTES_MIN;
        let crossed = before < REOPEN_PAGE_BYTES_MIN && after >= REOPEN_PAGE_BYTES_MIN;
        if (crossed || emptied) && !self.open.contains(&page) {
            self.open.insert(0, page);
        }
    }

    pub fn freeze(&mut self) -> SlottedRows {
        SlottedRows {
            pages: self.pages.freeze(),
            open: Vec::new(),
            vacant: Vec::new(),
            row_count: self.row_count,
        }
    }

    pub fn clear(&mut self) {
        self.pages.clear();
        self.open.clear();
        self.vacant.clear();
        self.row_count = 0;
    }

    /// Appends a page that was checked. False: there are as many as row ids can name.
    pub fn append(&mut self, page: FrozenPage) -> bool {
        if (self.pages.len() + 1) * SLOTS > ROW_IDS_MAX as usize {
            return false;
        }
        let page = self.pages.push(page);
        let image = self.pages.bytes(page);
        self.row_count += u32_at(image, LIVE_AT) as u64;
        if image.len() == HEADER_BYTES {
            self.vacant.push(page);
        } else if !is_large(image) && row_bytes_max(image) >= OPEN_PAGE_BYTES_MIN {
            self.open.push(page);
        }
        true
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes() + self.open.capacity() * 4
    }
}

/// Puts another row into a used slot, if there is room for it. False if there is none; nothing changed then.
fn replace_in_slot(page: &mut [u8], slot: Slot, row: &[u8]) -> bool {
    let (start, length) = extent(page, slot).expect("a live row has a used slot");
    if row.len() <= length {
        page[start..start + row.len()].copy_from_slice(row);
        set_length(page, slot, row.len());
        let garbage = u32_at(page, GARBAGE_AT) + length - row.len();
        put_u32(page, GARBAGE_AT, garbage);
        return true;
    }
    if free_bytes(page) + length < row.len() {
        return false;
    }
    set_length(page, slot, LENGTH_FREE);
    let garbage = u32_at(page, GARBAGE_AT) + length;
    put_u32(page, GARBAGE_AT, garbage);
    place_row(page, slot, row);
    true
}

/// Checks that bytes from a snapshot are a possible page.
pub(super) fn check_page(image: &[u8], layout: &RowLayout) -> Result<(), String> {
    if image.len() < HEADER_BYTES {
        return Err(format!("{} bytes are too few for a page", image.len()));
    }
    let (kind, slot_count, live) = (
        u16_at(image, KIND_AT),
        u16_at(image, SLOT_COUNT_AT),
        u32_at(image, LIVE_AT),
    );
    if image.len() == HEADER_BYTES {
        return match live {
            0 => Ok(()),
            _ => Err("an empty page claims to hold rows".into()),
        };
    }
    if kind == KIND_LARGE {
        return match live {
            1 if image.len() > HEADER_BYTES + SLOTTED_ROW_BYTES_MAX => {
                check_row(&image[HEADER_BYTES..], layout)
            }
            _ => Err(format!(
                "a page of {} bytes for one large row claims {live} rows",
                image.len()
            )),
        };
    }
    if kind != KIND_SLOTTED || image.len() != PAGE_BYTES || slot_count > SLOTS {
        return Err(format!(
            "kind {kind}, {slot_count} slots, {} bytes is no page",
            image.len()
        ));
    }
    check_slots(image, layout)
}

/// Checks that what the header of a slotted page says fits its slots, and these their rows.
fn check_slots(image: &[u8], layout: &RowLayout) -> Result<(), String> {
    let (slot_count, live) = (u16_at(image, SLOT_COUNT_AT), u32_at(image, LIVE_AT));
    let (data_end, garbage) = (u32_at(image, DATA_END_AT), u32_at(image, GARBAGE_AT));
    let slots_start = PAGE_BYTES - slot_count * SLOT_BYTES;
    if data_end < HEADER_BYTES || data_end > slots_start || garbage > data_end {
        return Err("the page header contradicts itself".into());
    }
    let mut extents = Vec::with_capacity(slot_count);
    for slot in slots(image) {
        let Some((start, length)) = extent(image, slot) else {
            continue;
        };
        let index = slot.index();
        if start < HEADER_BYTES || start + length > data_end {
            return Err(format!("slot {index} points outside the page's data"));
        }
        check_row(&image[start..start + length], layout)
            .map_err(|error| format!("slot {index}: {error}"))?;
        extents.push((start, length));
    }
    if extents.len() != live {
        return Err(format!(
            "the page holds {} rows and claims {live}",
            extents.len()
        ));
    }
    extents.sort_unstable();
    if extents
        .windows(2)
        .any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
    {
        return Err("two rows overlap".into());
    }
    let used: usize = extents.iter().map(|(_, length)| length).sum();
    if HEADER_BYTES + used + garbage != data_end {
        return Err(format!(
            "rows of {used} bytes and {garbage} bytes of garbage do not end at {data_end}"
        ));
    }
    Ok(())
}

/// Checks that bytes are one row and nothing else.
fn check_row(row: &[u8], layout: &RowLayout) -> Result<(), String> {
    match layout.validate_prefix(row) {
        Ok(length) if length == row.len() => Ok(()),
        Ok(length) => Err(format!(
            "a row of {length} bytes is stored in {} bytes",
            row.len()
        )),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a full page that grow and shrink by single bytes: the last bytes before the slots are used as well.
    #[test]
    fn the_last_bytes_of_a_page_are_not_those_of_a_slot() {
        for grown in 1..12 {
            let mut rows = SlottedRows::default();
            let mut model: Vec<(RowId, Vec<u8>)> = Vec::new();
            while rows.pages.len() < 2 {
                let row = vec![model.len() as u8; 97];
                model.push((rows.insert(&row).expect("there is room"), row));
            }
            for round in 0..40 {
                for (number, (id, row)) in model.iter_mut().enumerate() {
                    let len = 90 + (number * 7 + round * grown) % (13 + grown);
                    row.resize(len, number as u8);
                    *id = rows.replace(*id, row).expect("there is room");
                }
                for (id, row) in &model {
                    assert_eq!(rows.get(*id), &row[..], "grown by {grown}, round {round}");
                }
            }
        }
    }

    /// A slot that is added takes its bytes from what is free, even when data end right before the slots.
    #[test]
    fn a_new_slot_does_not_lie_in_a_row() {
        for gap in 0..SLOT_BYTES {
            let mut rows = SlottedRows::default();
            let big = (PAGE_BYTES - HEADER_BYTES - 5 * SLOT_BYTES - gap) / 5;
            let rest = PAGE_BYTES - HEADER_BYTES - 5 * SLOT_BYTES - gap - 4 * big;
            let ids: Vec<RowId> = [big, big, big, big, rest]
                .iter()
                .enumerate()
                .map(|(index, len)| {
                    rows.insert(&vec![index as u8; *len])
                        .expect("there is room")
                })
                .collect();
            rows.replace(ids[0], &vec![0; big - 100])
                .expect("it shrinks");
            let new: Vec<RowId> = (0..3)
                .map(|index| {
                    rows.insert(&vec![100 + index; 100 - index as usize])
                        .expect("there is room")
                })
                .collect();
            for (index, id) in ids.iter().enumerate() {
                assert!(
                    rows.get(*id).iter().all(|byte| *byte == index as u8),
                    "gap {gap}, row {index}"
                );
            }
            for (index, id) in new.iter().enumerate() {
                assert!(
                    rows.get(*id).iter().all(|byte| *byte == 100 + index as u8),
                    "gap {gap}, new row {index}"
                );
            }
        }
    }
}
