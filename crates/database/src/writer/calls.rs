//! Calls of reducers: each is one transaction (03 §11, 06 §5.11).

use std::ops::Range;
use std::time::Instant;

use lightcone_engine::DatastoreError;
use lightcone_host::{ConsoleLevel, OpenTransaction, ReducerCall, ReducerOutcome};
use lightcone_types::Timestamp;
use lightcone_wire::server;

use super::beside::Beside;
use super::lifecycle::delete_client_rows;
use super::received::record_applied;
use super::schedule::{CALLS_PER_ROUND_MAX, ROUND_MAX};
use super::{Origin, Writer};
use crate::calls::{CallError, CallOutcome};
use crate::events::{CallFailure, CallResult, Event};
use crate::inbox::{HttpCall, Input};
use crate::inbox_capacity::Place;
use crate::metrics::{Failure, FunctionKind, QueryKind};
use crate::module::Function;
use crate::peer::{ConnectionNumber, SetKey};
use crate::procedures::ReplyTo;
use crate::replies::Waiter;
use crate::request::{Decoded, OtherRequest, Request};
use crate::resolve::{find_procedure, find_reducer, resolve, RefusalReason};
use crate::rights::Rights;

impl Writer {
    /// Those that are left when the round is full come back first in the next one.
    pub(super) fn requests(
        &mut self,
        connection: ConnectionNumber,
        mut decoded: Decoded,
        place: Place,
    ) {
        let Some(client) = self.state.clients.get(&connection) else {
            return self.shared.inbox.capacity.give_back(&place);
        };
        let (peer, id) = (client.peer, client.id);
        if decoded.version != self.module.version {
            decoded.resolve_again(&self.module, &peer, client.queue.budget());
        }
        let mut origin = Origin {
            client: id,
            timestamp: decoded.timestamp,
            trace: None,
        };
        while let Some(next) = decoded.requests.get_mut(decoded.taken) {
            let request = std::mem::replace(next, Request::TAKEN);
            decoded.taken += 1;
            let received = decoded.received;
            origin.trace = match request {
                Request::Call { .. } => decoded.trace.take().map(|trace| *trace),
                _ => None,
            };
            self.request(connection, &origin, &decoded.payload, request, received);
            if self.is_step_over() && decoded.taken < decoded.requests.len() {
                return self.inputs.put_back(Input::Requests {
                    connection,
                    decoded,
                    place,
                });
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
                function,
                args,
            } if function.kind == FunctionKind::Reducer => {
                self.note_wait(received);
                let (result, ops) = self.call(function.id, origin, args_of(args));
                self.event(Event::Called {
                    connection,
                    request_id,
                    timestamp: origin.timestamp,
                    result,
                    ops,
                });
                self.trace_answer(origin);
            }
            Request::Call {
                request_id,
                function,
                args,
            } => {
                self.note_wait(received);
                let reply_to = ReplyTo::Client {
                    connection,
                    request_id,
                };
                self.start_procedure(function, *origin, args_of(args), reply_to);
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
        let key = |id| SetKey { connection, id };
        match request {
            OtherRequest::RejectedCall {
                request_id,
                kind,
                refusal,
                function,
            } => {
                self.log_refused(&function, &refusal.log, timestamp);
                if kind == FunctionKind::Procedure {
                    let mut answer = Vec::new();
                    let text = &refusal.message;
                    server::procedure_result_internal_error(&mut answer, request_id, text);
                    let answer = self.ready(connection, answer);
                    return self.event(Event::Answered { connection, answer });
                }
                self.event(Event::Called {
                    connection,
                    request_id,
                    timestamp: self.now.time,
                    result: Err(CallFailure::new(Failure::NotRun, refusal.message)),
                    ops: 0..0,
                });
            }
            OtherRequest::Subscribe {
                request_id,
                is_batch,
                sets,
                ticket,
            } => self.timed(QueryKind::Subscribe, |writer| {
                writer.subscribe(connection, (request_id, is_batch), sets, ticket);
            }),
            OtherRequest::Unsubscribe {
                request_id,
                query_set_id,
                ticket,
            } => self.timed(QueryKind::Unsubscribe, |writer| {
                writer.unsubscribe(key(query_set_id), request_id, ticket);
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

    pub(super) fn log_error(&self, function: Option<&str>, text: &str, timestamp: Timestamp) {
        let log = &self.shared.log;
        log.host(ConsoleLevel::Error, function, text, timestamp);
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
            let counters = &self.module.reducer(reducer).counters;
            counters.note_failure(Failure::NotRun);
            return (Err(CallFailure::new(Failure::NotRun, reason)), 0..0);
        }
        self.end_round_before(reducer);
        let started = self.begin_traced(origin);
        self.datastore.begin();
        self.run_reducer(reducer, origin, args, started, Beside::Nothing)
    }

    /// Runs a reducer in the open transaction, and commits it with what is done beside it, or takes it back. Returns what the caller is
    /// told, and the changes for fan-out.
    pub(super) fn run_reducer(
        &mut self,
        reducer: u32,
        origin: &Origin,
        args: &[u8],
        started: Option<Timestamp>,
        beside: Beside<'_>,
    ) -> (CallResult, Range<usize>) {
        let measured = self.measure(reducer);
        let mut outcome = self.execute(reducer, origin, args);
        let mut changes = 0..0;
        if matches!(outcome, ReducerOutcome::Ok) {
            match self.commit_call(origin, beside) {
                Ok(committed) => changes = committed,
                Err(error) => {
                    let message = error.to_string();
                    outcome = ReducerOutcome::Fatal { message };
                }
            }
        } else {
            self.datastore.rollback();
        }
        let result = self.result(reducer, outcome, origin.timestamp);
        let failure = result.as_ref().err().map(|failure| failure.why);
        self.note_call(&measured, failure);
        self.end_traced(reducer, started, &measured, &result);
        (result, changes)
    }

    /// # Errors
    /// The transaction cannot be committed, and is taken back.
    fn commit_call(
        &mut self,
        origin: &Origin,
        beside: Beside<'_>,
    ) -> Result<Range<usize>, DatastoreError> {
        let datastore = &mut self.datastore;
        let done = match beside {
            Beside::Nothing => Ok(()),
            Beside::Leaves => delete_client_rows(datastore, origin.client),
            Beside::Records(message) => record_applied(datastore, message),
            Beside::Retires(stream, message) => datastore.retire_outbound(stream, message),
        };
        done.inspect_err(|_| self.datastore.rollback())?;
        Ok(self.commit()?.changes)
    }

    /// Runs a reducer in the open transaction. If it traps, the writer takes no more before there is another instance.
    pub(super) fn execute(&mut self, reducer: u32, origin: &Origin, args: &[u8]) -> ReducerOutcome {
        let call = ReducerCall {
            id: reducer,
            name: &self.module.reducer(reducer).name,
            sender: origin.client.identity,
            connection_id: origin.client.connection_id,
            timestamp: origin.timestamp,
            args,
        };
        let (shared, module) = (&self.shared, &self.module);
        self.guest
            .make_ready(shared, module, || shared.config.clone());
        let datastore = &mut self.datastore;
        let instance = &mut self.guest.instance;
        let outcome = instance.call_reducer(OpenTransaction::of(datastore), &call);
        if instance.is_poisoned() {
            self.guest.replace(shared, module, shared.config.clone());
            self.state.is_held |= self.guest.awaited().is_some();
        }
        outcome
    }

    /// What the caller is told of a call that has ended.
    fn result(&self, reducer: u32, outcome: ReducerOutcome, timestamp: Timestamp) -> CallResult {
        let (database, reducer) = (
            self.shared.options.identity,
            &self.module.reducer(reducer).name,
        );
        Err(match outcome {
            ReducerOutcome::Ok => return Ok(()),
            ReducerOutcome::UserError(text) => {
                self.log_error(Some(reducer), &text, timestamp);
                CallFailure::new(Failure::Sender, text)
            }
            ReducerOutcome::Fatal { message } => {
                tracing::warn!(%database, %reducer, %message, "a reducer trapped");
                CallFailure::new(Failure::Trap, message)
            }
            ReducerOutcome::TimedOut { message } => {
                tracing::warn!(%database, %reducer, %message, "a reducer was stopped");
                CallFailure::new(Failure::Time, message)
            }
        })
    }

    /// A call inside a connection of its own, which comes and goes even if the call does not reach the module (06 §5.11).
    pub(super) fn http_call(
        &mut self,
        call: HttpCall,
        waiter: Waiter<Result<CallOutcome, CallError>>,
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
            client: caller.client(connection_id),
            timestamp,
            trace,
        };
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        if self.has_no_lifecycle() && !self.shared.status.is_read_only() {
            let is_procedure = find_reducer(&self.module, rights, &function).is_err()
                && find_procedure(&self.module, rights, &function).is_some();
            if !is_procedure {
                let inside = Some(&*caller.jwt_payload);
                let result = args
                    .and_then(|args| self.call_by_name(&origin, rights, &function, &args, inside));
                return self.answer(waiter, result);
            }
        }
        if let Err(refused) = self.connect(origin.client, Some(&caller.jwt_payload)) {
            if self.shared.status.is_read_only() {
                self.count_refused(rights, &function);
            }
            return self.answer(waiter, Err(refused.into()));
        }
        let result = args.and_then(|args| {
            let procedure = self.procedure_by_name(rights, &function, &args)?;
            Ok((args, procedure))
        });
        let result = match result {
            // The client goes when the procedure has ended.
            Ok((args, Some(procedure))) => {
                return self.start_procedure(procedure, origin, &args, ReplyTo::Http(waiter));
            }
            Ok((args, None)) => self.call_by_name(&origin, rights, &function, &args, None),
            Err(error) => Err(error),
        };
        self.disconnect(origin.client);
        self.answer(waiter, result);
    }

    /// A call never began, as the database takes no writes.
    fn count_refused(&self, rights: Rights, function: &str) {
        let module = &self.module;
        let function = match find_reducer(module, rights, function) {
            Ok((reducer, _)) => Some(Function::reducer(reducer as u32)),
            Err(_) => find_procedure(module, rights, function)
                .map(|(procedure, _)| Function::procedure(procedure as u32)),
        };
        if let Some(function) = function {
            let counters = &module.function(function).counters;
            counters.note_failure(Failure::NotRun);
        }
    }

    /// The procedure of this name, if there is no such reducer, and it takes these arguments.
    fn procedure_by_name(
        &self,
        rights: Rights,
        function: &str,
        args: &[u8],
    ) -> Result<Option<Function>, CallError> {
        // Once more: the module may have been replaced since the arguments were read.
        if find_reducer(&self.module, rights, function).is_ok() {
            return Ok(None);
        }
        let Some((procedure, definition)) = find_procedure(&self.module, rights, function) else {
            return Ok(None);
        };
        match definition.validate_args(args) {
            Ok(_) => Ok(Some(Function::procedure(procedure as u32))),
            Err(error) => Err(CallError::InvalidArguments(format!(
                "invalid arguments for procedure {}: {error}",
                definition.name
            ))),
        }
    }

    /// Calls that modules have asked for outside of any transaction (03 §8.9).
    pub(super) fn run_immediate_calls(&mut self) {
        let started = self.clock();
        for _ in 0..CALLS_PER_ROUND_MAX {
            // A database that stops calls nothing more.
            if self.state.failed || self.state.stop.is_some() {
                return;
            }
            if self.clock() - started >= ROUND_MAX || self.state.is_held {
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
        let origin = Origin::without_client(self.shared.options.identity, self.now.time);
        let module = self.module.clone();
        // The database itself may call what is private.
        let resolve = |kind| resolve(&module, Rights::All, kind, name, args);
        let found = match resolve(FunctionKind::Reducer) {
            Err(refusal) if refusal.reason == RefusalReason::Unknown => {
                resolve(FunctionKind::Procedure)
            }
            found => found,
        };
        let refusal = match found {
            Ok(function) if function.kind == FunctionKind::Reducer => {
                let (_, ops) = self.call(function.id, &origin, args);
                return self.event(Event::Committed { ops });
            }
            Ok(function) => return self.start_procedure(function, origin, args, ReplyTo::None),
            Err(refusal) => refusal,
        };
        self.log_error(Some(name), &refusal.log, origin.timestamp);
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
        let reducer = resolve(&self.module, rights, FunctionKind::Reducer, function, args);
        let reducer = reducer.map_err(|refusal| {
            self.log_refused(function, &refusal.log, origin.timestamp);
            CallError::InvalidArguments(refusal.message)
        })?;
        let started = self.clock();
        let (result, ops) = match inside {
            None => self.call(reducer.id, origin, args),
            Some(jwt_payload) => {
                self.call_inside_connection(reducer.id, origin, args, jwt_payload)?
            }
        };
        let elapsed = self.clock() - started;
        self.event(Event::Committed { ops });
        let outcome = CallOutcome {
            execution_us: elapsed.as_micros() as u64,
            // A unit is a nanosecond; the count is never 0 (03 §12).
            energy_used: (elapsed.as_nanos() as u64).max(1),
            returned_json: None,
        };
        let Err(failure) = result else {
            return Ok(outcome);
        };
        let CallFailure { why, reason } = *failure;
        Err(match why {
            Failure::Sender => CallError::UserError {
                message: reason,
                outcome,
            },
            Failure::Trap => CallError::Fatal { outcome },
            Failure::Time => CallError::TimedOut { outcome },
            Failure::NotRun => CallError::Database(reason),
        })
    }
}
