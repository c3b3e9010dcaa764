//! The steps of a migration (02 §14.5), on the tables of a database or on a copy that is thrown away.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{
    BackfillRecord, CommitOutput, Datastore, DatastoreSnapshot, MigrationError, MigrationWork,
};
use lightcone_host::{ConsoleSink, NullConsole};
use lightcone_schema::{MigrationPlan, ModuleDef, Step};
use lightcone_types::{Hash, TableId};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::backfill::Backfill;
use crate::error::UpdateError;
use crate::handle::DatabaseHandle;
use crate::inbox::Command;
use crate::migration_function;
use crate::migration_progress::MigrationProgress;
use crate::module::{migration_task, Program};
use crate::options::DatabaseOptions;
use crate::rules;
use crate::update::PreparedUpdate;

/// A plan, and the program that it leads away from.
pub(crate) struct Planned {
    pub plan: MigrationPlan,
    pub from: Hash,
}

/// What a step did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    pub step: Step,
    /// Rows that were looked at, copied or put into an index; of the migration function, that it wrote.
    pub rows: u64,
    pub time: Duration,
    /// How many of them the migration function wrote into each table, by name.
    pub written: Vec<(String, u64)>,
}

/// Where steps are taken: what they are told, and what they tell.
pub(crate) struct Surroundings<'s> {
    pub options: &'s DatabaseOptions,
    /// What the migration function logs.
    pub console: Arc<dyn ConsoleSink>,
    /// None for a rehearsal, which nobody watches.
    pub progress: Option<&'s MigrationProgress>,
}

impl Surroundings<'_> {
    fn is_cancelled(&self) -> bool {
        self.progress.is_some_and(MigrationProgress::is_cancelled)
    }
}

/// Takes the steps of a plan in the open transaction, after what must hold before the first one. `before` hears of each step that
/// is to be taken.
///
/// # Errors
/// A step failed. The transaction is only good for a rollback then.
pub(crate) fn take_steps(
    datastore: &mut Datastore,
    around: &Surroundings<'_>,
    (old, program): (&ModuleDef, &Program),
    plan: &MigrationPlan,
    before: impl FnMut(&Step),
) -> Result<Vec<StepReport>, UpdateError> {
    let taken = take(datastore, around, (old, program), plan, before);
    match taken {
        Err(_) if around.is_cancelled() => Err(cancelled()),
        taken => taken,
    }
}

/// What a publisher is told whose migration somebody has ended.
pub(crate) fn cancelled() -> UpdateError {
    UpdateError::Refused(
        "the migration was cancelled, and everything was taken back [LC0240]".to_owned(),
    )
}

fn take(
    datastore: &mut Datastore,
    around: &Surroundings<'_>,
    (old, program): (&ModuleDef, &Program),
    plan: &MigrationPlan,
    mut before: impl FnMut(&Step),
) -> Result<Vec<StepReport>, UpdateError> {
    let (options, new) = (around.options, &*program.def);
    let environment = &*options.commons.environment;
    let (started, time_max) = (environment.instant(), options.limits.migration_time_max);
    let mut may_go_on = || !around.is_cancelled() && environment.instant() - started < time_max;
    let mut work = MigrationWork::new(options.limits.migration_bytes_max, &mut may_go_on);
    if let Some(progress) = around.progress {
        work.count(progress.rows());
    }
    let refused = |error: lightcone_engine::MigrationError| UpdateError::Refused(error.to_string());
    datastore.check_tables(old).map_err(refused)?;
    for step in &plan.steps {
        datastore.precheck(step, new, &mut work).map_err(refused)?;
    }
    let mut rules: Option<Vec<(TableId, String)>> = None;
    let mut reports = Vec::with_capacity(plan.steps.len());
    work.take_rows();
    for step in &plan.steps {
        before(step);
        if let Some(progress) = around.progress {
            progress.step(step.table());
        }
        let since = environment.instant();
        datastore.migrate(step, new, &mut work).map_err(refused)?;
        let mut written = Vec::new();
        if *step == Step::RunMigration {
            let time = time_max.saturating_sub(since - started);
            let changes = datastore.change_count();
            datastore.carry_counters(plan).map_err(refused)?;
            let of = (program, plan);
            migration_function::run(
                datastore,
                options,
                of,
                around.console.clone(),
                around.progress,
                time,
            )?;
            written = datastore.changes_by_table(changes);
            datastore
                .settle_counters(&plan.added_tables(), &mut work)
                .map_err(refused)?;
            work.take_rows();
        }
        if *step == Step::Backfill {
            written = end_backfill(datastore, plan, &mut work)?;
        }
        if let Step::AddRowLevelSecurity { sql } = step {
            let checked = match rules.take() {
                Some(checked) => checked,
                None => check_rules(datastore, new, options)?,
            };
            add_rule(datastore, &checked, sql)?;
            rules = Some(checked);
        }
        let rows = written.iter().map(|(_, rows)| rows).sum::<u64>() + work.take_rows();
        reports.push(StepReport {
            step: step.clone(),
            rows,
            time: environment.instant() - since,
            written,
        });
    }
    Ok(reports)
}

