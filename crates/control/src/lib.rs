//! The control database: which databases there are, who owns them, and what they are called (06 §4.2).
//!
//! All of it lies in memory. Every change is a record in a journal of two copies, both durable before the change is acknowledged
//! (`journal.rs`), so that a flipped bit is noticed, and mended from the other copy. No call of a reducer waits for it.
//!
//! After a failed write the journal is read again at once, so that the caller learns whether the change was made. If that fails
//! too, the outcome is unknown ([`ControlError::is_unknown`]), and the caller must keep what either outcome needs.

#![forbid(unsafe_code)]

mod bounds;
mod error;
mod journal;
mod names;
mod record;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_log::{LogCheck, LogError};
use lightcone_storage::Storage;
use lightcone_types::{Due, Identity, Timestamp};
use parking_lot::{Mutex, RwLock};

pub use bounds::Bounds;
pub use error::ControlError;
use error::Result;
use journal::Journal;
pub use names::{DatabaseName, NameError, NameOrIdentity, NAME_BYTES_MAX};
pub use record::{DatabaseRecord, HostType, Role, COLLABORATORS_MAX};
#[doc(hidden)]
pub use state::check_record;
use state::{Change, State, CHANGES_PER_RECORD};

/// The answer to taking a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    Done,
    /// The top-level domain belongs to another owner.
    PermissionDenied(String),
    /// The name already leads to a database.
    InUse(String),
}

/// The opened control database.
pub struct ControlDb {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    state: RwLock<State>,
    bounds: Bounds,
    /// None after a failure: the next change opens it again.
    journal: Mutex<Option<Journal>>,
    /// Behind the store, so that it goes when the files are closed.
    open: Arc<()>,
}

impl ControlDb {
    /// Opens or creates the store in a directory.
    pub fn open(directory: &Path) -> Result<ControlDb> {
        Self::open_on(lightcone_storage::disk(), directory)
    }

    /// The same, with the logs of the journal on any storage.
    pub fn open_on(storage: Arc<dyn Storage>, directory: &Path) -> Result<ControlDb> {
        let (journal, state) = Journal::open(&storage, directory)?;
        Ok(ControlDb {
            storage,
            directory: directory.to_owned(),
            state: RwLock::new(state),
            bounds: Bounds::default(),
            journal: Mutex::new(Some(journal)),
            open: Arc::new(()),
        })
    }

    /// With bounds on what is added from now on; there are none otherwise. What is there already stays.
    pub fn bounded(mut self, bounds: Bounds) -> ControlDb {
        self.bounds = bounds;
        self
    }

    /// The store gives its own away when its files are closed. A count of references to the store itself falls too early:
    /// before it is taken down.
    pub fn open_token(&self) -> Arc<()> {
        self.open.clone()
    }

    /// Closes the files, with the marks of a proper end. A change opens them again.
    pub fn close(&self) {
        *self.journal.lock() = None;
    }

    /// For tests: as many deleted databases of others as are remembered.
    #[doc(hidden)]
    pub fn fill_founders(&self) {
        let mut state = self.state.write();
        for number in 1.. {
            if state.founders_are_full() {
                return;
            }
            let database = Identity::from_claims("founded", &number.to_string());
            let owner = Identity::from_claims("founder", &(number % 64).to_string());
            apply(&mut state, vec![Change::Founder { database, owner }]);
        }
    }

    /// The identity that a name leads to.
    pub fn resolve(&self, name: &str) -> Option<Identity> {
        self.state.read().names.get(name).copied()
    }

    pub fn owner_of_top_level_domain(&self, name: &str) -> Option<Identity> {
        self.state.read().domains.get(name).copied()
    }

    pub fn database(&self, identity: &Identity) -> Option<DatabaseRecord> {
        self.state.read().database(identity).cloned()
    }

    /// Databases in the order of their ids.
    pub fn databases(&self) -> Vec<DatabaseRecord> {
        self.state.read().databases.values().cloned().collect()
    }

