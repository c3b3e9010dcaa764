//! Schedule tables: which row calls its function when (03 §11.5a, 01 §1.9).
//!
//! The engine only says what changed, and refuses times that are too far away. The writer calls.

use lightcone_schema::TableSchema;
use lightcone_table::Table;
use lightcone_types::bsatn::{Decode, DecodeError, Reader};
use lightcone_types::{AlgebraicType, TableId, TimeDuration, Timestamp};

/// A delay of so many milliseconds is too long (03 §8.4).
const DELAY_MS_MAX: u64 = (1 << 36) - 1;

/// The value of a schedule column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleAt {
    /// Again and again; the sign does not matter.
    Interval(TimeDuration),
    /// Once.
    Time(Timestamp),
}

impl ScheduleAt {
    /// Reads the column's encoding.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn from_bsatn(bytes: &[u8]) -> Result<ScheduleAt, DecodeError> {
        let reader = &mut Reader::new(bytes);
        match reader.read_u8()? {
            0 => TimeDuration::decode(reader).map(ScheduleAt::Interval),
            1 => Timestamp::decode(reader).map(ScheduleAt::Time),
            tag => Err(DecodeError::unknown_tag(tag)),
        }
    }

    /// Whether the first call would be too far away from `now`.
    pub fn is_too_late(self, now: Timestamp) -> bool {
        let delay_us = match self {
            ScheduleAt::Interval(interval) => interval.0.unsigned_abs(),
            ScheduleAt::Time(time) => time.0.saturating_sub(now.0).max(0) as u64,
        };
        delay_us / 1000 >= DELAY_MS_MAX
    }
}

/// A row of a schedule table: the table and its primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleKey {
    pub table: TableId,
    pub id: u64,
}

/// A row of a schedule table that was inserted or changed (`Some`), or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleChange {
    pub key: ScheduleKey,
    pub at: Option<ScheduleAt>,
}

/// Where the schedule lies in the rows of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScheduleColumns {
    key: usize,
    at: usize,
    /// Position of the primary key's index.
    pub index: usize,
}

impl ScheduleColumns {
    /// None for tables without a schedule, or with one that the rules for definitions do not allow (02 §8.7): a catalog
    /// from a disk is not trusted.
    pub fn of(schema: &TableSchema) -> Option<ScheduleColumns> {
        let at = schema.schedule.as_ref()?.at_column;
        let key = schema.primary_key?;
        let is_key = schema.column(key)?.ty == AlgebraicType::U64;
        let is_at = schema.column(at)?.ty.is_schedule_at();
        let mut indexes = schema.indexes.iter();
        let index = indexes.position(|index| index.unique && index.algorithm.columns() == [key])?;
        // Rows of event tables are gone when their transaction ends.
        (is_key && is_at && !schema.is_event).then_some(ScheduleColumns {
            key: usize::from(key.0),
            at: usize::from(at.0),
            index,
        })
    }

    fn key(&self, table: &Table, row: &[u8]) -> ScheduleKey {
        let bytes = table.layout().column(row, self.key);
        ScheduleKey {
            table: table.schema.id,
            id: u64::from_le_bytes(bytes.try_into().expect("the key is a u64")),
        }
    }

    pub fn at(&self, table: &Table, row: &[u8]) -> ScheduleAt {
        ScheduleAt::from_bsatn(table.layout().column(row, self.at))
            .expect("rows were checked before they were stored")
    }

    pub fn came(&self, table: &Table, row: &[u8]) -> ScheduleChange {
        ScheduleChange {
            key: self.key(table, row),
            at: Some(self.at(table, row)),
        }
    }

    pub fn went(&self, table: &Table, row: &[u8]) -> ScheduleChange {
        ScheduleChange {
            key: self.key(table, row),
            at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_delay_is_two_to_the_36_ms() {
        let longest_us = (DELAY_MS_MAX * 1000) as i64;
        let now = Timestamp(1_000_000);
        let interval = |us| ScheduleAt::Interval(TimeDuration(us)).is_too_late(now);
        let time = |us| ScheduleAt::Time(Timestamp(us)).is_too_late(now);
        assert!(!interval(0));
        assert!(!interval(longest_us - 1) && interval(longest_us));
        assert!(!interval(1 - longest_us) && interval(-longest_us));
        assert!(interval(i64::MAX) && interval(i64::MIN));
        assert!(!time(i64::MIN) && !time(0));
        assert!(!time(now.0 + longest_us - 1) && time(now.0 + longest_us));
        assert!(time(i64::MAX));
        let long_ago = Timestamp(i64::MIN);
        assert!(ScheduleAt::Time(Timestamp(i64::MAX)).is_too_late(long_ago));
    }

    #[test]
    fn columns_are_read_with_their_tags() {
        let interval = [0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0];
        assert_eq!(
            ScheduleAt::from_bsatn(&interval),
            Ok(ScheduleAt::Interval(TimeDuration(1_000_000)))
        );
        let time = [1, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            ScheduleAt::from_bsatn(&time),
            Ok(ScheduleAt::Time(Timestamp(1)))
        );
        assert!(ScheduleAt::from_bsatn(&[2, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(ScheduleAt::from_bsatn(&[1, 0]).is_err());
    }
}
