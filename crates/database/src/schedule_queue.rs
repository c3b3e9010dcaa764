//! Which scheduled call is due when: an ordered set that knows no clock, no tables and no module.
//!
//! Holds one entry per row of a schedule table, so its size is bounded by theirs.

use std::collections::BTreeSet;

use lightcone_engine::{ScheduleAt, ScheduleKey};
use lightcone_types::{TableId, TimeDuration, Timestamp};
use rustc_hash::FxHashMap;

/// Shorter intervals, among them 0, count as this long: one row can not keep the writer busy.
pub(crate) const INTERVAL_US_MIN: i64 = 1000;

/// The calls that are to come. Times are microseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct ScheduleQueue {
    by_time: BTreeSet<(i64, ScheduleKey)>,
    due_us: FxHashMap<ScheduleKey, i64>,
}

impl ScheduleQueue {
    /// A row came, or changed: what was planned for it is forgotten (01 §1.9).
    pub fn set(&mut self, key: ScheduleKey, at: ScheduleAt, now: Timestamp) {
        let due_us = match at {
            // What is late already waits behind what is due: rows with times long past would keep all others from running.
            ScheduleAt::Time(time) => time.0.max(now.0),
            ScheduleAt::Interval(interval) => now.0.saturating_add(step_us(interval)),
        };
        self.put(key, due_us);
    }

    /// A row of an interval was called, and is to be called again: at the first point after `now` on the grid from `last`.
    pub fn repeat(
        &mut self,
        key: ScheduleKey,
        last: Timestamp,
        interval: TimeDuration,
        now: Timestamp,
    ) {
        self.put(key, next_on_grid(last.0, step_us(interval), now.0));
    }

    /// The row is gone.
    pub fn remove(&mut self, key: ScheduleKey) {
        if let Some(due_us) = self.due_us.remove(&key) {
            self.by_time.remove(&(due_us, key));
        }
    }

    /// The rows of a table have moved to another one, or call nothing any more.
    pub fn move_table(&mut self, from: TableId, to: Option<TableId>) {
        let keys: Vec<ScheduleKey> = self.due_us.keys().copied().collect();
        for key in keys.into_iter().filter(|key| key.table == from) {
            let Some(due_us) = self.due_us.get(&key).copied() else {
                continue;
            };
            self.remove(key);
            if let Some(table) = to {
                self.put(ScheduleKey { table, ..key }, due_us);
            }
        }
    }

    /// Takes out the entry that has been due for longest, with the time for which it was intended.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(ScheduleKey, Timestamp)> {
        let &(due_us, key) = self.by_time.first()?;
        if due_us > now.0 {
            return None;
        }
        self.remove(key);
        Some((key, Timestamp(due_us)))
    }

    pub fn contains(&self, key: ScheduleKey) -> bool {
        self.due_us.contains_key(&key)
    }

    /// When the next entry is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.by_time.first().map(|&(due_us, _)| Timestamp(due_us))
    }

    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    pub fn clear(&mut self) {
        *self = ScheduleQueue::default();
    }

    fn put(&mut self, key: ScheduleKey, due_us: i64) {
        if let Some(before) = self.due_us.insert(key, due_us) {
            self.by_time.remove(&(before, key));
        }
        self.by_time.insert((due_us, key));
    }
}

fn step_us(interval: TimeDuration) -> i64 {
    interval.saturating_abs().0.max(INTERVAL_US_MIN)
}

