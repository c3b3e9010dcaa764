//! Calls of procedures (03 §10) and of HTTP handlers (03 §11.6). They run on the writer, like reducers: one that reads in one
//! transaction costs what a reducer costs. In exchange it may not wait for anything.

use std::sync::Arc;

use lightcone_host::{
    HandlerResponse, HttpResponse, ModuleInstance, OpenTransaction, ProcedureOutcome, ReducerCall,
    Transactions,
};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Identity, TimeDuration, Timestamp};
use lightcone_wire::server;

use super::rounds::RoundTransactions;
use super::{Origin, Writer};
use crate::calls::{CallError, CallOutcome, HandlerReply, HandlerRequest};
use crate::commit::Committed;
use crate::events::Event;
use crate::peer::ConnectionNumber;

/// Why a procedure returned nothing.
pub(super) enum ProcedureFailure {
    /// The database takes no calls.
    ReadOnly(String),
    Failed(String),
    TimedOut(String),
}

impl ProcedureFailure {
    /// The text for the caller (05 §6.4).
    fn text(self) -> String {
        match self {
            ProcedureFailure::ReadOnly(reason) => reason,
            ProcedureFailure::Failed(message) | ProcedureFailure::TimedOut(message) => {
                format!("The module instance encountered a fatal error: {message}")
            }
        }
    }
}

impl Writer {
    /// A client's call. Its transactions go to all subscribers, the caller among them, before the answer.
    pub(super) fn client_procedure(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        procedure: u32,
        origin: &Origin,
        args: &[u8],
    ) {
        let result = self.procedure(procedure, origin, args);
        let mut answer = Vec::new();
        match result {
            Ok(value) => {
                let duration = TimeDuration(self.now().0.saturating_sub(origin.timestamp.0));
                server::procedure_result_returned(
                    &mut answer,
                    request_id,
                    origin.timestamp,
                    duration,
                    &value,
                );
            }
            Err(failure) => {
                server::procedure_result_internal_error(&mut answer, request_id, &failure.text());
            }
        }
        let answer = self.ready(connection, answer);
        self.event(Event::Answered { connection, answer });
    }

    /// A call over HTTP; the value is in the outcome as JSON (06 §5.11).
    pub(super) fn http_procedure(
        &mut self,
        procedure: usize,
        origin: &Origin,
        args: &[u8],
    ) -> Result<CallOutcome, CallError> {
        let definition = self.module.def().clone();
        let definition = &definition.procedures[procedure];
        if let Err(error) = definition.validate_args(args) {
            let name = &definition.name;
            return Err(CallError::InvalidArguments(format!(
                "invalid arguments for procedure {name}: {error}"
            )));
        }
        let value =
            self.procedure(procedure as u32, origin, args)
                .map_err(|failure| match failure {
                    ProcedureFailure::TimedOut(_) => CallError::TimedOut {
                        outcome: CallOutcome::default(),
                    },
                    failure => CallError::Database(failure.text()),
                })?;
        let mut json = String::new();
        lightcone_types::json::bsatn_to_json_untyped(
            &definition.params_typespace,
            &definition.return_type,
            &mut Reader::new(&value),
            &mut json,
        )
        .expect("the value was checked");
        Ok(CallOutcome {
            returned_json: Some(json),
            ..CallOutcome::default()
        })
    }

    /// Runs a procedure and commits what it did. The value is one of the declared type.
    pub(super) fn procedure(
        &mut self,
        procedure: u32,
        origin: &Origin,
        args: &[u8],
    ) -> Result<Vec<u8>, ProcedureFailure> {
        let name = self.module.procedure_names[procedure as usize].clone();
        let call = ReducerCall {
            id: procedure,
            name: &name,
            sender: origin.identity,
            connection_id: origin.connection_id,
            timestamp: origin.timestamp,
            args,
        };
        let outcome = self
            .run_procedure(|instance, transactions| instance.call_procedure(transactions, &call))?;
        let result = returned(outcome).and_then(|value| {
            let definition = &self.module.def().procedures[procedure as usize];
            let mut reader = Reader::new(&value);
            lightcone_types::bsatn::validate(
                &definition.params_typespace,
                &definition.return_type,
                &mut reader,
            )
            .map(|()| value)
            .map_err(|error| {
                let text = format!("the result is no value of the declared type: {error}");
                ProcedureFailure::Failed(text)
            })
        });
        result.inspect_err(|failure| self.warn("procedure", &name, failure))
    }

