//! What can go wrong with snapshots. Codes have their pages under `docs/errors/`.

use std::io;
use std::path::{Path, PathBuf};

use lightcone_storage::{FilePosition, LogOffset};

use crate::format::ObjectHash;

/// An error of the snapshot store.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The operating system refused an operation.
    #[error("the snapshot store could not {action} {}: {source}. Mend the cause (permissions, disk space, disk); the log still has everything since the last good snapshot. [LC0520]", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// Bytes on the disk are not what was written there.
    #[error("snapshot file {} is damaged at byte {byte_offset}: {found}. If you have an undamaged copy of this file, put it there. [LC0521]", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where in the file.
        byte_offset: FilePosition,
        /// What was found, and what was expected.
        found: String,
    },

    /// The file is whole, but of a version that this code does not read.
    #[error("snapshot file {} has format version {version}, and this server reads version {supported}. Use the server version that wrote it. [LC0522]", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: u32,
        /// The version this code reads.
        supported: u32,
    },

    /// The wanted object is not part of the snapshot.
    #[error("the snapshot at transaction {offset} holds no object {hash} [LC0523]")]
    NoSuchObject {
        /// The snapshot.
        offset: LogOffset,
        /// The object.
        hash: ObjectHash,
    },

    /// A call that does not fit the state of the store.
    #[error("the snapshot store cannot do this now: {reason} [LC0524]")]
    Misuse {
        /// Why.
        reason: String,
    },
}

/// A snapshot that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot at transaction {offset} cannot be used: {error}")]
pub struct Problem {
    /// The snapshot: it has all transactions before this one.
    pub offset: LogOffset,
    /// What is wrong with it.
    pub error: SnapshotError,
}

impl SnapshotError {
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> SnapshotError + use<'a> {
        move |source| SnapshotError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the stored bytes are at fault, rather than the moment or the machine.
    pub fn is_damage(&self) -> bool {
        matches!(self, SnapshotError::Damaged { .. })
    }

    /// Whether the snapshot that was being read is of no use now, so that an older one is needed: its bytes are damaged,
    /// or the disk does not give them out.
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            SnapshotError::Damaged { .. } | SnapshotError::Io { .. }
        )
    }
}
