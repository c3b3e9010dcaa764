//! Answers that need no fan-out.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::{Client, Writer};
use crate::courier::Ready;
use crate::events::{Answer, Event};
use crate::held::Waiting;
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

    /// Answers a short round that concerns only those who asked, if fan-out is done with all that it got before: so nothing
    /// overtakes anything. False: fan-out has to do it.
    pub(super) fn answer_directly(&mut self) -> bool {
        let (state, stats) = (&self.state, &self.shared.status.fanout);
        let events = &state.batch.events;
        if events.len() > DIRECT_EVENTS_MAX
            || !events.iter().all(is_answer)
            || stats.done_batches.load(Ordering::Acquire) != state.sent_batches
        {
            return false;
        }
        if !self.state.record_ends.is_empty() {
            self.submit_records();
        }
        let mut ready = std::mem::take(&mut self.state.ready);
        self.make_answers(&mut ready);
        self.held
            .hold(self.next_offset, self.state.answers.drain(..), &mut ready);
        ready.hand_over();
        self.state.ready = ready;
        true
    }

    /// Turns the round's events into answers. Those that need not wait for the disk go right away.
    fn make_answers(&mut self, ready: &mut Ready) {
        let state = &mut self.state;
        let mut events = state.batch.events.drain(..).peekable();
        while let Some(event) = events.next() {
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
                    while let Some(Event::Called {
                        request_id,
                        timestamp,
                        result,
                        ..
                    }) = events.next_if(|event| is_call_of(event, connection))
                    {
                        result.encode(messages.bytes.own(), request_id, timestamp);
                        messages.end_message();
                    }
                    (connection, messages)
                }
                Event::Answered {
                    connection,
                    answer: Answer::Ready(messages),
                } => (connection, *messages),
                Event::Release { confirmed, action } => {
                    match confirmed {
                        true => state.answers.push(Waiting::Release(action)),
                        false => action(Ok(())),
                    }
                    continue;
                }
                Event::Committed { .. } => continue,
                _ => unreachable!("only answers get here"),
            };
            // One who went away needs no answer.
            let Some(client) = state.clients.get(&connection) else {
                continue;
            };
            let stats = &self.shared.status.fanout;
            stats.messages_sent.fetch_add(1, Ordering::Relaxed);
            let mut items = [Delivery::Messages(messages)];
            let queue = &client.queue;
            if !queue.admit(&mut items) {
                queue.cut();
                stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let [item] = items;
            if client.confirmed {
                let queue = queue.clone();
                state.answers.push(Waiting::Deliver { queue, item });
            } else {
                queue.push([item], ready);
            }
        }
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
        return Answer::Gone;
    };
    let mut messages = MessageBatch::of(message);
    if messages.reserve(client.queue.budget()) {
        return Answer::Ready(Box::new(messages));
    }
    client.queue.cut();
    let stats = &shared.status.fanout;
    stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
    Answer::Gone
}

/// Whether an event is nothing but an answer that is ready.
fn is_answer(event: &Event) -> bool {
    match event {
        Event::Called { ops, .. } | Event::Committed { ops } => ops.is_empty(),
        Event::Answered { answer, .. } => matches!(answer, Answer::Ready(_)),
        Event::Release { .. } => true,
        _ => false,
    }
}

fn is_call_of(event: &Event, of: ConnectionNumber) -> bool {
    matches!(event, Event::Called { connection, .. } if *connection == of)
}
