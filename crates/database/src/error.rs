//! Why something was refused or failed. Texts are those that HTTP and WebSocket clients see.

use lightcone_engine::RecoveryError;
use lightcone_host::HostError;
use lightcone_log::LogError;
use lightcone_snapshot::SnapshotError;

use crate::loads::LoadError;

/// Why a database could not be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is no module: does not compile, link, load or describe itself validly.
    #[error("{0}")]
    Module(String),
    /// The module's `init` reducer refused or failed; the text is what the publisher sees.
    #[error("{0}")]
    Init(String),
    #[error(transparent)]
    Host(#[from] HostError),
    /// The module did not get to its load phase, or not to its end.
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error("{} holds no published module: the database was never created completely [LC0536]", .0.display())]
    Empty(std::path::PathBuf),
    #[error("this server has no JavaScript engine; publish a WebAssembly module [LC0306]")]
    NoJavaScript,
    #[error("{0}")]
    Other(String),
}

/// Why a WebSocket connection was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The module's connect reducer refused; the text is its error.
    #[error("{0}")]
    Rejected(String),
    /// The same identity has a connection with this id already; it goes on.
    #[error("{0}")]
    InUse(String),
    /// The database is stopping.
    #[error("no such module")]
    Closed,
}

/// Why a payload was not taken; the connection ends.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Close with 1011 and this text (05 §8).
    #[error("{0}")]
    Malformed(String),
    #[error("the connection is closed")]
    Closed,
}

/// Why an SQL statement failed.
#[derive(Debug)]
pub enum SqlError {
    ConnectRejected(String),
    /// 400 with this text.
    Query(String),
    /// It would change something, and only what reads was to be run.
    Writes,
    /// The server cannot do it now.
    Busy(String),
    ModuleGone,
    Database(String),
}

/// Why a program was not replaced; the old one keeps running.
#[derive(Clone, Debug)]
pub enum UpdateError {
    /// There is no plan: lists why.
    Rejected(String),
    /// The policy forbids the plan, or a step of it failed.
    Refused(String),
    /// The new program is no module.
    Module(String),
    /// No more modules are loaded now.
    Busy(String),
    /// The database ended before the writer answered.
    Cancelled,
    Database(String),
}

impl std::fmt::Display for UpdateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UpdateError::Rejected(text)
            | UpdateError::Refused(text)
            | UpdateError::Module(text)
            | UpdateError::Busy(text)
            | UpdateError::Database(text) => f.write_str(text),
            UpdateError::Cancelled => f.write_str("the database stops"),
        }
    }
}

/// What a caller is told whose call was carried out, if that is not durable and never will be.
pub(crate) trait NotDurable {
    fn not_durable(reason: String) -> Self;
}

impl NotDurable for SqlError {
    fn not_durable(reason: String) -> SqlError {
        SqlError::Database(reason)
    }
}

impl NotDurable for UpdateError {
    fn not_durable(reason: String) -> UpdateError {
        UpdateError::Database(reason)
    }
}
