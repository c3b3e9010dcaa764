//! What the writer tells fan-out: events in their order, with the changes that they made.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use lightcone_host::FATAL_ERROR_TEXT;
use lightcone_log::{LogError, LogOffset};
use lightcone_table::DeltaBatch;
use lightcone_types::Timestamp;
use lightcone_wire::server;
use tokio::sync::oneshot;

use crate::asked::Asked;
use crate::error::ConnectError;
use crate::inbox::NewClient;
use crate::outgoing::MessageBatch;
use crate::peer::{ConnectionNumber, SetKey};
use lightcone_live::LiveQuery;

/// How a reducer call ended, as the caller sees it.
pub(crate) enum CallResult {
    Committed,
    UserError(String),
    Failed(CallFailure),
}

/// Why a call failed that is not the module's own refusal.
pub(crate) enum CallFailure {
    /// The module trapped.
    Fatal,
    /// It took too long; the text says how long.
    TimedOut(String),
    /// It did not reach the module: there is no such reducer, or the database takes no writes.
    NotRun(String),
}

impl CallFailure {
    /// What the caller is told (05 §6.3).
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            CallFailure::Fatal => Cow::Borrowed(FATAL_ERROR_TEXT),
            CallFailure::TimedOut(text) => Cow::Owned(format!("reducer ran out of energy: {text}")),
            CallFailure::NotRun(text) => Cow::Borrowed(text),
        }
    }
}

impl CallResult {
    /// The message to the caller of a call that changed nothing.
    pub fn encode(&self, out: &mut Vec<u8>, request_id: u32, timestamp: Timestamp) {
        match self {
            CallResult::Committed => server::reducer_result_ok_empty(out, request_id, timestamp),
            CallResult::UserError(text) => {
                server::reducer_result_err(out, request_id, timestamp, text)
            }
            CallResult::Failed(failure) => {
                let text = failure.text();
                server::reducer_result_internal_error(out, request_id, timestamp, &text)
            }
        }
    }
}

/// Called when something is durable, or with why it never will be.
pub(crate) type Release = Box<dyn FnOnce(Result<(), String>) + Send>;

/// An answer that is ready, or is being made by another thread.
pub(crate) enum Answer {
    /// With what is reserved for it.
    Ready(Box<MessageBatch>),
    Deferred(oneshot::Receiver<MessageBatch>),
    /// The client is gone.
    Gone,
}

/// What happened on the writer, in order. Calls are most of it, and nothing is larger than they are.
pub(crate) enum Event {
    /// A client was let in, and hears of it when it is known here.
    Connected {
        client: Box<NewClient>,
        asked: Asked<Result<(), ConnectError>>,
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
    Subscribed {
        set: SetKey,
        queries: Vec<Arc<LiveQuery>>,
        answer: Answer,
    },
    Unsubscribed {
        set: SetKey,
        /// None if the client was told already.
        answer: Option<Answer>,
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
