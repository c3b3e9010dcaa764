//! Variables of the environment (2.11): what a publisher changes of them, and what they have to be for a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lightcone_schema::raw::RawEnvironmentDeclarationV10;
use lightcone_schema::{
    is_environment_key, ModuleDef, ENVIRONMENT_KEYS_MAX, ENVIRONMENT_KEY_BYTES_MAX,
    ENVIRONMENT_VALUE_BYTES_MAX,
};
use lightcone_types::Hash;

/// Which variables go before others are set.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum RemovedVariables {
    #[default]
    None,
    All,
    Keys(BTreeSet<String>),
}

/// What a publisher changes. It never shows a value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvironmentChange {
    set: BTreeMap<String, String>,
    removed: RemovedVariables,
}

impl fmt::Debug for EnvironmentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.set.keys()).finish()
    }
}

/// Why variables are not changed. No text has a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("environment key {0:?} must be a letter or `_`, followed by letters, digits and `_`, and have at most {ENVIRONMENT_KEY_BYTES_MAX} bytes [LC0258]")]
    Key(String),
    #[error("the value of environment key `{key}` has {bytes} bytes, and at most {ENVIRONMENT_VALUE_BYTES_MAX} are allowed [LC0258]")]
    ValueTooLong { key: String, bytes: usize },
    #[error("environment key `{0}` is set or removed more than once [LC0258]")]
    Repeated(String),
    #[error("the database would have {0} environment variables, and at most {ENVIRONMENT_KEYS_MAX} are allowed [LC0258]")]
    TooMany(usize),
    #[error(
        "the value of environment key `{0}` is none of those that the module declares [LC0258]"
    )]
    NotDeclared(String),
    #[error("required environment variables have no value: {}; set them with `spacetime publish --env-file` or in `env` of spacetime.json [LC0259]", .0.join(", "))]
    MissingRequired(Vec<String>),
    #[error("this update migrates rows one by one, and the environment cannot be changed with it: set the variables with `spacetime env set` first, and publish then [LC0258]")]
    WithBackfill,
    /// The program that the caller knows is not the one that runs.
    #[error("database program changed before publication; reload environment metadata and retry")]
    VersionConflict,
}

impl EnvironmentChange {
    /// # Errors
    /// A key or value that none can be, or a key that is both set and removed.
    pub fn new(
        set: BTreeMap<String, String>,
        removed: RemovedVariables,
    ) -> Result<EnvironmentChange, EnvironmentError> {
        let none = BTreeSet::new();
        let removed_keys = match &removed {
            RemovedVariables::Keys(keys) => keys,
            RemovedVariables::None | RemovedVariables::All => &none,
        };
        let is_key = |key: &str| key.len() <= ENVIRONMENT_KEY_BYTES_MAX && is_environment_key(key);
        if let Some(wrong) = set.keys().chain(removed_keys).find(|key| !is_key(key)) {
            let shown = wrong.chars().take(ENVIRONMENT_KEY_BYTES_MAX).collect();
            return Err(EnvironmentError::Key(shown));
        }
        let is_long = |value: &str| value.len() > ENVIRONMENT_VALUE_BYTES_MAX;
        if let Some((key, value)) = set.iter().find(|(_, value)| is_long(value)) {
            let (key, bytes) = (key.clone(), value.len());
            return Err(EnvironmentError::ValueTooLong { key, bytes });
        }
        if let Some(key) = removed_keys.iter().find(|key| set.contains_key(*key)) {
            return Err(EnvironmentError::Repeated(key.clone()));
        }
        Ok(EnvironmentChange { set, removed })
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed == RemovedVariables::None
    }

    /// The variables after the change. What a module does not declare is kept too.
    pub(crate) fn applied_to(&self, stored: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut variables = stored;
        match &self.removed {
            RemovedVariables::None => {}
            RemovedVariables::All => variables.clear(),
            RemovedVariables::Keys(keys) => variables.retain(|key, _| !keys.contains(key)),
        }
        variables.extend(self.set.clone());
        variables
    }

    /// The same, if a program may run with them.
    pub(crate) fn checked(
        &self,
        stored: BTreeMap<String, String>,
        def: &ModuleDef,
    ) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let variables = self.applied_to(stored);
        if variables.len() > ENVIRONMENT_KEYS_MAX {
            return Err(EnvironmentError::TooMany(variables.len()));
        }
        let mut missing = Vec::new();
        for (key, declared) in def.environment() {
            match variables.get(key) {
                Some(value) if !declared.ty.permits(value) => {
                    return Err(EnvironmentError::NotDeclared(key.clone()))
                }
                None if !declared.optional => missing.push(key.clone()),
                _ => {}
            }
        }
        match missing.is_empty() {
            true => Ok(variables),
            false => Err(EnvironmentError::MissingRequired(missing)),
        }
    }
}

/// What is known of the variables of a database, without their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentMetadata {
    pub program_hash: Hash,
    /// In order of their names.
    pub declarations: Vec<RawEnvironmentDeclarationV10>,
    /// In order.
    pub stored_keys: Vec<String>,
}
