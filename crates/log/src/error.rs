//! What can go wrong with a log. Every text names the place and the next step, and carries the code of
//! its page under `docs/errors/`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_storage::{FilePosition, LogOffset};

use crate::epoch::Epoch;

/// An error of the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused an operation, before anything was at stake.
    #[error("the log could not {action} {}: {source}. Mend the cause (permissions, disk space, disk) and start the database again. [LC0501]", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// A write or sync failed earlier. Whether those bytes are on the disk is unknown, so this log takes no more.
    #[error("the log takes no more transactions, because an earlier write or sync failed: {cause} The database is read-only until it is restarted. [LC0502]")]
    Poisoned {
        /// The first failure.
        cause: Arc<LogError>,
    },

    /// Bytes on the disk are not what was written there.
    #[error("log segment {} is damaged at byte {byte_offset}: {found}. Nothing was changed. Restore the database from a backup, or run the repair: it keeps everything before this byte and saves what it removes beside the segment. [LC0503]", file.display())]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// Where in the segment the damage begins.
        byte_offset: FilePosition,
        /// What was found there, and what was expected.
        found: String,
    },

    /// Segments that must be there are not.
    #[error("the log has a gap before {}: {found}. Nothing was changed. Put the missing segment back, restore the database from a backup, or run the repair: it keeps everything before the gap and sets the rest aside. [LC0504]", file.display())]
    Gap {
        /// The first segment after the gap.
        file: PathBuf,
        /// What was found, and what was expected.
        found: String,
    },

    /// The segment is whole, but not for this database or this version.
    #[error("log segment {} cannot be used here: {found} [LC0505]", file.display())]
    Foreign {
        /// The segment.
        file: PathBuf,
        /// What does not fit, and what to do.
        found: String,
    },

    /// A newer writer has taken over.
    #[error("this writer has epoch {epoch}, but the log is at epoch {current}: a newer writer has taken over. Stop this one. [LC0506]")]
    Fenced {
        /// The epoch of the caller.
        epoch: Epoch,
        /// The epoch of the log.
        current: Epoch,
    },

    /// Another process holds the log.
    #[error("the log in {} is in use by another process. Stop that one first; two servers cannot share a data directory. [LC0507]", directory.display())]
    Locked {
        /// The directory of the log.
        directory: PathBuf,
    },

    /// The wanted transactions are not in the log.
    #[error("the log holds the transactions {oldest} to {next} (exclusive), but {asked} was asked for. If older ones are needed, a newer snapshot or a backup is missing; if newer ones are, segments of the log are. [LC0508]")]
    OutOfRange {
        /// The offset that was asked for.
        asked: LogOffset,
        /// The oldest offset in the log.
        oldest: LogOffset,
        /// The offset after the newest.
        next: LogOffset,
    },

    /// The thread that writes the log panicked.
    #[error(
        "the thread that writes the log failed: {text}. This is a bug; please report it. [LC0538]"
    )]
    Panicked {
        /// What the panic said.
        text: String,
    },

    /// A frame that the log cannot take. Nothing was written, and the log goes on.
    #[error("the log cannot take this frame: {reason} [LC0509]")]
    BadFrame {
        /// Why.
        reason: String,
    },
}

impl LogError {
    /// The failure that came first.
    pub fn root(&self) -> &LogError {
        match self {
            LogError::Poisoned { cause } => cause.root(),
            error => error,
        }
    }

    /// Whether the first failure goes away by itself when something is given back: disk space or file descriptors. The
    /// log that had it stays closed, but one that is opened anew may work.
    pub fn is_passing(&self) -> bool {
        use rustix::io::Errno;
        let LogError::Io { source, .. } = self.root() else {
            return false;
        };
        let passing = [Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::DQUOT];
        match source.raw_os_error() {
            Some(number) => passing.iter().any(|errno| errno.raw_os_error() == number),
            None => matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
        }
    }

    /// Whether a bug ended the log, and not the disk.
    pub fn is_bug(&self) -> bool {
        matches!(self.root(), LogError::Panicked { .. })
    }

    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> LogError + use<'a> {
        move |source| LogError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
