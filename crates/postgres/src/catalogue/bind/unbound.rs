//! Why a question is not bound.

use super::super::super::failure::Failure;

pub(super) type Done<T> = Result<T, Unbound>;

/// Why a question is not bound.
pub(in super::super) enum Unbound {
    /// It is not supported, for this reason.
    Refused(String),
    /// It is wrong.
    Failed(Failure),
}

impl From<String> for Unbound {
    fn from(reason: String) -> Unbound {
        Unbound::Refused(reason)
    }
}

impl From<&str> for Unbound {
    fn from(reason: &str) -> Unbound {
        Unbound::Refused(reason.to_owned())
    }
}

impl From<Failure> for Unbound {
    fn from(failure: Failure) -> Unbound {
        Unbound::Failed(failure)
    }
}
