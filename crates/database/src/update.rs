//! Publishing to a running database (02 §14.1).

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_host::{ConsoleSink, NullConsole};
use lightcone_schema::{
    migration_token, plan, MigrationPlan, ModuleDef, PlanStyle, RawVersion, Refused,
};
use lightcone_types::{Hash, Identity};
use tokio::sync::oneshot;

use crate::due::acts_by_itself;
use crate::error::{Error, UpdateError};
use crate::handle::DatabaseHandle;
use crate::inbox::{Input, TableRows};
use crate::loads::Purpose;
use crate::migration::PlannedMigration;
use crate::migration_progress::MigrationStatus;
use crate::module::{Program, ProgramBytes};
use crate::options::HostKind;
use crate::replies::Waiter;
use crate::rules;
use crate::variables::{EnvironmentChange, EnvironmentMetadata};

/// What publishing to a running database did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Unchanged,
    Updated,
}

/// How far an update is.
pub enum Begun {
    /// The new program runs.
    Ended,
    /// Rows are migrated one by one, and the old program runs until they are.
    Backfill(BackfillEnd),
}

/// The end of a backfill. Dropping it does not end the backfill.
pub struct BackfillEnd(oneshot::Receiver<Result<(), UpdateError>>);

impl BackfillEnd {
    /// Waits until the new program runs.
    ///
    /// # Errors
    /// The backfill has failed or was cancelled; or the database was closed, and it goes on when that is opened again.
    pub async fn wait(self) -> Result<(), UpdateError> {
        self.0.await.unwrap_or_else(|_| {
            Err(UpdateError::Busy("the database was closed before all rows were migrated; if it was not deleted or cleared, that goes on when it is opened again, \
                 and publishing the same module again waits for its end [LC0251]".to_owned()))
        })
    }
}

/// What an update may do to clients (02 §14.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing: a plan that disconnects them is refused.
    Compatible,
    /// Whatever the plan says for which this token was made.
    BreakClients { token: Hash },
}

/// A program that was loaded to take the place of the running one, and what is changed of the environment with it.
pub struct PreparedUpdate {
    program: Box<Program>,
    environment: EnvironmentChange,
}

impl PreparedUpdate {
    #[must_use]
    pub fn with_environment(self, environment: EnvironmentChange) -> PreparedUpdate {
        PreparedUpdate {
            environment,
            ..self
        }
    }

    pub(crate) fn into_parts(self) -> (Box<Program>, EnvironmentChange) {
        (self.program, self.environment)
    }
}

/// What publishing a program would do.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// The steps, or why there are none.
    pub migration: Result<MigrationPlan, Refused>,
    /// Confirms it.
    pub token: Hash,
    pub major_version_upgrade: bool,
    /// The hash of the program that it leads away from.
    from: Hash,
    old: Arc<ModuleDef>,
    new: Arc<ModuleDef>,
}

impl UpdatePlan {
    /// The steps as people read them.
    pub fn text(&self, migration: &MigrationPlan, style: PlanStyle) -> String {
        migration.text(&self.old, &self.new, style)
    }

    /// The columns of a table that the running program does not have.
    pub fn added_columns(&self, table: &str) -> Vec<&str> {
        let (Some(old), Some(new)) = (self.old.table(table), self.new.table(table)) else {
            return Vec::new();
        };
        let known: HashSet<&str> = old.columns.iter().map(|c| c.name.as_str()).collect();
        let names = new.columns.iter().map(|column| column.name.as_str());
        names.filter(|name| !known.contains(name)).collect()
    }

    /// Whether the new program has this table.
    pub fn has_table(&self, table: &str) -> bool {
        self.new.table(table).is_some()
    }

    /// Whether the rows of an old table are given to a function one by one; none: all rows are to one function.
    pub fn has_row_function(&self, old: &str) -> Option<bool> {
        let migration = self.new.migration.as_ref()?;
        let has_function = migration.row_function(old).is_some();
        migration.is_by_rows().then_some(has_function)
    }

    /// The plan, if the policy allows it.
    fn allowed(&self, policy: Policy) -> Result<&MigrationPlan, UpdateError> {
        let migration = self.migration.as_ref();
        let migration = migration.map_err(|refused| UpdateError::Rejected(refused.to_string()))?;
        match policy {
            Policy::Compatible if migration.breaks_clients() => Err(UpdateError::Refused(
                "Migration plan contains a client-breaking change which is disallowed under current policy".to_owned(),
            )),
            Policy::BreakClients { token } if token != self.token => Err(UpdateError::Refused(
                "Token provided is invalid or does not match expected hash".to_owned(),
            )),
            Policy::Compatible | Policy::BreakClients { .. } => Ok(migration),
        }
    }

