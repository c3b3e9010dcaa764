//! What reader, writer and clock of a connection tell each other. They run on one task, and couriers only wake the writer, so nothing
//! here is ever contended.

use std::sync::atomic::{AtomicBool, AtomicU64};

use axum::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::frame::ClosePayload;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// A Close was written.
    CloseSent,
    /// The client's Close has come, and ours was sent before.
    CloseReceived,
    /// The client went away or broke the rules of the protocol below messages.
    Gone,
    /// Nothing came from the client for too long, or it took nothing.
    Idle,
    /// The database ended the connection without a Close.
    Dropped,
}

#[derive(Default)]
pub(super) struct Signals {
    control: Mutex<Control>,
    /// There is something for the connection's own part of the writing.
    pub wake_writer: Notify,
    /// Something was received since the clock looked.
    pub active: AtomicBool,
    /// The reader waits for the database, not for the client.
    pub submitting: AtomicBool,
    /// Which message the client has begun and not ended; 0 if none.
    pub unfinished: AtomicU64,
    pub received_bytes: AtomicU64,
    /// A Ping is unanswered.
    pub ping_pending: AtomicBool,
    pub closed_by_client: AtomicBool,
}

/// Frames that the writer is to send between messages.
#[derive(Default)]
pub(super) struct Control {
    /// The last unanswered Ping of the client: only the latest must be answered (RFC 6455 §5.5.3).
    pub pong: Option<Bytes>,
    pub ping: bool,
    pub close: Option<ClosePayload>,
}

impl Signals {
    pub fn control(&self, change: impl FnOnce(&mut Control)) {
        change(&mut self.control.lock());
        self.wake_writer.notify_one();
    }

    pub fn take_control(&self) -> Control {
        std::mem::take(&mut *self.control.lock())
    }

    pub fn close(&self, payload: ClosePayload) {
        // The first reason counts.
        self.control(|control| {
            control.close.get_or_insert(payload);
        });
    }
}
