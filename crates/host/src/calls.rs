//! Calls of reducers, procedures and HTTP handlers: what they are called with, and how they end.

use std::sync::Arc;

use lightcone_accounts::Counted;
use lightcone_types::{ConnectionId, Identity, Timestamp};

/// What a client is told about a call that ended in a trap or a senseless result (spec 03 §11.4).
pub const FATAL_ERROR_TEXT: &str = "The instance encountered a fatal error.";

/// One call of a reducer, a procedure or an HTTP handler (spec 03 §11.2).
#[derive(Clone, Copy, Debug)]
pub struct ReducerCall<'a> {
    /// The function's position among those of its kind in the module definition.
    pub id: u32,
    /// Its canonical name, for console records.
    pub name: &'a Arc<str>,
    /// Who calls.
    pub sender: Identity,
    /// From which connection; zero for none.
    pub connection_id: ConnectionId,
    /// When the request was accepted.
    pub timestamp: Timestamp,
    /// The BSATN product of the arguments, already checked against the definition.
    pub args: &'a [u8],
}

/// How a reducer call ended (spec 03 §11.4). Only after [`ReducerOutcome::Ok`] may the transaction be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReducerOutcome {
    /// The reducer returned.
    Ok,
    /// The reducer refused, with this text for the caller.
    UserError(String),
    /// The reducer trapped or returned a senseless code. The caller gets [`FATAL_ERROR_TEXT`].
    Fatal {
        /// What really happened, for the server's log.
        message: String,
    },
    /// The call ran longer than allowed and was stopped.
    TimedOut {
        /// Names the limit.
        message: String,
    },
}

/// A call of a procedure or of an HTTP handler.
#[derive(Clone, Copy, Debug)]
pub struct ProcedureCall<'a> {
    /// What is called. The arguments of a handler are its request.
    pub call: ReducerCall<'a>,
    /// The body of a handler's request; `None` for procedures.
    pub body: Option<&'a [u8]>,
}

/// How the call of a procedure or of an HTTP handler ended (spec 03 §11.5, §11.6).
#[derive(Debug, PartialEq, Eq)]
pub enum ProcedureOutcome<R = Counted<Vec<u8>>> {
    /// It returned this: a procedure a value in BSATN. Not checked yet.
    Returned(R),
    /// It threw, trapped or returned a senseless code; the text is for the caller.
    Failed {
        /// What happened.
        message: String,
    },
    /// The call ran longer than allowed and was stopped.
    TimedOut {
        /// Names the limit.
        message: String,
    },
}

impl<R> ProcedureOutcome<R> {
    /// With another result.
    pub fn map<S>(self, result: impl FnOnce(R) -> S) -> ProcedureOutcome<S> {
        match self {
            ProcedureOutcome::Returned(returned) => ProcedureOutcome::Returned(result(returned)),
            ProcedureOutcome::Failed { message } => ProcedureOutcome::Failed { message },
            ProcedureOutcome::TimedOut { message } => ProcedureOutcome::TimedOut { message },
        }
    }
}

/// What it returned.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcedureResult {
    /// A procedure: a value in BSATN.
    Value(Counted<Vec<u8>>),
    /// A handler.
    Response(HandlerResponse),
}

/// What an HTTP handler answered (spec 03 §11.6). Not checked yet.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerResponse {
    /// Status and headers: the BSATN of `HttpResponse` (§13.1).
    pub head: Counted<Vec<u8>>,
    /// The raw body.
    pub body: Counted<Vec<u8>>,
}
