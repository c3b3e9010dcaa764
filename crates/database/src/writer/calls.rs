//! Calls of reducers: each is one transaction (03 §11, 06 §5.11).

use std::ops::Range;
use std::time::Instant;

use lightcone_host::{ConsoleLevel, OpenTransaction, ReducerCall, ReducerOutcome};
use lightcone_types::{ConnectionId, Timestamp};
use lightcone_wire::server;
use tokio::sync::oneshot;

use super::schedule::{CALLS_PER_ROUND_MAX, ROUND_MAX};
use super::{Origin, Writer};
use crate::calls::{CallError, CallOutcome};
use crate::events::{CallFailure, CallResult, Event};
use crate::inbox::HttpCall;
use crate::inbox_capacity::{InboxPermit, Place};
use crate::metrics::{Failure, QueryKind};
use crate::peer::ConnectionNumber;
use crate::procedures::ReplyTo;
use crate::request::{Decoded, OtherRequest, Request};
use crate::resolve::{
    find_procedure, find_reducer, resolve_call, resolve_procedure, RefusalReason,
};
use crate::rights::Rights;

/// In the place of a request that was taken.
const TAKEN: Request = Request::Procedure {
    request_id: 0,
    procedure: 0,
    args: 0..0,
};

impl Writer {
    pub(super) fn requests(
        &mut self,
        connection: ConnectionNumber,
        mut decoded: Decoded,
        place: Place,
    ) {
        let Some(client) = self.state.clients.get(&connection) else {
            return self.shared.inbox.capacity.give_back(&place);
        };
        let (peer, connection_id) = (client.peer, client.connection_id);
        if decoded.version != self.module.version {
            decoded.resolve_again(&self.module, &peer, client.queue.budget());
        }
        let mut origin = Origin {
            identity: peer.identity,
            connection_id,
            timestamp: decoded.timestamp,
            trace: None,
        };
        while let Some(next) = decoded.requests.get_mut(decoded.taken) {
            let request = std::mem::replace(next, TAKEN);
            decoded.taken += 1;
            let received = decoded.received;
            origin.trace = match request {
                Request::Call { .. } | Request::Procedure { .. } => {
                    decoded.trace.take().map(|trace| *trace)
                }
                _ => None,
            };
            self.request(connection, &origin, &decoded.payload, request, received);
            if self.round_is_full() {
                self.end_round();
            }
        }
        self.shared.inbox.capacity.give_back(&place);
    }

    fn request(
        &mut self,
        connection: ConnectionNumber,
        origin: &Origin,
        payload: &[u8],
        request: Request,
        received: Instant,
    ) {
        let args_of = |place: Range<u32>| &payload[place.start as usize..place.end as usize];
        match request {
            Request::Call {
                request_id,
                reducer,
                args,
            } => {
                self.note_wait(received);
                let (result, ops) = self.call(reducer, origin, args_of(args));
                self.event(Event::Called {
                    connection,
                    request_id,
                    timestamp: origin.timestamp,
                    result,
                    ops,
                });
                self.trace_answer(origin);
            }
            Request::Procedure {
                request_id,
                procedure,
                args,
            } => {
                self.note_wait(received);
                let reply_to = ReplyTo::Client {
                    connection,
                    request_id,
                };
                self.start_procedure(procedure, *origin, args_of(args), reply_to);
            }
            Request::Other(other) => self.other_request(connection, origin.timestamp, *other),
        }
    }

    fn other_request(
        &mut self,
        connection: ConnectionNumber,
        timestamp: Timestamp,
        request: OtherRequest,
    ) {
        match request {
            OtherRequest::RejectedCall {
                request_id,
                message,
                log,
                function,
            } => {
                self.log_refused(&function, &log, timestamp);
                self.event(Event::Called {
                    connection,
                    request_id,
                    timestamp: self.now(),
                    result: CallResult::Failed(CallFailure::NotRun(message)),
                    ops: 0..0,
                });
            }
            OtherRequest::RejectedProcedure {
                request_id,
                message,
                log,
                function,
            } => {
                self.log_refused(&function, &log, timestamp);
                let mut answer = Vec::new();
                server::procedure_result_internal_error(&mut answer, request_id, &message);
                let answer = self.ready(connection, answer);
                self.event(Event::Answered { connection, answer });
            }
            OtherRequest::Subscribe {
                request_id,
                query_set_id,
                set,
                ticket,
            } => self.timed(QueryKind::Subscribe, |writer| {
                writer.subscribe(connection, request_id, query_set_id, set, ticket);
            }),
            OtherRequest::Unsubscribe {
                request_id,
                query_set_id,
                ticket,
            } => self.timed(QueryKind::Unsubscribe, |writer| {
                writer.unsubscribe(connection, request_id, query_set_id, ticket);
            }),
            OtherRequest::OneOff {
                request_id,
                plan,
                ticket,
            } => self.timed(QueryKind::OneOff, |writer| {
                writer.one_off(connection, request_id, plan, ticket);
            }),
        }
    }

