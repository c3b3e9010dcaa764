//! What a worker counts, and how counts of several add up.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Distinct error texts that are kept apart; further ones are counted together.
const ERROR_KINDS_MAX: usize = 20;
const OTHER_ERRORS: &str = "(other errors)";

/// Largest latency that the histogram tells apart: 10,000 s, in microseconds.
const LATENCY_US_MAX: u64 = 10_000_000_000;

/// Counts of failures by their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounts(pub BTreeMap<String, u64>);

impl ErrorCounts {
    /// Counts `count` failures with this text.
    pub fn add(&mut self, text: &str, count: u64) {
        if let Some(sum) = self.0.get_mut(text) {
            *sum += count;
        } else if self.0.len() < ERROR_KINDS_MAX {
            self.0.insert(text.to_owned(), count);
        } else {
            *self.0.entry(OTHER_ERRORS.to_owned()).or_default() += count;
        }
    }

    /// Counts what `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        for (text, &count) in &other.0 {
            self.add(text, count);
        }
    }

    /// Failures of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Latencies in microseconds.
#[derive(Clone, Debug)]
pub struct Latencies(pub Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3);
        Self(histogram.expect("the bounds of the histogram are valid"))
    }
}

/// What happened in a span of time.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Latencies of successful calls, and the ages of those that were without an answer, or due and
    /// not sent, when the window ended; in microseconds. Without the latter, a server that stalls
    /// would hide its slowest calls.
    pub latency_us: Latencies,
    /// Successful calls.
    succeeded: u64,
    /// Calls without an answer when the window ended.
    pub unfinished: u64,
    /// Successful calls that moved nothing, e.g. for lack of funds.
    pub noops: u64,
    /// Attempts that gave way to other transactions and were repeated.
    pub retries: u64,
    /// Calls the application refused.
    pub refused: ErrorCounts,
    /// Calls that failed otherwise.
    pub failed: ErrorCounts,
    /// Connections that ended before the run did.
    pub disconnects: ErrorCounts,
    /// Calls whose answer never came.
    pub unanswered: u64,
    /// Open loop: calls that were due but found all places taken until the end.
    pub unsent: u64,
    /// Pairs that were an account and itself, and so were not sent.
    pub skipped: u64,
    /// Updates that subscribers received.
    pub updates: u64,
    /// Rows in these updates.
    pub update_rows: u64,
}

impl Interval {
    /// Counts a successful call.
    #[inline]
    pub fn succeed(&mut self, latency_ns: u64) {
        self.succeeded += 1;
        self.record(latency_ns);
    }

    /// Counts a call that has no answer at the end of the window.
    pub fn leave_unfinished(&mut self, age_ns: u64) {
        self.unfinished += 1;
        self.record(age_ns);
    }

    /// Counts a call that was due and not sent before the end of the window.
    pub fn leave_unsent(&mut self, age_ns: u64) {
        self.unsent += 1;
        self.record(age_ns);
    }

    #[inline]
    fn record(&mut self, latency_ns: u64) {
        self.latency_us
            .0
            .saturating_record(((latency_ns + 500) / 1000).max(1));
    }

    /// Successful calls.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// Adds what another worker, or the next interval, has counted.
    pub fn add(&mut self, other: &Self) {
        self.latency_us
            .0
            .add(&other.latency_us.0)
            .expect("all histograms have the same bounds");
        self.succeeded += other.succeeded;
        self.unfinished += other.unfinished;
        self.noops += other.noops;
        self.retries += other.retries;
        self.refused.merge(&other.refused);
        self.failed.merge(&other.failed);
        self.disconnects.merge(&other.disconnects);
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.skipped += other.skipped;
        self.updates += other.updates;
        self.update_rows += other.update_rows;
    }

    /// A latency in milliseconds below which this share of the calls stayed; 0 without calls.
    pub fn percentile_ms(&self, percentile: f64) -> f64 {
        if self.latency_us.0.is_empty() {
            return 0.0;
        }
        self.latency_us.0.value_at_quantile(percentile / 100.0) as f64 / 1000.0
    }

    /// The longest latency in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.latency_us.0.max() as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_highest_equivalent_values() {
        for (recorded, expected) in [
            (1, 1),
            (999, 999),
            (2047, 2047),
            (2048, 2049),
            (7390, 7391),
            (12_345, 12_351),
            (1_234_567, 1_234_943),
        ] {
            let mut interval = Interval::default();
            interval.succeed(recorded * 1000);
            assert_eq!(interval.percentile_ms(50.0), expected as f64 / 1000.0);
        }
        let mut interval = Interval::default();
        for value in 1..=10_000 {
            interval.succeed(value * 1000);
        }
        let percentiles = [50.0, 95.0, 99.0, 99.9].map(|p| interval.percentile_ms(p));
        assert_eq!(percentiles, [5.003, 9.503, 9.903, 9.991]);
        assert_eq!(Interval::default().percentile_ms(99.0), 0.0);
    }

    #[test]
    fn what_did_not_end_is_in_the_latencies_and_no_success() {
        let mut interval = Interval::default();
        interval.succeed(1_000_000);
        interval.leave_unfinished(2_000_000_000);
        interval.leave_unsent(3_000_000_000);
        assert_eq!(interval.succeeded(), 1);
        assert_eq!((interval.unfinished, interval.unsent), (1, 1));
        assert!(interval.max_ms() >= 3000.0);
        let mut sum = Interval::default();
        sum.add(&interval);
        sum.add(&interval);
        assert_eq!((sum.succeeded(), sum.unfinished, sum.unsent), (2, 2, 2));
        assert!(sum.percentile_ms(50.0) >= 2000.0);
    }

    #[test]
    fn error_kinds_are_bounded() {
        let mut counts = ErrorCounts::default();
        for kind in 0..100 {
            counts.add(&format!("kind {kind}"), 1);
        }
        assert_eq!(counts.0.len(), ERROR_KINDS_MAX + 1);
        assert_eq!(counts.0[OTHER_ERRORS], 80);
        assert_eq!(counts.total(), 100);
    }
}
