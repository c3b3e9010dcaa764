//! What can go wrong with the control database.

use std::path::{Path, PathBuf};

use lightcone_types::Identity;

use super::record::COLLABORATORS_MAX;
use super::state::FOUNDERS_MAX;

pub(super) type Result<T, E = ControlError> = std::result::Result<T, E>;

/// A failure of the control database itself.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(
        "the control database is damaged in both of its copies: {first}; {second}. Nothing was changed. Restore {} from a backup [LC0546]", .directory.display()
    )]
    Damaged {
        directory: PathBuf,
        first: String,
        second: String,
    },
    #[error("a record of the control database makes no sense: {0}. Nothing was changed. Restore control-db from a backup [LC0546]")]
    Record(String),
    #[error("{} is the control database of a development version, which this version does not read, and its journal (copy-1, copy-2) is not there. Nothing was changed. Restore the journal from a backup, or start the server once with the commit that LC0548 names [LC0548]", .0.display())]
    OldFile(PathBuf),
    #[error("the control database could not {action} {}: {source}. Nothing was acknowledged; mend the cause (disk space, permissions, disk) and try again [LC0549]", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the control database could not be read or written: {0} Nothing was acknowledged; mend the cause and try again [LC0549]")]
    Log(#[from] lightcone_log::LogError),
    /// The change may be on the disk, or not.
    #[error("the control database failed in the middle of a change ({failed}), and cannot be read again ({again}): whether the change was made shows when it can; what it is about does not run until then. Mend the cause (disk space, permissions, disk) [LC0549]")]
    Unknown { failed: String, again: String },
    /// A bug; whether the change is on the disk is unknown too.
    #[error("the control database stopped; see the server's log [LC0106]")]
    Stopped,
    #[error("database {0} is there already")]
    Exists(Identity),
    #[error("database {0} is not there any more")]
    Gone(Identity),
    #[error("database {0} is locked")]
    Locked(Identity),
    #[error(
        "this database has {COLLABORATORS_MAX} collaborators, and may not have more: remove some first [LC0141]"
    )]
    TooManyCollaborators,
    #[error("the caller may not do this any more")]
    NotAllowed,
    #[error("the name {0:?} leads to this database and belongs to another owner")]
    NameOfAnother(String),
    #[error("database {0} was another owner's and is deleted; only that one may create it again. Publish without an identity to get a new one [LC0145]")]
    FoundedByAnother(Identity),
    #[error(
        "this server remembers the owners of {FOUNDERS_MAX} deleted databases, which is as many as it may: the identity of \
         a new database cannot be chosen any more. Publish without an identity to get a new one [LC0145]"
    )]
    FoundersForgotten,
    #[error("this server has as many databases as limits.databases-max allows ({0}) [LC0113]")]
    TooManyDatabases(usize),
    #[error(
        "{owner} has as many databases on this server as limits.databases-per-owner-max allows ({max}): delete some, or let the operator \
         raise the limit or list the identity in publish.owners of config.toml [LC0147]"
    )]
    TooManyOfOwner { owner: Identity, max: usize },
    #[error(
        "{owner} has taken as many names on this server as limits.names-per-owner-max allows ({max}), and names stay their owner's: use \
         one of them again, or let the operator raise the limit or list the identity in publish.owners of config.toml [LC0148]"
    )]
    TooManyNames { owner: Identity, max: usize },
    #[error(
        "the owners of this server have taken as many names as limits.names-max allows ({0}), and names stay their owner's: use one of \
         your own again, or let the operator raise the limit or list your identity in publish.owners of config.toml [LC0159]"
    )]
    NoMoreNames(usize),
}

impl ControlError {
    /// The change may have been made. What either outcome needs must be kept until [`ControlDb::settle`] succeeds.
    pub fn is_unknown(&self) -> bool {
        matches!(self, ControlError::Unknown { .. } | ControlError::Stopped)
    }

    pub(super) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> ControlError {
        let path = path.to_owned();
        move |source| ControlError::Io {
            action,
            path,
            source,
        }
    }
}
