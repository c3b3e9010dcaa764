//! Functions of a module that migrate its rows (02 §14.8), in an instance of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, MigrationError};
use lightcone_host::{
    ConsoleLevel, ConsoleRecord, ConsoleSink, HostError, HostTrap, ImmediateCalls, Interrupt,
    ModuleInstance, OpenTransaction, ReducerCall, ReducerOutcome,
};
use lightcone_schema::{MigrationFunctions, MigrationPlan};
use lightcone_types::{cut, ConnectionId, Identity, Timestamp};
use parking_lot::Mutex;

use crate::error::UpdateError;
use crate::migration_progress::MigrationProgress;
use crate::module::Program;
use crate::options::DatabaseOptions;

/// The most of what a function says of its failure that the publisher is told.
pub(crate) const REASON_BYTES_MAX: usize = 4096;

/// Notes the last failure that a module logs: what a panic says is not in its trap.
struct LastWords {
    console: Arc<dyn ConsoleSink>,
    panic: Mutex<Option<String>>,
}

impl ConsoleSink for LastWords {
    fn log(&self, record: ConsoleRecord<'_>) {
        if record.level == ConsoleLevel::Panic {
            let text = cut(record.message, REASON_BYTES_MAX).to_string();
            *self.panic.lock() = Some(text);
        }
        self.console.log(record);
    }
}

/// The function's transaction may be taken back, and calls that are to run whatever becomes of it may not be the new program's.
struct NoImmediateCalls;

impl ImmediateCalls for NoImmediateCalls {
    fn schedule(&self, _: &str, _: &[u8]) -> Result<(), HostTrap> {
        Err(HostTrap::ImmediateInMigration)
    }
}

/// An instance of a module for its migration.
pub(crate) struct MigrationGuest {
    instance: Box<dyn ModuleInstance>,
    words: Arc<LastWords>,
    owner: Identity,
    /// What the functions see of the clock.
    timestamp: Timestamp,
}

/// How a function failed.
pub(crate) enum Fault {
    TimedOut,
    /// In its own words.
    Failed(String),
}

impl MigrationGuest {
    /// What is logged goes on to `console`.
    pub fn new(
        options: &DatabaseOptions,
        program: &Program,
        console: Arc<dyn ConsoleSink>,
        call_time_max: Duration,
        timestamp: Timestamp,
    ) -> Result<MigrationGuest, HostError> {
        let panic = Mutex::default();
        let words = Arc::new(LastWords { console, panic });
        let mut config = options.host_config(words.clone());
        config.immediate = Some(Arc::new(NoImmediateCalls));
        config.limits.call_ms_max = milliseconds(call_time_max);
        let mut instance = program.instantiate(config)?;
        instance.prepare();
        Ok(MigrationGuest {
            instance,
            words,
            owner: options.owner,
            timestamp,
        })
    }

    pub fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        self.instance.interrupt()
    }

    /// What the next call may take.
    pub fn limit(&mut self, time_left: Duration) {
        self.instance.limit_calls(milliseconds(time_left));
    }

    /// Calls a function in the open transaction.
    ///
    /// # Errors
    /// It failed.
    pub fn call(
        &mut self,
        datastore: &mut Datastore,
        (id, name): (u32, &Arc<str>),
        args: &[u8],
    ) -> Result<(), Fault> {
        let call = ReducerCall {
            id,
            name,
            sender: self.owner,
            connection_id: ConnectionId(0),
            timestamp: self.timestamp,
            args,
        };
        let transaction = OpenTransaction::of(datastore);
        let outcome = self.instance.call_reducer(transaction, &call);
        let panic = self.words.panic.lock().take();
        match outcome {
            ReducerOutcome::Ok => Ok(()),
            ReducerOutcome::UserError(text) => Err(Fault::Failed(text)),
            ReducerOutcome::Fatal { message } => Err(Fault::Failed(panic.unwrap_or(message))),
            ReducerOutcome::TimedOut { .. } => Err(Fault::TimedOut),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Where steps are taken: what they are told, and what they tell.
pub(crate) struct Surroundings<'s> {
    pub options: &'s DatabaseOptions,
    /// What the migration function logs.
    pub console: Arc<dyn ConsoleSink>,
    pub progress: &'s MigrationProgress,
    /// From when on it may take `limits.migration-time-max`.
    pub started: Instant,
}

impl Surroundings<'_> {
    /// Whether it was neither ended nor takes too long.
    pub fn may_go_on(&self) -> bool {
        !self.progress.is_cancelled() && !self.time_left().is_zero()
    }

    pub fn time_left(&self) -> Duration {
        let now = self.options.environment().instant();
        let time_max = self.options.limits.migration_time_max;
        time_max.saturating_sub(now - self.started)
    }
}

/// Runs the function in the open transaction, for at most `time`.
///
/// # Errors
/// It failed; the text is for the publisher. The transaction is only good for a rollback then.
pub(crate) fn run(
    datastore: &mut Datastore,
    around: &Surroundings<'_>,
    (program, plan): (&Program, &MigrationPlan),
    time: Duration,
) -> Result<(), UpdateError> {
    let (options, progress) = (around.options, around.progress);
    let functions = program.def.migration.as_ref().map(|of| &of.functions);
    let Some(MigrationFunctions::Whole(reducer)) = functions else {
        return Err(UpdateError::Refused(
            "the plan runs a migration function, and the program has none".to_owned(),
        ));
    };
    let now = options.environment().now();
    let guest = MigrationGuest::new(options, program, around.console.clone(), time, now);
    let mut guest = guest.map_err(|error| UpdateError::Module(error.to_string()))?;
    progress.function(rows_replaced(datastore, plan), guest.interrupt());
    datastore.count_changes(Some(progress.rows()));
    let name: Arc<str> = program.def.reducers[*reducer].name.as_str().into();
    datastore.note_reads();
    let outcome = guest.call(datastore, (*reducer as u32, &name), &[]);
    let all_read = datastore.check_reads(plan);
    datastore.count_changes(None);
    progress.function_ended();
    let reason = match outcome {
        Ok(()) => return Ok(all_read?),
        Err(Fault::TimedOut) => return Err(MigrationError::TooLong.into()),
        Err(Fault::Failed(reason)) => reason,
    };
    Err(UpdateError::Refused(format!(
        "the migration function failed, and everything was taken back: {} [LC0239]",
        cut(&reason, REASON_BYTES_MAX)
    )))
}

/// Rows of the tables that were set aside.
fn rows_replaced(datastore: &Datastore, plan: &MigrationPlan) -> u64 {
    let rows = |old: &str| {
        let id = datastore.table_id_from_name(old)?;
        datastore.row_count(id).ok()
    };
    plan.set_aside().filter_map(|(_, old)| rows(old)).sum()
}
