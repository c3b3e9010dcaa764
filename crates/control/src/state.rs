//! What the control database knows, and the changes that make it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use lightcone_types::{Due, Identity};
use serde::{Deserialize, Serialize};

use super::record::{DatabaseRecord, Role};

/// Changes in one record of a journal that is written anew, and databases of which one record says when they are due.
pub(super) const CHANGES_PER_RECORD: usize = 1000;

/// Deleted databases whose owners are remembered.
pub(super) const FOUNDERS_MAX: usize = 262_144;

/// The same of one owner, whose oldest are forgotten first, so that one owner does not take the room of all.
pub(super) const FOUNDERS_PER_OWNER_MAX: usize = 8_192;

/// 80 % of them.
const FOUNDERS_WARNING: usize = FOUNDERS_MAX / 5 * 4;

/// One change. A record of the journal is a list of them, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// The first change of a journal. A journal that was written anew has a higher number.
    Begin {
        generation: u64,
    },
    /// A new database, or a new record of one with the same id.
    Database(DatabaseRecord),
    /// Its record goes; whose it was is remembered.
    DatabaseGone(u64),
    /// The owner of a deleted database: only he may create one under its identity again. Only where a journal was written anew.
    Founder {
        database: Identity,
        owner: Identity,
    },
    /// All names of a database, in their order.
    Names {
        database: Identity,
        names: Vec<String>,
    },
    /// A domain has an owner, for ever.
    Domain {
        name: String,
        owner: Identity,
    },
    Lock {
        database: Identity,
        locked: bool,
    },
    /// An identity has a role in a database, or has it no longer.
    Collaborator {
        database: Identity,
        identity: Identity,
        role: Option<Role>,
    },
    /// When a database is to be opened without a request.
    Due {
        database: Identity,
        due: Due,
    },
    /// The last id that was given to a database.
    DatabaseId(u64),
    /// The last number that was given to a replica.
    ReplicaId(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub generation: u64,
    pub databases: BTreeMap<u64, DatabaseRecord>,
    pub ids: HashMap<Identity, u64>,
    pub names: HashMap<String, Identity>,
    pub names_of: HashMap<Identity, Vec<String>>,
    pub domains: HashMap<String, Identity>,
    /// How many there are of each owner.
    pub domains_of: HashMap<Identity, usize>,
    pub locks: HashSet<Identity>,
    /// Of each database that has some. They go with it.
    pub collaborators: HashMap<Identity, BTreeMap<Identity, Role>>,
    /// Of databases that are there. The others are to be opened at once: earlier versions did not say.
    pub due: HashMap<Identity, Due>,
    /// The owners of deleted databases.
    pub founders: HashMap<Identity, Identity>,
    /// The same by owner, in the order in which they went.
    pub founded: HashMap<Identity, VecDeque<Identity>>,
    pub last_database_id: u64,
    pub last_replica_id: u64,
}

