//! Errors of snapshots. Codes have their pages under `docs/errors/`.

use std::io;
use std::path::PathBuf;

use lightcone_storage::{FilePosition, LogOffset, Refused};

use crate::format::ObjectHash;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The operating system refused an operation.
    #[error("the snapshot store could not {action} {}: {source}. Mend the cause (permissions, disk space, disk); the log still has everything since the last good snapshot. [LC0520]", path.display())]
    Io {
        /// A verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// Stored bytes have changed.
    #[error("snapshot file {} is damaged at byte {byte_offset}: {found}. If you have an undamaged copy of this file, put it there. [LC0521]", file.display())]
    Damaged {
        file: PathBuf,
        byte_offset: FilePosition,
        /// What was found, and what was expected.
        found: String,
    },

    /// An intact file of another version.
    #[error("snapshot file {} has format version {version}, and this server reads version {supported}. Use the server version that wrote it. [LC0522]", file.display())]
    Version {
        file: PathBuf,
        version: u32,
        supported: u32,
    },

    /// The wanted object is not part of the snapshot.
    #[error("the snapshot at transaction {offset} holds no object {hash} [LC0523]")]
    NoSuchObject { offset: LogOffset, hash: ObjectHash },

    /// A call that does not fit the state of the store.
    #[error("the snapshot store cannot do this now: {reason} [LC0524]")]
    Misuse { reason: String },
}

/// A snapshot that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot at transaction {offset} cannot be used: {error}")]
pub struct Problem {
    pub offset: LogOffset,
    pub error: SnapshotError,
}

impl SnapshotError {
    /// Whether the stored bytes are at fault, rather than the machine.
    pub fn is_damage(&self) -> bool {
        matches!(self, SnapshotError::Damaged { .. })
    }

    /// Whether something ran out that may be given back.
    pub fn is_passing(&self) -> bool {
        let SnapshotError::Io { source, .. } = self else {
            return false;
        };
        // ENFILE and EMFILE of Linux and macOS: there are no file descriptors.
        matches!(source.raw_os_error(), Some(23 | 24))
    }

    /// Whether an older snapshot is needed: this one is damaged, or the disk cannot read it.
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            SnapshotError::Damaged { .. } | SnapshotError::Io { .. }
        )
    }
}

impl From<Refused> for SnapshotError {
    fn from(refused: Refused) -> SnapshotError {
        let Refused {
            action,
            path,
            source,
        } = refused;
        SnapshotError::Io {
            action,
            path,
            source,
        }
    }
}
