//! The control database: which databases there are, who owns them, and what they are called (06 §4.2).
//!
//! A small transactional store in `control-db/`. Every change is one durable transaction. Nothing of a call's way
//! touches it: the resolution of a name is one read of a B-tree in the page cache.

use std::path::Path;
use std::sync::Arc;

use lightcone_types::{Hash, Identity};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::names::DatabaseName;

const DATABASES: TableDefinition<u64, &[u8]> = TableDefinition::new("databases");
const DATABASE_IDS: TableDefinition<[u8; 32], u64> = TableDefinition::new("database_ids");
const NAMES: TableDefinition<&str, [u8; 32]> = TableDefinition::new("names");
const NAMES_OF: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("names_of");
const TOP_LEVEL_DOMAINS: TableDefinition<&str, [u8; 32]> =
    TableDefinition::new("top_level_domains");
const LOCKS: TableDefinition<[u8; 32], ()> = TableDefinition::new("locks");
const COUNTERS: TableDefinition<&str, u64> = TableDefinition::new("counters");

/// A failure of the control database itself.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("{0}")]
    Store(Box<redb::Error>),
    #[error("a record cannot be read: {0}")]
    Record(#[from] serde_json::Error),
    #[error("record with the name {0} already exists")]
    NameTaken(String),
}

macro_rules! from_store_error {
    ($($error:ty),*) => {$(
        impl From<$error> for ControlError {
            fn from(error: $error) -> Self {
                ControlError::Store(Box::new(error.into()))
            }
        }
    )*};
}

from_store_error!(
    redb::DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError
);

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
    db: Database,
    /// Behind the store, so that it goes when the file is closed.
    open: Arc<()>,
}

impl ControlDb {
    /// Opens or creates the store in a directory.
    pub fn open(directory: &Path) -> Result<ControlDb> {
        let db = Database::create(directory.join("control.redb"))?;
        let write = db.begin_write()?;
        write.open_table(DATABASES)?;
        write.open_table(DATABASE_IDS)?;
        write.open_table(NAMES)?;
        write.open_table(NAMES_OF)?;
        write.open_table(TOP_LEVEL_DOMAINS)?;
        write.open_table(LOCKS)?;
        write.open_table(COUNTERS)?;
        write.commit()?;
        let open = Arc::new(());
        Ok(ControlDb { db, open })
    }

    /// The store gives its own away when the file is closed. A count of references to the store itself falls too early: before
    /// it is taken down.
    pub fn open_token(&self) -> Arc<()> {
        self.open.clone()
    }

    /// The identity that a name leads to.
    pub fn resolve(&self, name: &str) -> Result<Option<Identity>> {
        let table = self.db.begin_read()?.open_table(NAMES)?;
        Ok(table
            .get(name)?
            .map(|value| Identity::from_le_bytes(value.value())))
    }

    pub fn owner_of_top_level_domain(&self, name: &str) -> Result<Option<Identity>> {
        let table = self.db.begin_read()?.open_table(TOP_LEVEL_DOMAINS)?;
        Ok(table
            .get(name)?
            .map(|value| Identity::from_le_bytes(value.value())))
    }

    pub fn database(&self, identity: &Identity) -> Result<Option<DatabaseRecord>> {
        let read = self.db.begin_read()?;
        let Some(id) = read
            .open_table(DATABASE_IDS)?
            .get(identity.to_le_bytes())?
            .map(|id| id.value())
        else {
            return Ok(None);
        };
        match read.open_table(DATABASES)?.get(id)? {
            Some(record) => Ok(Some(serde_json::from_slice(record.value())?)),
            None => Ok(None),
        }
    }

    /// Databases in the order of their ids.
    pub fn databases(&self) -> Result<Vec<DatabaseRecord>> {
        let table = self.db.begin_read()?.open_table(DATABASES)?;
        let mut records = Vec::new();
        for entry in table.iter()? {
            records.push(serde_json::from_slice(entry?.1.value())?);
        }
        Ok(records)
    }

    pub fn names_of(&self, identity: &Identity) -> Result<Vec<String>> {
        let table = self.db.begin_read()?.open_table(NAMES_OF)?;
        match table.get(identity.to_le_bytes())? {
            Some(names) => Ok(serde_json::from_slice(names.value())?),
            None => Ok(Vec::new()),
        }
    }

    pub fn is_locked(&self, identity: &Identity) -> Result<bool> {
        let table = self.db.begin_read()?.open_table(LOCKS)?;
        Ok(table.get(identity.to_le_bytes())?.is_some())
    }

    pub fn set_lock(&self, identity: &Identity, locked: bool) -> Result<()> {
        let write = self.db.begin_write()?;
        {
            let mut table = write.open_table(LOCKS)?;
            if locked {
                table.insert(identity.to_le_bytes(), ())?;
            } else {
                table.remove(identity.to_le_bytes())?;
            }
        }
        Ok(write.commit()?)
    }

    /// A number for a new replica directory; never given twice.
    pub fn next_replica_id(&self) -> Result<u64> {
        let write = self.db.begin_write()?;
        let id = next(&write, "replica")?;
        write.commit()?;
        Ok(id)
    }