impl State {
    /// The state that a journal's records make.
    ///
    /// # Errors
    /// They make none: the text says which of them is wrong.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> Result<State, String> {
        let mut state = State::default();
        for (number, record) in records.into_iter().enumerate() {
            let wrong = |text: String| format!("record {number}: {text}");
            let changes: Vec<Change> =
                serde_json::from_slice(record).map_err(|error| wrong(error.to_string()))?;
            for change in changes {
                state.apply(change).map_err(wrong)?;
            }
        }
        if state.generation == 0 {
            return Err("the journal has no beginning".to_owned());
        }
        Ok(state)
    }

    pub fn database(&self, identity: &Identity) -> Option<&DatabaseRecord> {
        self.databases.get(self.ids.get(identity)?)
    }

    pub fn due(&self, identity: &Identity) -> Due {
        self.due.get(identity).copied().unwrap_or(Due::Open)
    }

    /// Carries out one change.
    ///
    /// # Errors
    /// It does not fit the state: the journal is not what was written.
    pub fn apply(&mut self, change: Change) -> Result<(), String> {
        match change {
            Change::Begin { generation } => {
                if self.generation != 0 || generation == 0 {
                    return Err("a journal begins twice".into());
                }
                self.generation = generation;
            }
            Change::Database(record) => {
                let known = self.ids.get(&record.identity);
                let old = self.databases.get(&record.id).map(|old| old.identity);
                if known.is_some_and(|id| *id != record.id)
                    || old.is_some_and(|identity| identity != record.identity)
                {
                    return Err(format!("database {} has two ids or identities", record.id));
                }
                self.last_database_id = self.last_database_id.max(record.id);
                self.forget(&record.identity);
                self.ids.insert(record.identity, record.id);
                self.databases.insert(record.id, record);
            }
            Change::DatabaseGone(id) => {
                let record = self.databases.remove(&id);
                let record =
                    record.ok_or_else(|| format!("database {id} goes and is not there"))?;
                self.ids.remove(&record.identity);
                self.collaborators.remove(&record.identity);
                self.due.remove(&record.identity);
                self.remember(record.identity, record.owner);
            }
            Change::Founder { database, owner } => {
                if self.ids.contains_key(&database) {
                    return Err(format!("database {database} is gone and is there"));
                }
                self.remember(database, owner);
            }
            Change::Names { database, names } => self.set_names(database, names)?,
            Change::Domain { name, owner } => match self.domains.insert(name, owner) {
                Some(other) if other != owner => {
                    return Err("a domain changes its owner".into());
                }
                Some(_) => {}
                None => *self.domains_of.entry(owner).or_default() += 1,
            },
            Change::Lock { database, locked } => {
                if locked {
                    self.locks.insert(database);
                } else {
                    self.locks.remove(&database);
                }
            }
            Change::Collaborator {
                database,
                identity,
                role,
            } => self.set_role(database, identity, role)?,
            Change::Due { database, due } => {
                if !self.ids.contains_key(&database) {
                    return Err(format!("database {database} is due and is not there"));
                }
                self.due.insert(database, due);
            }
            Change::DatabaseId(id) => raise(&mut self.last_database_id, id)?,
            Change::ReplicaId(id) => raise(&mut self.last_replica_id, id)?,
        }
        Ok(())
    }

    fn remember(&mut self, database: Identity, owner: Identity) {
        self.forget(&database);
        let oldest = self.founded.get(&owner);
        let oldest = oldest.filter(|gone| gone.len() >= FOUNDERS_PER_OWNER_MAX);
        if let Some(oldest) = oldest.and_then(VecDeque::front).copied() {
            self.forget(&oldest);
        }
        if self.founders_are_full() {
            return;
        }
        self.founders.insert(database, owner);
        self.founded.entry(owner).or_default().push_back(database);
        if self.founders.len() == FOUNDERS_WARNING {
            tracing::warn!(
                "the owners of {FOUNDERS_WARNING} deleted databases are remembered; at {FOUNDERS_MAX} the identity of a new \
                 database cannot be chosen any more [LC0145]"
            );
        }
    }

    fn forget(&mut self, database: &Identity) {
        let Some(owner) = self.founders.remove(database) else {
            return;
        };
        let founded = self.founded.entry(owner).or_default();
        founded.retain(|founded| founded != database);
        if founded.is_empty() {
            self.founded.remove(&owner);
        }
    }

    /// Some may be forgotten.
    pub fn founders_are_full(&self) -> bool {
        self.founders.len() >= FOUNDERS_MAX
    }

    fn set_role(
        &mut self,
        database: Identity,
        identity: Identity,
        role: Option<Role>,
    ) -> Result<(), String> {
        if !self.ids.contains_key(&database) {
            let text = format!("database {database} has collaborators and is not there");
            return Err(text);
        }
        let known = self.collaborators.entry(database).or_default();
        match role {
            Some(role) => known.insert(identity, role),
            None => known.remove(&identity),
        };
        if known.is_empty() {
            self.collaborators.remove(&database);
        }
        Ok(())
    }

    fn set_names(&mut self, database: Identity, names: Vec<String>) -> Result<(), String> {
        for old in self.names_of.remove(&database).unwrap_or_default() {
            self.names.remove(&old);
        }
        for name in &names {
            if self.names.insert(name.clone(), database).is_some() {
                return Err(format!("the name {name:?} leads to two databases"));
            }
        }
        if !names.is_empty() {
            self.names_of.insert(database, names);
        }
        Ok(())
    }

    /// How much there is, in changes.
    pub fn size(&self) -> usize {
        let collaborators = self.collaborators.values().map(BTreeMap::len);
        self.databases.len()
            + self.names_of.len()
            + self.domains.len()
            + self.locks.len()
            + self.due.len()
            + self.founders.len()
            + collaborators.sum::<usize>()
            + 3
    }

    /// The records of a new journal that makes this state.
    pub fn records(&self, generation: u64) -> Vec<Vec<u8>> {
        let domains = self.domains.iter().map(|(name, owner)| Change::Domain {
            name: name.clone(),
            owner: *owner,
        });
        let names = self.names_of.iter().map(|(database, names)| Change::Names {
            database: *database,
            names: names.clone(),
        });
        let locks = self.locks.iter().map(|database| Change::Lock {
            database: *database,
            locked: true,
        });
        let due = self.due.iter().map(|(database, due)| Change::Due {
            database: *database,
            due: *due,
        });
        let collaborators = self.collaborators.iter().flat_map(|(database, known)| {
            known.iter().map(|(identity, role)| Change::Collaborator {
                database: *database,
                identity: *identity,
                role: Some(*role),
            })
        });
        let founders = self.founded.iter().flat_map(|(owner, gone)| {
            gone.iter().map(|database| Change::Founder {
                database: *database,
                owner: *owner,
            })
        });
        let mut changes = vec![
            Change::Begin { generation },
            Change::DatabaseId(self.last_database_id),
            Change::ReplicaId(self.last_replica_id),
        ];
        changes.extend(self.databases.values().cloned().map(Change::Database));
        changes.extend(domains.chain(names).chain(locks).chain(due));
        changes.extend(collaborators.chain(founders));
        changes.chunks(CHANGES_PER_RECORD).map(encode).collect()
    }
}

