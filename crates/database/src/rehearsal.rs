//! Trying a migration on a copy of the data, beside the running database (06 §5.4).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{
    BackfillRecord, CommitOutput, Datastore, DatastoreSnapshot, MigrationError, MigrationWork,
};
use lightcone_host::NullConsole;
use lightcone_schema::{MigrationPlan, ModuleDef, Step};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::backfill::Backfill;
use crate::error::UpdateError;
use crate::handle::DatabaseHandle;
use crate::inbox::Input;
use crate::migration::{take_steps, StepReport};
use crate::migration_function::Surroundings;
use crate::migration_progress::MigrationProgress;
use crate::module::{migration_task, Program};
use crate::options::DatabaseOptions;
use crate::update::PreparedUpdate;
use crate::variables::EnvironmentChange;

/// Time of a batch of rows, which no client waits for.
const BACKFILL_BATCH: Duration = Duration::from_millis(20);

impl DatabaseHandle {
    /// Takes the steps of a plan on a copy of the tables that they and the migration function touch, as these are now, and throws
    /// it away. Live views are not evaluated. It ends early when `given_up` is done.
    ///
    /// # Errors
    /// A step failed, as it would in an update; or the tables are too large to be copied; or it was ended.
    pub async fn rehearse(
        &self,
        prepared: PreparedUpdate,
        plan: &MigrationPlan,
        given_up: impl Future<Output = ()>,
    ) -> Result<Vec<StepReport>, UpdateError> {
        let shared = self.shared.clone();
        let mut given_up = pin!(given_up);
        let frozen = tokio::select! {
            frozen = self.freeze() => frozen,
            () = &mut given_up => None,
        };
        let (frozen, old) = frozen.ok_or(UpdateError::Cancelled)?;
        let (program, environment) = prepared.into_parts();
        let plan = plan.clone();
        let (reply, reports) = oneshot::channel();
        let options = shared.options.clone();
        let progress = shared.status.rehearsals.begin();
        let watched = progress.clone();
        let work = move || {
            let tried = Tried {
                frozen,
                options,
                old,
                program,
                environment,
                plan,
                progress: watched,
            };
            // The caller may be gone by now.
            let _ = reply.send(tried.apart());
        };
        shared.environment().spawn_blocking(Box::new(work));
        let mut reports = pin!(reports);
        let reports = tokio::select! {
            reports = &mut reports => reports,
            () = given_up => {
                progress.stop();
                reports.await
            }
        };
        reports.map_err(|_| UpdateError::Cancelled)?
    }

    /// All tables as they are when the writer comes to it, and the program's definition; none if the database ends.
    async fn freeze(&self) -> Option<(DatastoreSnapshot, Arc<ModuleDef>)> {
        let permit = self.shared.inbox.capacity.permit(0).await.ok()?;
        let frozen = self.shared.ask(Some(permit), false, Input::Freeze);
        frozen.await.ok()
    }
}

/// What is tried, and on what.
struct Tried {
    frozen: DatastoreSnapshot,
    options: DatabaseOptions,
    old: Arc<ModuleDef>,
    program: Box<Program>,
    environment: EnvironmentChange,
    plan: MigrationPlan,
    progress: Arc<MigrationProgress>,
}

impl Tried {
    /// On a thread that the module's code may run on, and that is given up if it does not end.
    fn apart(self) -> Result<Vec<StepReport>, UpdateError> {
        if self.plan.set_aside().next().is_none() {
            return self.rehearse();
        }
        let task = migration_task(&self.options, self.program.hash);
        let (loads, environment) = (
            self.options.loads.clone(),
            self.options.shared_environment(),
        );
        let rehearsed = loads.run(&*environment, task, move || self.rehearse());
        rehearsed.map_err(|error| UpdateError::Busy(error.to_string()))?
    }

