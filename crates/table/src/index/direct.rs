//! The direct index: row ids in a dense array by key.

use rustc_hash::FxHashMap;

use super::tree::Tree;
use crate::row_id::RowId;
use crate::words::Words;

/// Keys of a chunk, as a power of two.
const CHUNK_BITS: u32 = 10;

/// Row ids by key, in chunks so that a large key costs one chunk and not its own size.
pub(super) struct Direct {
    /// Which chunk of `ids` has the keys with this number in front. Frozen copies have none, and look into `order`.
    chunks: FxHashMap<u64, u32>,
    /// As `chunks`, in order. Chunks take the place of row ids.
    order: Tree<u64>,
    /// For each key the number of its row and one, or zero.
    ids: Words<u32>,
    len: usize,
    is_frozen: bool,
}

impl Default for Direct {
    fn default() -> Direct {
        Direct {
            chunks: FxHashMap::default(),
            order: Tree::default(),
            ids: Words::new(CHUNK_BITS),
            len: 0,
            is_frozen: false,
        }
    }
}

fn place(chunk: u32, key: u64) -> usize {
    (chunk as usize) << CHUNK_BITS | (key as usize & ((1 << CHUNK_BITS) - 1))
}

fn row_of(word: u32) -> Option<RowId> {
    word.checked_sub(1).map(RowId::from_number)
}

impl Direct {
    #[inline]
    fn chunk(&self, key: u64) -> Option<u32> {
        let number = key >> CHUNK_BITS;
        match self.is_frozen {
            false => self.chunks.get(&number).copied(),
            true => self.order.find(number).map(RowId::number),
        }
    }

    #[inline]
    pub fn get(&self, key: u64) -> Option<RowId> {
        row_of(self.ids.get(place(self.chunk(key)?, key)))
    }

    pub fn set(&mut self, key: u64, id: Option<RowId>) {
        let chunk = match self.chunk(key) {
            Some(chunk) => chunk,
            None => self.add_chunk(key >> CHUNK_BITS),
        };
        let place = place(chunk, key);
        let before = self.ids.get(place);
        self.len = self.len + usize::from(id.is_some()) - usize::from(before != 0);
        self.ids.set(place, id.map_or(0, |id| id.number() + 1));
    }

    fn add_chunk(&mut self, number: u64) -> u32 {
        // There are no more chunks than row ids: each had a row at some time, and keeps its place.
        let chunk = self.ids.push_page() as u32;
        self.chunks.insert(number, chunk);
        self.order.insert(number, RowId::from_number(chunk));
        chunk
    }

    /// Calls `visit` with the rows of keys from `first` to `last`, in their order, until it returns false.
    pub fn walk_range(&self, first: u64, last: u64, mut visit: impl FnMut(RowId) -> bool) {
        if first > last {
            return;
        }
        let start = (first >> CHUNK_BITS, RowId::MIN);
        self.order.walk(Some(&start), |&number, chunk| {
            let base = number << CHUNK_BITS;
            if base > last {
                return false;
            }
            let keys = base.max(first)..=(base | ((1 << CHUNK_BITS) - 1)).min(last);
            keys.filter_map(|key| row_of(self.ids.get(place(chunk.number(), key))))
                .all(&mut visit)
        });
    }

    /// Calls `visit` with the rows of keys from `last` down to `first`, until it returns false.
    pub fn walk_range_back(&self, first: u64, last: u64, mut visit: impl FnMut(RowId) -> bool) {
        if first > last {
            return;
        }
        let end = ((last >> CHUNK_BITS) + 1, RowId::MIN);
        self.order.walk_back(Some(&end), |&number, chunk| {
            let base = number << CHUNK_BITS;
            let top = base | ((1 << CHUNK_BITS) - 1);
            if top < first {
                return false;
            }
            let keys = (base.max(first)..=top.min(last)).rev();
            keys.filter_map(|key| row_of(self.ids.get(place(chunk.number(), key))))
                .all(&mut visit)
        });
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn freeze(&mut self) -> Direct {
        Direct {
            chunks: FxHashMap::default(),
            order: self.order.freeze(),
            ids: self.ids.freeze(),
            len: self.len,
            is_frozen: true,
        }
    }

    pub fn clear(&mut self) {
        self.chunks.clear();
        self.order.clear();
        self.ids.reset(CHUNK_BITS);
        self.len = 0;
    }

    pub fn released_bytes(&self) -> u64 {
        self.ids.released_bytes() + self.order.released_bytes()
    }

    pub fn heap_bytes(&self) -> usize {
        self.ids.heap_bytes() + self.order.heap_bytes() + self.chunks.capacity() * 16
    }
}
