//! A backfill behind the running module (02 §14.9): it begins, takes its turns between rounds, follows every transaction, and ends with
//! the new program in place, or with everything as before. The running module is never refused anything because of it.

use std::time::{Duration, Instant};

use lightcone_engine::{BackfillRecord, DatastoreError, MigrationWork};

use super::running_backfill::{Ended, RunningBackfill};
use super::timers::Timer;
use super::Writer;
use crate::backfill::{Backfill, Failure, Resumed};
use crate::error::UpdateError;
use crate::migration::{cancelled, PlannedMigration};
use crate::module::Program;
use crate::variables::{EnvironmentChange, EnvironmentError};

/// Those who publish the same program again wait too: so many at a time.
const WAITING_MAX: usize = 64;

impl Writer {
    // ---- Beginning ------------------------------------------------------------------------------------------------------

    /// A publish whose rows are migrated first: begins that, or waits for the same that goes on already.
    pub(super) fn begin_backfill(
        &mut self,
        program: Program,
        mut planned: PlannedMigration,
        ended: Ended,
    ) -> Result<(), UpdateError> {
        self.may_replace(&planned, &program)?;
        let (change, sealing) = (&planned.environment, self.shared.options.sealing());
        if let Some(running) = &mut self.state.backfill {
            running.waiting.retain(|waiting| !waiting.is_given_up());
            if running.waiting.len() >= WAITING_MAX {
                return Err(UpdateError::Busy(format!(
                    "{WAITING_MAX} publishes wait for the end of this migration already; `spacetime migrate status` says how far it is [LC0244]"
                )));
            }
            let kept = &running.planned.environment;
            if !change.is_empty() && !change.is_kept_as(kept, sealing)? {
                return Err(EnvironmentError::OtherBackfill.into());
            }
            running.waiting.push(ended);
            return Ok(());
        }
        // What it lacks now it would lack when all rows are migrated, too.
        let stored = self.datastore.environment();
        change.checked(stored.clone(), &program.def, sealing)?;
        // Kept with the program, so that it is made whenever the rows are done.
        planned.environment = change.sealed(&stored, sealing)?;
        // What is prepared here takes its time: no other client's answer waits for it.
        self.end_round();
        let record = BackfillRecord {
            started_us: self.now.time.0,
            program_kind: program.kind as u8,
            program: program.bytes.to_vec(),
            environment: planned.environment.to_bytes(),
        };
        self.make_backfill_tables(&program, &planned, &record)?;
        let started = self.start_backfill(program, planned, record.started_us);
        if let Err(failure) = started {
            self.drop_backfill();
            return Err(failure.into());
        }
        if let Some(running) = &mut self.state.backfill {
            running.waiting.push(ended);
        }
        self.shared
            .log
            .info("Migrating rows one by one, while the module runs");
        Ok(())
    }

    fn make_backfill_tables(
        &mut self,
        program: &Program,
        planned: &PlannedMigration,
        record: &BackfillRecord,
    ) -> Result<(), UpdateError> {
        let def = self.module.def().clone();
        self.change(|datastore| {
            datastore.check_tables(&def)?;
            Ok(datastore.begin_backfill(&program.def, &planned.plan, record)?)
        })
    }

    fn start_backfill(
        &mut self,
        program: Program,
        planned: PlannedMigration,
        started_us: i64,
    ) -> Result<(), Failure> {
        let (options, console) = (&self.shared.options, self.shared.log.clone());
        let of = (&program, &planned.plan);
        let mut work = Backfill::new(&self.datastore, options, of, started_us, console)?;
        let now = self.now.instant;
        let progress = &self.shared.status.migration;
        progress.begin_backfill(now, work.interrupt());
        progress.backfilled(work.table(&self.datastore), self.datastore.backfilled());
        self.state.backfill = Some(Box::new(RunningBackfill {
            work,
            program,
            planned,
            waiting: Vec::new(),
            failure: None,
            next_batch: now,
        }));
        Ok(())
    }

