//! Calls of reducers: each is one transaction (03 §11, 06 §5.11).

use lightcone_host::{
    ConsoleLevel, HostEnv, OpenTransaction, ReducerCall, ReducerOutcome, FATAL_ERROR_TEXT,
};
use lightcone_types::{ConnectionId, Identity, Timestamp};
use lightcone_wire::server;

use super::Writer;
use crate::error::CallError;
use crate::fanout::{CallResult, Event};
use crate::handle::{CallOutcome, Caller};
use crate::request::{find_procedure, find_reducer, resolve_call, Decoded, Request};

/// How the text for a call that took too long begins (05 §6.3).
const OUT_OF_ENERGY: &str = "reducer ran out of energy";

impl Writer {
    pub(super) fn requests(&mut self, connection: u64, mut decoded: Decoded) {
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let (sender, connection_id) = (client.sender, client.connection_id);
        if decoded.version != self.module.version {
            decoded.resolve_again(&self.module, &sender);
        }
        let Decoded {
            timestamp,
            payload,
            requests,
            ..
        } = decoded;
        for request in requests {
            match request {
                Request::Call {
                    request_id,
                    reducer,
                    args,
                } => {
                    let args = &payload[args.start as usize..args.end as usize];
                    let (result, ops) =
                        self.call(reducer, sender.identity, connection_id, timestamp, args);
                    self.event(Event::Called {
                        connection,
                        request_id,
                        timestamp,
                        result,
                        ops,
                    });
                }
                Request::RejectedCall {
                    request_id,
                    message,
                    log,
                    function,
                } => {
                    self.shared
                        .log
                        .host(ConsoleLevel::Error, Some(&function), &log, timestamp);
                    let result = CallResult::InternalError(message);
                    self.event(Event::Called {
                        connection,
                        request_id,
                        timestamp: Timestamp::now(),
                        result,
                        ops: 0..0,
                    });
                }
                Request::Procedure {
                    request_id,
                    procedure,
                    args,
                } => {
                    let args = &payload[args.start as usize..args.end as usize];
                    self.client_procedure(
                        connection,
                        request_id,
                        procedure,
                        sender.identity,
                        connection_id,
                        timestamp,
                        args,
                    );
                }
                Request::RejectedProcedure {
                    request_id,
                    message,
                    log,
                    function,
                } => {
                    self.shared
                        .log
                        .host(ConsoleLevel::Error, Some(&function), &log, timestamp);
                    let mut answer = Vec::new();
                    server::procedure_result_internal_error(&mut answer, request_id, &message);
                    let answer = self.ready(connection, answer);
                    self.event(Event::Answered { connection, answer });
                }
                Request::Subscribe {
                    request_id,
                    query_set_id,
                    set,
                    ticket,
                } => {
                    self.subscribe(connection, request_id, query_set_id, set, ticket);
                }
                Request::Unsubscribe {
                    request_id,
                    query_set_id,
                    ticket,
                } => {
                    self.unsubscribe(connection, request_id, query_set_id, ticket);
                }
                Request::OneOff {
                    request_id,
                    plan,
                    ticket,
                } => self.one_off(connection, request_id, plan, ticket),
            }
            if self.round_is_full() {
                self.end_round();
            }
        }
    }

    /// Runs a reducer as a transaction.
    pub(super) fn call(
        &mut self,
        reducer: u32,
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) -> (CallResult, std::ops::Range<usize>) {
        if let Some(reason) = self.shared.read_only() {
            return (CallResult::InternalError(reason), 0..0);
        }
        self.datastore().begin();
        match self.execute(reducer, identity, connection_id, timestamp, args) {
            ReducerOutcome::Ok => (CallResult::Committed, self.commit()),
            outcome => {
                self.datastore().rollback();
                (self.failed(reducer, outcome, timestamp), 0..0)
            }
        }
    }

