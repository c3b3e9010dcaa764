//! The functions for rows of a module, in an instance of their own.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{BackfillTable, Datastore};
use lightcone_host::{
    ConsoleSink, HostEnv, Interrupt, ModuleInstance, OpenTransaction, ReducerCall, ReducerOutcome,
};
use lightcone_types::{cut, ConnectionId, Identity, TableId, Timestamp};
use rustc_hash::FxHashMap;

use crate::error::UpdateError;
use crate::migration_function::{LastWords, NoImmediateCalls, REASON_BYTES_MAX};
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

impl Failure {
    /// Something that is no fault of a row.
    pub fn other(reason: impl std::fmt::Display) -> Failure {
        Failure(format!(
            "the rows cannot be migrated, and everything was taken back: {reason} [LC0250]"
        ))
    }
}

/// What the functions see of the world. It is the same in each call: what they make depends on their row only.
pub(crate) struct Surroundings {
    pub owner: Identity,
    pub started_us: i64,
    pub console: Arc<dyn ConsoleSink>,
}

pub(super) struct RowFunctions {
    instance: Box<dyn ModuleInstance>,
    words: Arc<LastWords>,
    /// By table, which has one each.
    functions: FxHashMap<TableId, (u32, Arc<str>)>,
    owner: Identity,
    timestamp: Timestamp,
}

impl RowFunctions {
    /// Those of a program.
    pub fn new(
        options: &DatabaseOptions,
        program: &Program,
        tables: &[BackfillTable],
        around: Surroundings,
    ) -> Result<RowFunctions, Failure> {
        let migration = program.def.migration.as_ref();
        let function = |table: &BackfillTable| {
            let id = migration?.row_function(&table.old)?;
            let name = program.def.reducers.get(id)?.name.as_str().into();
            Some((table.table, (id as u32, name)))
        };
        let functions = tables.iter().filter_map(function).collect();
        let words = Arc::new(LastWords::new(around.console));
        let mut config = options.host_config(words.clone());
        config.immediate = Some(Arc::new(NoImmediateCalls));
        config.limits.call_ms_max = milliseconds(options.limits.backfill_transaction_time_max);
        let instance = program.loaded.instantiate(HostEnv::new(config));
        let mut instance = instance.map_err(Failure::other)?;
        instance.prepare();
        Ok(RowFunctions {
            instance,
            words,
            functions,
            owner: around.owner,
            timestamp: Timestamp(around.started_us),
        })
    }

    pub fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        self.instance.interrupt()
    }

    /// What the next call may take.
    pub fn limit(&mut self, time_left: Duration) {
        self.instance.limit_calls(milliseconds(time_left));
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
        let outcome = self.call(datastore, table, row);
        let made = datastore.end_making();
        let panic = self.words.take();
        let reason = match (outcome, made) {
            (ReducerOutcome::TimedOut { .. }, _) => return Err(too_long()),
            // It may have gone on from a failure, or told it in its own words.
            (_, Err(failure)) => failure,
            (ReducerOutcome::Ok, Ok(generated)) => return Ok(generated),
            (ReducerOutcome::UserError(text), Ok(_)) => text,
            (ReducerOutcome::Fatal { message }, Ok(_)) => panic.unwrap_or(message),
        };
        Err(self.failure(datastore, table, row, &reason))
    }

    fn call(
        &mut self,
        datastore: &mut Datastore,
        table: &BackfillTable,
        row: &[u8],
    ) -> ReducerOutcome {
        let Some((id, name)) = self.functions.get(&table.table) else {
            return ReducerOutcome::Ok;
        };
        let call = ReducerCall {
            id: *id,
            name,
            sender: self.owner,
            connection_id: ConnectionId(0),
            timestamp: self.timestamp,
            args: row,
        };
        self.instance
            .call_reducer(OpenTransaction::of(datastore), &call)
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

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn too_long() -> Failure {
    Failure("the functions for rows held a transaction up for longer than limits.backfill-transaction-time-max, and everything was taken back; \
             make them faster, change fewer rows at a time meanwhile, or raise it [LC0249]"
        .to_owned())
}
