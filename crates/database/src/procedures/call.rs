//! A call of a procedure or HTTP handler, from its beginning to its end.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_engine::ScheduleAt;
use lightcone_host::{ProcedureCall, ProcedureOutcome, ProcedureResult, ReducerCall};
use lightcone_types::{ConnectionId, Identity, Timestamp};
use tokio::sync::oneshot;

use super::Control;
use crate::calls::{CallError, CallOutcome, HandlerAnswer};
use crate::inbox_capacity::InboxPermit;
use crate::module::{Function, Module};
use crate::peer::ConnectionNumber;
use crate::trace::TraceContext;

/// For whom a function of the module is called, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub identity: Identity,
    pub connection_id: ConnectionId,
    pub timestamp: Timestamp,
    /// The call is traced.
    pub trace: Option<TraceContext>,
}

/// A call of a procedure or handler.
pub(crate) struct Job {
    pub module: Arc<Module>,
    pub function: Function,
    pub origin: Origin,
    /// For a handler the request.
    pub args: Vec<u8>,
    /// The body of a handler's request.
    pub body: Bytes,
    pub reply_to: ReplyTo,
}

/// Who waits for what comes of a call.
pub(crate) enum ReplyTo {
    Client {
        connection: ConnectionNumber,
        request_id: u32,
    },
    /// The caller's rows go when the call has ended.
    Http {
        permit: Option<InboxPermit>,
        reply: oneshot::Sender<Result<CallOutcome, CallError>>,
    },
    Handler {
        permit: Option<InboxPermit>,
        reply: oneshot::Sender<Result<HandlerAnswer, CallError>>,
    },
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
        if let ReplyTo::Http { permit, .. } | ReplyTo::Handler { permit, .. } = self {
            *permit = None;
        }
    }
}

/// A call that has ended.
pub(crate) struct Ended {
    pub module: Arc<Module>,
    pub function: Function,
    pub origin: Origin,
    pub reply_to: ReplyTo,
    pub control: Arc<Control>,
    pub outcome: ProcedureOutcome<ProcedureResult>,
}

impl Job {
    /// What it holds of its caller's while it is under way.
    pub fn bytes(&self) -> usize {
        self.args.len() + self.body.len()
    }

    pub fn call(&self) -> ProcedureCall<'_> {
        let (id, name, body) = match self.function {
            Function::Procedure(id) => (id, &self.module.procedure_names[id as usize], None),
            Function::Handler(id) => {
                let name = &self.module.http_handler_names[id as usize];
                (id, name, Some(&*self.body))
            }
        };
        ProcedureCall {
            call: ReducerCall {
                id,
                name,
                sender: self.origin.identity,
                connection_id: self.origin.connection_id,
                timestamp: self.origin.timestamp,
                args: &self.args,
            },
            body,
        }
    }

    pub fn ended(self, control: Arc<Control>, outcome: ProcedureOutcome<ProcedureResult>) -> Ended {
        Ended {
            control,
            module: self.module,
            function: self.function,
            origin: self.origin,
            reply_to: self.reply_to,
            outcome,
        }
    }
}