    /// Runs a reducer in the open transaction and replaces the instance if it trapped.
    pub(super) fn execute(
        &mut self,
        reducer: u32,
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) -> ReducerOutcome {
        let call = ReducerCall {
            id: reducer,
            name: &self.module.reducer_names[reducer as usize],
            sender: identity,
            connection_id,
            timestamp,
            args,
        };
        let datastore = self
            .datastore
            .as_mut()
            .expect("only recovery is without tables");
        let outcome = self
            .instance
            .call_reducer(OpenTransaction::of(datastore), &call);
        if self.instance.is_poisoned() {
            self.replace_instance();
        }
        outcome
    }

    pub(super) fn replace_instance(&mut self) {
        let env = HostEnv::new(self.shared.host_config());
        match self.module.program.loaded.instantiate(env) {
            Ok(instance) => {
                self.instance = instance;
                self.instance.prepare();
            }
            // The poisoned instance refuses calls; the next trap of a call tries again.
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the module cannot be instantiated again")
            }
        }
    }

    pub(super) fn failed(
        &mut self,
        reducer: u32,
        outcome: ReducerOutcome,
        timestamp: Timestamp,
    ) -> CallResult {
        let name = self.module.reducer_names[reducer as usize].clone();
        match outcome {
            ReducerOutcome::Ok => CallResult::Committed,
            ReducerOutcome::UserError(text) => {
                self.shared
                    .log
                    .host(ConsoleLevel::Error, Some(&name), &text, timestamp);
                CallResult::UserError(text)
            }
            ReducerOutcome::Fatal { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer trapped");
                CallResult::InternalError(FATAL_ERROR_TEXT.to_owned())
            }
            ReducerOutcome::TimedOut { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer was stopped");
                CallResult::InternalError(format!("{OUT_OF_ENERGY}: {message}"))
            }
        }
    }

    /// A call inside a connection of its own, which comes and goes even if the call does not reach the module (06 §5.11).
    pub(super) fn http_call(
        &mut self,
        caller: &Caller,
        connection_id: ConnectionId,
        function: &str,
        args: Result<Vec<u8>, CallError>,
        timestamp: Timestamp,
    ) -> Result<CallOutcome, CallError> {
        self.connect(caller.identity, connection_id, &caller.jwt_payload)
            .map_err(|refused| CallError::ConnectRejected(refused.text()))?;
        let result = args
            .and_then(|args| self.call_by_name(caller, connection_id, function, &args, timestamp));
        self.disconnect(caller.identity, connection_id);
        result
    }

    fn call_by_name(
        &mut self,
        caller: &Caller,
        connection_id: ConnectionId,
        function: &str,
        args: &[u8],
        timestamp: Timestamp,
    ) -> Result<CallOutcome, CallError> {
        let is_owner = caller.identity == self.shared.options.owner;
        // Once more: the module may have been replaced since the arguments were read.
        if find_reducer(&self.module, is_owner, function).is_err() {
            if let Some((procedure, _)) = find_procedure(&self.module, is_owner, function) {
                return self.http_procedure(procedure, caller, connection_id, timestamp, args);
            }
        }
        let reducer = resolve_call(&self.module, is_owner, function, args).map_err(|refusal| {
            self.shared
                .log
                .host(ConsoleLevel::Error, Some(function), &refusal.log, timestamp);
            CallError::InvalidArguments(refusal.message)
        })?;
        let started = std::time::Instant::now();
        let (result, ops) = self.call(reducer, caller.identity, connection_id, timestamp, args);
        let elapsed = started.elapsed();
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
            CallResult::InternalError(text) if text == FATAL_ERROR_TEXT => {
                Err(CallError::Fatal { outcome })
            }
            CallResult::InternalError(text) if text.starts_with(OUT_OF_ENERGY) => {
                Err(CallError::TimedOut { outcome })
            }
            CallResult::InternalError(text) => Err(CallError::Database(text)),
        }
    }
}
