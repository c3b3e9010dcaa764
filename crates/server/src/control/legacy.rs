//! The control database of versions that kept it in `control.redb`: read once, and taken over.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use lightcone_types::Identity;
use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::error::{ControlError, Result};
use super::record::DatabaseRecord;
use super::state::{Change, State};

const FILE: &str = "control.redb";
/// What is left of the file when its contents are in the journal.
const TAKEN_OVER: &str = "control.redb.taken-over";
/// Stands in its place: earlier versions refuse it, where they would begin a new store if there were nothing.
const NOTE: &[u8] = b"The control database is in copy-1 and copy-2. This file keeps earlier versions from beginning a new one.\n";

const DATABASES: TableDefinition<u64, &[u8]> = TableDefinition::new("databases");
const DATABASE_IDS: TableDefinition<[u8; 32], u64> = TableDefinition::new("database_ids");
const NAMES: TableDefinition<&str, [u8; 32]> = TableDefinition::new("names");
const NAMES_OF: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("names_of");
const TOP_LEVEL_DOMAINS: TableDefinition<&str, [u8; 32]> =
    TableDefinition::new("top_level_domains");
const LOCKS: TableDefinition<[u8; 32], ()> = TableDefinition::new("locks");
const COUNTERS: TableDefinition<&str, u64> = TableDefinition::new("counters");

type Failed = Box<dyn std::error::Error>;

/// The state in `control.redb`, if there is one.
pub(super) fn read(directory: &Path) -> Result<Option<State>> {
    let path = directory.join(FILE);
    let wrong = |found: String| ControlError::Legacy {
        path: path.clone(),
        found,
    };
    if directory.join(TAKEN_OVER).exists() || is_note(&path)? {
        let found = "its journal, copy-1 and copy-2, is not there".to_owned();
        return Err(wrong(found));
    }
    if !path.exists() {
        return Ok(None);
    }
    // The library panics over some damage.
    let state = catch_unwind(AssertUnwindSafe(|| read_file(&path)))
        .map_err(|_| wrong("reading it fails".to_owned()))?
        .map_err(|error| wrong(error.to_string()))?;
    tracing::info!(path = %path.display(), databases = state.databases.len(), "the control database of an earlier version is taken over");
    Ok(Some(state))
}

/// Puts a note in the place of the file, so that neither this version nor an earlier one mistakes it for the truth.
pub(super) fn set_aside(directory: &Path) -> Result<()> {
    let (path, taken_over) = (directory.join(FILE), directory.join(TAKEN_OVER));
    if is_note(&path)? {
        return Ok(());
    }
    if path.exists() && !taken_over.exists() {
        std::fs::rename(&path, taken_over).map_err(ControlError::io("rename", &path))?;
    }
    std::fs::write(&path, NOTE).map_err(ControlError::io("write", &path))
}

fn is_note(path: &Path) -> Result<bool> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() == NOTE.len() as u64 => {
            Ok(std::fs::read(path).map_err(ControlError::io("read", path))? == NOTE)
        }
        _ => Ok(false),
    }
}

fn read_file(path: &Path) -> Result<State, Failed> {
    let mut database = Database::open(path)?;
    // Opening checks next to nothing.
    if !database.check_integrity()? {
        return Err("its checksums do not fit".into());
    }
    let read = database.begin_read()?;
    let mut state = State::default();
    for change in changes(&read)? {
        state.apply(change)?;
    }
    // Whatever is there twice must agree.
    let ids = read.open_table(DATABASE_IDS)?;
    let mut count = 0;
    for entry in ids.iter()? {
        let (identity, id) = entry?;
        count += 1;
        if state.ids.get(&Identity::from_le_bytes(identity.value())) != Some(&id.value()) {
            return Err(format!("database {} has no record", id.value()).into());
        }
    }
    let names = read.open_table(NAMES)?;
    let mut name_count = 0;
    for entry in names.iter()? {
        let (name, database) = entry?;
        name_count += 1;
        if state.names.get(name.value()) != Some(&Identity::from_le_bytes(database.value())) {
            return Err(format!("the name {:?} leads nowhere", name.value()).into());
        }
    }
    if count != state.ids.len() || name_count != state.names.len() {
        return Err("its tables do not fit each other".into());
    }
    Ok(state)
}