/// The new tables have their rows and names: counters go on, and what is left of the backfill goes. Gives how many rows they have.
fn end_backfill(
    datastore: &mut Datastore,
    plan: &MigrationPlan,
    work: &mut MigrationWork<'_>,
) -> Result<Vec<(String, u64)>, UpdateError> {
    let refused = |error: lightcone_engine::MigrationError| UpdateError::Refused(error.to_string());
    datastore.carry_counters(plan).map_err(refused)?;
    let added = plan.added_tables();
    datastore.settle_counters(&added, work).map_err(refused)?;
    datastore.drop_backfill(work).map_err(refused)?;
    work.take_rows();
    let rows = added.into_iter().filter_map(|table| {
        let id = datastore.table_id_from_name(table)?;
        let rows = datastore.row_count(id).ok().filter(|rows| *rows > 0)?;
        Some((table.to_owned(), rows))
    });
    Ok(rows.collect())
}

fn check_rules(
    datastore: &Datastore,
    new: &ModuleDef,
    options: &DatabaseOptions,
) -> Result<Vec<(TableId, String)>, UpdateError> {
    rules::checked(datastore, new, options.owner)
        .map_err(|error| UpdateError::Refused(error.to_string()))
}

fn add_rule(
    datastore: &mut Datastore,
    checked: &[(TableId, String)],
    sql: &str,
) -> Result<(), UpdateError> {
    let of_rule = checked.iter().filter(|(_, text)| text == sql);
    of_rule
        .take(1)
        .try_for_each(|(table, sql)| datastore.put_row_level_security(*table, sql))
        .map_err(|error| UpdateError::Refused(error.to_string()))
}

/// What the module's log says of a step (02 §14.5).
pub(crate) fn log_text(step: &Step) -> Option<String> {
    Some(match step {
        Step::RemoveIndex { table, index } => {
            format!("Dropping index `{index}` on table `{table}`")
        }
        Step::RemoveConstraint { table, constraint } => {
            format!("Dropping constraint `{constraint}` on table `{table}`")
        }
        Step::RemoveSequence { table, sequence } => {
            format!("Dropping sequence `{sequence}` from table `{table}`")
        }
        Step::RemoveSchedule { table } => format!("Dropping schedule of table `{table}`"),
        Step::RemoveRowLevelSecurity { sql } => format!("Removing row-level security `{sql}`"),
        Step::RemoveTable { table } => format!("Dropping table `{table}`"),
        Step::SetAsideTable { table, old } => format!("Setting table `{table}` aside as `{old}`"),
        Step::RunMigration => "Running the migration function".to_owned(),
        Step::Backfill => "All rows are migrated".to_owned(),
        Step::RemoveOldTable { table } => format!("Dropping old table `{table}`"),
        Step::ChangeColumns { table } => format!("Changing columns of table `{table}`"),
        Step::ReschemaEventTable { table } => format!("Changing schema of event table `{table}`"),
        Step::ChangeIndexSourceName { table, index } => {
            format!("Changing source name of index `{index}` on table `{table}`")
        }
        Step::ChangeTableAccessorName { table } => {
            format!("Changing accessor name of table `{table}`")
        }
        Step::ChangeColumnAccessorName { table, column } => {
            format!("Changing accessor name of column `{column}` of table `{table}`")
        }
        Step::AddTable { table } => format!("Creating table `{table}`"),
        Step::AddIndex { table, index } => format!("Creating index `{index}` on table `{table}`"),
        Step::AddConstraint { table, constraint } => {
            format!("Adding constraint `{constraint}` on table `{table}`")
        }
        Step::AddSequence { table, sequence } => {
            format!("Adding sequence `{sequence}` to table `{table}`")
        }
        Step::AddSchedule { table } => format!("Adding schedule to table `{table}`"),
        Step::AddRowLevelSecurity { sql } => format!("Adding row-level security `{sql}`"),
        Step::ChangePrimaryKey { table } => format!("Changing primary key for table `{table}`"),
        Step::DisconnectAllUsers => "Disconnecting all users".to_owned(),
        Step::AddColumns { .. }
        | Step::AddView { .. }
        | Step::RemoveView { .. }
        | Step::UpdateView { .. }
        | Step::ChangeAccess { .. } => return None,
    })
}

