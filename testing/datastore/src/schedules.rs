//! Rows that call functions, as a test that lets time pass sees them.

use lightcone_engine::{ScheduleAt, ScheduleKey};

use crate::{Result, TestDatastore};

/// When a row calls its function, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduledTime {
    /// Once, at this time.
    At(i64),
    /// Again and again.
    Every(i64),
}

/// A row of a table that calls a function.
#[derive(Clone, Debug)]
pub struct ScheduledRow {
    /// The table's name in the database.
    pub table: String,
    pub planned: ScheduledTime,
    key: ScheduleKey,
}

impl ScheduledRow {
    /// Tells rows apart.
    pub fn key(&self) -> (u32, u64) {
        (self.key.table.0, self.key.id)
    }
}

impl TestDatastore {
    /// All of them.
    ///
    /// # Errors
    /// This thread has an open transaction.
    pub fn scheduled_rows(&self) -> Result<Vec<ScheduledRow>> {
        self.with(|datastore| {
            let found = datastore.schedules().into_iter().filter_map(|change| {
                let planned = match change.at? {
                    ScheduleAt::Time(time) => ScheduledTime::At(time.0),
                    ScheduleAt::Interval(each) => ScheduledTime::Every(each.saturating_abs().0),
                };
                Some(ScheduledRow {
                    table: datastore.schema(change.key.table)?.name.clone(),
                    planned,
                    key: change.key,
                })
            });
            Ok(found.collect())
        })
    }

    /// The row in BSATN, if it is still there.
    ///
    /// # Errors
    /// This thread has an open transaction.
    pub fn scheduled_row(&self, row: &ScheduledRow) -> Result<Option<Vec<u8>>> {
        self.with(|datastore| Ok(datastore.schedule_row(row.key).map(|(row, _)| row.to_vec())))
    }

    /// # Errors
    /// This thread has an open transaction.
    pub fn delete_scheduled_row(&self, row: &ScheduledRow) -> Result<()> {
        self.with(|datastore| {
            datastore.delete_schedule_row(row.key)?;
            Ok(())
        })
    }
}
