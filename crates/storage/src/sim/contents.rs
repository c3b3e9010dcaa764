//! One simulated file: its content in the cache, and on the disk.

use std::collections::{HashMap, HashSet};

use super::random::below;

/// Written as a unit.
const SECTOR_BYTES: u64 = 512;

enum Change {
    /// Whole pages, as the cache had them after a write.
    Pages {
        position: u64,
        bytes: Vec<u8>,
    },
    SetLength(u64),
}

/// A file's bytes. Reads see the cache. A page is dirty from a write until the next sync, whether that succeeds or not.
#[derive(Default)]
pub(super) struct Contents {
    pub cached: Vec<u8>,
    /// Survives a power failure.
    stored: Vec<u8>,
    /// From `stored` to the cache, in order.
    pending: Vec<Change>,
}

impl Contents {
    /// A file that is on the disk.
    pub fn stored(bytes: Vec<u8>) -> Contents {
        Contents {
            cached: bytes.clone(),
            stored: bytes,
            pending: Vec::new(),
        }
    }

    pub fn write(&mut self, position: u64, written: &[u8], page_bytes: u64) {
        overwrite(&mut self.cached, position, written);
        let start = position / page_bytes * page_bytes;
        let end = (position + written.len() as u64).next_multiple_of(page_bytes);
        let end = end.min(self.cached.len() as u64);
        self.pending.push(Change::Pages {
            position: start,
            bytes: self.cached[start as usize..end as usize].to_vec(),
        });
    }

    pub fn set_length(&mut self, length: u64) {
        self.cached.resize(length as usize, 0);
        self.pending.push(Change::SetLength(length));
    }

    pub fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Pages { position, bytes } => overwrite(&mut self.stored, position, &bytes),
                Change::SetLength(length) => self.stored.resize(length as usize, 0),
            }
        }
    }

    /// Some dirty pages reach the disk, all become clean, and reads still see all of them.
    pub fn fail_sync(&mut self, random: &mut u64) {
        self.stored = self.after_crash(random);
        self.pending.clear();
    }

    /// Clean pages may leave the cache: the next read fetches what the disk holds.
    pub fn evict(&mut self, random: &mut u64, page_bytes: u64) {
        let dirty = self.dirty_pages(page_bytes);
        for page in 0..(self.cached.len() as u64).div_ceil(page_bytes) {
            if below(random, 2) == 0 || dirty.contains(&page) {
                continue;
            }
            let start = (page * page_bytes) as usize;
            let end = (start + page_bytes as usize).min(self.cached.len());
            let stored = self.stored.get(start..end.min(self.stored.len()));
            let (stored, cached) = (stored.unwrap_or_default(), &mut self.cached[start..end]);
            cached.fill(0);
            cached[..stored.len()].copy_from_slice(stored);
        }
    }

    /// The disk turns a bit; a dirty page hides that for now.
    pub fn rot(&mut self, position: u64, bit: u8, page_bytes: u64) {
        let at = position as usize;
        if let Some(byte) = self.stored.get_mut(at) {
            *byte ^= 1 << bit;
        }
        if !self
            .dirty_pages(page_bytes)
            .contains(&(position / page_bytes))
        {
            if let Some(byte) = self.cached.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
    }

    fn dirty_pages(&self, page_bytes: u64) -> HashSet<u64> {
        let pages = self.pending.iter().flat_map(|change| match change {
            Change::Pages { position, bytes } => {
                position / page_bytes..(position + bytes.len() as u64).div_ceil(page_bytes)
            }
            Change::SetLength(_) => 0..0,
        });
        pages.collect()
    }

    /// What the disk holds after a power failure: any one version of every sector written since the last sync.
    pub fn after_crash(&self, random: &mut u64) -> Vec<u8> {
        let mut bytes = self.stored.clone();
        // For each sector, the first change that did not reach the disk.
        let mut lost_from: HashMap<u64, usize> = HashMap::new();
        let changes = self.pending.len() as u64;
        // By single sectors, a long write would never be lost or kept as a whole.
        let mood = below(random, 4);
        for (number, change) in self.pending.iter().enumerate() {
            let (position, written) = match change {
                Change::SetLength(length) => {
                    if below(random, 2) == 0 {
                        bytes.resize(*length as usize, 0);
                    }
                    continue;
                }
                Change::Pages { position, bytes } => (*position, bytes),
            };
            for (index, part) in written.chunks(SECTOR_BYTES as usize).enumerate() {
                let sector = position / SECTOR_BYTES + index as u64;
                let lost =
                    *lost_from
                        .entry(sector)
                        .or_insert_with(|| match (mood, below(random, 3)) {
                            (0, _) | (2.., 0) => 0,
                            (1, _) | (2.., 1) => usize::MAX,
                            _ => below(random, changes + 1) as usize,
                        });
                if number < lost {
                    overwrite(&mut bytes, sector * SECTOR_BYTES, part);
                }
            }
        }
        bytes
    }
}

fn overwrite(bytes: &mut Vec<u8>, position: u64, written: &[u8]) {
    let start = position as usize;
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(written);
}
