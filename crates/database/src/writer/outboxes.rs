//! The sender of outbox tables: the first message of each stream is carried to its target until there is a result.
//!
//! docs/design/outbox-tables.md has the states and what holds whatever happens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{
    DatastoreError, MessageResult, OutboundMessage, OutboundStream, ResultStatus,
};
use lightcone_types::{cut, Encode, Identity};

use super::beside::Beside;
use super::outbox_streams::Sending;
use super::timers::Timer;
use super::{Origin, Writer};
use crate::events::Event;
use crate::inbox::Input;
use crate::messages::{Carried, Delivery, Message, MessageAnswer, Sent};

/// The pause after the first attempt with a message, which doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// So long a request to another server may still arrive: its token lives for 60 s, on a clock that may be 60 s behind; and 5 s more.
const ARRIVES_WITHIN: Duration = Duration::from_secs(125);
/// Longer reasons why a message was not taken are cut.
const REASON_BYTES_MAX: usize = 1 << 10;

impl Writer {
    /// Whatever waits is to be sent: after opening.
    pub(super) fn load_outboxes(&mut self) {
        self.state.effects.output.outbound = self.datastore.waiting_streams();
    }

    /// At the end of a round: sends what is due, and has itself woken for what comes.
    pub(super) fn run_outboxes(&mut self) {
        if self.state.outboxes.streams.is_empty() && self.state.effects.output.outbound.is_empty() {
            return;
        }
        let now = self.now.instant;
        for stream in std::mem::take(&mut self.state.effects.output.outbound) {
            self.wake_if_settled(stream, now);
        }
        if self.state.stop.is_some() || self.state.failed || self.shared.status.is_read_only() {
            return self.state.timers.set(Timer::Outboxes, None);
        }
        while let Some(stream) = self.state.outboxes.pop_due(now) {
            self.send_head(stream);
        }
        let outboxes = &self.state.outboxes;
        let messages = &self.shared.metrics.messages;
        messages.under_way.set(outboxes.under_way as u64);
        messages.waiting.set(self.datastore.outbound_count());
        self.state.timers.set(Timer::Outboxes, outboxes.next_due());
    }

    /// A message came to a stream, or one went. Others that came wait for the first one, and its pause.
    fn wake_if_settled(&mut self, stream: u64, now: Instant) {
        let head = self.datastore.outbound_head(stream);
        let outboxes = &mut self.state.outboxes;
        let known = outboxes.streams.get(&stream);
        match head {
            Some(head) if known.is_some_and(|sending| sending.is_known(&head)) => {}
            Some(head) => {
                let at = now + pause_before(head.retry_count);
                outboxes.wake(stream, now, at);
            }
            None => outboxes.wake(stream, now, now),
        }
    }

    fn send_head(&mut self, id: u64) {
        let found = self
            .datastore
            .outbound_stream(id)
            .zip(self.datastore.outbound_head(id));
        let Some((stream, head)) = found else {
            self.state.outboxes.streams.remove(&id);
            return;
        };
        // A message comes and goes with its row, and a table with messages stays an outbox table.
        let row = self.datastore.outbox_row(stream.table, head.id);
        let schema = self.datastore.schema(stream.table);
        let outbox = schema.and_then(|schema| schema.outbox.clone());
        let (Some(row), Some(outbox)) = (row.map(<[u8]>::to_vec), outbox) else {
            let database = &self.shared.options.identity;
            tracing::error!(%database, stream = id, "a message has no row; its stream stands still until the database opens again [LC0308]");
            self.state.outboxes.streams.remove(&id);
            return;
        };
        let Some(sending) = self.state.outboxes.streams.get_mut(&id) else {
            return;
        };
        let is_known = sending.is_known(&head);
        let before = sending.sent.take().filter(|_| is_known);
        let sent = before.map_or_else(
            || {
                let args = self.datastore.outbox_arguments(stream.table, &row);
                let id = head.id;
                Arc::new(Sent { id, row, args })
            },
            |(_, sent)| sent,
        );
        sending.due = None;
        sending.sent = Some((head.seq, sent.clone()));
        self.state.outboxes.under_way += 1;
        let message = Message {
            sender: self.shared.options.identity,
            target: stream.target,
            stream: id,
            seq: head.seq,
            ack_prefix: stream.ack_prefix,
            reducer: outbox.remote_reducer,
            signature_hash: outbox.signature_hash,
            args: sent.args.clone(),
        };
        self.carry(message, sent);
    }

