//! A hash table of row ids that is read with one cache miss.
//!
//! An entry is a word: 32 bits of the hash, its *tag*, and the row id. The tag says in which bucket the entry belongs, and
//! tells nearly all other keys apart, so a lookup touches one cache line here and one row, and growing does not look at
//! rows at all. With ids and control bytes apart, as in general-purpose tables, each lookup in a large table missed the
//! cache once more.

use crate::row_id::RowId;
use crate::words::Words;

/// In an empty bucket, as in new pages. No entry is like this, as the number after a row id is never zero.
const EMPTY: u64 = 0;
/// Buckets of the smallest table, as a power of two.
const BITS_MIN: u32 = 3;
/// Buckets of a page, as powers of two: small pages cost little to copy after a table was frozen, and large tables have
/// larger ones, so that the list of pages stays in the cache.
const PAGE_BITS_MIN: u32 = 9;
const PAGE_BITS_MAX: u32 = 12;
/// Pages become larger beyond so many, a power of two.
const PAGES_BITS: u32 = 10;

/// Row ids by hash; the caller knows what is hashed and compares it.
pub(crate) struct IdTable {
    /// A power of two, or none. An entry lies in the bucket of its tag or, if that is taken, in the next empty one.
    buckets: Words<u64>,
    /// The number of buckets, less one.
    mask: usize,
    len: usize,
}

impl Default for IdTable {
    fn default() -> IdTable {
        IdTable {
            buckets: Words::new(BITS_MIN),
            mask: 0,
            len: 0,
        }
    }
}

/// The part of a hash that an entry keeps.
#[inline]
fn tag(hash: u64) -> u64 {
    hash >> 32
}

#[inline]
fn entry(hash: u64, id: RowId) -> u64 {
    tag(hash) << 32 | u64::from(id.number() + 1)
}

#[inline]
fn id_of(entry: u64) -> RowId {
    RowId::from_number((entry as u32) - 1)
}

#[inline]
fn tag_of(entry: u64) -> u64 {
    entry >> 32
}

impl IdTable {
    /// The first entry with this hash that is the `same`.
    #[inline]
    pub fn find(&self, hash: u64, mut same: impl FnMut(RowId) -> bool) -> Option<RowId> {
        if self.len == 0 {
            return None;
        }
        let mask = self.mask;
        let mut at = tag(hash) as usize & mask;
        loop {
            let entry = self.buckets.get(at);
            if entry == EMPTY {
                return None;
            }
            if tag_of(entry) == tag(hash) && same(id_of(entry)) {
                return Some(id_of(entry));
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there yet.
    pub fn insert(&mut self, hash: u64, id: RowId) {
        // At seven eighths a hit reads four or five buckets, which are one or two cache lines; beyond, runs grow fast.
        if (self.len + 1) * 8 > self.buckets.len() * 7 {
            self.grow();
        }
        self.put(entry(hash, id));
        self.len += 1;
    }

    fn put(&mut self, entry: u64) {
        let mask = self.mask;
        let mut at = tag_of(entry) as usize & mask;
        while self.buckets.get(at) != EMPTY {
            at = (at + 1) & mask;
        }
        self.buckets.set(at, entry);
    }

    fn grow(&mut self) {
        let bits = match self.buckets.len() {
            0 => BITS_MIN,
            buckets => buckets.ilog2() + 1,
        };
        let page_bits = bits
            .saturating_sub(PAGES_BITS)
            .clamp(PAGE_BITS_MIN, PAGE_BITS_MAX)
            .min(bits);
        let grown = self.buckets.emptied(page_bits);
        let old = std::mem::replace(&mut self.buckets, grown);
        for _ in 0..1 << (bits - page_bits) {
            self.buckets.push_page();
        }
        self.mask = (1 << bits) - 1;
        (0..old.len())
            .map(|at| old.get(at))
            .filter(|&entry| entry != EMPTY)
            .for_each(|entry| self.put(entry));
    }

    /// Removes the entry of this row, if it is there.
    pub fn remove(&mut self, hash: u64, id: RowId) {
        if self.len == 0 {
            return;
        }
        let mask = self.mask;
        let removed = entry(hash, id);
        let mut hole = tag(hash) as usize & mask;
        while self.buckets.get(hole) != removed {
            if self.buckets.get(hole) == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.len -= 1;
        // Entries behind it move up, unless one would come to lie before the bucket of its tag.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.buckets.get(at);
            if entry == EMPTY {
                break;
            }
            let distance = at.wrapping_sub(tag_of(entry) as usize) & mask;
            if distance >= at.wrapping_sub(hole) & mask {
                self.buckets.set(hole, entry);
                hole = at;
            }
        }
        self.buckets.set(hole, EMPTY);
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn heap_bytes(&self) -> usize {
        self.buckets.heap_bytes()
    }

    /// The entries as they are now.
    pub fn freeze(&mut self) -> IdTable {
        IdTable {
            buckets: self.buckets.freeze(),
            ..*self
        }
    }

    /// As [`Words::released_bytes`].
    pub fn released_bytes(&self) -> u64 {
        self.buckets.released_bytes()
    }

    pub fn clear(&mut self) {
        self.buckets.reset(BITS_MIN);
        (self.mask, self.len) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Few different hashes, at both ends of the table: long runs, and runs that wrap around.
        #[test]
        fn behaves_like_a_set(ops in prop::collection::vec((any::<bool>(), 0..6_u64, 0..40_u32), 0..300)) {
            let hashes = [0, 1, 2, 0xffff_fffe, 0xffff_ffff, 0x7fff_ffff].map(|tag: u64| tag << 32 | 5);
            let mut table = IdTable::default();
            let mut model = BTreeSet::new();
            for (insert, hash, id) in ops {
                let (hash, id) = (hashes[hash as usize], RowId::from_number(id));
                if insert {
                    if model.insert((hash, id)) {
                        table.insert(hash, id);
                    }
                } else {
                    model.remove(&(hash, id));
                    table.remove(hash, id);
                }
                prop_assert_eq!(table.len(), model.len());
                for hash in hashes {
                    for id in (0..40).map(RowId::from_number) {
                        let found = table.find(hash, |other| other == id);
                        prop_assert_eq!(found, model.contains(&(hash, id)).then_some(id));
                    }
                }
            }
        }
    }
}