    /// After opening, before any transaction: the backfill goes on, or what one has left goes.
    pub(crate) fn resume_backfill(&mut self, resumed: Option<Result<Resumed, Failure>>) {
        if !self.datastore.has_backfill_tables() || self.shared.status.is_read_only() {
            return;
        }
        let reason = match resumed {
            Some(Ok(resumed)) => match self.go_on_with(resumed) {
                Ok(()) => {
                    self.shared.log.info("Going on to migrate rows one by one");
                    return;
                }
                Err(failure) => failure,
            },
            Some(Err(failure)) => failure,
            // It had ended, and its tables were to go next.
            None => return self.drop_backfill(),
        };
        let now = self.now.instant;
        self.shared.status.migration.begin_backfill(now, None);
        self.end_backfill(reason.into(), Vec::new());
    }

    fn go_on_with(&mut self, resumed: Resumed) -> Result<(), Failure> {
        let Resumed { program, record } = resumed;
        let plan = lightcone_schema::plan(self.module.def(), &program.def);
        let plan = plan.map_err(Failure::other)?;
        if !plan.is_backfill() {
            return Err(Failure::other(
                "this version of the server plans the update in another way",
            ));
        }
        let environment = EnvironmentChange::from_bytes(&record.environment);
        let environment = environment.ok_or_else(|| {
            Failure::other("this version of the server cannot read the change of the environment that goes with it")
        })?;
        let planned = PlannedMigration {
            plan,
            from: self.module.program.hash,
            environment,
        };
        self.start_backfill(program, planned, record.started_us)
    }