    /// Has a message carried when all that it rests on is durable.
    fn carry(&mut self, message: Message, sent: Arc<Sent>) {
        let (stream, seq, rests_on) = (message.stream, message.seq, self.next_offset);
        let outbox = self.shared.outbox.clone();
        let carrier = self.shared.options.commons.carrier().cloned();
        // The sender alone would keep the inbox open, all that is shared would stay with it.
        let shared = Arc::downgrade(&self.shared);
        let task = async move {
            // A log that failed, or a database that has stopped, sends nothing more.
            if outbox.reach(rests_on).await.is_err() {
                return;
            }
            let carried = match carrier {
                Some(carrier) => carrier.carry(message).await,
                None => Carried::lost("this program carries no messages"),
            };
            if let Some(shared) = shared.upgrade() {
                let _ = shared.inbox.send(Input::Delivered(Box::new(Delivery {
                    stream,
                    seq,
                    sent,
                    carried,
                })));
            }
        };
        self.shared.environment().spawn_task(Box::pin(task));
    }

    /// An attempt has ended.
    pub(super) fn delivered(&mut self, delivery: Delivery) {
        let now = self.now.instant;
        let sending = self.state.outboxes.streams.get_mut(&delivery.stream);
        if let Some(sending) = sending.filter(|_| delivery.carried.answer.is_err()) {
            sending.unknown_at = now;
        }
        let at = match self.shared.status.is_read_only() {
            true => now + PAUSE_MAX,
            false => now + self.pause_after(&delivery, now),
        };
        self.state.outboxes.end(delivery.stream, at);
    }

    /// Stores what came of an attempt. Gives the pause before the next one with the stream.
    fn pause_after(&mut self, delivery: &Delivery, now: Instant) -> Duration {
        let id = delivery.stream;
        let found = self
            .datastore
            .outbound_stream(id)
            .zip(self.datastore.outbound_head(id));
        let is_it =
            |head: &OutboundMessage| (head.id, head.seq) == (delivery.sent.id, delivery.seq);
        let Some((stream, head)) = found.filter(|(_, head)| is_it(head)) else {
            // Its row is gone: whatever came of it, it is told no more.
            return Duration::ZERO;
        };
        let done = match &delivery.carried.answer {
            Ok(MessageAnswer::Done(result)) => {
                self.conclude(&stream, &head, &delivery.sent, result)
            }
            Ok(MessageAnswer::OutOfOrder { expected })
                if *expected < head.seq && self.has_settled(delivery, now) =>
            {
                self.expect(&stream, &head, *expected)
            }
            Ok(MessageAnswer::OutOfOrder { expected }) => {
                let text = MessageAnswer::out_of_order_text(*expected, head.seq);
                self.try_again(&head, &text)
            }
            Ok(MessageAnswer::Acknowledged) => {
                let text = "the target has acknowledged this message before, and keeps no result";
                self.try_again(&head, text)
            }
            Err(reason) => self.try_again(&head, reason),
        };
        done.unwrap_or_else(|error| {
            let database = self.shared.options.identity;
            tracing::error!(%database, stream = id, %error, "what came of a message cannot be stored; it is sent again");
            PAUSE_MAX
        })
    }

    /// Whether nothing that was sent of the stream can arrive any more.
    fn has_settled(&self, delivery: &Delivery, now: Instant) -> bool {
        let sending = self.state.outboxes.streams.get(&delivery.stream);
        let is_over = |sending: &Sending| now - sending.unknown_at >= ARRIVES_WITHIN;
        delivery.carried.is_settled || sending.is_some_and(is_over)
    }

