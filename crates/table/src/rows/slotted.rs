//! Slotted pages: rows of varying size behind a table of slots; large rows have a page each.

use super::{RowId, PAGE_BYTES, ROW_IDS_MAX, SLOTS};
use crate::layout::RowLayout;
use crate::page::PageTable;

/// Rows of varying size in slotted pages; a row too large for a page gets a page of its own.
#[derive(Default)]
pub(super) struct SlottedRows {
    pub pages: PageTable,
    /// Pages with room, the one to try first at the end.
    pub open: Vec<u32>,
    /// Pages that held a large row and hold nothing now.
    vacant: Vec<u32>,
    pub live: u64,
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

pub(super) fn slotted_rows(page: &[u8], mut visit: impl FnMut(usize, &[u8])) {
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

/// Bytes that are free: between data and slots, and in holes.
fn free(page: &[u8]) -> usize {
    PAGE_BYTES - u16_at(page, 2) * SLOT_BYTES - u32_at(page, 4) + u32_at(page, 8)
}

/// Bytes that a new row could use: what is free, without the slot that it needs.
fn room(page: &[u8]) -> usize {
    free(page).saturating_sub(SLOT_BYTES)
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

/// Whether every slot of the page holds a row.
fn slots_used_up(page: &[u8]) -> bool {
    u16_at(page, 2) == SLOTS && u32_at(page, 12) == SLOTS
}

impl SlottedRows {
    #[inline]
    pub fn get(&self, id: RowId) -> &[u8] {
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

    pub fn insert(&mut self, row: &[u8]) -> Option<RowId> {
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
        let mut position = self.open.len();
        let mut tried = 0;
        while position > 0 && tried < OPEN_PAGES_TRIED_MAX {
            position -= 1;
            let index = self.open[position] as usize;
            let page = self.pages.bytes(index);
            if let Some(slot) = Self::free_slot(page, row.len()) {
                return Some(self.fill_slot(index, slot, row));
            }
            if room(page) < OPEN_PAGE_BYTES_MIN || slots_used_up(page) {
                self.open.remove(position);
            } else {
                tried += 1;
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
        if live < slots && free(page) >= len {
            return (0..slots).find(|&index| slot(page, index).is_none());
        }
        (slots < SLOTS && free(page) >= len + SLOT_BYTES).then_some(slots)
    }

    fn fill_slot(&mut self, index: usize, slot: usize, row: &[u8]) -> RowId {
        let page = self.pages.bytes_mut(index);
        place_row(page, slot, row);
        let (slots, live) = (u16_at(page, 2).max(slot + 1), u32_at(page, 12) + 1);
        put_u16(page, 2, slots);
        put_u32(page, 12, live);
        (index * SLOTS + slot) as RowId
    }

    pub fn replace(&mut self, id: RowId, row: &[u8]) -> Option<RowId> {
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
            if free(page) + len >= row.len() {
                put_u16(page, slot_at(slot_index) + 2, usize::from(SLOT_FREE));
                let garbage = u32_at(page, 8) + len;
                put_u32(page, 8, garbage);
                place_row(page, slot_index, row);
                return Some(id);
            }
        }
        if !small && !slotted && self.pages.bytes(index).len() == HEADER_BYTES + row.len() {
            // Rows of one size must stay where they are, however large.
            self.pages.bytes_mut(index)[HEADER_BYTES..].copy_from_slice(row);
            return Some(id);
        }
        let new = self.insert(row)?;
        self.delete(id);
        Some(new)
    }

    pub fn delete(&mut self, id: RowId) {
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

    pub fn load_page(&mut self, image: &[u8], layout: &RowLayout) -> Result<(), String> {
        if (self.pages.len() + 1) * SLOTS > ROW_IDS_MAX as usize {
            return Err("the table has more pages than row ids can name".into());
        }
        check_slotted_page(image, layout)?;
        let index = self.pages.push_zeroed(image.len());
        self.pages.bytes_mut(index).copy_from_slice(image);
        let large = u16_at(image, 0) == usize::from(KIND_LARGE);
        self.live += u32_at(image, 12) as u64;
        if image.len() == HEADER_BYTES {
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
        Ok(len) => Err(format!(
            "a row of {len} bytes is stored in {} bytes",
            row.len()
        )),
        Err(error) => Err(error.to_string()),
    };
    let (kind, slots, live) = (u16_at(image, 0), u16_at(image, 2), u32_at(image, 12));
    if image.len() == HEADER_BYTES {
        return if live == 0 {
            Ok(())
        } else {
            Err("an empty page claims to hold rows".into())
        };
    }
    if kind == usize::from(KIND_LARGE) {
        return match live {
            1 if image.len() > HEADER_BYTES + SLOTTED_ROW_BYTES_MAX => {
                check(&image[HEADER_BYTES..])
            }
            _ => Err(format!(
                "a page of {} bytes for one large row claims {live} rows",
                image.len()
            )),
        };
    }
    if kind != usize::from(KIND_SLOTTED) || image.len() != PAGE_BYTES || slots > SLOTS {
        return Err(format!(
            "kind {kind}, {slots} slots, {} bytes is no page",
            image.len()
        ));
    }
    let (data_end, garbage) = (u32_at(image, 4), u32_at(image, 8));
    if data_end < HEADER_BYTES || data_end > PAGE_BYTES - slots * SLOT_BYTES || garbage > data_end {
        return Err("the page header contradicts itself".into());
    }
    let mut places = Vec::with_capacity(slots);
    for index in 0..slots {
        let Some((start, len)) = slot(image, index) else {
            continue;
        };
        if start < HEADER_BYTES || start + len > data_end {
            return Err(format!("slot {index} points outside the page's data"));
        }
        check(&image[start..start + len]).map_err(|error| format!("slot {index}: {error}"))?;
        places.push((start, len));
    }
    if places.len() != live {
        return Err(format!(
            "the page holds {} rows and claims {live}",
            places.len()
        ));
    }
    places.sort_unstable();
    if places
        .windows(2)
        .any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
    {
        return Err("two rows overlap".into());
    }
    let used: usize = places.iter().map(|(_, len)| len).sum();
    if HEADER_BYTES + used + garbage != data_end {
        return Err(format!(
            "rows of {used} bytes and {garbage} bytes of garbage do not end at {data_end}"
        ));
    }
    Ok(())
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