    /// When a database is to be opened without a request.
    pub fn due(&self, identity: &Identity) -> Due {
        self.state.read().due(identity)
    }

    /// The databases that are to be opened until then without a request: those first that have planned a call, then in
    /// the order of their ids.
    pub fn due_until(&self, until: Timestamp) -> Vec<Identity> {
        let state = self.state.read();
        let all = state.databases.values();
        let all = all.map(|record| (state.due(&record.identity), record));
        let mut due: Vec<_> = all.filter(|(due, _)| *due <= Due::At(until)).collect();
        due.sort_by_key(|(due, record)| (*due == Due::Open, *due, record.id));
        due.into_iter().map(|(_, record)| record.identity).collect()
    }

    /// Says when databases are to be opened; those that are gone are left out. Durable on return.
    pub fn note_due(&self, notes: &[(Identity, Due)]) -> Result<()> {
        for notes in notes.chunks(CHANGES_PER_RECORD) {
            self.change(|state| {
                // Of several notes of a database the last one counts.
                let notes: BTreeMap<_, _> = notes
                    .iter()
                    .map(|(database, due)| (database, due))
                    .collect();
                let news = notes.into_iter().filter(|(database, due)| {
                    state.ids.contains_key(*database) && state.due.get(*database) != Some(*due)
                });
                let changes = news.map(|(database, due)| Change::Due {
                    database: *database,
                    due: *due,
                });
                Ok(((), changes.collect()))
            })?;
        }
        Ok(())
    }

    /// May this owner have one more database?
    ///
    /// # Errors
    /// The server has as many as it may ([`ControlError::TooManyDatabases`]), or the owner has
    /// ([`ControlError::TooManyOfOwner`]).
    pub fn may_have_more(&self, owner: &Identity) -> Result<()> {
        self.bounds.check_databases(&self.state.read(), owner)
    }

    pub fn names_of(&self, identity: &Identity) -> Vec<String> {
        let state = self.state.read();
        state.names_of.get(identity).cloned().unwrap_or_default()
    }

    pub fn is_locked(&self, identity: &Identity) -> bool {
        self.state.read().locks.contains(identity)
    }

    /// The role that the owner of a database has given an identity.
    pub fn role(&self, database: &Identity, identity: &Identity) -> Option<Role> {
        let state = self.state.read();
        let known = state.collaborators.get(database)?;
        known.get(identity).copied()
    }

    /// All that have a role in a database, by their identities.
    pub fn collaborators(&self, database: &Identity) -> Vec<(Identity, Role)> {
        let state = self.state.read();
        let known = state.collaborators.get(database).into_iter().flatten();
        known.map(|(identity, role)| (*identity, *role)).collect()
    }

    /// The databases that an identity owns, and those in which it has a role, in the order of their ids.
    pub fn databases_of(&self, identity: &Identity) -> (Vec<Identity>, Vec<(Identity, Role)>) {
        let state = self.state.read();
        let (mut owned, mut roles) = (Vec::new(), Vec::new());
        for record in state.databases.values() {
            let known = state.collaborators.get(&record.identity);
            if record.owner == *identity {
                owned.push(record.identity);
            } else if let Some(role) = known.and_then(|known| known.get(identity)) {
                roles.push((record.identity, *role));
            }
        }
        (owned, roles)
    }

    /// Decides on changes and carries them out, all or none; they are durable on return. No changes are a result too.
    ///
    /// # Errors
    /// Nothing was changed, unless the error [is unknown](ControlError::is_unknown).
    fn change<T>(&self, decide: impl FnOnce(&State) -> Result<(T, Vec<Change>)>) -> Result<T> {
        let mut held = self.journal.lock();
        let mut journal = self.take_journal(&mut held)?;
        let decided = decide(&self.state.read());
        let (result, changes) = match decided {
            Ok((result, changes)) if !changes.is_empty() => (result, changes),
            decided => {
                *held = Some(journal);
                return decided.map(|(result, _)| result);
            }
        };
        if let Err(error) = journal.append(&changes) {
            // It locks the files, which are opened again below.
            drop(journal);
            return self.find_out(&mut held, changes, error).map(|()| result);
        }
        apply(&mut self.state.write(), changes);
        // For readers the state stays open: this writes for long.
        match journal.rewrite_if_long(&self.state.read()) {
            Ok(()) => *held = Some(journal),
            // The change is durable all the same.
            Err(error) => {
                tracing::error!(%error, "the control database could not be written anew");
            }
        }
        Ok(result)
    }

