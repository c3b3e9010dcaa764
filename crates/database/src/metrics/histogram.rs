//! Times in buckets, which one thread counts and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets in nanoseconds, each with the bound in it; one more bucket has what is longer.
pub const BOUNDS_NS: [u64; 23] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// The first bucket that a number of so many bits can be in.
const FIRST_BUCKETS: [u8; 65] = first_buckets();

const fn first_buckets() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let least = 1_u64 << (bits - 1);
        let mut bucket = 0;
        while bucket < BOUNDS_NS.len() && BOUNDS_NS[bucket] < least {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
}

fn bucket_of(nanos: u64) -> usize {
    let bits = (64 - nanos.leading_zeros()) as usize;
    let mut bucket = usize::from(FIRST_BUCKETS[bits]);
    while bucket < BOUNDS_NS.len() && nanos > BOUNDS_NS[bucket] {
        bucket += 1;
    }
    bucket
}

/// Times in fixed buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Histogram {
    /// Counts a time. For one thread alone: what two count at once may be lost.
    #[inline]
    pub fn note(&self, time: Duration) {
        self.note_many(nanos_of(time), 1);
    }

    /// The same of several that took so long together.
    #[inline]
    pub(super) fn note_many(&self, total_ns: u64, times: u32) {
        let each_ns = total_ns / u64::from(times);
        let bucket = &self.buckets[bucket_of(each_ns)];
        bucket.store(bucket.load(Relaxed) + u64::from(times), Relaxed);
        let sum = self.sum_ns.load(Relaxed).wrapping_add(total_ns);
        self.sum_ns.store(sum, Relaxed);
        if each_ns > self.longest_ns.load(Relaxed) {
            self.longest_ns.store(each_ns, Relaxed);
        }
    }

    /// The same for any number of threads.
    pub fn note_shared(&self, time: Duration) {
        let nanos = nanos_of(time);
        self.buckets[bucket_of(nanos)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(nanos, Relaxed);
        self.longest_ns.fetch_max(nanos, Relaxed);
    }

    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed)),
            sum_ns: self.sum_ns.load(Relaxed),
            longest_ns: self.longest_ns.load(Relaxed),
        }
    }
}

/// Of 584 years and more, the most there is.
#[inline]
pub(super) fn nanos_of(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(time.subsec_nanos()))
}

/// What a [`Histogram`] had counted at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many times are in each bucket alone, not in those before it.
    pub buckets: [u64; BUCKETS],
    pub sum_ns: u64,
    pub longest_ns: u64,
}

impl HistogramSnapshot {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub fn add(&mut self, other: &HistogramSnapshot) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_it_does_not_pass() {
        for nanos in BOUNDS_NS
            .iter()
            .flat_map(|bound| [bound - 1, *bound, bound + 1])
            .chain([0, 1, u64::MAX])
        {
            let expected = BOUNDS_NS.iter().position(|bound| nanos <= *bound);
            assert_eq!(bucket_of(nanos), expected.unwrap_or(BUCKETS - 1), "{nanos}");
        }
    }

    #[test]
    fn times_are_counted_and_added() {
        let histogram = Histogram::default();
        histogram.note(Duration::from_micros(1));
        histogram.note_shared(Duration::from_millis(3));
        histogram.note(Duration::MAX);
        let mut all = histogram.snapshot();
        assert_eq!(all.count(), 3);
        assert_eq!(
            (all.buckets[0], all.buckets[11], all.buckets[23]),
            (1, 1, 1)
        );
        assert_eq!(all.longest_ns, u64::MAX);
        let other = all.clone();
        all.add(&other);
        assert_eq!((all.count(), all.buckets[11]), (6, 2));
    }

    #[test]
    fn several_times_have_their_mean() {
        let histogram = Histogram::default();
        histogram.note_many(8_004, 8);
        let all = histogram.snapshot();
        assert_eq!((all.count(), all.buckets[0], all.sum_ns), (8, 8, 8_004));
        assert_eq!(all.longest_ns, 1_000);
    }
}