/// The first `last + n * step` after `now` with n > 0; the end of time instead of a number that does not fit.
fn next_on_grid(last_us: i64, step_us: i64, now_us: i64) -> i64 {
    let (last, step) = (i128::from(last_us), i128::from(step_us));
    let passed = (i128::from(now_us) - last).max(0) / step;
    i64::try_from(last + (passed + 1) * step).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(id: u64) -> ScheduleKey {
        ScheduleKey {
            table: TableId(4096 + (id % 2) as u32),
            id,
        }
    }

    fn interval(us: i64) -> ScheduleAt {
        ScheduleAt::Interval(TimeDuration(us))
    }

    fn time(us: i64) -> ScheduleAt {
        ScheduleAt::Time(Timestamp(us))
    }

    /// Everything that is due at `now`, in order.
    fn pop_all(queue: &mut ScheduleQueue, now: i64) -> Vec<(u64, i64)> {
        std::iter::from_fn(|| queue.pop_due(Timestamp(now)))
            .map(|(key, intended)| (key.id, intended.0))
            .collect()
    }

    #[test]
    fn intervals_begin_one_step_after_they_came_and_skip_what_was_missed() {
        let mut queue = ScheduleQueue::default();
        queue.set(key(1), interval(-10_000), Timestamp(5));
        assert_eq!(pop_all(&mut queue, 10_004), []);
        assert_eq!(pop_all(&mut queue, 10_005), [(1, 10_005)]);
        let again = |queue: &mut ScheduleQueue, now| {
            queue.repeat(
                key(1),
                Timestamp(10_005),
                TimeDuration(10_000),
                Timestamp(now),
            );
            queue.next_due().map(|due| due.0)
        };
        assert_eq!(again(&mut queue, 10_005), Some(20_005));
        assert_eq!(again(&mut queue, 20_004), Some(20_005));
        assert_eq!(again(&mut queue, 20_005), Some(30_005));
        assert_eq!(again(&mut queue, 99_999), Some(100_005));
        // The clock went back.
        assert_eq!(again(&mut queue, -50_000), Some(20_005));
    }

    #[test]
    fn no_time_wraps_around() {
        let mut queue = ScheduleQueue::default();
        for extreme in [i64::MIN, i64::MIN + 1, i64::MAX] {
            queue.set(key(1), interval(extreme), Timestamp(7));
            assert_eq!(queue.next_due(), Some(Timestamp(i64::MAX)));
            queue.repeat(key(1), Timestamp(7), TimeDuration(extreme), Timestamp(8));
            assert_eq!(queue.next_due(), Some(Timestamp(i64::MAX)));
        }
        queue.repeat(
            key(1),
            Timestamp(i64::MIN),
            TimeDuration(0),
            Timestamp(i64::MAX),
        );
        assert_eq!(queue.next_due(), Some(Timestamp(i64::MAX)));
        queue.set(key(1), time(i64::MIN), Timestamp(7));
        assert_eq!(queue.next_due(), Some(Timestamp(7)));
    }

    #[test]
    fn what_is_planned_moves_with_its_table() {
        let mut queue = ScheduleQueue::default();
        for id in 1..=4 {
            queue.set(key(id), time(100 * id as i64), Timestamp(0));
        }
        queue.move_table(TableId(4097), Some(TableId(5000)));
        queue.move_table(TableId(4096), None);
        let moved = |id| ScheduleKey {
            table: TableId(5000),
            id,
        };
        assert_eq!(
            queue.pop_due(Timestamp(1000)),
            Some((moved(1), Timestamp(100)))
        );
        assert_eq!(
            queue.pop_due(Timestamp(1000)),
            Some((moved(3), Timestamp(300)))
        );
        assert!(queue.is_empty());
    }

    #[test]
    fn what_is_late_does_not_go_before_what_is_due() {
        let mut queue = ScheduleQueue::default();
        queue.set(key(1), interval(0), Timestamp(0));
        for now in 0..3000 {
            queue.set(key(2), time(0), Timestamp(now));
            let due = pop_all(&mut queue, now);
            assert!(due.contains(&(2, now)));
            if now >= INTERVAL_US_MIN {
                assert!(due.contains(&(1, INTERVAL_US_MIN)));
                return;
            }
        }
        panic!("the interval never ran");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Set(u64, ScheduleAt),
        Remove(u64),
        /// Time passes; all that is due runs, and intervals are repeated.
        Run(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = prop_oneof![
            (-5000..5000_i64).prop_map(interval),
            (-5000..50_000_i64).prop_map(time),
            any::<i64>().prop_map(interval),
            any::<i64>().prop_map(time),
        ];
        let step = prop_oneof![
            3 => (0..8_u64, at).prop_map(|(id, at)| Step::Set(id, at)),
            1 => (0..8_u64).prop_map(Step::Remove),
            2 => (0..20_000_i64).prop_map(Step::Run),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a map from rows to times that is searched from the start each time.
        #[test]
        fn runs_what_a_simple_model_runs(steps in steps()) {
            let mut queue = ScheduleQueue::default();
            let mut rows: BTreeMap<u64, (ScheduleAt, i64)> = BTreeMap::new();
            let mut now = 0_i64;
            for step in steps {
                match step {
                    Step::Set(id, at) => {
                        queue.set(key(id), at, Timestamp(now));
                        let due = match at {
                            ScheduleAt::Time(time) => time.0.max(now),
                            ScheduleAt::Interval(each) => {
                                let step = each.0.unsigned_abs().max(1000);
                                (i128::from(now) + i128::from(step)).min(i128::from(i64::MAX)) as i64
                            }
                        };
                        rows.insert(id, (at, due));
                    }
                    Step::Remove(id) => {
                        queue.remove(key(id));
                        rows.remove(&id);
                    }
                    Step::Run(passed) => {
                        now += passed;
                        let mut expected: Vec<_> = rows.iter().filter(|(_, row)| row.1 <= now)
                            .map(|(&id, &(_, due))| (due, key(id))).collect();
                        expected.sort_unstable();
                        for (due, key) in expected {
                            prop_assert_eq!(queue.pop_due(Timestamp(now)), Some((key, Timestamp(due))));
                            prop_assert!(!queue.contains(key));
                            let (at, mut next) = rows.remove(&key.id).expect("due rows are there");
                            if let ScheduleAt::Interval(each) = at {
                                queue.repeat(key, Timestamp(due), each, Timestamp(now));
                                let step = i128::from(each.0.unsigned_abs().max(1000));
                                let mut point = i128::from(next);
                                while point <= i128::from(now) {
                                    point += step;
                                }
                                next = point.min(i128::from(i64::MAX)) as i64;
                                rows.insert(key.id, (at, next));
                            }
                        }
                        prop_assert_eq!(queue.pop_due(Timestamp(now)), None);
                    }
                }
                prop_assert_eq!(queue.is_empty(), rows.is_empty());
                prop_assert_eq!(queue.by_time.len(), rows.len());
                prop_assert_eq!(queue.due_us.len(), rows.len());
                let next = rows.values().map(|row| row.1).min();
                prop_assert_eq!(queue.next_due().map(|due| due.0), next);
            }
        }
    }
}
