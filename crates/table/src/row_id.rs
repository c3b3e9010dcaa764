//! Row ids and their parts.

use std::fmt;

/// Slot bits in the id of a row of varying size.
pub(crate) const SLOT_BITS: u32 = 11;
/// The number of row ids of a table. `u32::MAX` is none, nor is any other id in its page.
pub(crate) const ROW_IDS_MAX: u32 = u32::MAX - (1 << SLOT_BITS);

/// Names a row while it is in its table. It is a page number and a slot in that page, in the low bits; the table knows how many
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RowId(u32);

impl RowId {
    /// Before all others.
    pub(crate) const MIN: RowId = RowId(0);

    /// The id with this number. For structures that keep ids in numbers.
    #[inline]
    pub(crate) const fn from_number(number: u32) -> RowId {
        RowId(number)
    }

    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// The row in this slot of this page, in a table whose pages have `1 << slot_bits` slots.
    #[inline]
    pub(crate) const fn new(page: PageNumber, slot: Slot, slot_bits: u32) -> RowId {
        RowId(page.0 << slot_bits | slot.0 as u32)
    }

    #[inline]
    pub(crate) const fn page(self, slot_bits: u32) -> PageNumber {
        PageNumber(self.0 >> slot_bits)
    }

    /// Always below `1 << slot_bits`, whatever the id.
    #[inline]
    pub(crate) const fn slot(self, slot_bits: u32) -> Slot {
        Slot((self.0 & ((1 << slot_bits) - 1)) as usize)
    }

    /// The one right behind.
    #[inline]
    pub(crate) const fn next(self) -> RowId {
        RowId(self.0 + 1)
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a page among those of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct PageNumber(u32);

impl PageNumber {
    /// The page that has `index` pages before it. Row ids name fewer than 2^32 pages.
    #[inline]
    pub const fn new(index: usize) -> PageNumber {
        PageNumber(index as u32)
    }

    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The position of a row among those of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Slot(usize);

impl Slot {
    /// The slot that has `index` slots before it. Pages have at most 32,768.
    #[inline]
    pub const fn new(index: usize) -> Slot {
        Slot(index)
    }

    #[inline]
    pub const fn index(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_page_and_a_slot() {
        for slot_bits in [6, 11, 15] {
            let last = Slot::new((1 << slot_bits) - 1);
            for (page, slot) in [(0, Slot::new(0)), (3, last), (7, Slot::new(5))] {
                let id = RowId::new(PageNumber::new(page), slot, slot_bits);
                assert_eq!(id.page(slot_bits), PageNumber::new(page));
                assert_eq!(id.slot(slot_bits), slot);
            }
            let end = RowId::new(PageNumber::new(3), last, slot_bits).next();
            assert_eq!(end, RowId::new(PageNumber::new(4), Slot::new(0), slot_bits));
            assert_eq!(RowId::from_number(u32::MAX).slot(slot_bits), last);
        }
    }
}
