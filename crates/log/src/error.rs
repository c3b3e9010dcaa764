//! Errors of a log. Each text names the place and the next step, and has the code of its page under `docs/errors/`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_storage::{FilePosition, LogOffset, Refused};

use crate::chain::Epoch;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused an operation, before anything was at risk.
    #[error("the log could not {action} {}: {source}. Mend the cause (permissions, disk space, disk) and start the database again. [LC0501]", path.display())]
    Io {
        /// A verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// A write or sync failed earlier. It is unknown whether its bytes are on the disk, so this log takes no more.
    #[error("the log takes no more transactions, because an earlier write or sync failed: {cause} The database is read-only until it is restarted. [LC0502]")]
    Poisoned { cause: Arc<LogError> },

    /// Stored bytes have changed.
    #[error("log segment {} is damaged at byte {byte_offset}: {found}. Nothing was changed. Restore the database from a backup, or run the repair: it keeps everything before this byte and saves what it removes beside the segment. [LC0503]", file.display())]
    Damaged {
        file: PathBuf,
        /// Where the damage begins.
        byte_offset: FilePosition,
        /// What was found, and what was expected.
        found: String,
    },

    /// Segments are missing.
    #[error("the log has a gap before {}: {found}. Nothing was changed. Put the missing segment back, restore the database from a backup, or run the repair: it keeps everything before the gap and sets the rest aside. [LC0504]", file.display())]
    Gap {
        /// Behind the gap.
        file: PathBuf,
        /// What was found, and what was expected.
        found: String,
    },

    /// The segment is intact, but for another database or version.
    #[error("log segment {} cannot be used here: {found} [LC0505]", file.display())]
    Foreign {
        file: PathBuf,
        /// What does not fit, and what to do.
        found: String,
    },

    /// A newer writer has taken over.
    #[error("this writer has epoch {epoch}, but the log is at epoch {current}: a newer writer has taken over. Stop this one. [LC0506]")]
    Fenced { epoch: Epoch, current: Epoch },

    /// Another process holds the log.
    #[error("the log in {} is in use by another process. Stop that one first; two servers cannot share a data directory. [LC0507]", directory.display())]
    Locked { directory: PathBuf },

    #[error("the log holds the transactions {oldest} to {next} (exclusive), but {wanted} was asked for. If older ones are needed, a newer snapshot or a backup is missing; if newer ones are, segments of the log are. [LC0508]")]
    OutOfRange {
        wanted: LogOffset,
        oldest: LogOffset,
        /// After the newest.
        next: LogOffset,
    },

    /// A reader was so slow that what it needs next was trimmed.
    #[error("a reader of the log needs transaction {wanted}, but the log begins with {oldest} by now: the reader was too slow, and the log does not wait longer for readers. Begin anew with a snapshot. [LC0511]")]
    LeftBehind {
        wanted: LogOffset,
        oldest: LogOffset,
    },

    /// What a reader had read was removed.
    #[error("a reader of the log had read up to transaction {offset} (exclusive), and what it read was cut away from the log: a newer leader has other transactions in their place. Begin anew with a snapshot. [LC0512]")]
    CutAway { offset: LogOffset },

    #[error("the log cannot be cut before transaction {offset}, which is inside of a frame: frames are exchanged as a whole. Cut before {first_offset} or {next_offset}. [LC0513]")]
    InsideFrame {
        offset: LogOffset,
        first_offset: LogOffset,
        next_offset: LogOffset,
    },

    /// There is nothing more to read.
    #[error("the log has been shut down [LC0510]")]
    Closed,

    /// The thread that writes the log panicked.
    #[error(
        "the thread that writes the log failed: {text}. This is a bug; please report it. [LC0538]"
    )]
    Panicked { text: String },

    /// An invalid frame. Nothing was written, and the log goes on.
    #[error("the log cannot take this frame: {reason} [LC0509]")]
    BadFrame { reason: String },
}

impl LogError {
    pub fn root(&self) -> &LogError {
        match self {
            LogError::Poisoned { cause } => cause.root(),
            error => error,
        }
    }

    /// The file that it is about, if it is about one.
    pub fn file(&self) -> Option<&Path> {
        match self.root() {
            LogError::Io { path: file, .. }
            | LogError::Damaged { file, .. }
            | LogError::Gap { file, .. }
            | LogError::Foreign { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether a log that is opened anew may work once disk space or file descriptors are free again.
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

    /// Whether a bug ended the log, rather than the disk.
    pub fn is_bug(&self) -> bool {
        matches!(self.root(), LogError::Panicked { .. })
    }
}

impl From<Refused> for LogError {
    fn from(refused: Refused) -> LogError {
        let Refused {
            action,
            path,
            source,
        } = refused;
        LogError::Io {
            action,
            path,
            source,
        }
    }
}
