//! Publishing to a running database (02 §14.1).

use std::sync::Arc;

use lightcone_host::NullConsole;
use lightcone_schema::{diff, ModuleDef, RawVersion};
use lightcone_types::Hash;
use tokio::sync::oneshot;

use crate::error::{Error, UpdateError};
use crate::handle::DatabaseHandle;
use crate::inbox::Command;
use crate::loads::Purpose;
use crate::module::Program;
use crate::options::HostKind;
use crate::rules;

/// What publishing to a running database did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Unchanged,
    Updated,
}

/// What publishing a program would do.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// The differences of the schema, which refuse the update; none if it can go ahead.
    pub differences: Option<String>,
    pub major_version_upgrade: bool,
}

/// A program that was loaded to take the place of the running one.
pub struct PreparedUpdate(Box<Program>);

impl DatabaseHandle {
    /// What publishing this program would do. Blocks while it compiles; run it on a thread that may block.
    ///
    /// # Errors
    /// The program is no module.
    pub fn plan_update(&self, program: &[u8], kind: HostKind) -> Result<UpdatePlan, Error> {
        let config = self.shared.options.host_config(Arc::new(NullConsole));
        let program = Program::load(
            &self.shared.options,
            &config,
            program.into(),
            kind,
            Purpose::Publish,
        )?;
        let current = self.shared.module();
        Ok(UpdatePlan {
            differences: differences(current.def(), &program.def),
            major_version_upgrade: current.def().version == RawVersion::V9
                && program.def.version == RawVersion::V10,
        })
    }

    /// Replaces the program if its schema is the same; clients stay connected (02 §14.1).
    ///
    /// # Errors
    /// The program is no module, its schema differs, or the log failed. The old program keeps running.
    pub async fn update(
        &self,
        program: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<UpdateOutcome, UpdateError> {
        if Hash::keccak256(&program) == self.program_hash() {
            return Ok(UpdateOutcome::Unchanged);
        }
        let prepared = self.prepare_update(program, kind).await?;
        self.replace(prepared).await
    }

    /// The first half of [`DatabaseHandle::update`]: compiles and loads the program, which changes nothing yet.
    ///
    /// # Errors
    /// The program is no module, or does not end loading.
    pub async fn prepare_update(
        &self,
        program: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<PreparedUpdate, UpdateError> {
        let shared = self.shared.clone();
        let (reply, loaded) = oneshot::channel();
        let load = move || {
            let options = &shared.options;
            let config = options.host_config(shared.log.clone());
            let loaded = Program::load(options, &config, program, kind, Purpose::Publish);
            // Whoever publishes may be gone by now.
            let _ = reply.send(loaded);
        };
        self.shared.environment().spawn_blocking(Box::new(load));
        match loaded.await {
            Ok(Ok(program)) => Ok(PreparedUpdate(Box::new(program))),
            Ok(Err(Error::Load(error))) if error.is_busy() => {
                Err(UpdateError::Busy(error.to_string()))
            }
            Ok(Err(error)) => Err(UpdateError::Module(error.to_string())),
            Err(_) => Err(UpdateError::Database(
                "loading the module failed [LC0308]".to_owned(),
            )),
        }
    }

    /// The second half of [`DatabaseHandle::update`]. An update that is given up before the writer came to it is not made.
    ///
    /// # Errors
    /// The schema differs, or the log failed. The old program keeps running.
    pub async fn replace(&self, prepared: PreparedUpdate) -> Result<UpdateOutcome, UpdateError> {
        let program = prepared.0;
        let current = self.shared.module();
        if let Some(mut text) = differences(current.def(), &program.def) {
            // Rules that stay as they are were checked when they came, or came before anybody checked them.
            if current.def().row_level_security != program.def.row_level_security {
                if let Err(error) = rules::check(&program.def, self.shared.options.owner) {
                    text.push_str(&error.to_string());
                }
            }
            return Err(UpdateError::Rejected(text));
        }
        let (reply, result) = oneshot::channel();
        let gone = || UpdateError::Database("no such module".to_owned());
        let sent = self
            .shared
            .inbox
            .command(Command::Replace { program, reply });
        sent.map_err(|_| gone())?;
        result.await.map_err(|_| gone())??;
        Ok(UpdateOutcome::Updated)
    }
}

fn differences(old: &ModuleDef, new: &ModuleDef) -> Option<String> {
    let diff = diff(old, new);
    (!diff.is_empty()).then(|| format!("Errors occurred:\n{diff}\nAutomatic migration is not supported yet; publish with --delete-data to start over [LC0220]\n\n"))
}