    /// Looks at the rules of the new program, unless they and all tables stay as they are: then they were checked when they
    /// came, or came before rules were checked.
    ///
    /// # Errors
    /// A rule is no query over the new program's tables.
    fn check_rules(&self, migration: &MigrationPlan, owner: Identity) -> Result<(), UpdateError> {
        if migration.keeps_schema(&self.old, &self.new) {
            return Ok(());
        }
        Ok(rules::check(&self.new, owner)?)
    }
}

impl DatabaseHandle {
    /// Publishes a program whatever that means for clients.
    ///
    /// # Errors
    /// As [`DatabaseHandle::replace`].
    pub async fn update(
        &self,
        program: impl Into<ProgramBytes>,
        kind: HostKind,
    ) -> Result<UpdateOutcome, UpdateError> {
        let program = program.into();
        if program.hash() == self.program_hash() {
            return Ok(UpdateOutcome::Unchanged);
        }
        let prepared = self.prepare_update(program, kind).await?;
        let token = self.plan_update(&prepared).token;
        let policy = Policy::BreakClients { token };
        self.replace(prepared, policy).await
    }

    /// The first half of an update: compiles and loads the program, which changes nothing yet.
    ///
    /// # Errors
    /// The program is no module, or does not end loading.
    pub async fn prepare_update(
        &self,
        program: impl Into<ProgramBytes>,
        kind: HostKind,
    ) -> Result<PreparedUpdate, UpdateError> {
        self.prepare(program.into(), kind, self.shared.log.clone())
            .await
    }

    /// The same for a program that is looked at only: what it logs while it is loaded is dropped.
    ///
    /// # Errors
    /// As [`DatabaseHandle::prepare_update`].
    pub async fn prepare_plan(
        &self,
        program: impl Into<ProgramBytes>,
        kind: HostKind,
    ) -> Result<PreparedUpdate, UpdateError> {
        let silent = Arc::new(NullConsole);
        self.prepare(program.into(), kind, silent).await
    }

    async fn prepare(
        &self,
        program: ProgramBytes,
        kind: HostKind,
        console: Arc<dyn ConsoleSink>,
    ) -> Result<PreparedUpdate, UpdateError> {
        let shared = self.shared.clone();
        let loaded = self.shared.elsewhere(move || {
            let options = &shared.options;
            let config = options.host_config(console);
            Program::load(options, &config, program, kind, Purpose::Publish)
        });
        match loaded.await {
            Some(Ok(program)) => Ok(PreparedUpdate {
                program: Box::new(program),
                environment: EnvironmentChange::default(),
            }),
            Some(Err(Error::Load(error))) if error.is_busy() => {
                Err(UpdateError::Busy(error.to_string()))
            }
            Some(Err(error)) => Err(UpdateError::Module(error.to_string())),
            None => Err(UpdateError::Database(
                "loading the module failed [LC0308]".to_owned(),
            )),
        }
    }

    /// What publishing this program would do to the database as it is now.
    pub fn plan_update(&self, prepared: &PreparedUpdate) -> UpdatePlan {
        let current = self.shared.module();
        let (old, new) = (&current.program, &prepared.program);
        UpdatePlan {
            migration: plan(&old.def, &new.def),
            token: migration_token(self.shared.options.identity, old.hash, new.hash),
            major_version_upgrade: old.def.version == RawVersion::V9
                && new.def.version == RawVersion::V10,
            from: old.hash,
            old: old.def.clone(),
            new: new.def.clone(),
        }
    }

    /// Which variables of the environment there are.
    ///
    /// # Errors
    /// The database ends.
    pub async fn environment(&self) -> Result<EnvironmentMetadata, UpdateError> {
        let permit = self.shared.inbox.capacity.permit(0).await?;
        let metadata = self.shared.ask(Some(permit), false, Input::Environment);
        Ok(metadata.await?)
    }

    /// Changes variables of the running program, if that is the expected one. Views are evaluated anew; nothing is restarted.
    ///
    /// # Errors
    /// Another program runs, the variables are not what it declares, a view in use fails, or the log does.
    pub async fn change_environment(
        &self,
        change: EnvironmentChange,
        expected: Option<Hash>,
    ) -> Result<UpdateOutcome, UpdateError> {
        let input = |waiter| Input::ChangeEnvironment(Box::new((change, expected)), waiter);
        Ok(match self.shared.ask(None, true, input).await?? {
            true => UpdateOutcome::Updated,
            false => UpdateOutcome::Unchanged,
        })
    }

