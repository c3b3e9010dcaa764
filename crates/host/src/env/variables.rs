//! `env_get` (2.11): variables of the environment. For all else of a module the table that holds them is not there.

use lightcone_engine::ST_ENV_ID;
use lightcone_schema::{is_environment_key, ENVIRONMENT_KEY_BYTES_MAX};

use super::HostEnv;
use crate::{AbiError, ConsoleLevel, Errno, HostTrap, Waiting};

/// A call may hold so many sources when it opens one for a value.
const SOURCES_MAX: usize = 256;

impl HostEnv {
    /// What is wrong with a key by its length alone, which is looked at before guest memory is.
    pub fn check_variable_length(bytes: usize) -> Result<(), AbiError> {
        match (1..=ENVIRONMENT_KEY_BYTES_MAX).contains(&bytes) {
            true => Ok(()),
            false => Err(Errno::HOST_CALL_FAILURE.into()),
        }
    }

    /// The first part of `env_get`: what to wait for. A procedure without a transaction gets the tables for this one call.
    pub fn ask_variable(&mut self, key: &str) -> Result<Option<Waiting>, AbiError> {
        HostEnv::check_variable_length(key.len())?;
        if !is_environment_key(key) {
            return Err(Errno::HOST_CALL_FAILURE.into());
        }
        // A submodule's names are behind its namespace.
        let function = self.function.as_deref().unwrap_or_default();
        if !self.access.is_lent() || function.contains('.') {
            return Err(HostTrap::EnvironmentAccess.into());
        }
        match self.access.has_tables() {
            true => Ok(None),
            // It changes nothing, so it may do so whatever it has committed.
            false => self.access.ask_transaction(usize::MAX),
        }
    }

    /// Its second part, after the wait: the value; none for an optional variable without one.
    pub fn variable(&mut self, key: &str) -> Result<Option<String>, AbiError> {
        let is_own = !self.access.has_tables();
        if is_own {
            self.access.begin()?;
        }
        let found = self.find_variable(key);
        if is_own {
            self.access.rollback()?;
        }
        found
    }

    /// The same as a source, which an empty value has too; 0 without a value.
    pub fn variable_source(&mut self, key: &str) -> Result<u32, AbiError> {
        let Some(value) = self.variable(key)? else {
            return Ok(0);
        };
        if self.sources.count() >= SOURCES_MAX {
            return Err(Errno::NO_SPACE.into());
        }
        let limits = &self.config.limits;
        self.sources
            .may_hold(value.len(), limits.source_bytes_max)?;
        Ok(self
            .sources
            .open_any(value.as_bytes(), limits.sources_max)?)
    }

    fn find_variable(&mut self, key: &str) -> Result<Option<String>, AbiError> {
        let datastore = self.access.read()?;
        if let Some(reads) = &mut self.reads {
            reads.table(ST_ENV_ID);
        }
        let program = self.config.program.as_ref();
        let program = program.ok_or(HostTrap::EnvironmentAccess)?;
        let optional = program.variables.get(key);
        let optional = *optional.ok_or(HostTrap::UndeclaredVariable)?;
        if datastore.program_hash() != Some(program.hash) {
            return Err(HostTrap::ProgramReplaced.into());
        }
        let kept = match datastore.environment_variable(key) {
            None if !optional => return Err(HostTrap::MissingVariable.into()),
            None => return Ok(None),
            Some(kept) => kept,
        };
        let database = &self.config.database_identity;
        match program.secrets.open(database, key, kept) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                // For the publisher: clients are not told which one it is.
                let text = error.to_string();
                self.log(ConsoleLevel::Error, None, None, None, &text, None);
                Err(HostTrap::Secret.into())
            }
        }
    }
}
