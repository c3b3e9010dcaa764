//! The functions for rows of a module, in an instance of their own.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{BackfillTable, Datastore, DatastoreError};
use lightcone_host::{ConsoleSink, Interrupt};
use lightcone_types::{cut, TableId, Timestamp};
use rustc_hash::FxHashMap;

use crate::error::UpdateError;
use crate::migration_function::{Fault, MigrationGuest, REASON_BYTES_MAX};
use crate::module::Program;
use crate::options::DatabaseOptions;

/// Why a backfill cannot go on: the text is for the publisher.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub String);

impl From<Failure> for UpdateError {
    fn from(failure: Failure) -> UpdateError {
        UpdateError::Refused(failure.0)
    }
}

impl From<DatastoreError> for Failure {
    fn from(error: DatastoreError) -> Failure {
        Failure::other(error)
    }
}

impl Failure {
    /// Something that is no fault of a row.
    pub fn other(reason: impl std::fmt::Display) -> Failure {
        Failure(format!(
            "the rows cannot be migrated, and everything was taken back: {reason} [LC0250]"
        ))
    }
}

pub(super) struct RowFunctions {
    guest: MigrationGuest,
    /// By table, which has one each.
    functions: FxHashMap<TableId, (u32, Arc<str>)>,
}

impl RowFunctions {
    /// Those of a program. What they see of the world is the same in each call: what they make depends on their row only.
    pub fn new(
        options: &DatabaseOptions,
        program: &Program,
        tables: &[BackfillTable],
        console: Arc<dyn ConsoleSink>,
        started_us: i64,
    ) -> Result<RowFunctions, Failure> {
        let migration = program.def.migration.as_ref();
        let function = |table: &BackfillTable| {
            let id = migration?.row_function(&table.old)?;
            let name = program.def.reducers.get(id)?.name.as_str().into();
            Some((table.table, (id as u32, name)))
        };
        let time_max = options.limits.backfill_transaction_time_max;
        let started = Timestamp(started_us);
        let guest = MigrationGuest::new(options, program, console, time_max, started);
        Ok(RowFunctions {
            guest: guest.map_err(Failure::other)?,
            functions: tables.iter().filter_map(function).collect(),
        })
    }

    pub fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        self.guest.interrupt()
    }

    /// What the next call may take.
    pub fn limit(&mut self, time_left: Duration) {
        self.guest.limit(time_left);
    }

    /// Makes the new rows of an old one, in the open transaction.
    pub fn make(
        &mut self,
        datastore: &mut Datastore,
        table: &BackfillTable,
        row: &[u8],
    ) -> Result<(), Failure> {
        datastore.begin_making();
        let generated = self.run(datastore, table, row)?;
        let noted = datastore.note_backfilled(table, row, &generated);
        noted.map_err(|error| self.failure(datastore, table, row, &error.to_string()))
    }

    /// Deletes the rows that were made of one, if they were.
    pub fn unmake(
        &mut self,
        datastore: &mut Datastore,
        table: &BackfillTable,
        row: &[u8],
    ) -> Result<(), Failure> {
        let forgotten = datastore.forget_backfilled(table, row);
        let forgotten =
            forgotten.map_err(|error| self.failure(datastore, table, row, &error.to_string()))?;
        let Some(generated) = forgotten else {
            return Ok(());
        };
        datastore.begin_unmaking(generated);
        self.run(datastore, table, row).map(drop)
    }

    fn run(
        &mut self,
        datastore: &mut Datastore,
        table: &BackfillTable,
        row: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let outcome = match self.functions.get(&table.table) {
            Some((id, name)) => self.guest.call(datastore, (*id, name), row),
            None => Ok(()),
        };
        let made = datastore.end_making();
        let reason = match (outcome, made) {
            (Err(Fault::TimedOut), _) => return Err(too_long()),
            // It may have gone on from a failure, or told it in its own words.
            (_, Err(failure)) => failure,
            (Ok(()), Ok(generated)) => return Ok(generated),
            (Err(Fault::Failed(text)), Ok(_)) => text,
        };
        Err(self.failure(datastore, table, row, &reason))
    }

    fn failure(
        &self,
        datastore: &Datastore,
        table: &BackfillTable,
        row: &[u8],
        reason: &str,
    ) -> Failure {
        Failure(format!(
            "the rows cannot be migrated, and everything was taken back: {}: {} [LC0245]",
            datastore.shown_old_row(table, row),
            cut(reason, REASON_BYTES_MAX)
        ))
    }
}

pub(super) fn too_long() -> Failure {
    Failure("the functions for rows held a transaction up for longer than limits.backfill-transaction-time-max, and everything was taken back; \
             make them faster, change fewer rows at a time meanwhile, or raise it [LC0249]"
        .to_owned())
}
