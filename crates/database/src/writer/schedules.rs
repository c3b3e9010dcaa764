//! Which rows call functions, when, and which calls are under way.

use lightcone_engine::ScheduleKey;
use lightcone_types::{TableId, Timestamp};
use rustc_hash::FxHashMap;

use crate::schedule_queue::ScheduleQueue;

#[derive(Default)]
pub(super) struct Schedules {
    pub queue: ScheduleQueue,
    pub under_way: UnderWay,
    /// The latest time at which the clock was read.
    pub latest: Option<Timestamp>,
}

/// Rows whose procedure is under way: it runs once at a time. Bounded as the procedures of the database are.
#[derive(Default)]
pub(super) struct UnderWay {
    /// With the number of the call, and the time for which it was due again meanwhile.
    pub rows: FxHashMap<ScheduleKey, (u64, Option<Timestamp>)>,
    /// Where the row of a call is now.
    pub keys: FxHashMap<u64, ScheduleKey>,
    /// Counts calls.
    pub last: u64,
}

impl UnderWay {
    /// A call of the row begins. Returns its number.
    pub fn begin(&mut self, key: ScheduleKey) -> u64 {
        self.last += 1;
        self.rows.insert(key, (self.last, None));
        self.keys.insert(self.last, key);
        self.last
    }

    /// The row is due. True if its call is under way: it is called again when that has ended.
    pub fn is_due_again(&mut self, key: ScheduleKey, intended: Timestamp) -> bool {
        let row = self.rows.get_mut(&key);
        row.map(|(_, again)| *again = Some(intended)).is_some()
    }

    /// Rows have moved to another table.
    pub fn move_table(&mut self, from: TableId, to: TableId) {
        for key in self.keys.values_mut().filter(|key| key.table == from) {
            if let Some(row) = self.rows.remove(key) {
                key.table = to;
                self.rows.insert(*key, row);
            }
        }
    }

    /// A call has ended: its row, and when it was due again.
    pub fn end(&mut self, number: u64) -> Option<(ScheduleKey, Option<Timestamp>)> {
        let key = self.keys.remove(&number)?;
        let (_, again) = self.rows.remove(&key)?;
        Some((key, again))
    }
}
