//! The steps of a migration (02 §14.5): each changes rows of the catalog, in the open transaction, and has the tables follow.
//!
//! A step that fails leaves the transaction good for a rollback only, which takes back all of them.

mod check;
mod columns;
mod copy;
mod old_names;
mod parts;
mod set_aside;
mod tables;
mod views;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_schema::{ModuleDef, Step, TableDef, TableSchema};
use lightcone_table::Tick;
use lightcone_types::{ColId, Encode, TableId};

use crate::datastore::Datastore;
use crate::error::{DatastoreError, SchemaError};

pub(crate) use old_names::{OldNames, ABSENT_OLD_INDEX, ABSENT_OLD_TABLE};

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
    /// Asked now and then: false ends the migration.
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

    /// Rows that were looked at or copied since this was asked the last time.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }

    /// Calls `work` with what counts its rows.
    fn ticking<T>(&mut self, work: impl FnOnce(Tick<'_>) -> T) -> T {
        work(&mut |rows| {
            self.rows += rows;
            if let Some(counted) = &self.counted {
                counted.fetch_add(rows, Ordering::Relaxed);
            }
            (self.may_go_on)()
        })
    }

    /// Before each step, however little it does.
    fn ask(&mut self) -> Done {
        match (self.may_go_on)() {
            true => Ok(()),
            false => Err(MigrationError::TooLong),
        }
    }

    fn take_bytes(&mut self, table: &str, bytes: u64) -> Result<(), MigrationError> {
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

    fn take_copy_bytes(&mut self, table: &str, bytes: u64) -> Done {
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
const INDEX_BYTES_PER_ROW: u64 = 32;

pub(crate) type Done = Result<(), MigrationError>;

impl Datastore {
    /// Takes one step towards the definition `new`, in the open transaction. Rules of row-level security are added with
    /// [`put_row_level_security`](Self::put_row_level_security) instead; running the migration function is the caller's, between
    /// [`carry_counters`](Self::carry_counters) and [`settle_counters`](Self::settle_counters), and so is what comes before and after
    /// a backfill; disconnecting is nothing that tables know of.
    ///
    /// # Errors
    /// The rows do not allow it, or `work` has ended. The transaction is only good for a rollback then.
    pub fn migrate(&mut self, step: &Step, new: &ModuleDef, work: &mut MigrationWork<'_>) -> Done {
        self.require_transaction()?;
        work.ask()?;
        match step {
            Step::RemoveIndex { table, index } => self.remove_index(table, index, work),
            Step::RemoveConstraint { table, constraint } => {
                self.remove_constraint(table, constraint, work)
            }
            Step::RemoveSequence { table, sequence } => self.remove_sequence(table, sequence, work),
            Step::RemoveSchedule { table } => self.remove_schedule(table, work),
            Step::RemoveView { view } => self.remove_view(view, work),
            Step::RemoveRowLevelSecurity { sql } => self.remove_row_level_security(sql),
            Step::RemoveTable { table } => self.remove_user_table(table, work),
            Step::ChangeColumns { table } => self.change_columns(table, new, work),
            Step::ReschemaEventTable { table } => self.reschema_event_table(table, new, work),
            Step::AddColumns { table } => self.add_columns(table, new, work),
            Step::ChangeIndexSourceName { table, index } => {
                self.change_index_source_name(table, index, new, work)
            }
            Step::ChangeTableAccessorName { table } => self.change_table_accessor(table, new, work),
            Step::ChangeColumnAccessorName { table, column } => {
                self.change_column_accessor(table, column, new, work)
            }
            Step::AddTable { table } => self.add_user_table(table, new, work),
            Step::AddIndex { table, index } => self.add_index(table, index, new, work),
            Step::AddConstraint { table, constraint } => {
                self.add_constraint(table, constraint, new, work)
            }
            Step::AddSequence { table, sequence } => self.add_sequence(table, sequence, new, work),
            Step::AddSchedule { table } => self.add_schedule(table, new, work),
            Step::AddView { view } => self.add_view(view, new),
            Step::ChangeAccess { table } => self.change_access(table, new, work),
            Step::ChangePrimaryKey { table } => self.change_primary_key(table, new, work),
            Step::UpdateView { view } => self.update_view(view, new),
            Step::SetAsideTable { table, old } => self.set_aside(table, old, new, work),
            Step::RemoveOldTable { table } => self.remove_old_table(table, work),
            Step::AddRowLevelSecurity { .. }
            | Step::RunMigration
            | Step::Backfill
            | Step::DisconnectAllUsers => Ok(()),
        }
    }

    /// The table of this canonical name.
    pub(crate) fn stored_table(&self, name: &str) -> Result<Arc<TableSchema>, MigrationError> {
        let schema = self
            .table_id_from_name(name)
            .and_then(|id| self.schema(id))
            .filter(|schema| schema.name == name);
        schema
            .cloned()
            .ok_or_else(|| MigrationError::Plan(format!("there is no table `{name}`")))
    }

    /// Has a table follow the catalog.
    pub(crate) fn follow(&mut self, table: TableId, work: &mut MigrationWork<'_>) -> Done {
        self.take_index_bytes(table, work)?;
        work.ticking(|tick| self.follow_catalog(table, tick))?;
        Ok(())
    }

    /// Asks for the memory of what is built over all rows when a table follows the catalog.
    fn take_index_bytes(&self, id: TableId, work: &mut MigrationWork<'_>) -> Done {
        let Ok(state) = self.state(id) else {
            return Ok(());
        };
        let rows = state.table.rows().row_count();
        if rows == 0 {
            return Ok(());
        }
        let Some(described) = self.describe(id)? else {
            return Ok(());
        };
        let indexes = state.table.indexes_to_build(&described.schema) as u64;
        let bytes = rows.saturating_mul(indexes * INDEX_BYTES_PER_ROW);
        work.take_bytes(&state.table.schema.name, bytes)
    }

    /// Deletes the rows of a system table that have this value in a column.
    fn delete_catalog_rows(
        &mut self,
        table: TableId,
        column: ColId,
        value: &impl Encode,
    ) -> Result<u32, DatastoreError> {
        self.note_catalog();
        let found = self.catalog_ids(table, column, &value.to_vec());
        let slot = self.slot(table)?;
        self.delete_found(slot, &found)
    }

    /// Deletes the rows of a system table that begin with this id.
    fn delete_catalog_of(&mut self, table: TableId, id: u32) -> Result<u32, DatastoreError> {
        self.delete_catalog_rows(table, ColId(0), &id)
    }

    /// Deletes the rows of a system table that begin with this name.
    fn delete_catalog_named(&mut self, table: TableId, name: &str) -> Result<u32, DatastoreError> {
        self.delete_catalog_rows(table, ColId(0), &name)
    }
}

/// A table of the new definition.
pub(crate) fn table_of<'d>(new: &'d ModuleDef, name: &str) -> Result<&'d TableDef, MigrationError> {
    new.table(name)
        .ok_or_else(|| MigrationError::Plan(format!("the new definition has no table `{name}`")))
}

/// A part of a table, by its name.
fn part<'p, P>(
    parts: &'p [P],
    name_of: impl Fn(&P) -> &str,
    what: &str,
    name: &str,
) -> Result<&'p P, MigrationError> {
    parts
        .iter()
        .find(|part| name_of(part) == name)
        .ok_or_else(|| MigrationError::Plan(format!("there is no {what} `{name}`")))
}