fn raise(counter: &mut u64, to: u64) -> Result<(), String> {
    if to < *counter {
        return Err(format!("a counter falls from {counter} to {to}"));
    }
    *counter = to;
    Ok(())
}

/// A record of the journal.
pub(super) fn encode(changes: &[Change]) -> Vec<u8> {
    serde_json::to_vec(changes).expect("strings and numbers always serialize")
}

/// Reads bytes as a journal of one record.
pub fn check_record(bytes: &[u8]) {
    if let Ok(state) = State::replay([bytes]) {
        let records = state.records(state.generation);
        let again = State::replay(records.iter().map(Vec::as_slice));
        assert_eq!(again.expect("its own records"), state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What earlier versions wrote, and what this one writes: the bytes of `docs/on-disk-formats.md`.
    #[test]
    fn records_of_all_versions_are_read() {
        let identity = |number: u8| Identity::from_le_bytes([number; 32]);
        let (database, owner, reader) = (identity(1), identity(2), identity(3));
        let (d, o, r) = (database.to_hex(), owner.to_hex(), reader.to_hex());
        let earlier = format!(
            r#"[{{"Begin":{{"generation":1}}}},{{"DatabaseId":4}},{{"ReplicaId":7}},{{"Database":{{"id":4,"identity":"{d}","owner":"{o}","host_type":"Wasm","initial_program":"{p}","replica_id":7}}}},{{"Domain":{{"name":"a","owner":"{o}"}}}},{{"Names":{{"database":"{d}","names":["a"]}}}},{{"Lock":{{"database":"{d}","locked":true}}}}]"#,
            p = lightcone_types::Hash([5; 32]).to_hex(),
        );
        let state = State::replay([earlier.as_bytes()]).expect("an earlier version's");
        assert_eq!(state.databases[&4].owner, owner);
        assert!(state.collaborators.is_empty());
        let role = |role: &str| {
            format!(r#"[{{"Collaborator":{{"database":"{d}","identity":"{r}","role":{role}}}}}]"#)
        };
        let given = role(r#""publisher""#);
        let records = [earlier.as_bytes(), given.as_bytes()];
        let state = State::replay(records).expect("a role");
        assert_eq!(state.collaborators[&database][&reader], Role::Publisher);
        assert_eq!(
            State::replay(state.records(1).iter().map(Vec::as_slice))
                .as_ref()
                .ok(),
            Some(&state)
        );
        let taken = role("null");
        let gone = r#"[{"DatabaseGone":4}]"#.to_owned();
        for last in [&taken, &gone] {
            let records = [earlier.as_bytes(), given.as_bytes(), last.as_bytes()];
            let state = State::replay(records).expect("no role any more");
            assert!(state.collaborators.is_empty(), "{last}");
        }
        // Earlier versions' deletions are remembered too, and what is remembered is written anew.
        let records = [earlier.as_bytes(), gone.as_bytes()];
        let state = State::replay(records).expect("it is gone");
        assert_eq!(state.founders[&database], owner);
        let anew = state.records(2);
        let founder = format!(r#"{{"Founder":{{"database":"{d}","owner":"{o}"}}}}"#);
        assert!(String::from_utf8_lossy(&anew[0]).contains(&founder));
        let again = State::replay(anew.iter().map(Vec::as_slice)).expect("its own records");
        assert_eq!(again.founders, state.founders);
        // Earlier versions did not say when a database is to be opened: it may be at once.
        let due = |due: &str| format!(r#"[{{"Due":{{"database":"{d}","due":{due}}}}}]"#);
        let at = Due::At(lightcone_types::Timestamp(-5));
        for (written, read) in [
            (r#""Open""#, Due::Open),
            (r#"{"At":-5}"#, at),
            (r#""Never""#, Due::Never),
        ] {
            let written = due(written);
            let records = [earlier.as_bytes(), written.as_bytes()];
            let state = State::replay(records).expect("when it is due");
            assert_eq!(state.due(&database), read);
            let change = Change::Due {
                database,
                due: read,
            };
            assert_eq!(encode(&[change]), written.as_bytes());
            let records = [records[0], records[1], gone.as_bytes()];
            assert!(State::replay(records).expect("it is gone").due.is_empty());
            assert!(State::replay([records[0], records[2], records[1]]).is_err());
        }
        let state = State::replay([earlier.as_bytes()]).expect("an earlier version's");
        assert_eq!(state.due(&database), Due::Open);
        // A collaborator of a database that is not there is a sign of damage.
        let records = [earlier.as_bytes(), gone.as_bytes(), given.as_bytes()];
        assert!(State::replay(records).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_record_is_read_without_panic(bytes in proptest::collection::vec(0u8.., 0..200)) {
            check_record(&bytes);
        }

        #[test]
        fn any_changes_make_a_state_or_are_refused(changes in proptest::collection::vec((0u8..11, 0u8..4, 0u8..4), 0..30)) {
            let identity = |number: u8| Identity::from_le_bytes([number; 32]);
            let mut list = vec![Change::Begin { generation: 1 }];
            list.extend(changes.into_iter().map(|(kind, a, b)| match kind {
                0 => Change::Database(DatabaseRecord {
                    id: a.into(),
                    identity: identity(b),
                    owner: identity(a),
                    host_type: crate::HostType::Js,
                    initial_program: lightcone_types::Hash([b; 32]),
                    replica_id: b.into(),
                }),
                1 => Change::DatabaseGone(a.into()),
                2 => Change::Names { database: identity(a), names: (0..b).map(|n| n.to_string()).collect() },
                3 => Change::Domain { name: a.to_string(), owner: identity(b) },
                4 => Change::Lock { database: identity(a), locked: b > 1 },
                5 => Change::DatabaseId(a.into()),
                6 => Change::ReplicaId(a.into()),
                7 => Change::Collaborator {
                    database: identity(a),
                    identity: identity(b),
                    role: [None, Some(Role::Reader), Some(Role::Publisher), Some(Role::Owner)][usize::from(b)],
                },
                8 => Change::Founder { database: identity(a), owner: identity(b) },
                9 => Change::Due {
                    database: identity(a),
                    due: [Due::Open, Due::Never, Due::At(lightcone_types::Timestamp(b.into()))][usize::from(b % 3)],
                },
                _ => Change::Begin { generation: a.into() },
            }));
            check_record(&encode(&list));
        }
    }
}
