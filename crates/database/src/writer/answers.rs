//! Answers of the writer, and rounds that have nothing else.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::{Client, Writer};
use crate::events::{Answer, Event};
use crate::outgoing::{Delivery, MessageBatch};
use crate::peer::ConnectionNumber;
use crate::shared::Shared;

/// Longer rounds go to fan-out: one more thread to wake does not matter to them, and it works while the writer goes on.
const DIRECT_EVENTS_MAX: usize = 64;

impl Writer {
    /// A message to a client, with its memory reserved. One for whom it is too much is cut.
    pub(super) fn ready(&mut self, connection: ConnectionNumber, message: Vec<u8>) -> Answer {
        ready(&self.state.clients, &self.shared, connection, message)
    }

    /// Whether the round is short, has only answers, and fan-out is done with all that it got before, so that nothing overtakes
    /// anything: then no other thread has to be woken for it.
    pub(super) fn may_step_fanout(&self) -> bool {
        let (state, stats) = (&self.state, &self.shared.status.fanout);
        let events = &state.batch.events;
        (1..=DIRECT_EVENTS_MAX).contains(&events.len())
            && events.iter().all(is_answer)
            && stats.done_batches.load(Ordering::Acquire) == state.sent_batches
    }
}

/// [`Writer::ready`].
pub(super) fn ready(
    clients: &FxHashMap<ConnectionNumber, Client>,
    shared: &Shared,
    connection: ConnectionNumber,
    message: Vec<u8>,
) -> Answer {
    let client = clients.get(&connection)?;
    let mut messages = MessageBatch::of(message);
    if messages.reserve(client.queue.budget()) {
        return Some(Box::new(Delivery::Messages(messages)));
    }
    client.queue.cut();
    let stats = &shared.status.fanout;
    stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
    None
}

/// Whether an event is nothing but an answer that is ready.
fn is_answer(event: &Event) -> bool {
    match event {
        Event::Called { ops, .. } | Event::Committed { ops } => ops.is_empty(),
        Event::Answered { answer, .. } => matches!(answer.as_deref(), Some(Delivery::Messages(_))),
        Event::Release { .. } => true,
        _ => false,
    }
}
