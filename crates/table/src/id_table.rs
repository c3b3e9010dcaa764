//! A hash table of row ids that is read with one cache miss.
//!
//! A slot is a word: 32 bits of the hash and the row id. The hash bits give the slot's place and tell nearly all other
//! keys apart, so a lookup touches one cache line here and one row, and growing does not look at rows at all. With ids
//! and control bytes apart, as in general-purpose tables, each lookup in a large table missed the cache once more.

use crate::rows::RowId;

/// A free slot; no row has the id `u32::MAX`.
const FREE: u64 = u64::MAX;
const SLOTS_MIN: usize = 8;

/// Row ids by hash; the caller knows what is hashed and compares it.
#[derive(Default)]
pub(crate) struct IdTable {
    /// A power of two of slots, or none; an entry lies at its place or, if that is taken, in the next free slot.
    slots: Vec<u64>,
    len: usize,
}

#[inline]
fn tag(hash: u64) -> u64 {
    hash >> 32
}

#[inline]
fn id_of(slot: u64) -> RowId {
    slot as RowId
}

impl IdTable {
    /// The first entry with this hash that is the `same`.
    #[inline]
    pub fn find(&self, hash: u64, mut same: impl FnMut(RowId) -> bool) -> Option<RowId> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = tag(hash) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            if slot >> 32 == tag(hash) && same(id_of(slot)) {
                return Some(id_of(slot));
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there yet.
    pub fn insert(&mut self, hash: u64, id: RowId) {
        // At seven eighths a hit reads four or five slots, which are one or two cache lines; beyond, runs grow fast.
        if (self.len + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        self.put(tag(hash) << 32 | u64::from(id));
        self.len += 1;
    }

    fn put(&mut self, entry: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (entry >> 32) as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = entry;
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        old.into_iter()
            .filter(|&slot| slot != FREE)
            .for_each(|entry| self.put(entry));
    }

    /// Removes the entry of this row, if it is there.
    pub fn remove(&mut self, hash: u64, id: RowId) {
        if self.slots.is_empty() {
            return;
        }
        let mask = self.slots.len() - 1;
        let entry = tag(hash) << 32 | u64::from(id);
        let mut free = tag(hash) as usize & mask;
        while self.slots[free] != entry {
            if self.slots[free] == FREE {
                return;
            }
            free = (free + 1) & mask;
        }
        self.len -= 1;
        // Entries behind it move up, unless that would put them before their place.
        let mut at = free;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == FREE {
                break;
            }
            let distance = at.wrapping_sub((slot >> 32) as usize) & mask;
            if distance >= at.wrapping_sub(free) & mask {
                self.slots[free] = slot;
                free = at;
            }
        }
        self.slots[free] = FREE;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * 8
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
                let hash = hashes[hash as usize];
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
                    for id in 0..40 {
                        let found = table.find(hash, |other| other == id);
                        prop_assert_eq!(found, model.contains(&(hash, id)).then_some(id));
                    }
                }
            }
        }
    }
}