    /// The journal, opened again after a failure: what is on the disk counts then.
    fn take_journal(&self, held: &mut Option<Journal>) -> Result<Journal> {
        if let Some(journal) = held.take() {
            return Ok(journal);
        }
        let (journal, state) = Journal::open(&self.storage, &self.directory)?;
        *self.state.write() = state;
        Ok(journal)
    }

    /// Whether changes are on the disk whose writing failed.
    ///
    /// # Errors
    /// They are not: the error that there was. Or it is unknown.
    fn find_out(
        &self,
        held: &mut Option<Journal>,
        changes: Vec<Change>,
        error: ControlError,
    ) -> Result<()> {
        let mut changed = self.state.read().clone();
        apply(&mut changed, changes);
        let journal = self.take_journal(held);
        *held = Some(journal.map_err(|again| ControlError::Unknown {
            failed: error.to_string(),
            again: again.to_string(),
        })?);
        changed.generation = self.state.read().generation;
        if *self.state.read() != changed {
            return Err(error);
        }
        tracing::error!(%error, "a change of the control database failed halfway; it is on the disk, so it counts");
        Ok(())
    }

    /// Reads the copies of the journal once more, as they are on the disk now; none after a failure. Blocks.
    pub fn checks(&self) -> Vec<Result<LogCheck, LogError>> {
        let held = self.journal.lock();
        held.as_ref().map_or_else(Vec::new, Journal::checks)
    }

