//! Variables of the environment (2.11): what a publisher changes of them, and what they have to be for a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lightcone_host::{SecretError, Secrets};
use lightcone_schema::raw::RawEnvironmentDeclarationV10;
use lightcone_schema::{
    is_environment_key, is_sealed, EnvironmentType, ModuleDef, ENVIRONMENT_KEYS_MAX,
    ENVIRONMENT_KEY_BYTES_MAX, ENVIRONMENT_VALUE_BYTES_MAX,
};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{Hash, Identity};

/// Values by key, as they are kept: those of secrets are sealed.
type Variables = BTreeMap<String, String>;

/// Seals and opens the secrets of a database.
#[derive(Clone, Copy)]
pub(crate) struct Sealing<'a> {
    pub secrets: &'a Secrets,
    pub database: &'a Identity,
}

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
    /// Which of those that are set are secrets from now on. One that is a secret already stays one.
    secret: BTreeSet<String>,
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
    #[error("the value of environment key `{0}` begins as that of a secret that is kept, and is none to be set [LC0258]")]
    Sealed(String),
    #[error("environment key `{0}` is to be a secret, and has no value with it [LC0258]")]
    SecretWithoutValue(String),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("rows are being migrated to this module one by one, with another change of the environment: publish it without variables to wait for that, or end it with `spacetime migrate cancel` [LC0258]")]
    OtherBackfill,
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
        if let Some((key, _)) = set.iter().find(|(_, value)| is_sealed(value)) {
            return Err(EnvironmentError::Sealed(key.clone()));
        }
        if let Some(key) = removed_keys.iter().find(|key| set.contains_key(*key)) {
            return Err(EnvironmentError::Repeated(key.clone()));
        }
        Ok(EnvironmentChange {
            set,
            removed,
            secret: BTreeSet::new(),
        })
    }

    /// The same, and these of the variables that it sets are secrets from now on.
    ///
    /// # Errors
    /// It does not set one of them.
    pub fn with_secrets(
        self,
        secret: BTreeSet<String>,
    ) -> Result<EnvironmentChange, EnvironmentError> {
        match secret.iter().find(|key| !self.set.contains_key(*key)) {
            Some(key) => Err(EnvironmentError::SecretWithoutValue(key.clone())),
            None => Ok(EnvironmentChange { secret, ..self }),
        }
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed == RemovedVariables::None
    }

    /// The same as it may be kept: the values of secrets are sealed. One that stays is not sealed anew.
    pub(crate) fn sealed(
        &self,
        stored: &Variables,
        Sealing { secrets, database }: Sealing<'_>,
    ) -> Result<EnvironmentChange, EnvironmentError> {
        let mut change = self.clone();
        for (key, value) in &mut change.set {
            let old = stored.get(key).filter(|old| is_sealed(old));
            if is_sealed(value) || (old.is_none() && !self.secret.contains(key)) {
                continue;
            }
            let is_same = |old: &&String| {
                let opened = secrets.open(database, key, (*old).clone());
                opened.is_ok_and(|old| old == *value)
            };
            *value = match old.filter(is_same) {
                Some(old) => old.clone(),
                None => secrets.seal(database, key, value)?,
            };
        }
        Ok(change)
    }

    /// Whether it is the change that is kept in this form, whose secrets are sealed.
    pub(crate) fn is_kept_as(
        &self,
        kept: &EnvironmentChange,
        sealing: Sealing<'_>,
    ) -> Result<bool, EnvironmentError> {
        let sealed = self.sealed(&kept.set, sealing)?;
        Ok(sealed.set == kept.set && sealed.removed == kept.removed)
    }

    /// To be kept until it is made, if its secrets are sealed. Empty for no change.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let (kind, removed) = match &self.removed {
            RemovedVariables::None => (0_u8, Vec::new()),
            RemovedVariables::All => (1, Vec::new()),
            RemovedVariables::Keys(keys) => (2, keys.iter().cloned().collect()),
        };
        let set: Vec<_> = self.set.clone().into_iter().collect();
        (set, kind, removed).to_vec()
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<EnvironmentChange> {
        if bytes.is_empty() {
            return Some(EnvironmentChange::default());
        }
        type Kept = (Vec<(String, String)>, u8, Vec<String>);
        let (set, kind, removed) = <Kept as Decode>::from_slice(bytes).ok()?;
        Some(EnvironmentChange {
            set: set.into_iter().collect(),
            removed: match kind {
                0 => RemovedVariables::None,
                1 => RemovedVariables::All,
                _ => RemovedVariables::Keys(removed.into_iter().collect()),
            },
            // Those that are secrets are sealed.
            secret: BTreeSet::new(),
        })
    }

    /// The variables after the change. What a module does not declare is kept too.
    pub(crate) fn applied_to(
        &self,
        stored: Variables,
        sealing: Sealing<'_>,
    ) -> Result<Variables, EnvironmentError> {
        let change = self.sealed(&stored, sealing)?;
        let mut variables = stored;
        match &self.removed {
            RemovedVariables::None => {}
            RemovedVariables::All => variables.clear(),
            RemovedVariables::Keys(keys) => variables.retain(|key, _| !keys.contains(key)),
        }
        variables.extend(change.set);
        Ok(variables)
    }

    /// The same, if a program may run with them.
    pub(crate) fn checked(
        &self,
        stored: Variables,
        def: &ModuleDef,
        sealing: Sealing<'_>,
    ) -> Result<Variables, EnvironmentError> {
        let variables = self.applied_to(stored, sealing)?;
        if variables.len() > ENVIRONMENT_KEYS_MAX {
            return Err(EnvironmentError::TooMany(variables.len()));
        }
        let mut missing = Vec::new();
        for (key, declared) in def.environment() {
            match variables.get(key) {
                // A secret is not opened without need: its key may be lost.
                Some(_) if declared.ty == EnvironmentType::String => {}
                Some(kept) => {
                    let Sealing { secrets, database } = sealing;
                    let value = secrets.open(database, key, kept.clone())?;
                    if !declared.ty.permits(&value) {
                        return Err(EnvironmentError::NotDeclared(key.clone()));
                    }
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
    /// Those of them whose values are secrets.
    pub secret_keys: Vec<String>,
}
