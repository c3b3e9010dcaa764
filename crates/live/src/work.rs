//! What the live queries of clients may take of the writer's time, whatever each transaction allows.

use std::time::{Duration, Instant};

use lightcone_types::Identity;
use rustc_hash::FxHashMap;

/// Rows that each changed row pays for itself: work in proportion to what modules change ends no query.
const ROWS_PER_CHANGE: usize = 64;
/// So many seconds' worth of rows is saved up.
const SECONDS_SAVED_MAX: u64 = 4;
/// When all is spent and the dearest query was looked for, there is a part of a second's worth again: no other ends at once.
const PART_AFTER_ENDING: u64 = 4;
/// A shape that has looked at less than this part of a second's worth lately does not end.
const DEAR_PART: u64 = 16;

/// Rows that live queries have looked at, less what has been forgiven with time.
#[derive(Default)]
pub struct WorkBudget {
    rows: u64,
    forgiven_at: Option<Instant>,
    halved_at: Option<Instant>,
}

impl WorkBudget {
    /// Whether a transaction has looked at more rows than its changes pay for.
    #[inline]
    pub fn counts(rows: usize, changes: usize) -> bool {
        rows > changes.saturating_mul(ROWS_PER_CHANGE)
    }

    /// A transaction that [counts](Self::counts) has looked at rows. False: they are more than `rows_per_second` lets them.
    pub fn spend(
        &mut self,
        rows: usize,
        changes: usize,
        rows_per_second: u64,
        now: Instant,
    ) -> bool {
        let since = self.forgiven_at.replace(now).unwrap_or(now);
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let forgiven = (seconds * rows_per_second as f64) as u64;
        let rows = rows.saturating_sub(changes.saturating_mul(ROWS_PER_CHANGE));
        self.rows = self
            .rows
            .saturating_sub(forgiven)
            .saturating_add(rows as u64);
        self.rows <= rows_per_second.saturating_mul(SECONDS_SAVED_MAX)
    }

    /// How often what shapes have looked at lately is to be halved by now: once for each second.
    pub fn halvings(&mut self, now: Instant) -> u32 {
        let since = *self.halved_at.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs();
        self.halved_at = Some(since + Duration::from_secs(seconds));
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// The rows that a shape must have looked at lately to end because they are too many.
    pub fn dear_rows(rows_per_second: u64) -> u64 {
        rows_per_second / DEAR_PART
    }

    /// The dearest shape has been looked for.
    pub fn forgive(&mut self, rows_per_second: u64) {
        let seconds = rows_per_second.saturating_mul(SECONDS_SAVED_MAX);
        self.rows = seconds.saturating_sub(rows_per_second / PART_AFTER_ENDING);
    }
}

/// What finding the first rows of subscriptions has taken of the writer's time, by client: rows that were looked at, less what has been
/// forgiven with time.
#[derive(Default)]
pub struct FirstRows {
    clients: FxHashMap<Identity, (u64, Instant)>,
    /// Clients that are forgiven all are forgotten when there are so many.
    sweep_at: usize,
}

impl FirstRows {
    /// Whether a client may have more found.
    pub fn may_begin(&self, client: &Identity, rows_per_second: u64, now: Instant) -> bool {
        let rows_max = rows_per_second.saturating_mul(SECONDS_SAVED_MAX);
        let known = self.clients.get(client);
        known.is_none_or(|known| left_of(*known, rows_per_second, now) <= rows_max)
    }

    pub fn spend(&mut self, client: Identity, rows: u64, rows_per_second: u64, now: Instant) {
        let known = self.clients.get(&client);
        let before = known.map_or(0, |known| left_of(*known, rows_per_second, now));
        if self.clients.len() >= self.sweep_at {
            let is_known = |_: &Identity, known: &mut (u64, Instant)| {
                left_of(*known, rows_per_second, now) > 0
            };
            self.clients.retain(is_known);
            self.sweep_at = 2 * self.clients.len() + 64;
        }
        self.clients.insert(client, (before + rows, now));
    }
}

fn left_of((rows, since): (u64, Instant), rows_per_second: u64, now: Instant) -> u64 {
    let seconds = now.saturating_duration_since(since).as_secs_f64();
    rows.saturating_sub((seconds * rows_per_second as f64) as u64)
}

/// Rows that were looked at lately: all of the last second, half of those of the second before, and so on.
#[derive(Default)]
pub(crate) struct RowsLately(u64);

impl RowsLately {
    pub fn add(&mut self, rows: usize) {
        self.0 += rows as u64;
    }

    pub fn halve(&mut self, times: u32) {
        self.0 = self.0.checked_shr(times).unwrap_or(0);
    }

    pub fn rows(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    #[test]
    fn rows_come_with_time_and_with_changes() {
        let start = Instant::now();
        let mut budget = WorkBudget::default();
        assert!(!WorkBudget::counts(64, 1) && WorkBudget::counts(65, 1));
        assert!(budget.spend(4_000_000 + 64, 1, RATE, start), "saved up");
        assert!(!budget.spend(65, 1, RATE, start));
        let later = start + Duration::from_millis(500);
        assert!(budget.spend(400_000, 1, RATE, later));
        assert!(!budget.spend(400_000, 1, RATE, later));
        budget.forgive(RATE);
        assert!(budget.spend(250_000, 1, RATE, later));
        let idle = later + Duration::from_secs(3_600);
        assert!(budget.spend(4_000_000, 1, RATE, idle));
        assert!(!budget.spend(1_000, 1, RATE, idle), "no more is saved up");
    }

    #[test]
    fn a_client_has_rows_found_until_he_has_taken_too_many() {
        let (start, mut first) = (Instant::now(), FirstRows::default());
        let client = |number: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            Identity::from_le_bytes(bytes)
        };
        first.spend(client(1), 4_000_000, RATE, start);
        assert!(first.may_begin(&client(1), RATE, start));
        first.spend(client(1), 1_000_000, RATE, start);
        assert!(!first.may_begin(&client(1), RATE, start));
        assert!(first.may_begin(&client(2), RATE, start), "others may");
        let later = start + Duration::from_secs(1);
        assert!(first.may_begin(&client(1), RATE, later));
        (0..1000).for_each(|number| first.spend(client(number), 1, RATE, later));
        let idle = later + Duration::from_secs(10);
        (1000..2000).for_each(|number| first.spend(client(number), 1, RATE, idle));
        assert!(first.clients.len() <= 1000, "they are forgotten");
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        let start = Instant::now();
        let (mut budget, mut lately) = (WorkBudget::default(), RowsLately::default());
        lately.add(1_000);
        assert_eq!(budget.halvings(start), 0);
        assert_eq!(budget.halvings(start + Duration::from_millis(900)), 0);
        lately.halve(budget.halvings(start + Duration::from_millis(2_100)));
        assert_eq!(lately.rows(), 250);
        lately.halve(budget.halvings(start + Duration::from_secs(1_000)));
        assert_eq!(lately.rows(), 0);
    }
}
