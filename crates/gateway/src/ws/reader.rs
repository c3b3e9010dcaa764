//! What comes from a client: every message that is in the receive buffer goes to the database before the socket is waited for
//! again.

use std::sync::atomic::Ordering::Relaxed;

use axum::body::Bytes;
use lightcone_database::{RequestSender, SubmitError};
use lightcone_node::metrics::{DatabaseCounters, SizesSeen};
use lightcone_wire::Protocol;
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::OwnedReadHalf;

use super::frame::{ClosePayload, Event, FrameReader};
use super::signals::{ConnectionEnd, Signals};
use crate::budget::Charge;

/// Reads start with a buffer of this size and grow it while it is filled.
const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Reader<'a> {
    pub frames: FrameReader,
    pub charge: Charge,
    pub stream: OwnedReadHalf,
    pub sender: RequestSender,
    pub signals: &'a Signals,
    pub counters: &'a DatabaseCounters,
    pub protocol: Protocol,
}

/// How far a reader has come.
struct Progress {
    /// What comes now is not handled any more.
    is_closing: bool,
    /// Which message comes next; the first is 1.
    message_number: u64,
    received_bytes: u64,
    /// How much room the next read gets.
    read_bytes: usize,
}

impl Reader<'_> {
    pub async fn run(mut self) -> ConnectionEnd {
        let mut progress = Progress {
            is_closing: false,
            message_number: 1,
            received_bytes: 0,
            read_bytes: READ_BYTES_MIN,
        };
        loop {
            if let Some(end) = self.handle_events(&mut progress).await {
                return end;
            }
            self.account(&mut progress);
            if let Some(end) = self.receive(&mut progress).await {
                return end;
            }
        }
    }

    /// Handles all that is in the receive buffer.
    async fn handle_events(&mut self, progress: &mut Progress) -> Option<ConnectionEnd> {
        let (mut messages, mut sizes) = (0, SizesSeen::default());
        loop {
            match self.frames.next_event() {
                Ok(Some(Event::Binary(payload))) if !progress.is_closing => {
                    messages += 1;
                    sizes.note(payload.len() as u64);
                    progress.is_closing = !self.submit(payload).await;
                }
                Ok(Some(Event::Text)) if !progress.is_closing => {
                    let version = self.protocol.name();
                    let reason = format!("{version} websocket does not support text messages");
                    self.signals.close(ClosePayload::Reason(1011, reason));
                    progress.is_closing = true;
                }
                Ok(Some(Event::Binary(_) | Event::Text)) => {}
                Ok(Some(Event::Ping(payload))) => {
                    self.signals.control(|control| control.pong = Some(payload))
                }
                Ok(Some(Event::Pong)) => self.signals.ping_pending.store(false, Relaxed),
                Ok(Some(Event::Close(payload))) => {
                    self.signals.closed_by_client.store(true, Relaxed);
                    self.sender.leave();
                    if progress.is_closing {
                        return Some(ConnectionEnd::CloseReceived);
                    }
                    // The writer finishes its message, echoes the Close and ends the connection.
                    self.signals.close(ClosePayload::Echo(payload));
                    return std::future::pending().await;
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "client breaks the WebSocket protocol");
                    return Some(ConnectionEnd::Gone);
                }
            }
        }
        if messages > 0 {
            sizes.tell(&self.counters.requests);
        }
        progress.message_number += messages;
        None
    }

    /// Tells the clock how far the client has come, and counts what it has sent of a message.
    fn account(&mut self, progress: &mut Progress) {
        let pending_bytes = self.frames.pending_bytes();
        let unfinished = match pending_bytes {
            0 => 0,
            _ => progress.message_number,
        };
        self.signals.unfinished.store(unfinished, Relaxed);
        let received_bytes = progress.received_bytes;
        self.signals.received_bytes.store(received_bytes, Relaxed);
        if !self.charge.hold(pending_bytes) && !progress.is_closing {
            let reason = ClosePayload::Reason(1013, "too many requests".into());
            self.signals.close(reason);
            progress.is_closing = true;
        }
    }

    /// Reads what the socket has, and waits for it.
    async fn receive(&mut self, progress: &mut Progress) -> Option<ConnectionEnd> {
        let buffer = self.frames.buffer();
        if buffer.capacity() - buffer.len() < progress.read_bytes / 2 {
            buffer.reserve(progress.read_bytes);
        }
        let room = buffer.capacity() - buffer.len();
        let count = match self.stream.read_buf(buffer).await {
            Ok(0) | Err(_) => return Some(ConnectionEnd::Gone),
            Ok(count) => count,
        };
        self.signals.active.store(true, Relaxed);
        progress.received_bytes += count as u64;
        if count == room {
            progress.read_bytes = (progress.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < READ_BYTES_MIN {
            progress.read_bytes = READ_BYTES_MIN;
        }
        None
    }

    /// False when the connection is to be closed.
    async fn submit(&self, payload: Bytes) -> bool {
        self.signals.submitting.store(true, Relaxed);
        let submitted = self.sender.submit(payload).await;
        self.signals.submitting.store(false, Relaxed);
        match submitted {
            Ok(()) => true,
            Err(SubmitError::Malformed(reason)) => {
                self.sender.leave();
                self.signals.close(ClosePayload::Reason(1011, reason));
                false
            }
            // The outgoing queue says how the connection ends.
            Err(SubmitError::Closed) => false,
        }
    }
}
