//! The control database: which databases there are, who owns them, and what they are called (06 §4.2).
//!
//! All of it lies in memory. Every change is a record in a journal of two copies, both durable before anybody hears of it
//! (`journal.rs`), so that a flipped bit is noticed, and mended from the other copy. Nothing of a call's way waits for it.

mod journal;
mod legacy;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use lightcone_types::{Hash, Identity};
use serde::{Deserialize, Serialize};

use crate::names::DatabaseName;
use journal::Journal;
use state::{Change, State};

pub(crate) use state::check_record as check_record_for_fuzzing;

/// A failure of the control database itself.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(
        "the control database is damaged in both of its copies: {first}; {second}. Nothing was changed. Restore {} from a backup [LC0546]", .directory.display()
    )]
    Damaged {
        directory: PathBuf,
        first: String,
        second: String,
    },
    #[error("a record of the control database makes no sense: {0}. Nothing was changed. Restore control-db from a backup [LC0546]")]
    Record(String),
    #[error("the control database of an earlier version, {}, is damaged: {found}. Nothing was changed. Restore it from a backup [LC0548]", .path.display())]
    Legacy { path: PathBuf, found: String },
    #[error("the control database could not {action} {}: {source}. Nothing was acknowledged; mend the cause (disk space, permissions, disk) and try again [LC0549]", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the control database could not write: {0} Nothing was acknowledged; the next change opens it again [LC0549]")]
    Log(#[from] lightcone_log::LogError),
}

type Result<T> = std::result::Result<T, ControlError>;

/// The language of a module (06 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostType {
    #[default]
    Wasm,
    Js,
}

/// What is known about a database without opening it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseRecord {
    /// Ascending in order of creation.
    pub id: u64,
    #[serde(with = "hex_form")]
    pub identity: Identity,
    #[serde(with = "hex_form")]
    pub owner: Identity,
    pub host_type: HostType,
    /// The program at creation or at the last reset.
    #[serde(with = "hex_form")]
    pub initial_program: Hash,
    /// Its directory below `replicas/`.
    pub replica_id: u64,
}

mod hex_form {
    use serde::{de::Error as _, Deserialize as _, Deserializer, Serializer};

    pub trait HexForm: Sized {
        fn write(&self) -> String;
        fn read(text: &str) -> Option<Self>;
    }

    impl HexForm for lightcone_types::Identity {
        fn write(&self) -> String {
            self.to_hex()
        }
        fn read(text: &str) -> Option<Self> {
            Self::from_hex(text).ok()
        }
    }

    impl HexForm for lightcone_types::Hash {
        fn write(&self) -> String {
            self.to_hex()
        }
        fn read(text: &str) -> Option<Self> {
            Self::from_hex(text).ok()
        }
    }

    pub fn serialize<T: HexForm, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.write())
    }

    pub fn deserialize<'de, T: HexForm, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text)
            .ok_or_else(|| D::Error::custom("not a hexadecimal value of the right length"))
    }
}

/// The answer to taking a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    Done,
    /// The top-level domain belongs to somebody else.
    PermissionDenied(String),
    /// The name already leads to a database.
    InUse(String),
}

/// The opened control database.
pub struct ControlDb {
    directory: PathBuf,
    state: RwLock<State>,
    /// None after a failure: the next change opens it again.
    journal: Mutex<Option<Journal>>,
    /// Behind the store, so that it goes when the files are closed.
    open: Arc<()>,
}

impl ControlDb {
    /// Opens or creates the store in a directory.
    pub fn open(directory: &Path) -> Result<ControlDb> {
        let (journal, state) = Journal::open(directory)?;
        Ok(ControlDb {
            directory: directory.to_owned(),
            state: RwLock::new(state),
            journal: Mutex::new(Some(journal)),
            open: Arc::new(()),
        })
    }