impl DatabaseHandle {
    /// Takes the steps of a plan on a copy of the tables that they touch, as these are now, and throws it away. Live views are not
    /// evaluated.
    ///
    /// # Errors
    /// A step failed, as it would in an update; or the tables are too large to be copied.
    pub async fn rehearse(
        &self,
        prepared: PreparedUpdate,
        plan: &MigrationPlan,
    ) -> Result<Vec<StepReport>, UpdateError> {
        let shared = self.shared.clone();
        let cancelled = |_| UpdateError::Cancelled;
        let permit = shared.inbox.permit(0).await;
        let permit = permit.map_err(|_| UpdateError::Cancelled)?;
        let (reply, frozen) = oneshot::channel();
        let sent = shared.inbox.command(Command::Freeze { permit, reply });
        sent.map_err(|_| UpdateError::Cancelled)?;
        let (frozen, old) = frozen.await.map_err(cancelled)?;
        let (plan, program) = (plan.clone(), prepared.into_program());
        let (reply, reports) = oneshot::channel();
        let options = shared.options.clone();
        let work = move || {
            // Whoever asked may be gone by now.
            let _ = reply.send(rehearse_apart(frozen, &options, (old, program), plan));
        };
        shared.environment().spawn_blocking(Box::new(work));
        reports.await.map_err(cancelled)?
    }
}

/// On a thread that the module's code may run on, and that is given up if it does not end.
fn rehearse_apart(
    frozen: DatastoreSnapshot,
    options: &DatabaseOptions,
    (old, program): (Arc<ModuleDef>, Box<Program>),
    plan: MigrationPlan,
) -> Result<Vec<StepReport>, UpdateError> {
    if plan.set_aside().next().is_none() {
        return rehearse(&frozen, options, (&old, &program), &plan);
    }
    let task = migration_task(options, program.hash);
    let kept = options.clone();
    let environment = &*options.commons.environment;
    let rehearsed = options.loads.run(environment, task, move || {
        rehearse(&frozen, &kept, (&old, &program), &plan)
    });
    rehearsed.map_err(|error| UpdateError::Busy(error.to_string()))?
}

fn rehearse(
    frozen: &DatastoreSnapshot,
    options: &DatabaseOptions,
    (old, program): (&ModuleDef, &Program),
    plan: &MigrationPlan,
) -> Result<Vec<StepReport>, UpdateError> {
    let touched: FxHashSet<&str> = plan.steps.iter().filter_map(Step::table).collect();
    // The function may read whatever there is.
    let runs_function = plan.set_aside().next().is_some() && !plan.is_backfill();
    let bytes_max = options.limits.migration_bytes_max;
    let copied = Datastore::copy_of(frozen, bytes_max, |table| {
        runs_function || touched.contains(table)
    });
    let mut copy = copied.map_err(|error| UpdateError::Refused(error.to_string()))?;
    options.configure(&mut copy);
    let backfilled = match plan.is_backfill() {
        true => backfill_copy(&mut copy, options, (program, plan))?,
        false => Duration::ZERO,
    };
    copy.begin();
    let around = Surroundings {
        options,
        console: Arc::new(NullConsole),
        progress: None,
    };
    let mut reports = take_steps(&mut copy, &around, (old, program), plan, |_| {})?;
    let of_rows = reports
        .iter_mut()
        .find(|report| report.step == Step::Backfill);
    if let Some(report) = of_rows {
        report.time += backfilled;
    }
    Ok(reports)
}

/// Migrates all rows of a copy, as a backfill does behind the running module, in batches too. Gives how long that took.
fn backfill_copy(
    copy: &mut Datastore,
    options: &DatabaseOptions,
    (program, plan): (&Program, &MigrationPlan),
) -> Result<Duration, UpdateError> {
    /// Time of a batch, which nobody waits for.
    const BATCH: Duration = Duration::from_millis(20);
    let refused = |error: lightcone_engine::MigrationError| UpdateError::Refused(error.to_string());
    let environment = &*options.commons.environment;
    let (started, started_us) = (environment.instant(), environment.now().0);
    let record = BackfillRecord {
        started_us,
        program_kind: program.kind as u8,
        program: Vec::new(),
    };
    let mut output = CommitOutput::default();
    copy.begin();
    copy.begin_backfill(&program.def, plan, &record)
        .map_err(refused)?;
    copy.commit(&mut output);
    let planned = Planned {
        plan: plan.clone(),
        from: program.hash,
    };
    let of = (program, &planned);
    let mut backfill = Backfill::new(copy, options, of, started_us, Arc::new(NullConsole))?;
    loop {
        output.clear();
        copy.begin();
        let now = environment.instant();
        let is_done = backfill.batch(copy, environment, now + BATCH)?;
        copy.commit(&mut output);
        let took = environment.instant() - started;
        if is_done {
            return Ok(took);
        }
        if took > options.limits.migration_time_max {
            return Err(refused(MigrationError::TooLong));
        }
        let (bytes, bytes_max) = (copy.heap_bytes() as u64, options.limits.migration_bytes_max);
        if bytes / 2 > bytes_max {
            return Err(refused(MigrationError::TooLarge {
                table: backfill.table(copy).unwrap_or_default().to_owned(),
                bytes,
                left: bytes_max,
            }));
        }
    }
}
