//! Replica directories that no database has: what a publish, clear or delete that was killed left behind.
//!
//! A publish makes the directory before the control database knows of it, a clear or delete removes it after the control
//! database has forgotten it, so a kill in between leaves a directory that nobody would ever open or remove.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::control::{ControlDb, ControlError};
use crate::data_dir::DataDir;

/// What a replica's directory may hold. A directory with anything else is not touched.
const ENTRIES: [&str; 5] = [
    "log",
    "snapshots",
    "module_logs",
    crate::databases::PROGRAM_FILE,
    lightcone_database::NO_SCHEDULES_FILE,
];

/// The directories below `replicas/` that were made for a replica and belong to none. Must be asked before the first
/// database is created.
///
/// # Errors
/// The control database cannot be read.
pub(crate) fn find(data_dir: &DataDir, control: &ControlDb) -> Result<Vec<PathBuf>, ControlError> {
    let known: HashSet<u64> = control
        .databases()?
        .into_iter()
        .map(|record| record.replica_id)
        .collect();
    // A number above this one was given by another control database: this one is new, or from a backup.
    let last = control.last_replica_id()?;
    let Ok(entries) = std::fs::read_dir(data_dir.replicas()) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(id) = replica_id(&entry.file_name()) else {
            continue;
        };
        let directory = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if known.contains(&id) || !is_directory {
            continue;
        }
        if id > last {
            tracing::warn!(directory = %directory.display(), "the control database knows nothing of this replica; it is left alone [LC0328]");
        } else if !has_our_form(&directory) {
            tracing::warn!(directory = %directory.display(), "this replica belongs to no database, but holds files that are not ours; it is left alone [LC0328]");
        } else {
            found.push(directory);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes what [`find`] found. Blocks; meant for a thread of its own.
pub(crate) fn remove(directories: Vec<PathBuf>) {
    for directory in directories {
        let shown = directory.display();
        match std::fs::remove_dir_all(&directory) {
            Ok(()) => {
                tracing::info!(directory = %shown, "removed a replica that an interrupted publish, clear or delete left behind");
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(directory = %shown, %error, "a replica that belongs to no database cannot be removed");
            }
        }
    }
}

/// The number, if the name is one as the server writes it.
fn replica_id(name: &std::ffi::OsStr) -> Option<u64> {
    let name = name.to_str()?;
    let id: u64 = name.parse().ok()?;
    (id.to_string() == name).then_some(id)
}

fn has_our_form(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            ENTRIES.iter().any(|known| name == *known)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{DatabaseRecord, HostType};
    use lightcone_types::{Hash, Identity};

    #[test]
    fn only_directories_that_were_made_here_and_are_not_needed_go() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data_dir = DataDir::open(root.path()).expect("opens");
        let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
        for id in 1..=5 {
            assert_eq!(control.next_replica_id().expect("id"), id);
        }
        let record = DatabaseRecord {
            id: 0,
            identity: Identity::from_claims("localhost", "db"),
            owner: Identity::ZERO,
            host_type: HostType::Wasm,
            initial_program: Hash::keccak256(b""),
            replica_id: 2,
        };
        control.insert_database(record).expect("insert");
        let replicas = data_dir.replicas();
        for name in ["1/log", "2/log", "3", "4/log", "05/log", "6/log", "x/log"] {
            std::fs::create_dir_all(replicas.join(name)).expect("directory");
        }
        std::fs::write(replicas.join("4/notes.txt"), "mine").expect("file");
        std::fs::write(replicas.join("5"), "a file").expect("file");
        let outside = root.path().join("outside");
        std::fs::create_dir_all(outside.join("log")).expect("directory");
        std::os::unix::fs::symlink(&outside, replicas.join("0")).expect("link");

        let found = find(&data_dir, &control).expect("found");
        assert_eq!(found, [replicas.join("1"), replicas.join("3")]);
        remove(found);
        let mut left: Vec<_> = std::fs::read_dir(&replicas)
            .expect("directory")
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["0", "05", "2", "4", "5", "6", "x"]);
        assert!(outside.join("log").exists());
    }

    #[test]
    fn a_control_database_that_is_new_removes_nothing() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data_dir = DataDir::open(root.path()).expect("opens");
        std::fs::create_dir_all(data_dir.replica(1).join("log")).expect("directory");
        let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
        assert!(find(&data_dir, &control).expect("found").is_empty());
    }
}
