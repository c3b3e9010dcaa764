//! What a connection asks the writer to do, decoded and checked.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lightcone_types::Timestamp;

use crate::asked::Asked;
use crate::budget::Charge;
use crate::live_query::LiveQuery;
use crate::outgoing::ReadTicket;
use crate::trace::TraceContext;

/// One client message, resolved against a version of the module.
pub(crate) enum Request {
    /// The arguments are at this place of the payload.
    Call {
        request_id: u32,
        reducer: u32,
        args: Range<u32>,
    },
    /// As [`Request::Call`].
    Procedure {
        request_id: u32,
        procedure: u32,
        args: Range<u32>,
    },
    /// In a box: calls are most of what there is, and lists of them are written and read for each payload.
    Other(Box<OtherRequest>),
}

/// What is no call that reaches the module.
pub(crate) enum OtherRequest {
    RejectedCall {
        request_id: u32,
        message: String,
        log: String,
        function: String,
    },
    Subscribe {
        request_id: u32,
        query_set_id: u32,
        set: Result<CompiledSet, String>,
        ticket: ReadTicket,
    },
    Unsubscribe {
        request_id: u32,
        query_set_id: u32,
        /// There is one if the client wants the dropped rows.
        ticket: Option<ReadTicket>,
    },
    OneOff {
        request_id: u32,
        plan: Result<Asked, String>,
        ticket: ReadTicket,
    },
    RejectedProcedure {
        request_id: u32,
        message: String,
        log: String,
        function: String,
    },
}

impl From<OtherRequest> for Request {
    fn from(request: OtherRequest) -> Request {
        Request::Other(Box::new(request))
    }
}

/// The queries of a set, with the memory they take as long as they live.
#[derive(Default)]
pub(crate) struct CompiledSet {
    pub queries: Vec<Arc<LiveQuery>>,
    pub _charge: Charge,
}

/// Messages of one payload, with the time it was accepted.
pub(crate) struct Decoded {
    /// Of the module against which they were checked.
    pub version: u64,
    pub timestamp: Timestamp,
    /// The same time, for what is measured.
    pub received: Instant,
    /// The first call of it is traced.
    pub trace: Option<Box<TraceContext>>,
    pub payload: Bytes,
    /// Where in the payload the messages are.
    pub messages: Range<usize>,
    pub requests: Vec<Request>,
    /// How many of them were taken.
    pub taken: usize,
}