    /// It is not known before which tables the function reads or writes beside those that it replaces: where it turns out that rows
    /// of one were wanted that the copy does not have, it is tried once more with them.
    fn rehearse(&self) -> Result<Vec<StepReport>, UpdateError> {
        let started = self.options.environment().instant();
        self.progress.begin(started);
        let around = Surroundings {
            options: &self.options,
            console: Arc::new(NullConsole),
            progress: &self.progress,
            started,
        };
        let steps = self.plan.steps.iter().filter_map(Step::table);
        let mut wanted: FxHashSet<String> = steps.map(str::to_owned).collect();
        loop {
            let mut missed = Vec::new();
            let reports = self.attempt(&around, &wanted, &mut missed);
            if self.progress.is_cancelled() {
                return Err(UpdateError::Cancelled);
            }
            if missed.is_empty() {
                return reports;
            }
            wanted.extend(missed);
        }
    }

    /// With the rows of these tables. Of which others the function wanted rows comes to `missed`.
    fn attempt(
        &self,
        around: &Surroundings<'_>,
        wanted: &FxHashSet<String>,
        missed: &mut Vec<String>,
    ) -> Result<Vec<StepReport>, UpdateError> {
        let mut may_go_on = || around.may_go_on();
        let bytes_max = self.options.limits.migration_bytes_max;
        let mut work = MigrationWork::new(bytes_max, &mut may_go_on);
        let mut copy = Datastore::copy_of(&self.frozen, &mut work, |table| wanted.contains(table))?;
        self.options.configure(&mut copy);
        let backfilled = match self.plan.is_backfill() {
            true => self.backfill(around, &mut copy)?,
            false => Duration::ZERO,
        };
        copy.begin();
        self.take_over(&mut copy)?;
        let of = (&*self.old, &*self.program);
        let reports = take_steps(&mut copy, around, &mut work, of, &self.plan, |_| {});
        missed.extend(copy.missed_tables().map(str::to_owned));
        let mut reports = reports?;
        let mut of_rows = reports.iter_mut();
        if let Some(report) = of_rows.find(|report| report.step == Step::Backfill) {
            report.time += backfilled;
        }
        Ok(reports)
    }

    /// The migration function reads variables as the new program. Which are missing is not said before the real thing.
    fn take_over(&self, copy: &mut Datastore) -> Result<(), UpdateError> {
        if let Some(mut record) = copy.module_record() {
            record.program_hash = self.program.hash;
            record.program = Vec::new();
            copy.set_module_record(&record)?;
        }
        let stored = copy.environment();
        let variables = self
            .environment
            .applied_to(stored, self.options.sealing())?;
        Ok(copy.set_environment(&variables)?)
    }

    /// Migrates all rows of the copy, as a backfill does behind the running module, in batches too. Gives how long that took.
    fn backfill(
        &self,
        around: &Surroundings<'_>,
        copy: &mut Datastore,
    ) -> Result<Duration, UpdateError> {
        let (options, plan) = (&self.options, &self.plan);
        let environment = options.environment();
        let (started, started_us) = (environment.instant(), environment.now().0);
        let record = BackfillRecord {
            started_us,
            program_kind: self.program.kind as u8,
            program: Vec::new(),
            environment: Vec::new(),
        };
        let mut output = CommitOutput::default();
        copy.begin();
        copy.begin_backfill(&self.program.def, plan, &record)?;
        copy.commit(&mut output)?;
        let copied_bytes = copy.heap_bytes() as u64;
        let of = (&*self.program, plan);
        let mut backfill = Backfill::new(copy, options, of, started_us, around.console.clone())?;
        loop {
            output.clear();
            copy.begin();
            let until = environment.instant() + BACKFILL_BATCH;
            let is_done = backfill.batch(copy, environment, until)?;
            copy.commit(&mut output)?;
            if is_done {
                return Ok(environment.instant() - started);
            }
            if !around.may_go_on() {
                return Err(MigrationError::TooLong.into());
            }
            let bytes = (copy.heap_bytes() as u64).saturating_sub(copied_bytes);
            let left = options.limits.migration_bytes_max;
            if bytes > left {
                let table = backfill.table(copy).unwrap_or_default().to_owned();
                return Err(MigrationError::TooLarge { table, bytes, left }.into());
            }
        }
    }
}
