//! How many databases there may be, and how much of the control database one identity may take.
//!
//! Every caller can get any number of identities. So these bounds keep one of many owners from taking what is there for all;
//! `[publish]` of the configuration says who may publish at all.

use std::collections::HashSet;

use lightcone_types::Identity;

use super::error::{ControlError, Result};
use super::state::State;

/// What may be in the control database.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// `limits.databases-max`.
    pub databases_max: usize,
    /// `limits.databases-per-owner-max`.
    pub databases_per_owner_max: usize,
    /// `limits.names-max`.
    pub names_max: usize,
    /// `limits.names-per-owner-max`.
    pub names_per_owner_max: usize,
    /// Who may have as much as is there: those whom the operator has named.
    pub named: HashSet<Identity>,
}

impl Default for Bounds {
    /// There are none.
    fn default() -> Self {
        Self {
            databases_max: usize::MAX,
            databases_per_owner_max: usize::MAX,
            names_max: usize::MAX,
            names_per_owner_max: usize::MAX,
            named: HashSet::new(),
        }
    }
}

impl Bounds {
    /// May this owner have one more database?
    ///
    /// # Errors
    /// The server has as many as it may, or the owner has.
    pub(super) fn check_databases(&self, state: &State, owner: &Identity) -> Result<()> {
        if state.databases.len() >= self.databases_max {
            return Err(ControlError::TooManyDatabases(self.databases_max));
        }
        if self.named.contains(owner) {
            return Ok(());
        }
        // All of them are looked at, which takes less than writing one more.
        let owned = state.databases.values();
        let owned = owned.filter(|record| record.owner == *owner).count();
        match owned >= self.databases_per_owner_max {
            true => Err(ControlError::TooManyOfOwner {
                owner: *owner,
                max: self.databases_per_owner_max,
            }),
            false => Ok(()),
        }
    }

    /// May this owner take so many names more? Names that were taken are taken for ever.
    ///
    /// # Errors
    /// He has as many as he may, or all have.
    pub(super) fn check_names(&self, state: &State, owner: &Identity, more: usize) -> Result<()> {
        if more == 0 || self.named.contains(owner) {
            return Ok(());
        }
        if state.domains.len().saturating_add(more) > self.names_max {
            return Err(ControlError::NoMoreNames(self.names_max));
        }
        let taken = state.domains_of.get(owner).copied().unwrap_or_default();
        let then = taken.saturating_add(more);
        if then <= self.names_per_owner_max {
            if self.is_nearly_full(then) && !self.is_nearly_full(taken) {
                tracing::warn!(
                    "{owner} has {then} of the {} names that limits.names-per-owner-max allows; names that were taken stay taken \
                     [LC0148]",
                    self.names_per_owner_max
                );
            }
            return Ok(());
        }
        Err(ControlError::TooManyNames {
            owner: *owner,
            max: self.names_per_owner_max,
        })
    }

    /// Has an owner of so many names four fifths of what he may have? Then the log warns the operator, once.
    fn is_nearly_full(&self, names: usize) -> bool {
        names >= self.names_per_owner_max - self.names_per_owner_max / 5
    }
}
