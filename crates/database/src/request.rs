//! What a connection asks the writer to do, decoded and checked.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lightcone_types::Timestamp;
use tokio::sync::oneshot;

use crate::budget::Charge;
use crate::error::Refusal;
use crate::metrics::FunctionKind;
use crate::module::Function;
use crate::outgoing::{GivenBack, ReadTicket};
use crate::resolve::CallRefusal;
use crate::trace::TraceContext;
use lightcone_live::BoundQuery;
use lightcone_live::LiveQuery;

/// One client message, resolved against a version of the module.
pub(crate) enum Request {
    /// Of a reducer or procedure. The arguments are at this place of the payload.
    Call {
        request_id: u32,
        function: Function,
        args: Range<u32>,
    },
    /// In a box: calls are most of what there is, and lists of them are written and read for each payload.
    Other(Box<OtherRequest>),
}

/// What is no call that reaches the module.
pub(crate) enum OtherRequest {
    RejectedCall {
        request_id: u32,
        /// Of what was to be called: a reducer or a procedure.
        kind: FunctionKind,
        refusal: CallRefusal,
        function: String,
    },
    Subscribe {
        request_id: u32,
        /// It came as a `SubscribeBatch`, and is answered as one. Otherwise there is one set.
        is_batch: bool,
        sets: Vec<RequestedSet>,
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
        plan: Result<BoundQuery, Refusal>,
        ticket: ReadTicket,
    },
}

impl Request {
    /// In the place of a request that was taken.
    pub const TAKEN: Request = Request::Call {
        request_id: 0,
        function: Function {
            kind: FunctionKind::Reducer,
            id: 0,
        },
        args: 0..0,
    };

    /// The ticket of a query.
    pub fn into_ticket(self) -> Option<ReadTicket> {
        let Request::Other(other) = self else {
            return None;
        };
        match *other {
            OtherRequest::Subscribe { ticket, .. } | OtherRequest::OneOff { ticket, .. } => {
                Some(ticket)
            }
            OtherRequest::Unsubscribe { ticket, .. } => ticket,
            OtherRequest::RejectedCall { .. } => None,
        }
    }

    /// Whether the writer may have to have an index built before it.
    pub fn may_come_back(&self) -> bool {
        let Request::Other(other) = self else {
            return false;
        };
        let OtherRequest::Subscribe { sets, .. } = &**other else {
            return false;
        };
        let mut queries = sets.iter().flat_map(RequestedSet::queries);
        queries.any(|query| query.held_columns().next().is_some())
    }

    /// Has such a request given back if it is to be asked again. None: it is never, or has a way back.
    pub fn make_way_back(&mut self) -> Option<oneshot::Receiver<GivenBack>> {
        if !self.may_come_back() {
            return None;
        }
        let Request::Other(other) = self else {
            return None;
        };
        let OtherRequest::Subscribe { ticket, .. } = &mut **other else {
            return None;
        };
        if ticket.way_back.is_some() {
            return None;
        }
        let (way_back, given_back) = oneshot::channel();
        ticket.way_back = Some(way_back);
        Some(given_back)
    }
}

impl From<OtherRequest> for Request {
    fn from(request: OtherRequest) -> Request {
        Request::Other(Box::new(request))
    }
}

/// A query set that a client asks for: its queries, or why there are none.
pub(crate) struct RequestedSet {
    pub id: u32,
    pub compiled: Result<CompiledSet, Refusal>,
}

impl RequestedSet {
    /// None if it is refused.
    pub fn queries(&self) -> &[Arc<LiveQuery>] {
        self.compiled.as_ref().map_or(&[], |set| &set.queries)
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
