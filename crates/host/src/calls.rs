//! Calls of reducers, procedures and HTTP handlers, and their outcomes.

use std::sync::Arc;

use lightcone_accounts::Counted;
use lightcone_types::{ConnectionId, Identity, Timestamp};

/// The answer to a call that ended in a trap or an invalid result (spec 03 §11.4).
pub const FATAL_ERROR_TEXT: &str = "The instance encountered a fatal error.";

/// A call of a reducer, a procedure or an HTTP handler (spec 03 §11.2).
#[derive(Clone, Copy, Debug)]
pub struct ReducerCall<'a> {
    /// Its position among the functions of its kind.
    pub id: u32,
    /// The canonical name, for console records.
    pub name: &'a Arc<str>,
    pub sender: Identity,
    /// Zero for none.
    pub connection_id: ConnectionId,
    /// When the request was accepted.
    pub timestamp: Timestamp,
    /// The BSATN product of the arguments, checked against the definition.
    pub args: &'a [u8],
}

/// How a reducer ended (spec 03 §11.4). Only after [`ReducerOutcome::Ok`] may the transaction be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReducerOutcome {
    Ok,
    /// With the text for the caller.
    UserError(String),
    /// It trapped or returned an invalid code. The caller gets [`FATAL_ERROR_TEXT`].
    Fatal {
        /// The cause, for the server's log.
        message: String,
    },
    TimedOut {
        /// Names the limit.
        message: String,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct ProcedureCall<'a> {
    /// The arguments of a handler are the BSATN of its request (spec 03 §13.1); its sender was made up for the request.
    pub call: ReducerCall<'a>,
    /// The body of a handler's request; `None` for procedures.
    pub body: Option<&'a [u8]>,
    /// The payload of the token of a handler's sender (spec 03 §11.6); empty for procedures.
    pub sender_jwt: &'a str,
}

/// How a procedure or an HTTP handler ended (spec 03 §11.5, §11.6).
#[derive(Debug, PartialEq, Eq)]
pub enum ProcedureOutcome<R = ProcedureResult> {
    /// Unchecked.
    Returned(R),
    /// It threw, trapped or returned an invalid code.
    Failed {
        /// For the caller.
        message: String,
    },
    TimedOut {
        /// Names the limit.
        message: String,
    },
}

impl<R> ProcedureOutcome<R> {
    pub fn map<S>(self, result: impl FnOnce(R) -> S) -> ProcedureOutcome<S> {
        match self {
            ProcedureOutcome::Returned(returned) => ProcedureOutcome::Returned(result(returned)),
            ProcedureOutcome::Failed { message } => ProcedureOutcome::Failed { message },
            ProcedureOutcome::TimedOut { message } => ProcedureOutcome::TimedOut { message },
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum ProcedureResult {
    /// The BSATN that a procedure returned.
    Value(Counted<Vec<u8>>),
    Response(HandlerResponse),
}

/// The answer of an HTTP handler (spec 03 §11.6), unchecked.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerResponse {
    /// Status and headers: the BSATN of `HttpResponse` (§13.1).
    pub head: Counted<Vec<u8>>,
    pub body: Counted<Vec<u8>>,
}
