//! The steps of a migration (02 §14.5), on the tables of a database or on a copy that is thrown away.

use std::time::Duration;

use lightcone_engine::{Datastore, DatastoreError, MigrationWork};
use lightcone_schema::{MigrationPlan, ModuleDef, Step};
use lightcone_types::{Hash, TableId};

use crate::error::UpdateError;
use crate::migration_function::{self, Surroundings};
use crate::module::Program;
use crate::rules;
use crate::variables::EnvironmentChange;

/// A plan, the program that it leads away from, and what is changed of the environment with it.
#[derive(Clone)]
pub(crate) struct PlannedMigration {
    pub plan: MigrationPlan,
    pub from: Hash,
    pub environment: EnvironmentChange,
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

/// Takes the steps of a plan in the open transaction, after what must hold before the first one. `before` hears of each step that
/// is to be taken.
///
/// # Errors
/// A step failed. The transaction is only good for a rollback then.
pub(crate) fn take_steps(
    datastore: &mut Datastore,
    around: &Surroundings<'_>,
    work: &mut MigrationWork<'_>,
    (old, program): (&ModuleDef, &Program),
    plan: &MigrationPlan,
    before: impl FnMut(&Step),
) -> Result<Vec<StepReport>, UpdateError> {
    let taken = take(datastore, around, work, (old, program), plan, before);
    match taken {
        Err(_) if around.progress.is_cancelled() => Err(cancelled()),
        taken => taken,
    }
}

/// What a publisher is told whose migration was cancelled.
pub(crate) fn cancelled() -> UpdateError {
    UpdateError::Refused(
        "the migration was cancelled, and everything was taken back [LC0240]".to_owned(),
    )
}

fn take(
    datastore: &mut Datastore,
    around: &Surroundings<'_>,
    work: &mut MigrationWork<'_>,
    (old, program): (&ModuleDef, &Program),
    plan: &MigrationPlan,
    mut before: impl FnMut(&Step),
) -> Result<Vec<StepReport>, UpdateError> {
    let (options, new) = (around.options, &*program.def);
    let environment = options.environment();
    work.count(around.progress.rows());
    datastore.know_old_tables(new);
    datastore.check_tables(old)?;
    for step in &plan.steps {
        datastore.precheck(step, new, work)?;
    }
    let mut rules: Option<Vec<(TableId, String)>> = None;
    let mut reports = Vec::with_capacity(plan.steps.len());
    work.take_rows();
    for step in &plan.steps {
        before(step);
        around.progress.step(step.table());
        let since = environment.instant();
        datastore.migrate(step, new, work)?;
        let mut written = Vec::new();
        if *step == Step::RunMigration {
            let changes = datastore.change_count();
            datastore.carry_counters(plan)?;
            migration_function::run(datastore, around, (program, plan), around.time_left())?;
            written = datastore.changes_by_table(changes);
            datastore.settle_counters(&plan.added_tables(), work)?;
            work.take_rows();
        }
        if *step == Step::Backfill {
            written = end_backfill(datastore, plan, work)?;
        }
        if let Step::AddRowLevelSecurity { sql } = step {
            let checked = match rules.take() {
                Some(checked) => checked,
                None => rules::checked(datastore, new, options.owner)?,
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
    datastore.carry_counters(plan)?;
    let added = plan.added_tables();
    datastore.settle_counters(&added, work)?;
    datastore.drop_backfill(work)?;
    work.take_rows();
    let rows = added.into_iter().filter_map(|table| {
        let id = datastore.table_id_from_name(table)?;
        let rows = datastore.row_count(id).ok().filter(|rows| *rows > 0)?;
        Some((table.to_owned(), rows))
    });
    Ok(rows.collect())
}

fn add_rule(
    datastore: &mut Datastore,
    checked: &[(TableId, String)],
    sql: &str,
) -> Result<(), DatastoreError> {
    match checked.iter().find(|(_, text)| text == sql) {
        Some((table, sql)) => datastore.put_row_level_security(*table, sql),
        None => Ok(()),
    }
}
