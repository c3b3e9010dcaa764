//! Calls from outside of a connection: who asks, what came of it, and why nothing did.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_accounts::Counted;
use lightcone_host::{HttpMethod, HttpResponse};
use lightcone_types::{ConnectionId, Identity, Timestamp};

use crate::error::NotDurable;
use crate::peer::ClientId;
use crate::rights::Rights;

/// Who asks over HTTP.
#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    /// What he was granted. The owner has all rights in any case.
    pub rights: Rights,
    pub jwt_payload: Arc<str>,
}

impl Caller {
    /// As the client that he is for one request.
    pub(crate) fn client(&self, connection_id: ConnectionId) -> ClientId {
        ClientId {
            identity: self.identity,
            connection_id,
        }
    }
}

/// Arguments of a call over HTTP.
pub enum CallArgs {
    /// SATS-JSON: an array, or an object keyed by parameter names.
    Json(String),
}

/// What a call cost.
#[derive(Debug, Default)]
pub struct CallOutcome {
    pub execution_us: u64,
    pub energy_used: u64,
    /// What a procedure returned, in the untyped form of 01 §1.7; reducers return nothing.
    pub returned_json: Option<Counted<String>>,
}

/// Outcomes of a call over HTTP that are not a commit; one variant per row of 06 §5.11.
#[derive(Debug)]
pub enum CallError {
    ConnectRejected(String),
    UserError {
        message: String,
        outcome: CallOutcome,
    },
    Fatal {
        outcome: CallOutcome,
    },
    TimedOut {
        outcome: CallOutcome,
    },
    InvalidArguments(String),
    Lifecycle(String),
    NoSuchFunction,
    ModuleGone,
    /// The server has no memory for the answer now.
    Busy(String),
    Database(String),
}

impl From<NotDurable> for CallError {
    fn from(NotDurable(reason): NotDurable) -> CallError {
        CallError::Database(reason)
    }
}

/// A request for an HTTP handler of the module, as the writer gets it.
pub(crate) struct HandlerRequest {
    pub method: HttpMethod,
    /// What is left of the path behind `/route`, decoded.
    pub path: String,
    /// The BSATN of the whole head.
    pub head: Vec<u8>,
    pub body: Bytes,
    pub sender: HandlerSender,
    pub timestamp: Timestamp,
}

/// Whom a handler takes for the sender of a request (03 §11.6): another one each time.
#[derive(Clone, Debug)]
pub struct HandlerSender {
    pub identity: Identity,
    /// The payload of its token.
    pub jwt_payload: Arc<str>,
}

/// What a handler answered, counted as its call's until it is the client's.
#[derive(Debug)]
pub(crate) struct HandlerAnswer {
    pub head: HttpResponse,
    pub body: Counted<Vec<u8>>,
}

/// The same for who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerReply {
    /// Decoded; whether its status and headers are such was not checked.
    pub head: HttpResponse,
    pub body: Bytes,
}
