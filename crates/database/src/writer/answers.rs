//! Answers that need no fan-out.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::{Client, Writer};
use crate::events::{Answer, Event};
use crate::outgoing::{Delivery, MessageBatch};
use crate::peer::ConnectionNumber;
use crate::shared::Shared;

/// Longer rounds go to fan-out: one more thread to wake does not matter to them, and it joins the messages of a client.
const DIRECT_EVENTS_MAX: usize = 8;

impl Writer {
    /// A message to a client, with its memory reserved. One for whom it is too much is cut.
    pub(super) fn ready(&mut self, connection: ConnectionNumber, message: Vec<u8>) -> Answer {
        ready(&self.state.clients, &self.shared, connection, message)
    }

    /// Answers a short round that changed nothing, if all before it is answered and durable: so nothing overtakes anything,
    /// and nothing is seen that could be lost. False: fan-out has to do it.
    pub(super) fn answer_directly(&mut self) -> bool {
        let state = &mut self.state;
        let events = &mut state.batch.events;
        if !state.record_ends.is_empty()
            || events.len() > DIRECT_EVENTS_MAX
            || !events.iter().all(is_answer)
            || self
                .shared
                .status
                .fanout
                .settled_batches
                .load(Ordering::Acquire)
                != state.sent_batches
        {
            return false;
        }
        for event in events.drain(..) {
            let (connection, messages) = match event {
                Event::Called {
                    connection,
                    request_id,
                    timestamp,
                    result,
                    ..
                } => {
                    let mut messages = MessageBatch::default();
                    result.encode(messages.bytes.own(), request_id, timestamp);
                    messages.end_message();
                    (connection, messages)
                }
                Event::Answered {
                    connection,
                    answer: Answer::Ready(messages),
                } => (connection, messages),
                Event::Release { action, .. } => {
                    action(Ok(()));
                    continue;
                }
                _ => unreachable!("only answers get here"),
            };
            // One who went away needs no answer.
            let Some(client) = state.clients.get(&connection) else {
                continue;
            };
            let stats = &self.shared.status.fanout;
            stats.messages_sent.fetch_add(1, Ordering::Relaxed);
            if !client.queue.send(Delivery::Messages(messages)) {
                stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }
}

/// [`Writer::ready`].
pub(super) fn ready(
    clients: &FxHashMap<ConnectionNumber, Client>,
    shared: &Shared,
    connection: ConnectionNumber,
    message: Vec<u8>,
) -> Answer {
    let Some(client) = clients.get(&connection) else {
        return Answer::Nobody;
    };
    let mut messages = MessageBatch::of(message);
    if messages.reserve(client.queue.budget()) {
        return Answer::Ready(messages);
    }
    client.queue.cut();
    let stats = &shared.status.fanout;
    stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
    Answer::Nobody
}

/// Whether an event is nothing but an answer that is ready.
fn is_answer(event: &Event) -> bool {
    match event {
        Event::Called { ops, .. } => ops.is_empty(),
        Event::Answered { answer, .. } => matches!(answer, Answer::Ready(_)),
        Event::Release { .. } => true,
        _ => false,
    }
}
