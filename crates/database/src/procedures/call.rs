//! A call of a procedure or HTTP handler, from its beginning to its end.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_engine::ScheduleAt;
use lightcone_host::{ProcedureCall, ProcedureOutcome, ProcedureResult, ReducerCall};
use lightcone_types::{ConnectionId, Identity, Timestamp};

use super::Control;
use crate::calls::{CallError, CallOutcome, HandlerAnswer, HandlerSender};
use crate::module::{Function, Module};
use crate::peer::{ClientId, ConnectionNumber};
use crate::replies::Waiter;
use crate::test_clock::CountedCall;
use crate::trace::TraceContext;

/// For whom a function of the module is called, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub client: ClientId,
    pub timestamp: Timestamp,
    /// The call is traced.
    pub trace: Option<TraceContext>,
}

impl Origin {
    /// Of a call that no client has made.
    pub fn without_client(identity: Identity, timestamp: Timestamp) -> Origin {
        Origin {
            client: ClientId {
                identity,
                connection_id: ConnectionId(0),
            },
            timestamp,
            trace: None,
        }
    }
}

/// A call of a procedure or handler.
pub(crate) struct Job {
    pub module: Arc<Module>,
    pub function: Function,
    pub origin: Origin,
    /// For a handler the request.
    pub args: Vec<u8>,
    /// Of a handler's request. `origin` has no client then: as callers, all requests are one.
    pub handled: Option<(Bytes, HandlerSender)>,
    pub reply_to: ReplyTo,
    /// Where a test sets the clock.
    pub _counted: Option<CountedCall>,
}

/// Who waits for what comes of a call.
pub(crate) enum ReplyTo {
    Client {
        connection: ConnectionNumber,
        request_id: u32,
    },
    /// The caller's rows go when the call has ended.
    Http(Waiter<Result<CallOutcome, CallError>>),
    Handler(Waiter<Result<HandlerAnswer, CallError>>),
    /// A row of a schedule table, by the number of its call: an update may move it to another table meanwhile.
    Schedule {
        number: u64,
        at: ScheduleAt,
        intended: Timestamp,
    },
    None,
}

impl ReplyTo {
    /// The call is in the inbox no longer.
    pub fn leave_inbox(&mut self) {
        match self {
            ReplyTo::Http(waiter) => waiter.leave_inbox(),
            ReplyTo::Handler(waiter) => waiter.leave_inbox(),
            ReplyTo::Client { .. } | ReplyTo::Schedule { .. } | ReplyTo::None => {}
        }
    }
}

/// A call that has ended.
pub(crate) struct Ended {
    /// Without what it was called with.
    pub job: Job,
    pub control: Arc<Control>,
    pub outcome: ProcedureOutcome<ProcedureResult>,
}

impl Job {
    /// What it holds of its caller's while it is under way.
    pub fn bytes(&self) -> usize {
        let body = self.handled.as_ref().map_or(0, |(body, _)| body.len());
        self.args.len() + body
    }

    pub fn call(&self) -> ProcedureCall<'_> {
        let handled = self.handled.as_ref();
        let sender = handled.map(|(_, sender)| sender);
        ProcedureCall {
            call: ReducerCall {
                id: self.function.id,
                name: &self.module.function(self.function).name,
                sender: sender.map_or(self.origin.client.identity, |sender| sender.identity),
                connection_id: self.origin.client.connection_id,
                timestamp: self.origin.timestamp,
                args: &self.args,
            },
            body: handled.map(|(body, _)| &**body),
            sender_jwt: sender.map_or("", |sender| &sender.jwt_payload),
        }
    }

    pub fn ended(self, control: Arc<Control>, outcome: ProcedureOutcome<ProcedureResult>) -> Ended {
        let job = Job {
            args: Vec::new(),
            handled: None,
            ..self
        };
        Ended {
            job,
            control,
            outcome,
        }
    }
}