    fn log_error(&self, function: &str, text: &str, timestamp: Timestamp) {
        let log = &self.shared.log;
        log.host(ConsoleLevel::Error, Some(function), text, timestamp);
    }

    fn log_refused(&self, function: &str, text: &str, timestamp: Timestamp) {
        self.shared.log.refused_call(function, text, timestamp);
    }

    /// Runs a reducer as a transaction.
    pub(super) fn call(
        &mut self,
        reducer: u32,
        origin: &Origin,
        args: &[u8],
    ) -> (CallResult, Range<usize>) {
        if let Some(reason) = self.shared.status.read_only() {
            self.module.counters.reducer(reducer).note_refused();
            return (CallResult::Failed(CallFailure::NotRun(reason)), 0..0);
        }
        self.end_round_before(reducer);
        let measured = self.measure(reducer);
        let started = self.begin_traced(origin);
        self.datastore().begin();
        let outcome = self.execute(reducer, origin, args);
        let (outcome, changes) = self.end_call(outcome);
        let failure = Failure::of_outcome(&outcome);
        let result = (self.result(reducer, outcome, origin.timestamp), changes);
        self.note_call(&measured, failure);
        self.end_traced(reducer, started, &measured, &result.0);
        result
    }

    /// Runs a reducer in the open transaction and replaces the instance if it trapped.
    pub(super) fn execute(&mut self, reducer: u32, origin: &Origin, args: &[u8]) -> ReducerOutcome {
        let call = ReducerCall {
            id: reducer,
            name: &self.module.reducer_names[reducer as usize],
            sender: origin.identity,
            connection_id: origin.connection_id,
            timestamp: origin.timestamp,
            args,
        };
        let datastore = &mut self.datastore;
        let instance = &mut self.guest.instance;
        let outcome = instance.call_reducer(OpenTransaction::of(datastore), &call);
        if instance.is_poisoned() {
            let config = self.shared.host_config();
            self.guest.replace(&self.shared, &self.module, config);
        }
        outcome
    }

    /// Commits what a reducer has done, or takes it back. Returns what came of the call, and the changes for fan-out.
    pub(super) fn end_call(&mut self, outcome: ReducerOutcome) -> (ReducerOutcome, Range<usize>) {
        if !matches!(outcome, ReducerOutcome::Ok) {
            self.datastore().rollback();
            return (outcome, 0..0);
        }
        match self.commit() {
            Ok(committed) => (outcome, committed.changes),
            Err(error) => {
                let message = error.to_string();
                (ReducerOutcome::Fatal { message }, 0..0)
            }
        }
    }

    /// What the caller is told of a call that has ended.
    pub(super) fn result(
        &mut self,
        reducer: u32,
        outcome: ReducerOutcome,
        timestamp: Timestamp,
    ) -> CallResult {
        if matches!(outcome, ReducerOutcome::Ok) {
            return CallResult::Committed;
        }
        let name = self.module.reducer_names[reducer as usize].clone();
        match outcome {
            ReducerOutcome::Ok => CallResult::Committed,
            ReducerOutcome::UserError(text) => {
                self.log_error(&name, &text, timestamp);
                CallResult::UserError(text)
            }
            ReducerOutcome::Fatal { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer trapped");
                CallResult::Failed(CallFailure::Fatal)
            }
            ReducerOutcome::TimedOut { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer was stopped");
                CallResult::Failed(CallFailure::TimedOut(message))
            }
        }
    }

    /// A call inside a connection of its own, which comes and goes even if the call does not reach the module (06 §5.11).
    pub(super) fn http_call(
        &mut self,
        call: HttpCall,
        permit: InboxPermit,
        reply: oneshot::Sender<Result<CallOutcome, CallError>>,
    ) {
        let HttpCall {
            caller,
            connection_id,
            function,
            args,
            timestamp,
            received,
            trace,
        } = call;
        self.note_wait(received);
        let origin = Origin {
            identity: caller.identity,
            connection_id,
            timestamp,
            trace,
        };
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        if self.has_no_lifecycle() && self.shared.status.read_only().is_none() {
            let is_procedure = find_reducer(&self.module, rights, &function).is_err()
                && find_procedure(&self.module, rights, &function).is_some();
            if !is_procedure {
                let inside = Some(&*caller.jwt_payload);
                let result = args
                    .and_then(|args| self.call_by_name(&origin, rights, &function, &args, inside));
                return self.reply_when_durable(true, result, reply, Some(permit));
            }
        }
        if let Err(refused) = self.connect(caller.identity, connection_id, &caller.jwt_payload) {
            if self.shared.status.is_read_only() {
                self.count_refused(rights, &function);
            }
            let refused: Result<CallOutcome, CallError> = Err(refused.into());
            return self.reply_when_durable(true, refused, reply, Some(permit));
        }
        let args = match args {
            Ok(args) => match self.procedure_by_name(rights, &function, &args) {
                None => Ok(args),
                Some(Ok(procedure)) => {
                    // The client goes when the procedure has ended.
                    let reply_to = ReplyTo::Http {
                        permit: Some(permit),
                        reply,
                    };
                    return self.start_procedure(procedure, origin, &args, reply_to);
                }
                Some(Err(error)) => Err(error),
            },
            Err(error) => Err(error),
        };
        let result =
            args.and_then(|args| self.call_by_name(&origin, rights, &function, &args, None));
        self.disconnect(caller.identity, connection_id);
        self.reply_when_durable(true, result, reply, Some(permit));
    }