    /// The newest number that [`ControlDb::next_replica_id`] has given; 0 if none.
    pub fn last_replica_id(&self) -> Result<u64> {
        let table = self.db.begin_read()?.open_table(COUNTERS)?;
        Ok(table.get("replica")?.map_or(0, |value| value.value()))
    }

    /// Adds the record of a new database, with the next id.
    pub fn insert_database(&self, mut record: DatabaseRecord) -> Result<DatabaseRecord> {
        let write = self.db.begin_write()?;
        record.id = next(&write, "database")?;
        write
            .open_table(DATABASE_IDS)?
            .insert(record.identity.to_le_bytes(), record.id)?;
        write
            .open_table(DATABASES)?
            .insert(record.id, serde_json::to_vec(&record)?.as_slice())?;
        write.commit()?;
        Ok(record)
    }

    /// Replaces the record with the same id.
    pub fn update_database(&self, record: &DatabaseRecord) -> Result<()> {
        let write = self.db.begin_write()?;
        write
            .open_table(DATABASES)?
            .insert(record.id, serde_json::to_vec(record)?.as_slice())?;
        Ok(write.commit()?)
    }

    /// Removes the record only: names, their ownership and the lock stay (06 §4.2).
    pub fn delete_database(&self, identity: &Identity) -> Result<()> {
        let write = self.db.begin_write()?;
        let id = write
            .open_table(DATABASE_IDS)?
            .remove(identity.to_le_bytes())?
            .map(|id| id.value());
        if let Some(id) = id {
            write.open_table(DATABASES)?.remove(id)?;
        }
        Ok(write.commit()?)
    }

    /// Takes a name and its top-level domain for `owner` and points it to a database.
    pub fn register_name(
        &self,
        name: &DatabaseName,
        owner: &Identity,
        database: &Identity,
    ) -> Result<Registration> {
        let write = self.db.begin_write()?;
        let name = name.as_str();
        if !take_top_level_domain(&write, name, owner)? {
            return Ok(Registration::PermissionDenied(name.to_owned()));
        }
        if write.open_table(NAMES)?.get(name)?.is_some() {
            return Ok(Registration::InUse(name.to_owned()));
        }
        write
            .open_table(NAMES)?
            .insert(name, database.to_le_bytes())?;
        let mut names = read_names(&write, database)?;
        names.push(name.to_owned());
        write_names(&write, database, &names)?;
        write.commit()?;
        Ok(Registration::Done)
    }

    /// Replaces all names of a database at once (06 §5.10, PUT).
    pub fn replace_names(
        &self,
        names: &[DatabaseName],
        owner: &Identity,
        database: &Identity,
    ) -> Result<Registration> {
        let write = self.db.begin_write()?;
        // A name in use is an error even when it already leads here.
        for name in names {
            if write.open_table(NAMES)?.get(name.as_str())?.is_some() {
                return Ok(Registration::InUse(name.as_str().to_owned()));
            }
        }
        for old in read_names(&write, database)? {
            if !take_top_level_domain(&write, &old, owner)? {
                return Ok(Registration::PermissionDenied(old));
            }
            write.open_table(NAMES)?.remove(old.as_str())?;
        }
        let mut list = Vec::with_capacity(names.len());
        for name in names {
            if !take_top_level_domain(&write, name.as_str(), owner)? {
                return Ok(Registration::PermissionDenied(name.as_str().to_owned()));
            }
            write
                .open_table(NAMES)?
                .insert(name.as_str(), database.to_le_bytes())?;
            list.push(name.as_str().to_owned());
        }
        write_names(&write, database, &list)?;
        write.commit()?;
        Ok(Registration::Done)
    }
}

fn next(write: &redb::WriteTransaction, counter: &str) -> Result<u64> {
    let mut table = write.open_table(COUNTERS)?;
    let id = table.get(counter)?.map_or(0, |value| value.value()) + 1;
    table.insert(counter, id)?;
    Ok(id)
}

/// True when the domain is the owner's, from before or from now on. Database names are domains of one segment.
fn take_top_level_domain(
    write: &redb::WriteTransaction,
    name: &str,
    owner: &Identity,
) -> Result<bool> {
    let mut table = write.open_table(TOP_LEVEL_DOMAINS)?;
    let current = table.get(name)?.map(|value| value.value());
    match current {
        Some(current) => Ok(current == owner.to_le_bytes()),
        None => {
            table.insert(name, owner.to_le_bytes())?;
            Ok(true)
        }
    }
}

fn read_names(write: &redb::WriteTransaction, database: &Identity) -> Result<Vec<String>> {
    let table = write.open_table(NAMES_OF)?;
    let names = match table.get(database.to_le_bytes())? {
        Some(names) => serde_json::from_slice(names.value())?,
        None => Vec::new(),
    };
    Ok(names)
}

fn write_names(
    write: &redb::WriteTransaction,
    database: &Identity,
    names: &[String],
) -> Result<()> {
    let mut table = write.open_table(NAMES_OF)?;
    table.insert(
        database.to_le_bytes(),
        serde_json::to_vec(names)?.as_slice(),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(number: u8) -> Identity {
        Identity::from_claims("localhost", &number.to_string())
    }

    fn name(text: &str) -> DatabaseName {
        DatabaseName::parse(text).expect("valid name")
    }

    fn record(number: u8, owner: u8) -> DatabaseRecord {
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
}
