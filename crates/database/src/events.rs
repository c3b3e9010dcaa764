//! What the writer tells fan-out: events in their order, with the changes that they made.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use lightcone_host::FATAL_ERROR_TEXT;
use lightcone_log::{LogError, LogOffset};
use lightcone_table::DeltaBatch;
use lightcone_types::{TableId, Timestamp};
use lightcone_wire::server;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::error::{ConnectError, NotDurable};
use crate::inbox::NewClient;
use crate::live_shapes::{LiveShapes, MeasuredTime};
use crate::metrics::Failure;
use crate::outgoing::Delivery;
use crate::peer::{ConnectionNumber, SetKey};
use crate::replies::Waiter;
use lightcone_live::LiveQuery;

/// How a call ended, as the caller sees it.
pub(crate) type CallResult = Result<(), Box<CallFailure>>;

/// Why a call came to nothing.
pub(crate) struct CallFailure {
    pub why: Failure,
    /// In the words of the module, or of who has stopped or refused it.
    pub reason: String,
}

impl CallFailure {
    pub fn new(why: Failure, reason: impl Into<String>) -> Box<CallFailure> {
        let reason = reason.into();
        Box::new(CallFailure { why, reason })
    }

    /// What the caller of a reducer is told (05 §6.3).
    pub fn of_reducer(&self) -> Cow<'_, str> {
        match self.why {
            Failure::Sender | Failure::NotRun => Cow::Borrowed(&self.reason),
            Failure::Trap => Cow::Borrowed(FATAL_ERROR_TEXT),
            Failure::Time => Cow::Owned(format!("reducer ran out of energy: {}", self.reason)),
        }
    }

    /// The same of a procedure (05 §6.4).
    pub fn of_procedure(self) -> String {
        match self.why {
            Failure::Sender | Failure::NotRun => self.reason,
            Failure::Trap | Failure::Time => format!(
                "The module instance encountered a fatal error: {}",
                self.reason
            ),
        }
    }
}

/// The message to the caller of a reducer that has changed nothing for others.
pub(crate) fn encode_result(
    result: &CallResult,
    out: &mut Vec<u8>,
    request_id: u32,
    timestamp: Timestamp,
) {
    let Err(failure) = result else {
        return server::reducer_result_ok_empty(out, request_id, timestamp);
    };
    let text = failure.of_reducer();
    match failure.why {
        Failure::Sender => server::reducer_result_err(out, request_id, timestamp, &text),
        _ => server::reducer_result_internal_error(out, request_id, timestamp, &text),
    }
}

/// Called when something is durable, or with why it never will be.
pub(crate) type Release = Box<dyn FnOnce(Result<(), NotDurable>) + Send>;

/// An answer that is ready, with what is reserved for it, or is being made by another thread. None: the client is gone, or was told.
pub(crate) type Answer = Option<Box<Delivery>>;

/// What happened on the writer, in order. Calls are most of it, and nothing is larger than they are.
pub(crate) enum Event {
    /// A client was let in, and hears of it when it is known here.
    Connected {
        client: Box<NewClient>,
        waiter: Waiter<Result<(), ConnectError>>,
    },
    Disconnected {
        connection: ConnectionNumber,
    },
    /// A reducer call of a connection; its changes, if any, are in this range of the batch's deltas.
    Called {
        connection: ConnectionNumber,
        request_id: u32,
        timestamp: Timestamp,
        result: CallResult,
        ops: Range<usize>,
    },
    /// A transaction that no connection called.
    Committed {
        ops: Range<usize>,
    },
    /// Its answer follows.
    Subscribed {
        set: SetKey,
        queries: Vec<Arc<LiveQuery>>,
    },
    Unsubscribed {
        set: SetKey,
        answer: Answer,
    },
    /// The queries of these sets are others from now on, on tables that have changed. Their clients hear nothing of it.
    Resubscribed {
        sets: Vec<(SetKey, Vec<Arc<LiveQuery>>)>,
    },
    /// The connection ends, and the writer knows it no more.
    Closed {
        connection: ConnectionNumber,
        code: u16,
        reason: &'static str,
    },
    Answered {
        connection: ConnectionNumber,
        answer: Answer,
    },
    /// Runs once everything before it is durable (or at once if `confirmed` is false).
    Release {
        confirmed: bool,
        action: Release,
    },
}

impl Event {
    /// Whether it is nothing but an answer that is ready.
    pub fn is_answer(&self) -> bool {
        match self {
            Event::Called { ops, .. } | Event::Committed { ops } => ops.is_empty(),
            Event::Answered { answer, .. } => {
                matches!(answer.as_deref(), Some(Delivery::Messages(_)))
            }
            Event::Release { .. } => true,
            _ => false,
        }
    }
}

/// All that one round of the writer did. Sent to fan-out and given back for reuse.
#[derive(Default)]
pub(crate) struct Batch {
    pub events: Vec<Event>,
    pub deltas: DeltaBatch,
    /// Everything before this transaction must be durable before the batch's messages go to confirmed connections.
    pub required_offset: LogOffset,
}

/// What comes to fan-out.
pub(crate) enum FanoutItem {
    Batch(Box<Batch>),
    /// The log failed.
    Poisoned(Arc<LogError>),
    /// What clients are subscribed to, with what joins and windows take the writer.
    Shapes(Waiter<LiveShapes>, FxHashMap<TableId, MeasuredTime>),
    /// Ends every connection with this code and reason, and fan-out itself.
    Stop {
        code: u16,
        reason: String,
        done: oneshot::Sender<()>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    #[test]
    fn what_is_seldom_makes_calls_no_larger() {
        assert_eq!(size_of::<Request>(), 24);
        assert!(size_of::<Event>() <= 72, "{}", size_of::<Event>());
    }
}
