//! The steps of a migration (02 §14.5), on the tables of a database or on a copy that is thrown away.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{Datastore, DatastoreSnapshot, MigrationWork};
use lightcone_schema::{MigrationPlan, ModuleDef, Step};
use lightcone_types::{Hash, TableId};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::error::UpdateError;
use crate::handle::DatabaseHandle;
use crate::inbox::Command;
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
    /// Rows that were looked at, copied or put into an index.
    pub rows: u64,
    pub time: Duration,
}

/// Takes the steps of a plan in the open transaction, after what must hold before the first one. `before` hears of each step that
/// is to be taken.
///
/// # Errors
/// A step failed. The transaction is only good for a rollback then.
pub(crate) fn take_steps(
    datastore: &mut Datastore,
    options: &DatabaseOptions,
    (old, new): (&ModuleDef, &ModuleDef),
    plan: &MigrationPlan,
    mut before: impl FnMut(&Step),
) -> Result<Vec<StepReport>, UpdateError> {
    let environment = &*options.commons.environment;
    let (started, time_max) = (environment.instant(), options.limits.migration_time_max);
    let mut may_go_on = || environment.instant() - started < time_max;
    let mut work = MigrationWork::new(options.limits.migration_bytes_max, &mut may_go_on);
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
        let since = environment.instant();
        match step {
            Step::AddRowLevelSecurity { sql } => {
                let checked = match rules.take() {
                    Some(checked) => checked,
                    None => check_rules(datastore, new, options)?,
                };
                add_rule(datastore, &checked, sql)?;
                rules = Some(checked);
            }
            step => datastore.migrate(step, new, &mut work).map_err(refused)?,
        }
        reports.push(StepReport {
            step: step.clone(),
            rows: work.take_rows(),
            time: environment.instant() - since,
        });
    }
    Ok(reports)
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
        prepared: &PreparedUpdate,
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
        let (plan, new) = (plan.clone(), prepared.def().clone());
        let (reply, reports) = oneshot::channel();
        let options = shared.options.clone();
        let work = move || {
            // Whoever asked may be gone by now.
            let _ = reply.send(rehearse(&frozen, &options, (&old, &new), &plan));
        };
        shared.environment().spawn_blocking(Box::new(work));
        reports.await.map_err(cancelled)?
    }
}

fn rehearse(
    frozen: &DatastoreSnapshot,
    options: &DatabaseOptions,
    (old, new): (&Arc<ModuleDef>, &Arc<ModuleDef>),
    plan: &MigrationPlan,
) -> Result<Vec<StepReport>, UpdateError> {
    let touched: FxHashSet<&str> = plan.steps.iter().filter_map(Step::table).collect();
    let bytes_max = options.limits.migration_bytes_max;
    let copied = Datastore::copy_of(frozen, bytes_max, |table| touched.contains(table));
    let mut copy = copied.map_err(|error| UpdateError::Refused(error.to_string()))?;
    options.configure(&mut copy);
    copy.begin();
    take_steps(&mut copy, options, (old, new), plan, |_| {})
}