    /// A call never began, as the database takes no writes.
    fn count_refused(&self, rights: Rights, function: &str) {
        let (module, counters) = (&self.module, &self.module.counters);
        if let Ok((reducer, _)) = find_reducer(module, rights, function) {
            counters.reducer(reducer as u32).note_refused();
        } else if let Some((procedure, _)) = find_procedure(module, rights, function) {
            counters.procedure(procedure as u32).note_refused();
        }
    }

    /// The procedure of this name, if there is no such reducer, and it takes these arguments.
    fn procedure_by_name(
        &self,
        rights: Rights,
        function: &str,
        args: &[u8],
    ) -> Option<Result<u32, CallError>> {
        // Once more: the module may have been replaced since the arguments were read.
        if find_reducer(&self.module, rights, function).is_ok() {
            return None;
        }
        let (procedure, definition) = find_procedure(&self.module, rights, function)?;
        Some(match definition.validate_args(args) {
            Ok(_) => Ok(procedure as u32),
            Err(error) => Err(CallError::InvalidArguments(format!(
                "invalid arguments for procedure {}: {error}",
                definition.name
            ))),
        })
    }

    /// Calls that modules have asked for outside of any transaction (03 §8.9).
    pub(super) fn run_immediate_calls(&mut self) {
        let started = self.shared.environment().instant();
        for _ in 0..CALLS_PER_ROUND_MAX {
            let ends = self.state.failed || self.state.stop.is_some();
            if ends || self.shared.environment().instant() - started >= ROUND_MAX {
                break;
            }
            let Some((name, args)) = self.shared.immediate.take() else {
                return;
            };
            self.run_immediate_call(&name, &args);
            if self.round_is_full() {
                self.end_round();
            }
        }
        self.shared.immediate.go_on_later();
    }

    fn run_immediate_call(&mut self, name: &str, args: &[u8]) {
        let origin = Origin {
            identity: self.shared.options.identity,
            connection_id: ConnectionId(0),
            timestamp: self.now(),
            trace: None,
        };
        let module = self.module.clone();
        // The database itself may call what is private.
        let refusal = match resolve_call(&module, Rights::All, name, args) {
            Ok(reducer) => {
                let (_, ops) = self.call(reducer, &origin, args);
                return self.event(Event::Committed { ops });
            }
            Err(refusal) if refusal.reason == RefusalReason::Unknown => {
                match resolve_procedure(&module, Rights::All, name, args) {
                    Ok(procedure) => {
                        return self.start_procedure(procedure, origin, args, ReplyTo::None)
                    }
                    Err(refusal) => refusal,
                }
            }
            Err(refusal) => refusal,
        };
        self.log_error(name, &refusal.log, origin.timestamp);
    }

    /// With `inside`, the payload of the caller's token, the caller comes and goes in the call's own transaction.
    fn call_by_name(
        &mut self,
        origin: &Origin,
        rights: Rights,
        function: &str,
        args: &[u8],
        inside: Option<&str>,
    ) -> Result<CallOutcome, CallError> {
        let reducer = resolve_call(&self.module, rights, function, args).map_err(|refusal| {
            self.log_refused(function, &refusal.log, origin.timestamp);
            CallError::InvalidArguments(refusal.message)
        })?;
        let started = self.shared.environment().instant();
        let (result, ops) = match inside {
            None => self.call(reducer, origin, args),
            Some(jwt_payload) => self.call_inside_connection(reducer, origin, args, jwt_payload)?,
        };
        let elapsed = self.shared.environment().instant() - started;
        self.event(Event::Committed { ops });
        let outcome = CallOutcome {
            execution_us: elapsed.as_micros() as u64,
            // A unit is a nanosecond; the count is never 0 (03 §12).
            energy_used: (elapsed.as_nanos() as u64).max(1),
            returned_json: None,
        };
        match result {
            CallResult::Committed => Ok(outcome),
            CallResult::UserError(message) => Err(CallError::UserError { message, outcome }),
            CallResult::Failed(CallFailure::Fatal) => Err(CallError::Fatal { outcome }),
            CallResult::Failed(CallFailure::TimedOut(_)) => Err(CallError::TimedOut { outcome }),
            CallResult::Failed(CallFailure::NotRun(text)) => Err(CallError::Database(text)),
        }
    }
}