    /// Runs the HTTP handler of a request, if the module has one for it. The sender is the module itself: zero.
    pub(super) fn http_handler(
        &mut self,
        request: &HandlerRequest,
    ) -> Result<HandlerReply, CallError> {
        let handler = self
            .module
            .def()
            .http_handler(&request.method, &request.path);
        // The module may have been replaced since the request was let in.
        let handler = handler.ok_or(CallError::NoSuchFunction)?;
        let name = self.module.http_handler_names[handler].clone();
        let call = ReducerCall {
            id: handler as u32,
            name: &name,
            sender: Identity::ZERO,
            connection_id: ConnectionId(0),
            timestamp: request.timestamp,
            args: &request.head,
        };
        let body = &request.body;
        let result = self
            .run_procedure(|instance, transactions| {
                instance.call_http_handler(transactions, &call, body)
            })
            .and_then(returned)
            .and_then(|HandlerResponse { head, body }| {
                let head = HttpResponse::decode(&mut Reader::new(&head));
                let head = head.map_err(|error| ProcedureFailure::Failed(error.to_string()))?;
                Ok(HandlerReply {
                    head,
                    body: body.into(),
                })
            });
        result.map_err(|failure| {
            self.warn("HTTP handler", &name, &failure);
            match failure {
                // As the handler's own text, without a prefix (06 §5.16).
                ProcedureFailure::ReadOnly(text)
                | ProcedureFailure::Failed(text)
                | ProcedureFailure::TimedOut(text) => CallError::Database(text),
            }
        })
    }

    /// Runs something that opens its own transactions.
    fn run_procedure<R>(
        &mut self,
        run: impl FnOnce(&mut dyn ModuleInstance, &mut dyn Transactions) -> R,
    ) -> Result<R, ProcedureFailure> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(ProcedureFailure::ReadOnly(reason));
        }
        let (round, instance) = self.transactions();
        let bytes_before = round.bytes();
        let mut transactions = ProcedureTransactions {
            round,
            bytes_before,
        };
        let outcome = run(instance, &mut transactions);
        if self.instance.is_poisoned() {
            self.replace_instance();
        }
        Ok(outcome)
    }

    #[cold]
    fn warn(&self, kind: &str, function: &Arc<str>, failure: &ProcedureFailure) {
        if let ProcedureFailure::Failed(message) | ProcedureFailure::TimedOut(message) = failure {
            let database = self.shared.options.identity;
            tracing::warn!(%database, kind, %function, %message, "a call failed");
        }
    }
}

/// The transactions of one call: each joins the round as one of a reducer does, and subscribers hear of it.
struct ProcedureTransactions<'w> {
    round: RoundTransactions<'w>,
    /// What the round had before the call.
    bytes_before: usize,
}

impl Transactions for ProcedureTransactions<'_> {
    fn begin(&mut self) -> OpenTransaction<'_> {
        self.round.datastore.begin();
        OpenTransaction::of(self.round.datastore)
    }

    fn commit(&mut self) {
        let Committed {
            changes,
            has_record,
        } = self.round.commit();
        if has_record || !changes.is_empty() {
            let events = &mut self.round.state.batch.events;
            events.push(Event::Committed { ops: changes });
        }
    }

    fn rollback(&mut self) {
        self.round.datastore.rollback();
    }

    fn now(&self) -> Timestamp {
        self.round.environment.now()
    }

    fn committed_bytes(&self) -> usize {
        self.round.bytes().saturating_sub(self.bytes_before)
    }
}

fn returned<R>(outcome: ProcedureOutcome<R>) -> Result<R, ProcedureFailure> {
    match outcome {
        ProcedureOutcome::Returned(value) => Ok(value),
        ProcedureOutcome::Failed { message } => Err(ProcedureFailure::Failed(message)),
        ProcedureOutcome::TimedOut { message } => Err(ProcedureFailure::TimedOut(message)),
    }
}
