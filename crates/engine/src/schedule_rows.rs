//! Rows of schedule tables: all that wait for their calls, one by its key, and the end of one.

use crate::datastore::Datastore;
use crate::error::Result;
use crate::schedule::{ScheduleAt, ScheduleChange, ScheduleKey};

impl Datastore {
    /// All rows of schedule tables, as if each had just been inserted.
    pub fn schedules(&self) -> Vec<ScheduleChange> {
        let mut found = Vec::new();
        for state in self.states() {
            if let Some(columns) = &state.schedule {
                let table = &state.table;
                let rows = table.rows();
                rows.for_each(|_, row| found.push(columns.came(table, row)));
            }
        }
        found
    }

    /// The row that a schedule belongs to, if it is still there, and when it says.
    pub fn schedule_row(&self, key: ScheduleKey) -> Option<(&[u8], ScheduleAt)> {
        let state = self.state(key.table).ok()?;
        let columns = state.schedule.as_ref()?;
        let table = &state.table;
        let index = &table.indexes()[columns.index];
        let found = index.find_point(table.rows(), table.layout(), &key.id.to_le_bytes());
        let row = table.row(found.ok()??);
        Some((row, columns.at(table, row)))
    }

    /// Deletes the row of a schedule in the open transaction. False if it is gone.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn delete_schedule_row(&mut self, key: ScheduleKey) -> Result<bool> {
        let state = self.state(key.table)?;
        let Some(columns) = state.schedule else {
            return Ok(false);
        };
        let index = state.table.schema.indexes[columns.index].id;
        let deleted = self.delete_by_index_point(index, &key.id.to_le_bytes())?;
        Ok(deleted > 0)
    }
}
