//! What a migration may take while it runs, and how it fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_table::Tick;

use crate::error::{DatastoreError, SchemaError};

/// Why a database cannot be migrated as planned.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(transparent)]
    Datastore(#[from] DatastoreError),
    #[error("Cannot remove table `{table}`: table contains data. Clear the table's rows (e.g. via a reducer) before removing it from your schema. It has {rows} [LC0225]", rows = count(*rows))]
    NotEmpty { table: String, rows: u64 },
    #[error("Cannot add unique {what} on {reason}. Change or delete rows until each has a key of its own, and publish again [LC0226]")]
    NotUnique {
        what: String,
        reason: Box<SchemaError>,
    },
    #[error(
        "Precheck failed: added sequence {sequence} already has values in range: {detail} [LC0227]"
    )]
    SequenceInRange { sequence: String, detail: String },
    #[error("the migration took longer than limits.migration-time-max, and was taken back; raise it, or publish when there are fewer rows [LC0228]")]
    TooLong,
    #[error("the migration would copy or index about {bytes} bytes in `{table}`, and limits.migration-bytes-max leaves {left}; raise it, or publish when there are fewer rows [LC0229]")]
    TooLarge {
        table: String,
        bytes: u64,
        left: u64,
    },
    /// Only a copy that it is tried on is at fault.
    #[error("the migration was not tried: the copy of the data that it is tried on would take about {bytes} bytes more for `{table}`, and limits.migration-bytes-max leaves {left} beside it; raise it to try, or publish: that needs no copy [LC0229]")]
    CopyTooLarge {
        table: String,
        bytes: u64,
        left: u64,
    },
    #[error("the counter of column `{column}` of table `{table}` is at {value}, which its new type cannot hold; keep a type that can, or give the column another name, so that it counts anew [LC0242]")]
    CounterTooHigh {
        table: String,
        column: String,
        value: i128,
    },
    #[error("the migration function has not read `{old}`, and {rows} would be gone with it: move them to `{table}`, or ask for their number (count) if they are to go; of a change that an earlier version has made, delete `{old}` [LC0243]", rows = count(*rows))]
    NotRead {
        table: String,
        old: String,
        rows: u64,
    },
    #[error("the stored tables are not those of the running program: {0} [LC0230]")]
    NotAsDefined(String),
    #[error(transparent)]
    Schema(SchemaError),
    /// A plan that does not fit its definitions.
    #[error("the plan does not fit the database: {0}")]
    Plan(String),
}

fn count(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

impl From<SchemaError> for MigrationError {
    fn from(error: SchemaError) -> MigrationError {
        match error {
            SchemaError::Stopped => MigrationError::TooLong,
            error => MigrationError::Schema(error),
        }
    }
}

/// What a migration may take, and what it has taken.
pub struct MigrationWork<'w> {
    /// Called now and then: false ends the migration.
    may_go_on: &'w mut dyn FnMut() -> bool,
    bytes_left: u64,
    /// What the copy took that the migration is tried on.
    bytes_copied: u64,
    rows: u64,
    /// Counts them for others.
    counted: Option<Arc<AtomicU64>>,
}

impl<'w> MigrationWork<'w> {
    /// Work that is not to take more than about `bytes_max` bytes of memory while it runs, and ends when `may_go_on` says no.
    pub fn new(bytes_max: u64, may_go_on: &'w mut dyn FnMut() -> bool) -> MigrationWork<'w> {
        MigrationWork {
            may_go_on,
            bytes_left: bytes_max,
            bytes_copied: 0,
            rows: 0,
            counted: None,
        }
    }

    /// Adds the rows to a counter, while the work goes on.
    pub fn count(&mut self, counter: Arc<AtomicU64>) {
        self.counted = Some(counter);
    }

    /// Rows that were looked at or copied since the last call of this.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }

    /// Calls `work` with what counts its rows.
    pub(super) fn ticking<T>(&mut self, work: impl FnOnce(Tick<'_>) -> T) -> T {
        work(&mut |rows| {
            self.rows += rows;
            if let Some(counted) = &self.counted {
                counted.fetch_add(rows, Ordering::Relaxed);
            }
            (self.may_go_on)()
        })
    }

    /// Before each step, however little it does.
    pub(super) fn ask(&mut self) -> Done {
        match (self.may_go_on)() {
            true => Ok(()),
            false => Err(MigrationError::TooLong),
        }
    }

    pub(super) fn take_bytes(&mut self, table: &str, bytes: u64) -> Result<(), MigrationError> {
        let (left, table) = (self.bytes_left, || table.to_owned());
        match left.checked_sub(bytes) {
            Some(less) => self.bytes_left = less,
            // The database itself would have enough.
            None if bytes <= left.saturating_add(self.bytes_copied) => {
                let table = table();
                return Err(MigrationError::CopyTooLarge { table, bytes, left });
            }
            None => {
                let (table, left) = (table(), left.saturating_add(self.bytes_copied));
                return Err(MigrationError::TooLarge { table, bytes, left });
            }
        }
        Ok(())
    }

    pub(super) fn take_copy_bytes(&mut self, table: &str, bytes: u64) -> Done {
        let left = self.bytes_left;
        self.bytes_left = left
            .checked_sub(bytes)
            .ok_or_else(|| MigrationError::CopyTooLarge {
                table: table.to_owned(),
                bytes,
                left,
            })?;
        self.bytes_copied += bytes;
        Ok(())
    }
}

/// Memory of an index for each row, or of a set of rows where no index is unique, about.
pub(super) const INDEX_BYTES_PER_ROW: u64 = 32;

pub(crate) type Done = Result<(), MigrationError>;
