//! Running the migration function of a module (02 §14.8): an instance of its own, in the transaction of the update.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lightcone_engine::Datastore;
use lightcone_host::{
    ConsoleLevel, ConsoleRecord, ConsoleSink, HostEnv, HostTrap, ImmediateCalls, OpenTransaction,
    ReducerCall, ReducerOutcome,
};
use lightcone_schema::{MigrationFunctions, MigrationPlan};
use lightcone_types::{cut, ConnectionId};

use crate::error::UpdateError;
use crate::migration_progress::MigrationProgress;
use crate::module::Program;
use crate::options::DatabaseOptions;

/// The most of what a function says of its failure that the publisher is told.
pub(crate) const REASON_BYTES_MAX: usize = 4096;

/// Notes the last failure that a module logs: what a panic says is not in its trap.
pub(crate) struct LastWords {
    console: Arc<dyn ConsoleSink>,
    panic: Mutex<Option<String>>,
}

impl LastWords {
    /// What is logged goes on to `console`.
    pub fn new(console: Arc<dyn ConsoleSink>) -> LastWords {
        LastWords {
            console,
            panic: Mutex::default(),
        }
    }

    pub fn take(&self) -> Option<String> {
        let mut panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        panic.take()
    }
}

impl ConsoleSink for LastWords {
    fn log(&self, record: ConsoleRecord<'_>) {
        if record.level == ConsoleLevel::Panic {
            let text = cut(record.message, REASON_BYTES_MAX).to_string();
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        self.console.log(record);
    }
}

/// The function's transaction may be taken back, and calls that are to run whatever becomes of it may not be the new program's.
pub(crate) struct NoImmediateCalls;

impl ImmediateCalls for NoImmediateCalls {
    fn schedule(&self, _: &str, _: &[u8]) -> Result<(), HostTrap> {
        Err(HostTrap::ImmediateInMigration)
    }
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
        let now = self.options.commons.environment.instant();
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
    let words = Arc::new(LastWords::new(around.console.clone()));
    let mut config = options.host_config(words.clone());
    config.immediate = Some(Arc::new(NoImmediateCalls));
    config.limits.call_ms_max = time.as_millis() as u64;
    let instance = program.loaded.instantiate(HostEnv::new(config));
    let mut instance = instance.map_err(|error| UpdateError::Module(error.to_string()))?;
    let interrupt = instance.interrupt();
    progress.function(rows_replaced(datastore, plan), interrupt);
    datastore.count_changes(Some(progress.rows()));
    let name: Arc<str> = program.def.reducers[*reducer].name.as_str().into();
    let call = ReducerCall {
        id: *reducer as u32,
        name: &name,
        sender: options.owner,
        connection_id: ConnectionId(0),
        timestamp: options.commons.environment.now(),
        args: &[],
    };
    datastore.note_reads();
    let outcome = instance.call_reducer(OpenTransaction::of(datastore), &call);
    let all_read = datastore.check_reads(plan);
    datastore.count_changes(None);
    progress.function_ended();
    let reason = match outcome {
        ReducerOutcome::Ok => {
            return all_read.map_err(|error| UpdateError::Refused(error.to_string()))
        }
        ReducerOutcome::TimedOut { .. } => return Err(too_long()),
        ReducerOutcome::UserError(text) => text,
        ReducerOutcome::Fatal { message } => words.take().unwrap_or(message),
    };
    Err(UpdateError::Refused(format!(
        "the migration function failed, and everything was taken back: {} [LC0239]",
        cut(&reason, REASON_BYTES_MAX)
    )))
}

fn too_long() -> UpdateError {
    UpdateError::Refused(lightcone_engine::MigrationError::TooLong.to_string())
}

/// Rows of the tables that were set aside.
fn rows_replaced(datastore: &Datastore, plan: &MigrationPlan) -> u64 {
    let rows = |old: &str| {
        let id = datastore.table_id_from_name(old)?;
        datastore.row_count(id).ok()
    };
    plan.set_aside().filter_map(|(_, old)| rows(old)).sum()
}
