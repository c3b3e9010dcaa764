//! Calls of procedures (03 §10). They run on the writer, like reducers: one that reads in one transaction costs what a
//! reducer costs. In exchange it may not wait for anything.

use lightcone_host::{ProcedureOutcome, ProcedureScope, ReducerCall};
use lightcone_types::bsatn::Reader;
use lightcone_types::{ConnectionId, Identity, TimeDuration, Timestamp};
use lightcone_wire::server;

use super::Writer;
use crate::error::CallError;
use crate::fanout::{Answer, Event};
use crate::handle::{CallOutcome, Caller};

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
    #[allow(clippy::too_many_arguments, reason = "the parts of a request")]
    pub(super) fn client_procedure(
        &mut self,
        connection: u64,
        request_id: u32,
        procedure: u32,
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) {
        let result = self.procedure(procedure, identity, connection_id, timestamp, args);
        let mut answer = Vec::new();
        match result {
            Ok(value) => {
                let duration = TimeDuration(Timestamp::now().0.saturating_sub(timestamp.0));
                server::procedure_result_returned(
                    &mut answer,
                    request_id,
                    timestamp,
                    duration,
                    &value,
                );
            }
            Err(failure) => {
                server::procedure_result_internal_error(&mut answer, request_id, &failure.text());
            }
        }
        self.event(Event::Answered {
            connection,
            answer: Answer::Ready(answer),
        });
    }

    /// A call over HTTP; the value is in the outcome as JSON (06 §5.11).
    pub(super) fn http_procedure(
        &mut self,
        procedure: usize,
        caller: &Caller,
        connection_id: ConnectionId,
        timestamp: Timestamp,
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
        let value = self
            .procedure(
                procedure as u32,
                caller.identity,
                connection_id,
                timestamp,
                args,
            )
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
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) -> Result<Vec<u8>, ProcedureFailure> {
        if let Some(reason) = self.shared.read_only() {
            return Err(ProcedureFailure::ReadOnly(reason));
        }
        let datastore = self
            .datastore
            .take()
            .expect("the module gave the datastore back");
        let output = std::mem::take(&mut self.state.output);
        let mut scope = Some(ProcedureScope::new(datastore, output));
        let call = ReducerCall {
            id: procedure,
            name: &self.module.procedure_names[procedure as usize],
            sender: identity,
            connection_id,
            timestamp,
            args,
        };
        let outcome = self.instance.call_procedure(&mut scope, &call);
        let scope = scope.expect("an instance gives the scope back");
        let (datastore, output, committed) = scope.into_parts();
        self.datastore = Some(datastore);
        self.state.output = output;
        for transaction in committed {
            if transaction.has_record {
                self.state.records += 1;
                self.next_offset += 1;
            }
            self.event(Event::Committed {
                ops: transaction.changes,
            });
        }
        if self.instance.is_poisoned() {
            self.replace_instance();
        }
        self.checked(procedure, outcome)
    }

    fn checked(
        &self,
        procedure: u32,
        outcome: ProcedureOutcome,
    ) -> Result<Vec<u8>, ProcedureFailure> {
        let definition = &self.module.def().procedures[procedure as usize];
        let failure = match outcome {
            ProcedureOutcome::Returned(value) => {
                let mut reader = Reader::new(&value);
                let checked = lightcone_types::bsatn::validate(
                    &definition.params_typespace,
                    &definition.return_type,
                    &mut reader,
                );
                match checked {
                    Ok(()) => return Ok(value),
                    Err(error) => ProcedureFailure::Failed(format!(
                        "the result is no value of the declared type: {error}"
                    )),
                }
            }
            ProcedureOutcome::Failed { message } => ProcedureFailure::Failed(message),
            ProcedureOutcome::TimedOut { message } => ProcedureFailure::TimedOut(message),
        };
        if let ProcedureFailure::Failed(message) | ProcedureFailure::TimedOut(message) = &failure {
            let (database, procedure) = (self.shared.options.identity, &definition.name);
            tracing::warn!(%database, %procedure, %message, "a procedure failed");
        }
        Err(failure)
    }
}