    /// Makes sure that what is known is what is on the disk. Only after a failure there is something to do. Blocks.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn settle(&self) -> Result<()> {
        let mut held = self.journal.lock();
        *held = Some(self.take_journal(&mut held)?);
        Ok(())
    }

    pub fn set_lock(&self, identity: &Identity, locked: bool) -> Result<()> {
        self.change(|state| {
            let database = *identity;
            let changes = match state.locks.contains(identity) == locked {
                true => Vec::new(),
                false => vec![Change::Lock { database, locked }],
            };
            Ok(((), changes))
        })
    }

    /// Gives an identity a role in a database, or none. `may` decides whether that is allowed, while no other change can come
    /// between. True if it was another role before.
    ///
    /// # Errors
    /// It is not ([`ControlError::NotAllowed`]), there is no such database any more ([`ControlError::Gone`]), or it has as many collaborators as it may
    /// ([`ControlError::TooManyCollaborators`]).
    pub fn set_role(
        &self,
        (database, identity): (&Identity, &Identity),
        role: Option<Role>,
        may: impl FnOnce(&DatabaseRecord, &BTreeMap<Identity, Role>) -> bool,
    ) -> Result<bool> {
        self.change(|state| {
            let record = state.database(database);
            let record = record.ok_or(ControlError::Gone(*database))?;
            let none = BTreeMap::new();
            let known = state.collaborators.get(database).unwrap_or(&none);
            if !may(record, known) {
                return Err(ControlError::NotAllowed);
            }
            let current = known.get(identity).copied();
            if current == role {
                return Ok((false, Vec::new()));
            }
            if current.is_none() && known.len() >= COLLABORATORS_MAX {
                return Err(ControlError::TooManyCollaborators);
            }
            let (database, identity) = (*database, *identity);
            let change = Change::Collaborator {
                database,
                identity,
                role,
            };
            Ok((true, vec![change]))
        })
    }

    /// A number for a new replica directory; never given twice.
    pub fn next_replica_id(&self) -> Result<u64> {
        self.change(|state| {
            let next = state.last_replica_id + 1;
            Ok((next, vec![Change::ReplicaId(next)]))
        })
    }

    /// The newest number that [`ControlDb::next_replica_id`] has given; 0 if none.
    pub fn last_replica_id(&self) -> u64 {
        self.state.read().last_replica_id
    }

    /// Adds the record of a new database, with the next id, and when it is to be opened after a crash.
    ///
    /// # Errors
    /// There is one ([`ControlError::Exists`]), or a name leads there that is not its owner's
    /// ([`ControlError::NameOfAnother`]): names stay when a database is deleted, and are taken before it is created. Or it was
    /// another owner's before ([`ControlError::FoundedByAnother`]), or there are [too many](ControlDb::may_have_more).
    pub fn insert_database(&self, mut record: DatabaseRecord, due: Due) -> Result<DatabaseRecord> {
        self.change(|state| {
            if state.ids.contains_key(&record.identity) {
                return Err(ControlError::Exists(record.identity));
            }
            check_names(state, &record.identity, &record.owner)?;
            founded_by(state, &record.identity, &record.owner)?;
            self.bounds.check_databases(state, &record.owner)?;
            record.id = state.last_database_id + 1;
            let database = record.identity;
            let changes = vec![
                Change::Database(record.clone()),
                Change::Due { database, due },
            ];
            Ok((record, changes))
        })
    }

    /// Do all names that lead to a database, or where one was or will be, belong to `owner`?
    ///
    /// # Errors
    /// One is another's ([`ControlError::NameOfAnother`]).
    pub fn check_names(&self, identity: &Identity, owner: &Identity) -> Result<()> {
        check_names(&self.state.read(), identity, owner)
    }

    /// May `owner` create a database under an identity that he has chosen?
    ///
    /// # Errors
    /// A name of another owner leads there ([`ControlError::NameOfAnother`]), it was another owner's
    /// ([`ControlError::FoundedByAnother`]), or may have been ([`ControlError::FoundersForgotten`]).
    pub fn may_choose(&self, identity: &Identity, owner: &Identity) -> Result<()> {
        let state = self.state.read();
        check_names(&state, identity, owner)?;
        let is_his = founded_by(&state, identity, owner)? || state.names_of.contains_key(identity);
        match is_his || !state.founders_are_full() {
            true => Ok(()),
            false => Err(ControlError::FoundersForgotten),
        }
    }

    /// Replaces the record with the same id.
    ///
    /// # Errors
    /// There is none any more ([`ControlError::Gone`]).
    pub fn update_database(&self, record: &DatabaseRecord) -> Result<()> {
        self.change(|state| replaced(state, record))
    }

    /// As [`ControlDb::update_database`], for a replica that takes the place of another.
    ///
    /// # Errors
    /// The same, or the database is locked ([`ControlError::Locked`]).
    pub fn reset_database(&self, record: &DatabaseRecord) -> Result<()> {
        self.change(|state| {
            unlocked(state, &record.identity)?;
            replaced(state, record)
        })
    }

    /// Removes the record only: names, their ownership and the lock stay (06 §4.2), and so does whose it was.
    ///
    /// # Errors
    /// The database is locked ([`ControlError::Locked`]).
    pub fn delete_database(&self, identity: &Identity) -> Result<()> {
        self.change(|state| {
            unlocked(state, identity)?;
            let gone = state.ids.get(identity).copied().map(Change::DatabaseGone);
            Ok(((), gone.into_iter().collect()))
        })
    }

    /// Takes a name and its top-level domain for `owner` and points it to a database. Only the owner himself may use those that
    /// he has already.
    ///
    /// # Errors
    /// He has as many names as he may ([`ControlError::TooManyNames`]), or all have ([`ControlError::NoMoreNames`]).
    pub fn register_name(
        &self,
        name: &DatabaseName,
        (owner, caller): (&Identity, &Identity),
        database: &Identity,
    ) -> Result<Registration> {
        self.change(|state| {
            let name = name.as_str().to_owned();
            let mut changes = Vec::new();
            if !take_domain(state, &name, (owner, caller), &mut changes) {
                return Ok((Registration::PermissionDenied(name), Vec::new()));
            }
            if state.names.contains_key(&name) {
                return Ok((Registration::InUse(name), Vec::new()));
            }
            self.bounds.check_names(state, owner, changes.len())?;
            let mut names = state.names_of.get(database).cloned().unwrap_or_default();
            names.push(name);
            let database = *database;
            changes.push(Change::Names { database, names });
            Ok((Registration::Done, changes))
        })
    }

    /// Replaces all names of a database at once (06 §5.10, PUT).
    ///
    /// # Errors
    /// The same.
    pub fn replace_names(
        &self,
        names: &[DatabaseName],
        (owner, caller): (&Identity, &Identity),
        database: &Identity,
    ) -> Result<Registration> {
        self.change(|state| {
            let mut wanted: Vec<String> = Vec::with_capacity(names.len());
            for name in names {
                if !wanted.iter().any(|known| known == name.as_str()) {
                    wanted.push(name.as_str().to_owned());
                }
            }
            let refuse = |registration| Ok((registration, Vec::new()));
            // A name in use is an error even when it already leads here.
            if let Some(name) = wanted.iter().find(|name| state.names.contains_key(*name)) {
                return refuse(Registration::InUse(name.clone()));
            }
            let mut changes = Vec::new();
            let old = state.names_of.get(database).into_iter().flatten();
            let kept = old.map(|name| (name, owner));
            for (name, caller) in kept.chain(wanted.iter().map(|name| (name, caller))) {
                if !take_domain(state, name, (owner, caller), &mut changes) {
                    return refuse(Registration::PermissionDenied(name.clone()));
                }
            }
            self.bounds.check_names(state, owner, changes.len())?;
            let (database, names) = (*database, wanted);
            changes.push(Change::Names { database, names });
            Ok((Registration::Done, changes))
        })
    }
}