    /// How many rows each table of the module has, in order of their names.
    ///
    /// # Errors
    /// The database ends.
    pub async fn table_rows(&self) -> Result<Vec<TableRows>, UpdateError> {
        let permit = self.shared.inbox.capacity.permit(0).await?;
        let rows = self.shared.ask(Some(permit), false, Input::TableRows);
        Ok(rows.await?)
    }

    /// What the migration that runs does, and how the last one ended since the database was opened.
    pub fn migration_status(&self) -> MigrationStatus {
        let now = self.shared.environment().instant();
        self.shared.status.migration.status(now)
    }

    /// Ends the migration that runs: all is as before then, and the publisher hears of it. False: none runs, or its
    /// transaction ends already.
    pub fn cancel_migration(&self) -> bool {
        self.shared.status.migration.cancel()
    }

    /// Is the writer at an update?
    pub fn is_updating(&self) -> bool {
        self.shared.status.is_updating()
    }

    /// Are rows migrated one by one behind the running module?
    pub fn is_backfilling(&self) -> bool {
        self.shared.status.migration.is_backfill()
    }

    /// What of a plan fails whatever the data are.
    ///
    /// # Errors
    /// A rule of row-level security is no query over the new program's tables.
    pub fn check_plan(&self, plan: &UpdatePlan) -> Result<(), UpdateError> {
        match &plan.migration {
            Ok(migration) => plan.check_rules(migration, self.shared.options.owner),
            Err(_) => Ok(()),
        }
    }

    /// The second half of an update. One that is given up before the writer came to it is not made.
    ///
    /// # Errors
    /// There is no plan, the policy forbids it, a step failed, or the log did. The old program keeps running.
    pub async fn replace(
        &self,
        prepared: PreparedUpdate,
        policy: Policy,
    ) -> Result<UpdateOutcome, UpdateError> {
        match self.begin_to_replace(prepared, policy).await? {
            Begun::Ended => {}
            Begun::Backfill(end) => end.wait().await?,
        }
        Ok(UpdateOutcome::Updated)
    }

    /// The same, but does not wait for rows that are migrated one by one: they may take hours.
    ///
    /// # Errors
    /// As [`DatabaseHandle::replace`].
    pub async fn begin_to_replace(
        &self,
        prepared: PreparedUpdate,
        policy: Policy,
    ) -> Result<Begun, UpdateError> {
        let (prepared, plan, from) = self.planned(prepared, policy).await?;
        let (ended, end) = match plan.is_backfill() {
            true => Some(Waiter::new(None, true)).unzip(),
            false => (None, None),
        };
        let publish = |waiter| Input::Publish {
            program: prepared.program,
            planned: PlannedMigration {
                plan,
                from,
                environment: prepared.environment,
            },
            waiter,
            ended,
        };
        self.shared.ask(None, true, publish).await??;
        Ok(match end {
            Some(end) => Begun::Backfill(BackfillEnd(end)),
            None => Begun::Ended,
        })
    }

    /// All that is decided without the data, on a thread that may take its time: a definition may be large.
    async fn planned(
        &self,
        prepared: PreparedUpdate,
        policy: Policy,
    ) -> Result<(PreparedUpdate, MigrationPlan, Hash), UpdateError> {
        let handle = self.clone();
        let planned = self.shared.elsewhere(move || {
            let plan = handle.plan_update(&prepared);
            let checked = plan.allowed(policy).and_then(|migration| {
                plan.check_rules(migration, handle.shared.options.owner)?;
                Ok(migration.clone())
            });
            let migration = checked?;
            handle.note_to_be_opened(&plan, &migration)?;
            Ok((prepared, migration, plan.from))
        });
        planned.await.ok_or(UpdateError::Cancelled)?
    }

    /// A database that may act by itself, or whose rows are being migrated, is opened when the server starts. That is noted before
    /// the writer has anything of it, as it takes the disk.
    fn note_to_be_opened(
        &self,
        plan: &UpdatePlan,
        migration: &MigrationPlan,
    ) -> Result<(), UpdateError> {
        if !migration.is_backfill() && !acts_by_itself(&plan.new) {
            return Ok(());
        }
        let noted = self.shared.options.note_open();
        noted.map_err(|error| UpdateError::Database(error.to_string()))
    }
}
