//! The mark in a database's directory that says that it need not be opened for its schedules.
//!
//! A server that starts opens the databases without it. So the mark is there only while it is certain that no row of a
//! schedule table exists: for good if the module has no such table, otherwise while the database is closed and was closed
//! properly. Losing the mark costs one opening, and nothing else.

use std::io;
use std::path::Path;

use lightcone_storage::{OpenMode, Storage};

/// The name of the mark.
pub const NO_SCHEDULES_FILE: &str = "no-schedules";

/// Sets or removes the mark, durably.
pub(crate) fn set(storage: &dyn Storage, directory: &Path, no_schedules: bool) -> io::Result<()> {
    let path = directory.join(NO_SCHEDULES_FILE);
    let changed = match no_schedules {
        true => storage.open(&path, OpenMode::CreateNew).map(drop),
        false => storage.remove(&path),
    };
    match changed {
        Ok(()) => storage.sync_directory(directory),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}
