//! The direct index: row ids in a dense vector by key.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::row_id::RowId;

const DIRECT_CHUNK: usize = 1024;

/// Row ids in a dense vector by key, in chunks so that a large key costs one chunk and not its own size.
#[derive(Default)]
pub(super) struct Direct {
    chunks: FxHashMap<u64, Box<[RowId; DIRECT_CHUNK]>>,
    /// Chunk numbers in order, for range scans.
    order: BTreeSet<u64>,
    len: usize,
}

/// Marks a key without a row.
const NO_ROW: RowId = RowId::MAX;

impl Direct {
    #[inline]
    pub fn get(&self, key: u64) -> Option<RowId> {
        let chunk = self.chunks.get(&(key / DIRECT_CHUNK as u64))?;
        let id = chunk[key as usize % DIRECT_CHUNK];
        (id != NO_ROW).then_some(id)
    }

    pub fn set(&mut self, key: u64, id: Option<RowId>) {
        let number = key / DIRECT_CHUNK as u64;
        let order = &mut self.order;
        let chunk = self.chunks.entry(number).or_insert_with(|| {
            order.insert(number);
            Box::new([NO_ROW; DIRECT_CHUNK])
        });
        let place = &mut chunk[key as usize % DIRECT_CHUNK];
        self.len = self.len + usize::from(id.is_some()) - usize::from(*place != NO_ROW);
        *place = id.unwrap_or(NO_ROW);
    }

    /// Calls `visit` with the rows of keys from `first` to `last`, in their order, until it returns false.
    pub fn walk_range(&self, first: u64, last: u64, mut visit: impl FnMut(RowId) -> bool) {
        if first > last {
            return;
        }
        let chunk_of = |key: u64| key / DIRECT_CHUNK as u64;
        for &number in self.order.range(chunk_of(first)..=chunk_of(last)) {
            let base = number * DIRECT_CHUNK as u64;
            for (offset, &id) in self.chunks[&number].iter().enumerate() {
                let key = base + offset as u64;
                if id != NO_ROW && key >= first && key <= last && !visit(id) {
                    return;
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn heap_bytes(&self) -> usize {
        self.chunks.len() * (DIRECT_CHUNK * 4 + 32)
    }
}