/// Carries out what was decided.
fn apply(state: &mut State, changes: Vec<Change>) {
    for change in changes {
        state.apply(change).expect("decided on this state");
    }
}

fn replaced(state: &State, record: &DatabaseRecord) -> Result<((), Vec<Change>)> {
    let current = state.databases.get(&record.id);
    if current.is_none_or(|current| current.identity != record.identity) {
        return Err(ControlError::Gone(record.identity));
    }
    Ok(((), vec![Change::Database(record.clone())]))
}

fn unlocked(state: &State, identity: &Identity) -> Result<()> {
    match state.locks.contains(identity) {
        true => Err(ControlError::Locked(*identity)),
        false => Ok(()),
    }
}

/// Is it known that a database of this identity was `owner`'s?
///
/// # Errors
/// It was another's.
fn founded_by(state: &State, identity: &Identity, owner: &Identity) -> Result<bool> {
    match state.founders.get(identity) {
        Some(founder) if founder != owner => Err(ControlError::FoundedByAnother(*identity)),
        founder => Ok(founder.is_some()),
    }
}

fn check_names(state: &State, identity: &Identity, owner: &Identity) -> Result<()> {
    let mut names = state.names_of.get(identity).into_iter().flatten();
    let is_anothers = |name: &&String| state.domains.get(*name).is_some_and(|of| of != owner);
    match names.find(is_anothers) {
        Some(name) => Err(ControlError::NameOfAnother(name.clone())),
        None => Ok(()),
    }
}

/// True when the domain is the owner's, from before or from now on. Database names are domains of one segment.
/// A domain that the owner has already only he himself may use: a caller who acts for him may not point it elsewhere.
fn take_domain(
    state: &State,
    name: &str,
    (owner, caller): (&Identity, &Identity),
    changes: &mut Vec<Change>,
) -> bool {
    if let Some(current) = state.domains.get(name) {
        return current == owner && caller == owner;
    }
    let (name, owner) = (name.to_owned(), *owner);
    changes.push(Change::Domain { name, owner });
    true
}

#[cfg(test)]
mod tests;