    /// The store gives its own away when its files are closed. A count of references to the store itself falls too early:
    /// before it is taken down.
    pub fn open_token(&self) -> Arc<()> {
        self.open.clone()
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the files, with the marks of a proper end. A change opens them again.
    pub fn close(&self) {
        *self.journal() = None;
    }

    /// The identity that a name leads to.
    pub fn resolve(&self, name: &str) -> Result<Option<Identity>> {
        Ok(self.state().names.get(name).copied())
    }

    pub fn owner_of_top_level_domain(&self, name: &str) -> Result<Option<Identity>> {
        Ok(self.state().domains.get(name).copied())
    }

    pub fn database(&self, identity: &Identity) -> Result<Option<DatabaseRecord>> {
        let state = self.state();
        let id = state.ids.get(identity);
        Ok(id.and_then(|id| state.databases.get(id)).cloned())
    }

    /// Databases in the order of their ids.
    pub fn databases(&self) -> Result<Vec<DatabaseRecord>> {
        Ok(self.state().databases.values().cloned().collect())
    }

    /// How many databases there are.
    pub fn database_count(&self) -> usize {
        self.state().databases.len()
    }

    pub fn names_of(&self, identity: &Identity) -> Result<Vec<String>> {
        let state = self.state();
        Ok(state.names_of.get(identity).cloned().unwrap_or_default())
    }

    pub fn is_locked(&self, identity: &Identity) -> Result<bool> {
        Ok(self.state().locks.contains(identity))
    }

    fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on changes and carries them out, all or none; they are durable on return. No changes are a result too.
    fn change<T>(&self, decide: impl FnOnce(&State) -> Result<(T, Vec<Change>)>) -> Result<T> {
        let mut held = self.journal();
        let mut journal = match held.take() {
            Some(journal) => journal,
            None => {
                // What is on the disk counts: the change that failed may be there.
                let (journal, state) = Journal::open(&self.directory)?;
                *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
                journal
            }
        };
        let decided = decide(&self.state());
        let (result, changes) = match decided {
            Ok(decided) => decided,
            Err(error) => {
                *held = Some(journal);
                return Err(error);
            }
        };
        if !changes.is_empty() {
            journal.append(&changes)?;
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for change in changes {
                state.apply(change).expect("decided on this state");
            }
            if let Err(error) = journal.rewrite_if_long(&state) {
                // The change is durable all the same.
                tracing::error!(%error, "the control database could not be written anew");
                return Ok(result);
            }
        }
        *held = Some(journal);
        Ok(result)
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

    /// A number for a new replica directory; never given twice.
    pub fn next_replica_id(&self) -> Result<u64> {
        self.change(|state| {
            let next = state.last_replica_id + 1;
            Ok((next, vec![Change::ReplicaId(next)]))
        })
    }

    /// The newest number that [`ControlDb::next_replica_id`] has given; 0 if none.
    pub fn last_replica_id(&self) -> Result<u64> {
        Ok(self.state().last_replica_id)
    }

    /// Adds the record of a new database, with the next id.
    pub fn insert_database(&self, mut record: DatabaseRecord) -> Result<DatabaseRecord> {
        self.change(|state| {
            if state.ids.contains_key(&record.identity) {
                let text = format!("database {} is there already", record.identity);
                return Err(ControlError::Record(text));
            }
            record.id = state.last_database_id + 1;
            let changes = vec![Change::Database(record.clone())];
            Ok((record, changes))
        })
    }

    /// Replaces the record with the same id.
    pub fn update_database(&self, record: &DatabaseRecord) -> Result<()> {
        self.change(|state| {
            let current = state.databases.get(&record.id);
            if current.is_none_or(|current| current.identity != record.identity) {
                let text = format!("database {} is not there any more", record.identity);
                return Err(ControlError::Record(text));
            }
            Ok(((), vec![Change::Database(record.clone())]))
        })
    }

    /// Removes the record only: names, their ownership and the lock stay (06 §4.2).
    pub fn delete_database(&self, identity: &Identity) -> Result<()> {
        self.change(|state| {
            let id = state.ids.get(identity);
            Ok((
                (),
                id.map(|id| Change::DatabaseGone(*id)).into_iter().collect(),
            ))
        })
    }

    /// Takes a name and its top-level domain for `owner` and points it to a database.
    pub fn register_name(
        &self,
        name: &DatabaseName,
        owner: &Identity,
        database: &Identity,
    ) -> Result<Registration> {
        self.change(|state| {
            let name = name.as_str().to_owned();
            let mut changes = Vec::new();
            if !take_domain(state, &name, owner, &mut changes) {
                return Ok((Registration::PermissionDenied(name), Vec::new()));
            }
            if state.names.contains_key(&name) {
                return Ok((Registration::InUse(name), Vec::new()));
            }
            let mut names = state.names_of.get(database).cloned().unwrap_or_default();
            names.push(name);
            let database = *database;
            changes.push(Change::Names { database, names });
            Ok((Registration::Done, changes))
        })
    }

    /// Replaces all names of a database at once (06 §5.10, PUT).
    pub fn replace_names(
        &self,
        names: &[DatabaseName],
        owner: &Identity,
        database: &Identity,
    ) -> Result<Registration> {
        self.change(|state| {
            let new = || names.iter().map(|name| name.as_str().to_owned());
            let refuse = |registration| Ok((registration, Vec::new()));
            // A name in use is an error even when it already leads here.
            if let Some(name) = new().find(|name| state.names.contains_key(name)) {
                return refuse(Registration::InUse(name));
            }
            let mut changes = Vec::new();
            let old = state.names_of.get(database).cloned().unwrap_or_default();
            for name in old.into_iter().chain(new()) {
                if !take_domain(state, &name, owner, &mut changes) {
                    return refuse(Registration::PermissionDenied(name));
                }
            }
            let mut kept: Vec<String> = Vec::with_capacity(names.len());
            for name in new() {
                if !kept.contains(&name) {
                    kept.push(name);
                }
            }
            let database = *database;
            changes.push(Change::Names {
                database,
                names: kept,
            });
            Ok((Registration::Done, changes))
        })
    }
}

/// True when the domain is the owner's, from before or from now on. Database names are domains of one segment.
fn take_domain(state: &State, name: &str, owner: &Identity, changes: &mut Vec<Change>) -> bool {
    if let Some(current) = state.domains.get(name) {
        return current == owner;
    }
    let (name, owner) = (name.to_owned(), *owner);
    changes.push(Change::Domain { name, owner });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn identity(number: u8) -> Identity {
        Identity::from_claims("localhost", &number.to_string())
    }

    fn name(text: &str) -> DatabaseName {
        DatabaseName::parse(text).expect("valid name")
    }

    pub(super) fn record(number: u8, owner: u8) -> DatabaseRecord {
        DatabaseRecord {
            id: 0,
            identity: identity(number),
            owner: identity(owner),
            host_type: HostType::Wasm,
            initial_program: Hash::keccak256(b"old module bytes"),
            replica_id: 7,
        }
    }

    #[test]
    fn without_a_token_the_store_can_be_opened_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for _ in 0..30 {
            let control = Arc::new(ControlDb::open(dir.path()).expect("closed before"));
            let token = Arc::downgrade(&control.open_token());
            let last = std::thread::spawn(move || drop(control));
            while token.strong_count() > 0 {
                std::hint::spin_loop();
            }
            drop(ControlDb::open(dir.path()).expect("closed"));
            last.join().expect("no panic");
        }
    }

    #[test]
    fn names_belong_to_the_first_who_takes_them() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let control = ControlDb::open(dir.path()).expect("open");
        let (alice, bob, db, other) = (identity(1), identity(2), identity(3), identity(4));
        assert_eq!(
            control.register_name(&name("a"), &alice, &db).expect("a"),
            Registration::Done
        );
        assert_eq!(control.resolve("a").expect("a"), Some(db));
        let denied = Registration::PermissionDenied("a".into());
        assert_eq!(
            control.register_name(&name("a"), &bob, &other).expect("a"),
            denied
        );
        assert_eq!(
            control
                .register_name(&name("a"), &alice, &other)
                .expect("a"),
            Registration::InUse("a".into())
        );
        assert_eq!(
            control.register_name(&name("b"), &alice, &db).expect("b"),
            Registration::Done
        );
        assert_eq!(control.names_of(&db).expect("names"), ["a", "b"]);

        // Renaming frees the old names, but their domains stay with their owner.
        assert_eq!(
            control.replace_names(&[name("c")], &alice, &db).expect("c"),
            Registration::Done
        );
        assert_eq!(control.resolve("a").expect("a"), None);
        assert_eq!(control.names_of(&db).expect("names"), ["c"]);
        assert_eq!(
            control.register_name(&name("a"), &bob, &other).expect("a"),
            denied
        );
        let in_use = Registration::InUse("c".into());
        assert_eq!(
            control
                .replace_names(&[name("d"), name("c")], &alice, &db)
                .expect("c"),
            in_use
        );
        assert_eq!(
            control.resolve("d").expect("d"),
            None,
            "nothing of a refused replacement stays"
        );
        assert_eq!(
            control.replace_names(&[], &alice, &db).expect("none"),
            Registration::Done
        );
        assert!(control.names_of(&db).expect("names").is_empty());
    }

