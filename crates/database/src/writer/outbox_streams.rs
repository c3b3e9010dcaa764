//! Which streams of outbox tables have something to send, and when.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::OutboundMessage;
use rustc_hash::FxHashMap;

use crate::messages::Sent;

/// Messages of a database that are carried at a time.
const UNDER_WAY_MAX: usize = 64;

/// What the writer knows of streams that have messages. As many as there are such streams.
#[derive(Default)]
pub(super) struct Outboxes {
    pub streams: FxHashMap<u64, Sending>,
    due: BTreeSet<(Instant, u64)>,
    pub under_way: usize,
}

/// A stream that has messages.
pub(super) struct Sending {
    /// None: one is under way.
    pub due: Option<Instant>,
    /// The message that was sent last, with its number.
    pub sent: Option<(u64, Arc<Sent>)>,
    /// When an attempt has ended last of which it is not known whether its request may still arrive.
    pub unknown_at: Instant,
}

impl Sending {
    /// Whether this is the message that was sent last. A row that came again under its key is another one.
    pub fn is_known(&self, message: &OutboundMessage) -> bool {
        let sent = self.sent.as_ref();
        sent.is_some_and(|(seq, sent)| (*seq, sent.id) == (message.seq, message.id))
    }
}

impl Outboxes {
    /// Something is to be sent, or to be looked at.
    pub fn wake(&mut self, stream: u64, now: Instant, at: Instant) {
        let sending = self.streams.entry(stream).or_insert(Sending {
            due: Some(at),
            sent: None,
            // What was sent before it was known here.
            unknown_at: now,
        });
        if let Some(due) = &mut sending.due {
            self.due.remove(&(*due, stream));
            *due = at;
            self.due.insert((at, stream));
        }
    }

    /// The program has changed: what is sent again is as it says now.
    pub fn forget_sent(&mut self) {
        let streams = self.streams.values_mut();
        streams.for_each(|sending| sending.sent = None);
    }

    pub fn pop_due(&mut self, now: Instant) -> Option<u64> {
        let &(at, stream) = self.due.first()?;
        if at > now || self.under_way >= UNDER_WAY_MAX {
            return None;
        }
        self.due.pop_first();
        Some(stream)
    }

    /// An attempt with a stream has ended, which is tried again at this time.
    pub fn end(&mut self, stream: u64, at: Instant) {
        self.under_way -= 1;
        if let Some(sending) = self.streams.get_mut(&stream) {
            sending.due = Some(at);
            self.due.insert((at, stream));
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        // The end of an attempt wakes the writer too.
        let first = self.due.first().filter(|_| self.under_way < UNDER_WAY_MAX);
        first.map(|(at, _)| *at)
    }
}
