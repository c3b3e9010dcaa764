//! Answers of the writer.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::{Client, Writer};
use crate::events::Answer;
use crate::outgoing::{Delivery, MessageBatch};
use crate::peer::ConnectionNumber;
use crate::shared::Shared;

impl Writer {
    /// A message to a client, with its memory reserved. One for whom it is too much is cut.
    pub(super) fn ready(&mut self, connection: ConnectionNumber, message: Vec<u8>) -> Answer {
        ready(&self.state.clients, &self.shared, connection, message)
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