    #[test]
    fn records_survive_a_restart_and_names_survive_a_deletion() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let control = ControlDb::open(dir.path()).expect("open");
        let first = control.insert_database(record(1, 9)).expect("insert");
        let second = control.insert_database(record(2, 9)).expect("insert");
        assert!(first.id < second.id);
        control
            .register_name(&name("a"), &identity(9), &identity(1))
            .expect("name");
        control.set_lock(&identity(1), true).expect("lock");
        drop(control);
        let control = ControlDb::open(dir.path()).expect("open again");
        assert_eq!(control.databases().expect("list"), [first.clone(), second]);
        control.delete_database(&identity(1)).expect("delete");
        assert_eq!(control.database(&identity(1)).expect("get"), None);
        assert_eq!(control.resolve("a").expect("resolve"), Some(identity(1)));
        assert!(control.is_locked(&identity(1)).expect("lock"));
        assert_eq!(control.last_replica_id().expect("id"), 0);
        let replica = control.next_replica_id().expect("id");
        assert!(control.next_replica_id().expect("id") > replica);
        assert_eq!(control.last_replica_id().expect("id"), replica + 1);
    }

    /// A store with something of everything, in a directory of its own.
    fn gold() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("temporary directory");
        let control = ControlDb::open(dir.path()).expect("open");
        for number in 1..4 {
            control.insert_database(record(number, 9)).expect("insert");
            control
                .register_name(
                    &name(&format!("n{number}")),
                    &identity(9),
                    &identity(number),
                )
                .expect("name");
        }
        control.set_lock(&identity(2), true).expect("lock");
        control.delete_database(&identity(3)).expect("delete");
        control.next_replica_id().expect("id");
        dir
    }

    fn copy(from: &Path, to: &Path) {
        for copy in ["copy-1", "copy-2"] {
            std::fs::create_dir_all(to.join(copy)).expect("created");
            for file in std::fs::read_dir(from.join(copy)).expect("listed") {
                let file = file.expect("entry");
                std::fs::copy(file.path(), to.join(copy).join(file.file_name())).expect("copied");
            }
        }
    }

    /// The files of both copies.
    fn files(directory: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for copy in ["copy-1", "copy-2"] {
            let entries = std::fs::read_dir(directory.join(copy)).expect("listed");
            files.extend(entries.map(|entry| entry.expect("entry").path()));
        }
        files
    }

    fn flip(path: &Path, at: usize) {
        let mut bytes = std::fs::read(path).expect("read");
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(path, bytes).expect("written");
    }

    #[test]
    fn no_flipped_bit_changes_an_answer() {
        let gold = gold();
        let control = ControlDb::open(gold.path()).expect("open");
        let expected = control.state().clone();
        drop(control);
        let mut mended = 0;
        for (number, file) in files(gold.path()).iter().enumerate() {
            let length = std::fs::metadata(file).expect("file").len() as usize;
            // A prime, so that all bits have their turn.
            for at in (0..length).step_by(53) {
                let dir = tempfile::tempdir().expect("temporary directory");
                copy(gold.path(), dir.path());
                let flipped = files(dir.path())
                    .into_iter()
                    .find(|path| path.ends_with(file.strip_prefix(gold.path()).expect("inside")))
                    .expect("the same file");
                flip(&flipped, at);
                let control = ControlDb::open(dir.path());
                let control = control.unwrap_or_else(|error| panic!("{number} {at}: {error}"));
                assert_eq!(*control.state(), expected, "{} {at}", file.display());
                mended += usize::from(dir.path().join("copy-1.damaged").exists());
                mended += usize::from(dir.path().join("copy-2.damaged").exists());
                control.next_replica_id().expect("changes go on");
                drop(control);
                drop(ControlDb::open(dir.path()).expect("and it opens again"));
            }
        }
        assert!(mended > 0, "flips were found");
    }

    #[test]
    fn damage_in_both_copies_is_refused() {
        let gold = gold();
        for place in [4096 + 60, 4096 + 700] {
            let dir = tempfile::tempdir().expect("temporary directory");
            copy(gold.path(), dir.path());
            for file in files(dir.path()) {
                if std::fs::metadata(&file).expect("file").len() > 0 {
                    flip(&file, place);
                }
            }
            let error = ControlDb::open(dir.path()).err().expect("refused");
            assert!(error.to_string().contains("LC0546"), "{error}");
        }
    }

    #[test]
    fn a_copy_that_is_gone_or_behind_is_made_again() {
        let gold = gold();
        let expected = ControlDb::open(gold.path()).expect("open").state().clone();
        for name in ["copy-1", "copy-2"] {
            std::fs::remove_dir_all(gold.path().join(name)).expect("removed");
            let control = ControlDb::open(gold.path()).expect("opens");
            assert_eq!(*control.state(), expected);
        }
        // A crash between the two: one copy has a record more.
        let older = tempfile::tempdir().expect("temporary directory");
        copy(gold.path(), older.path());
        let control = ControlDb::open(gold.path()).expect("opens");
        let replica = control.next_replica_id().expect("id");
        drop(control);
        std::fs::remove_dir_all(gold.path().join("copy-1")).expect("removed");
        std::fs::rename(older.path().join("copy-1"), gold.path().join("copy-1")).expect("moved");
        let control = ControlDb::open(gold.path()).expect("opens");
        assert!(control.next_replica_id().expect("id") > replica);
    }

    #[test]
    fn a_failed_change_is_not_there_and_the_next_one_opens_the_store_again() {
        let dir = gold();
        let control = ControlDb::open(dir.path()).expect("opens");
        // As after a failed write.
        *control.journal() = None;
        let hidden = dir.path().join("hidden");
        for name in ["copy-1", "copy-2"] {
            std::fs::create_dir_all(&hidden).expect("created");
            std::fs::rename(dir.path().join(name), hidden.join(name)).expect("moved");
            std::fs::write(dir.path().join(name), "no directory").expect("written");
        }
        control.set_lock(&identity(1), true).expect_err("no disk");
        assert!(!control.is_locked(&identity(1)).expect("read"));
        for name in ["copy-1", "copy-2"] {
            std::fs::remove_file(dir.path().join(name)).expect("removed");
            std::fs::rename(hidden.join(name), dir.path().join(name)).expect("moved");
        }
        control
            .set_lock(&identity(1), true)
            .expect("the disk is back");
        assert!(control.is_locked(&identity(1)).expect("read"));
    }

    #[test]
    fn a_long_journal_is_written_anew() {
        let dir = gold();
        let control = ControlDb::open(dir.path()).expect("opens");
        let mut state = control.state().clone();
        let mut held = control.journal();
        let journal = held.as_mut().expect("open");
        journal.pretend_long();
        journal.rewrite_if_long(&state).expect("written anew");
        drop(held);
        let replica = control.next_replica_id().expect("id");
        drop(control);
        let control = ControlDb::open(dir.path()).expect("opens");
        state.generation = 2;
        state.last_replica_id = replica;
        assert_eq!(*control.state(), state);
    }
}
