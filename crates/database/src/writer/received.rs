//! Messages of other databases: each is applied once, in the order of its stream, with its result in the same transaction.

use lightcone_engine::{Datastore, DatastoreError, MessageResult, ResultStatus};
use lightcone_types::{cut, cut_name, ConnectionId};

use super::beside::Beside;
use super::{Origin, Writer};
use crate::calls::CallError;
use crate::events::{CallFailure, Event};
use crate::messages::{Message, MessageAnswer};
use crate::metrics::Failure;
use crate::peer::ClientId;
use crate::replies::Waiter;
use crate::resolve::find_reducer;
use crate::rights::Rights;

/// Longer texts of errors are cut: they are kept until the next message of their stream.
const ERROR_BYTES_MAX: usize = 4 << 10;
const OUT_OF_ENERGY: &str = "Module energy budget exhausted.";

impl Writer {
    pub(super) fn receive(
        &mut self,
        message: &Message,
        waiter: Waiter<Result<MessageAnswer, CallError>>,
    ) {
        let answer = self.answer_to(message);
        self.answer(waiter, answer);
    }

    /// # Errors
    /// It is not known what comes of the message: it is to be sent again.
    fn answer_to(&mut self, message: &Message) -> Result<MessageAnswer, CallError> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(CallError::Database(reason));
        }
        let applied = self
            .datastore
            .applied_prefix(message.sender, message.stream);
        if message.seq <= applied {
            return self.replay(message);
        }
        if message.seq > applied + 1 {
            let expected = applied + 1;
            return Ok(MessageAnswer::OutOfOrder { expected });
        }
        match self.reducer_for(message) {
            Ok(reducer) => self.apply(reducer, message),
            Err(text) => self.fail(message, ResultStatus::Error, &text),
        }
    }

    /// What was once answered stays answered so.
    fn replay(&mut self, message: &Message) -> Result<MessageAnswer, CallError> {
        let (sender, stream, known) = (message.sender, message.stream, message.ack_prefix);
        if self.datastore.keeps_results_up_to(sender, stream, known) {
            self.change(|datastore| datastore.acknowledge_inbound(sender, stream, known))
                .map_err(not_stored)?;
        }
        let result = self.datastore.inbound_result(sender, stream, message.seq);
        Ok(result.map_or(MessageAnswer::Acknowledged, MessageAnswer::Done))
    }

    /// The reducer that a message is for.
    ///
    /// # Errors
    /// What its sender is told.
    fn reducer_for(&self, message: &Message) -> Result<u32, String> {
        let found = find_reducer(&self.module, Rights::Public, &message.reducer);
        // The sender chose it, and this database keeps what it answers.
        let name = cut_name(&message.reducer);
        let (id, reducer) = found.map_err(|_| format!("IDC reducer does not exist: {name}"))?;
        let expected = reducer.signature_hash();
        if expected != message.signature_hash {
            let got = message.signature_hash;
            return Err(format!(
                "IDC reducer signature mismatch for {name}: expected {expected}, got {got}"
            ));
        }
        let checked = reducer.validate_args(&message.args);
        checked.map_err(|error| format!("invalid arguments for reducer {name}: {error}"))?;
        Ok(id as u32)
    }

    /// Runs the reducer inside of a connection of the sender, which has no token.
    fn apply(&mut self, reducer: u32, message: &Message) -> Result<MessageAnswer, CallError> {
        let client = ClientId {
            identity: message.sender,
            connection_id: ConnectionId(self.shared.environment().random().max(1)),
        };
        let has_lifecycle = !self.has_no_lifecycle();
        if has_lifecycle {
            self.connect(client, None)?;
        }
        let origin = Origin {
            client,
            timestamp: self.now.time,
            trace: None,
        };
        self.end_round_before(reducer);
        self.datastore.begin();
        let beside = Beside::Records(message);
        let (called, ops) = self.run_reducer(reducer, &origin, &message.args, None, beside);
        let answer = match called {
            Ok(()) => {
                self.event(Event::Committed { ops });
                self.shared.metrics.messages.received.add(1);
                Ok(MessageAnswer::Done(applied()))
            }
            Err(failure) => self.failed(message, &failure),
        };
        if has_lifecycle {
            self.disconnect(client);
        }
        answer
    }

    fn failed(
        &mut self,
        message: &Message,
        failure: &CallFailure,
    ) -> Result<MessageAnswer, CallError> {
        match failure.why {
            Failure::NotRun => Err(CallError::Database(failure.reason.clone())),
            Failure::Time => self.fail(message, ResultStatus::OutOfEnergy, OUT_OF_ENERGY),
            _ => self.fail(message, ResultStatus::Error, &failure.of_reducer()),
        }
    }

    /// A message can never be applied: that is its result.
    fn fail(
        &mut self,
        message: &Message,
        status: ResultStatus,
        text: &str,
    ) -> Result<MessageAnswer, CallError> {
        let text = cut(text, ERROR_BYTES_MAX);
        let result = MessageResult {
            status,
            payload: text.as_bytes().to_vec(),
        };
        self.change(|datastore| record(datastore, message, &result))
            .map_err(not_stored)?;
        self.shared.metrics.messages.received.add(1);
        Ok(MessageAnswer::Done(result))
    }
}

fn not_stored(error: DatastoreError) -> CallError {
    CallError::Database(format!(
        "what came of the message cannot be stored: {error}"
    ))
}

fn applied() -> MessageResult {
    MessageResult {
        status: ResultStatus::Ok,
        payload: Vec::new(),
    }
}

/// Notes in the open transaction that it applies a message.
pub(super) fn record_applied(
    datastore: &mut Datastore,
    message: &Message,
) -> Result<(), DatastoreError> {
    record(datastore, message, &applied())
}

fn record(
    datastore: &mut Datastore,
    message: &Message,
    result: &MessageResult,
) -> Result<(), DatastoreError> {
    let (sender, stream) = (message.sender, message.stream);
    datastore.acknowledge_inbound(sender, stream, message.ack_prefix)?;
    datastore.record_inbound((sender, stream, message.seq), result)
}