    fn try_again(
        &mut self,
        head: &OutboundMessage,
        reason: &str,
    ) -> Result<Duration, DatastoreError> {
        self.shared.metrics.messages.retried.add(1);
        let reason = cut(reason, REASON_BYTES_MAX);
        // Once the pause is the longest, only another reason is worth a record.
        let is_noted = pause_before(head.retry_count) == PAUSE_MAX
            && head.last_transport_error.as_deref() == Some(&*reason);
        if !is_noted {
            self.change(|datastore| datastore.note_attempt(head, &reason))?;
        }
        Ok(pause_before(head.retry_count.saturating_add(1)))
    }

    /// The target waits for another number: that of a message whose row went, or of one that it has lost.
    fn expect(
        &mut self,
        stream: &OutboundStream,
        head: &OutboundMessage,
        expected: u64,
    ) -> Result<Duration, DatastoreError> {
        if expected <= stream.ack_prefix {
            let database = self.shared.options.identity;
            tracing::warn!(%database, target = %stream.target, expected, acknowledged = stream.ack_prefix, "a target of messages has lost what it had applied; its stream goes on from there");
        }
        self.change(|datastore| datastore.expect_outbound(stream, expected))?;
        let sending = self.state.outboxes.streams.get_mut(&head.stream);
        if let Some((seq, _)) = sending.and_then(|sending| sending.sent.as_mut()) {
            // It stays as it was sent.
            *seq = expected;
        }
        Ok(Duration::ZERO)
    }

    /// The result of a message is there: the callback hears of it, and row and message go, in one transaction.
    fn conclude(
        &mut self,
        stream: &OutboundStream,
        head: &OutboundMessage,
        sent: &Sent,
        result: &MessageResult,
    ) -> Result<Duration, DatastoreError> {
        let messages = &self.shared.metrics.messages;
        match result.status {
            ResultStatus::Ok => messages.delivered.add(1),
            _ => messages.failed.add(1),
        }
        if let Some((reducer, args)) = self.callback(stream, sent, result) {
            let origin = Origin::without_client(Identity::ZERO, self.now.time);
            self.end_round_before(reducer);
            self.datastore.begin();
            let beside = Beside::Retires(stream, head);
            let (called, ops) = self.run_reducer(reducer, &origin, &args, None, beside);
            if called.is_ok() {
                self.event(Event::Committed { ops });
                return Ok(Duration::ZERO);
            }
            // It was taken back, and why is in the module's log.
        }
        self.change(|datastore| datastore.retire_outbound(stream, head))?;
        Ok(Duration::ZERO)
    }

    /// The reducer that hears of a result, with its arguments, if the row is still as it was sent.
    fn callback(
        &self,
        stream: &OutboundStream,
        sent: &Sent,
        result: &MessageResult,
    ) -> Option<(u32, Vec<u8>)> {
        let row = self.datastore.outbox_row(stream.table, sent.id)?;
        // A migration may have put new columns behind the others.
        if !row.starts_with(&sent.row) {
            return None;
        }
        let schema = self.datastore.schema(stream.table)?;
        let name = schema.outbox.as_ref()?.on_result.as_ref()?;
        let (id, reducer) = self.module.def().reducer(name)?;
        let mut args = row.to_vec();
        match result.status {
            ResultStatus::Ok => args.push(0),
            _ => {
                args.push(1);
                String::from_utf8_lossy(&result.payload)
                    .into_owned()
                    .encode(&mut args);
            }
        }
        if let Err(error) = reducer.validate_args(&args) {
            let table = &schema.name;
            let text = format!(
                "row {} of `{table}` is no argument for `{name}`: {error}",
                sent.id
            );
            self.log_error(Some(name), &text, self.now.time);
            return None;
        }
        Some((id as u32, args))
    }
}

/// The pause before a message is sent that was not taken so often.
fn pause_before(retry_count: u32) -> Duration {
    match retry_count {
        0 => Duration::ZERO,
        count => PAUSE_MIN
            .saturating_mul(1 << (count - 1).min(16))
            .min(PAUSE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let ms = |count| pause_before(count).as_millis();
        assert_eq!([0, 1, 2, 3, 9].map(ms), [0, 100, 200, 400, 25_600]);
        assert_eq!([10, 11, u32::MAX].map(ms), [30_000; 3]);
    }
}
