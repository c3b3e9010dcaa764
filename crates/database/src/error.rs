//! Why something was refused or failed. Texts are those that HTTP and WebSocket clients see.

use std::time::Duration;

use lightcone_accounts::{self as accounts, Kind};
use lightcone_engine::{DatastoreError, MigrationError, RecoveryError};
use lightcone_host::HostError;
use lightcone_log::{LogError, LogOffset};
use lightcone_snapshot::SnapshotError;
use lightcone_types::Identity;

use crate::loads::LoadError;
use crate::variables::EnvironmentError;

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
    #[error("the system has no thread for the database: {0} [LC0333]")]
    NoThread(std::io::Error),
    #[error(transparent)]
    Datastore(#[from] DatastoreError),
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The variables are not what the program declares.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("{0}")]
    Other(String),
}

/// Why a client does not get what it asked for: the text is what it is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal(reason)
    }
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Refusal {
        Refusal(exceeded.to_string())
    }
}

/// There is no instance of the module.
impl From<HostError> for Refusal {
    fn from(error: HostError) -> Refusal {
        Refusal(format!("the module cannot be instantiated: {error}"))
    }
}

impl From<lightcone_query::SqlError> for Refusal {
    fn from(error: lightcone_query::SqlError) -> Refusal {
        Refusal(error.to_string())
    }
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
    /// Another connection of the same session was live. It has been ended, so a next attempt is let in.
    #[error("{0}")]
    SessionInUse(String),
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
    /// It is not of the ad hoc language, for this reason. Nothing was run.
    NotCompiled(String),
    /// It is of PostgreSQL's language, and ended so.
    Failed(lightcone_query::postgresql::Failure),
    /// It would change something, and only what reads was to be run.
    Writes,
    /// The server cannot do it now.
    Busy(String),
    ModuleGone,
    Database(String),
}

/// Why something is not built for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    #[error("what this client has asked for and not yet taken would exceed the {bytes_max} bytes of limits.client-bytes-max [LC0706]")]
    Client { bytes_max: usize },
    #[error("the answer would be one message of more than the {bytes_max} bytes of limits.outgoing-message-bytes-max [LC0706]")]
    Message { bytes_max: usize },
    /// All clients together have too much.
    #[error("the server has no memory left for this answer beside those that other clients have not yet taken; try again later [LC0707]")]
    Server,
}

impl From<accounts::Exceeded> for Exceeded {
    #[cold]
    fn from(exceeded: accounts::Exceeded) -> Exceeded {
        match exceeded.kind {
            Kind::Client => Exceeded::Client {
                bytes_max: exceeded.bytes_max,
            },
            _ => Exceeded::Server,
        }
    }
}

impl SqlError {
    /// The caller does not change rows.
    pub(crate) fn not_authorized(caller: Identity) -> SqlError {
        Refusal::from(lightcone_query::SqlError::NotAuthorized(caller)).into()
    }
}

impl From<Refusal> for SqlError {
    fn from(Refusal(reason): Refusal) -> SqlError {
        SqlError::Query(reason)
    }
}

impl From<Exceeded> for SqlError {
    fn from(exceeded: Exceeded) -> SqlError {
        match exceeded {
            Exceeded::Server => SqlError::Busy(exceeded.to_string()),
            _ => SqlError::Query(exceeded.to_string()),
        }
    }
}

/// Why changes are not told, or no more of them.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error("{max} streams of the changes of this database are open, which is limits.change-streams-max [LC0514]")]
    TooMany { max: usize },
    #[error("there is no table `{0}` [LC0515]")]
    NoSuchTable(String),
    #[error("a server that keeps its databases in memory only has no log, so it makes no backups and brings none back [LC0554]")]
    InMemory,
    /// Of a backup: the hash of a frame is one of the first format.
    #[error("the log has transaction {0} in a segment of an earlier format, which no backup can have; a backup can be made after the next snapshot [LC0553]")]
    OldFrames(LogOffset),
    #[error("{0}")]
    NoMemory(String),
    #[error("the database stops")]
    Gone,
}

impl From<SnapshotError> for ChangesError {
    fn from(error: SnapshotError) -> ChangesError {
        RecoveryError::from(error).into()
    }
}

impl From<Exceeded> for ChangesError {
    fn from(exceeded: Exceeded) -> ChangesError {
        ChangesError::NoMemory(exceeded.to_string())
    }
}

/// Why there are no rows.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error("the rows of `{query}` are more than the 4 GiB that the protocol has for one query [LC0706]")]
    RowListTooLarge { query: String },
    #[error("finding the rows took longer than limits.read-time-max, which is {limit:?} [LC0708]")]
    TooLong { limit: Duration },
    #[error("the table changed so much while its rows were read that keeping them as they were would take more than limits.frozen-bytes-max [LC0712]")]
    Ended,
    /// The query cannot be evaluated.
    #[error(transparent)]
    Query(#[from] Refusal),
}

impl From<ReadError> for SqlError {
    fn from(error: ReadError) -> SqlError {
        match error {
            ReadError::Exceeded(exceeded) => exceeded.into(),
            error => SqlError::Query(error.to_string()),
        }
    }
}

/// Why a program was not replaced; the old one keeps running.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpdateError {
    /// There is no plan: lists why.
    #[error("{0}")]
    Rejected(String),
    /// The policy forbids the plan, or a step of it failed.
    #[error("{0}")]
    Refused(String),
    /// The variables would not be what the program declares.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The new program is no module.
    #[error("{0}")]
    Module(String),
    /// No more modules are loaded now.
    #[error("{0}")]
    Busy(String),
    /// The database ended before the writer answered.
    #[error("the database stops")]
    Cancelled,
    #[error("{0}")]
    Database(String),
}

impl From<DatastoreError> for UpdateError {
    fn from(error: DatastoreError) -> UpdateError {
        UpdateError::Refused(error.to_string())
    }
}

/// What is checked again when a program takes over.
impl From<Error> for UpdateError {
    fn from(error: Error) -> UpdateError {
        UpdateError::Refused(error.to_string())
    }
}

impl From<MigrationError> for UpdateError {
    fn from(error: MigrationError) -> UpdateError {
        UpdateError::Refused(error.to_string())
    }
}

/// Why what was carried out is not durable, and never will be.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotDurable(pub String);

impl From<NotDurable> for Error {
    fn from(NotDurable(reason): NotDurable) -> Error {
        Error::Other(reason)
    }
}

impl From<NotDurable> for SqlError {
    fn from(NotDurable(reason): NotDurable) -> SqlError {
        SqlError::Database(reason)
    }
}

impl From<NotDurable> for UpdateError {
    fn from(NotDurable(reason): NotDurable) -> UpdateError {
        UpdateError::Database(reason)
    }
}