fn changes(read: &ReadTransaction) -> Result<Vec<Change>, Failed> {
    let mut changes = Vec::new();
    for entry in read.open_table(DATABASES)?.iter()? {
        let (id, record) = entry?;
        let record: DatabaseRecord = serde_json::from_slice(record.value())?;
        if record.id != id.value() {
            return Err(format!("the record of database {} is another's", id.value()).into());
        }
        changes.push(Change::Database(record));
    }
    for entry in read.open_table(NAMES_OF)?.iter()? {
        let (database, names) = entry?;
        changes.push(Change::Names {
            database: Identity::from_le_bytes(database.value()),
            names: serde_json::from_slice(names.value())?,
        });
    }
    for entry in read.open_table(TOP_LEVEL_DOMAINS)?.iter()? {
        let (name, owner) = entry?;
        changes.push(Change::Domain {
            name: name.value().to_owned(),
            owner: Identity::from_le_bytes(owner.value()),
        });
    }
    for entry in read.open_table(LOCKS)?.iter()? {
        changes.push(Change::Lock {
            database: Identity::from_le_bytes(entry?.0.value()),
            locked: true,
        });
    }
    for entry in read.open_table(COUNTERS)?.iter()? {
        let (name, value) = entry?;
        changes.push(match name.value() {
            "database" => Change::DatabaseId(value.value()),
            "replica" => Change::ReplicaId(value.value()),
            other => return Err(format!("an unknown counter {other:?}").into()),
        });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{identity, record};
    use super::super::ControlDb;
    use super::*;

    /// A file as earlier versions wrote it.
    fn write_file(path: &Path) -> Result<(), Failed> {
        let database = Database::create(path)?;
        let write = database.begin_write()?;
        {
            let mut record = record(1, 9);
            record.id = 4;
            let bytes = serde_json::to_vec(&record)?;
            let database = identity(1).to_le_bytes();
            write.open_table(DATABASES)?.insert(4, bytes.as_slice())?;
            write.open_table(DATABASE_IDS)?.insert(database, 4)?;
            write.open_table(NAMES)?.insert("a", database)?;
            let names = serde_json::to_vec(&["a"])?;
            write
                .open_table(NAMES_OF)?
                .insert(database, names.as_slice())?;
            let mut domains = write.open_table(TOP_LEVEL_DOMAINS)?;
            domains.insert("a", identity(9).to_le_bytes())?;
            domains.insert("gone", identity(8).to_le_bytes())?;
            write.open_table(LOCKS)?.insert(database, ())?;
            let mut counters = write.open_table(COUNTERS)?;
            counters.insert("database", 5)?;
            counters.insert("replica", 7)?;
        }
        Ok(write.commit()?)
    }

    fn check(control: &ControlDb) {
        let known = control.database(&identity(1)).expect("read");
        let known = known.expect("the database is there");
        assert_eq!((known.id, known.owner), (4, identity(9)));
        assert_eq!(control.resolve("a").expect("read"), Some(identity(1)));
        let owner = control.owner_of_top_level_domain("gone").expect("read");
        assert_eq!(owner, Some(identity(8)));
        assert!(control.is_locked(&identity(1)).expect("read"));
        assert_eq!(control.databases().expect("databases").len(), 1);
    }

    #[test]
    fn a_store_of_an_earlier_version_is_taken_over() {
        let dir = tempfile::tempdir().expect("temporary directory");
        write_file(&dir.path().join(FILE)).expect("written");
        for _ in 0..2 {
            let control = ControlDb::open(dir.path()).expect("opens");
            check(&control);
            assert!(dir.path().join(TAKEN_OVER).exists());
            // Earlier versions keep their hands off.
            Database::create(dir.path().join(FILE)).expect_err("no store");
        }
        let control = ControlDb::open(dir.path()).expect("opens");
        assert_eq!(control.next_replica_id().expect("id"), 8);
        let inserted = control.insert_database(record(2, 9)).expect("insert");
        assert_eq!(inserted.id, 6);
        drop(control);
        // Without the journal nothing is begun anew.
        for copy in ["copy-1", "copy-2"] {
            std::fs::remove_dir_all(dir.path().join(copy)).expect("removed");
        }
        let error = ControlDb::open(dir.path()).err().expect("refused");
        assert!(error.to_string().contains("LC0548"), "{error}");
    }

    #[test]
    fn a_flipped_bit_in_it_is_never_taken_over() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let gold = dir.path().join("gold");
        write_file(&gold).expect("written");
        let bytes = std::fs::read(&gold).expect("read");
        let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let (mut refused, mut same) = (0, 0);
        for at in places.iter().step_by(places.len() / 150 + 1) {
            let place = dir.path().join(at.to_string());
            std::fs::create_dir(&place).expect("created");
            let mut flipped = bytes.clone();
            flipped[*at] ^= 1 << (at % 8);
            std::fs::write(place.join(FILE), flipped).expect("written");
            match ControlDb::open(&place) {
                Ok(control) => {
                    check(&control);
                    same += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("LC0548"), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "{refused} refused, {same} the same");
    }
}
