//! Sizes in buckets, which many tasks count and any task reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bounds of the buckets in bytes, each with the bound in it; one more bucket has what is larger.
pub(super) const BOUNDS_BYTES: [u64; 8] = [
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
];

const BUCKETS: usize = BOUNDS_BYTES.len() + 1;

/// Sizes of messages of all connections to a database.
#[derive(Debug, Default)]
pub struct Sizes {
    buckets: [AtomicU64; BUCKETS],
    bytes: AtomicU64,
}

/// Sizes that one task has counted and not added to the shared ones yet.
#[derive(Debug, Default)]
pub struct SizesSeen {
    buckets: [u64; BUCKETS],
    bytes: u64,
}

impl SizesSeen {
    pub fn note(&mut self, bytes: u64) {
        let bucket = BOUNDS_BYTES.partition_point(|bound| *bound < bytes);
        self.buckets[bucket] += 1;
        self.bytes += bytes;
    }

    /// Tells them, and begins anew.
    pub fn tell(&mut self, sizes: &Sizes) {
        for (bucket, count) in sizes.buckets.iter().zip(self.buckets) {
            if count > 0 {
                bucket.fetch_add(count, Relaxed);
            }
        }
        if self.bytes > 0 {
            sizes.bytes.fetch_add(self.bytes, Relaxed);
        }
        *self = SizesSeen::default();
    }
}

impl Sizes {
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn buckets(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed))
    }

    pub(super) fn add(&self, other: &Sizes) {
        for (bucket, more) in self.buckets.iter().zip(other.buckets()) {
            bucket.fetch_add(more, Relaxed);
        }
        self.bytes.fetch_add(other.bytes(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_first_bucket_whose_bound_they_do_not_pass() {
        let (mut seen, sizes) = (SizesSeen::default(), Sizes::default());
        for bytes in [0, 64, 65, 1 << 20, (1 << 20) + 1] {
            seen.note(bytes);
        }
        seen.tell(&sizes);
        seen.tell(&sizes);
        assert_eq!(sizes.buckets(), [2, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((sizes.count(), sizes.bytes()), (5, (2 << 20) + 130));
        let twice = Sizes::default();
        twice.add(&sizes);
        twice.add(&sizes);
        assert_eq!(twice.count(), 10);
    }
}
