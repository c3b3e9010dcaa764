//! Replica directories that no database has: what a publish, clear or delete that was killed left behind.
//!
//! A publish makes the directory before the control database knows of it, a clear or delete removes it after the control
//! database has forgotten it, so a kill in between leaves a directory that nothing would ever open or remove.
//!
//! A directory whose number this control database has not given yet is from another one: this one is new, or from a backup.
//! It is renamed to `<number>.unknown` before its number is given, and back when the control database knows it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lightcone_control::ControlDb;

use crate::data_dir::DataDir;

/// What earlier versions had in a directory: that nothing is planned, which the control database says now.
const OLD_MARK_FILE: &str = "no-schedules";
/// What a replica's directory may hold. A directory with anything else is not touched.
const ENTRIES: [&str; 7] = [
    "history",
    "history.tmp",
    "log",
    "snapshots",
    "module_logs",
    crate::databases::PROGRAM_FILE,
    OLD_MARK_FILE,
];

/// The directories below `replicas/` that were made for a replica and belong to none. Those of another control database get
/// another name, or their own back. Must be asked before the first database is opened or created.
pub(crate) fn find(data_dir: &DataDir, control: &ControlDb) -> Vec<PathBuf> {
    let records = control.databases();
    let known: HashSet<u64> = records.iter().map(|record| record.replica_id).collect();
    take_back(data_dir, &known);
    let last = control.last_replica_id();
    let Ok(entries) = std::fs::read_dir(data_dir.replicas()) else {
        return Vec::new();
    };
    // All at first: what is renamed below might come up again.
    let entries: Vec<_> = entries.flatten().collect();
    let mut found = Vec::new();
    for entry in entries {
        let Some(id) = replica_id(&entry.file_name()) else {
            continue;
        };
        let directory = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if known.contains(&id) || !is_directory {
            continue;
        }
        if id > last {
            set_aside(data_dir, &directory, id);
        } else if !has_our_form(&directory) {
            tracing::warn!(directory = %directory.display(), "this replica belongs to no database, but holds files that are not ours; it is left alone [LC0328]");
        } else {
            found.push(directory);
        }
    }
    found.sort();
    found
}

/// Where a replica is kept that the control database does not know.
fn unknown(data_dir: &DataDir, id: u64) -> PathBuf {
    data_dir.replicas().join(format!("{id}.unknown"))
}

/// Gives replicas that the control database knows again their names back.
fn take_back(data_dir: &DataDir, known: &HashSet<u64>) {
    for id in known {
        let (kept, directory) = (unknown(data_dir, *id), data_dir.replica(*id));
        if !kept.is_dir() || directory.exists() {
            continue;
        }
        match rename(data_dir, &kept, &directory) {
            Ok(()) => {
                tracing::warn!(directory = %directory.display(), "a replica that the control database did not know is known again [LC0328]");
            }
            Err(error) => {
                tracing::error!(directory = %kept.display(), %error, "a replica that is known again cannot be renamed [LC0328]");
            }
        }
    }
}

/// Takes a replica's number from it, which would be given to another one. Where that fails, creating the other one does.
fn set_aside(data_dir: &DataDir, directory: &Path, id: u64) {
    let mut kept = unknown(data_dir, id);
    let mut number = 1;
    while kept.exists() {
        number += 1;
        kept = data_dir.replicas().join(format!("{id}.unknown.{number}"));
    }
    match rename(data_dir, directory, &kept) {
        Ok(()) => {
            tracing::warn!(directory = %directory.display(), kept_as = %kept.display(), "the control database knows nothing of this replica; it is kept under another name [LC0328]");
        }
        Err(error) => {
            tracing::error!(directory = %directory.display(), %error, "the control database knows nothing of this replica; it cannot be renamed and is left alone [LC0328]");
        }
    }
}

fn rename(data_dir: &DataDir, from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::rename(from, to)?;
    lightcone_storage::disk().sync_directory(&data_dir.replicas())
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
    use lightcone_control::{DatabaseRecord, HostType};
    use lightcone_types::{Due, Hash, Identity};

    use super::*;

    fn record(replica_id: u64) -> DatabaseRecord {
        DatabaseRecord {
            id: 0,
            identity: Identity::from_claims("localhost", &replica_id.to_string()),
            owner: Identity::ZERO,
            host_type: HostType::Wasm,
            initial_program: Hash::keccak256(b""),
            replica_id,
        }
    }

    #[test]
    fn only_directories_that_were_made_here_and_are_not_needed_go() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data_dir = DataDir::open(root.path()).expect("opens");
        let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
        for id in 1..=5 {
            assert_eq!(control.next_replica_id().expect("id"), id);
        }
        control
            .insert_database(record(2), Due::Never)
            .expect("insert");
        let replicas = data_dir.replicas();
        for name in ["1/log", "2/log", "3", "4/log", "05/log", "6/log", "x/log"] {
            std::fs::create_dir_all(replicas.join(name)).expect("directory");
        }
        std::fs::write(replicas.join("4/notes.txt"), "mine").expect("file");
        std::fs::write(replicas.join("5"), "a file").expect("file");
        let outside = root.path().join("outside");
        std::fs::create_dir_all(outside.join("log")).expect("directory");
        std::os::unix::fs::symlink(&outside, replicas.join("0")).expect("link");

        let found = find(&data_dir, &control);
        assert_eq!(found, [replicas.join("1"), replicas.join("3")]);
        remove(found);
        let mut left: Vec<_> = std::fs::read_dir(&replicas)
            .expect("directory")
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["0", "05", "2", "4", "5", "6.unknown", "x"]);
        assert!(outside.join("log").exists());
    }

    fn names(data_dir: &DataDir) -> Vec<String> {
        let mut names = lightcone_storage::disk()
            .list(&data_dir.replicas())
            .expect("listed");
        names.sort();
        names
    }

    #[test]
    fn what_another_control_database_made_is_kept_whatever_this_one_does() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data_dir = DataDir::open(root.path()).expect("opens");
        for id in 1..=2 {
            std::fs::create_dir_all(data_dir.replica(id).join("log")).expect("directory");
        }
        // A new one, and the same after it has given these numbers.
        for _ in 0..2 {
            let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
            assert!(find(&data_dir, &control).is_empty());
            assert_eq!(names(&data_dir), ["1.unknown", "2.unknown"]);
            for _ in 0..3 {
                control.next_replica_id().expect("id");
            }
        }
        // The one that knows them, from a backup. Another one's replica has the number of one of them by now.
        std::fs::remove_dir_all(data_dir.control_directory()).expect("removed");
        std::fs::create_dir_all(data_dir.replica(2)).expect("directory");
        let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
        for id in 1..=2 {
            assert_eq!(control.next_replica_id().expect("id"), id);
            control
                .insert_database(record(id), Due::Never)
                .expect("insert");
        }
        assert!(find(&data_dir, &control).is_empty());
        assert_eq!(names(&data_dir), ["1", "2", "2.unknown"]);
        assert!(data_dir.replica(1).join("log").exists());
    }

    #[test]
    fn no_name_is_taken_twice() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data_dir = DataDir::open(root.path()).expect("opens");
        let control = ControlDb::open(&data_dir.control_directory()).expect("opens");
        for _ in 0..3 {
            std::fs::create_dir_all(data_dir.replica(1).join("log")).expect("directory");
            assert!(find(&data_dir, &control).is_empty());
        }
        let expected = ["1.unknown", "1.unknown.2", "1.unknown.3"];
        assert_eq!(names(&data_dir), expected);
    }
}