    /// Whether another program than that of a backfill that goes on may take over.
    pub(super) fn may_replace(
        &self,
        planned: &PlannedMigration,
        program: &Program,
    ) -> Result<(), UpdateError> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(UpdateError::Database(reason));
        }
        if self.shared.status.migration.is_stopping() {
            return Err(UpdateError::Cancelled);
        }
        if self.module.program.hash != planned.from {
            return Err(UpdateError::Refused("another program was published meanwhile, and this plan does not lead from that one: publish again [LC0231]".to_owned()));
        }
        let running = self.state.backfill.as_ref();
        match running.is_some_and(|running| running.program.hash != program.hash) {
            true => Err(UpdateError::Refused("another module was published, and the rows of this database are being migrated to it one by one (`spacetime migrate status`); \
                 wait for its end, or end it with `spacetime migrate cancel` [LC0244]".to_owned())),
            false => Ok(()),
        }
    }

    // ---- Turns ----------------------------------------------------------------------------------------------------------

    /// Between two rounds.
    #[inline]
    pub(super) fn tend_backfill(&mut self) {
        if self.state.backfill.is_some() {
            self.go_on_with_backfill();
        }
    }

    #[cold]
    fn go_on_with_backfill(&mut self) {
        self.state.timers.set(Timer::Backfill, None);
        let progress = &self.shared.status.migration;
        let (is_stopping, is_cancel_asked) = (progress.is_stopping(), progress.is_cancel_asked());
        let ends = self.state.stop.is_some() || self.state.failed || is_stopping;
        let Some(mut running) = self.state.backfill.take() else {
            return;
        };
        if ends || self.shared.status.is_read_only() {
            self.state.backfill = Some(running);
            return;
        }
        if is_cancel_asked {
            return self.end_backfill(cancelled(), running.waiting);
        }
        if let Some(failure) = running.failure.take() {
            return self.end_backfill(failure.into(), running.waiting);
        }
        let now = self.now.instant;
        if now < running.next_batch {
            self.state
                .timers
                .set(Timer::Backfill, Some(running.next_batch));
            self.state.backfill = Some(running);
            return;
        }
        self.state.has_worked = true;
        let started = self.clock();
        match self.run_batch(&mut running, started) {
            Ok(false) => {
                let ended = self.clock();
                let limits = &self.shared.options.limits;
                running.next_batch = ended + pause(ended - started, limits.backfill_share_percent);
                self.state
                    .timers
                    .set(Timer::Backfill, Some(running.next_batch));
                self.state.backfill = Some(running);
            }
            Ok(true) => self.switch(running),
            Err(_) if self.shared.status.migration.is_cancel_asked() => {
                self.end_backfill(cancelled(), running.waiting);
            }
            Err(failure) => self.end_backfill(failure.into(), running.waiting),
        }
    }

    /// One batch is one transaction.
    fn run_batch(
        &mut self,
        running: &mut RunningBackfill,
        started: Instant,
    ) -> Result<bool, Failure> {
        let shared = self.shared.clone();
        let until = started + shared.options.limits.backfill_batch_time;
        let environment = shared.environment();
        let is_done: Result<_, Failure> =
            self.change(|datastore| running.work.batch(datastore, environment, until));
        let is_done = is_done?;
        self.end_round();
        let work = &running.work;
        let progress = &shared.status.migration;
        progress.backfilled(work.table(&self.datastore), self.datastore.backfilled());
        Ok(is_done)
    }

    // ---- Ending ---------------------------------------------------------------------------------------------------------

    /// All rows are migrated: the new program takes over, in one transaction.
    fn switch(&mut self, running: Box<RunningBackfill>) {
        let (program, planned) = (running.program.clone(), running.planned.clone());
        self.shared.status.migration.end_backfill();
        self.shared.status.set_updating(true);
        let replaced = self.replace_at_once(program, planned);
        self.shared.status.set_updating(false);
        let progress = &self.shared.status.migration;
        if replaced.is_err() && progress.is_stopping() && !progress.is_cancel_asked() {
            // It goes on when the database is opened again, and who waits hears that. Calls that came before the end run yet.
            self.state.backfill = Some(running);
            return;
        }
        if let Err(error) = &replaced {
            // The steps were taken back, and what the backfill has made is left.
            tracing::warn!(database = %self.shared.options.identity, %error, "all rows were migrated, and the update failed");
            self.drop_backfill();
        }
        self.tell_of_end(&replaced, running.waiting);
        self.end_round();
    }

    /// Everything is as before.
    fn end_backfill(&mut self, error: UpdateError, waiting: Vec<Ended>) {
        self.drop_backfill();
        self.log_failed_update(&error);
        let failed = Err(error);
        // A database that stops is another matter.
        let was_cancelled = self.shared.status.migration.is_cancel_asked();
        self.end_migration(&failed, was_cancelled);
        self.tell_of_end(&failed, waiting);
        self.end_round();
    }

    /// The log has failed: it goes on when the database is opened again, and who waits for its end hears that nothing is written till then.
    #[cold]
    pub(super) fn leave_backfill(&mut self) {
        let waiting = match &mut self.state.backfill {
            Some(running) => std::mem::take(&mut running.waiting),
            None => return,
        };
        let reason = self.shared.status.read_only().unwrap_or_default();
        self.tell_of_end(&Err(UpdateError::Database(reason)), waiting);
        self.end_round();
    }

    fn tell_of_end(&mut self, result: &Result<(), UpdateError>, waiting: Vec<Ended>) {
        for reply in waiting {
            self.answer(reply, result.clone());
        }
    }

    /// What a backfill has made goes, in a transaction of its own.
    fn drop_backfill(&mut self) {
        let mut may_go_on = || true;
        let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
        let dropped = self.change(|datastore| datastore.drop_backfill(&mut work));
        let Err(error) = dropped else {
            return;
        };
        // They are looked for again when the database is opened; until then they take memory. Nothing follows the module any
        // more: this backfill must not go on then.
        let database = self.shared.options.identity;
        tracing::error!(%database, %error, "what a migration of rows has made cannot be dropped");
        let ended: Result<_, DatastoreError> = self.change(|datastore| {
            datastore.end_backfill();
            Ok(())
        });
        if let Err(error) = ended {
            tracing::error!(%database, %error, "the end of a migration of rows cannot be noted");
        }
    }
}

/// How long others have the writer after a batch that took `batch`.
fn pause(batch: Duration, share_percent: usize) -> Duration {
    let share = share_percent.clamp(1, 100) as u32;
    batch * (100 - share) / share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_time_leaves_four() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(1), 20), ms(4));
        assert_eq!(pause(ms(1), 100), Duration::ZERO);
        assert_eq!(pause(ms(1), 0), ms(99));
    }
}
