//! What the server counts itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use super::sizes::Sizes;
use crate::polls::Polls;

/// What the server counts about one database.
#[derive(Default)]
pub(crate) struct DatabaseCounters {
    pub clients_connected: AtomicU64,
    pub clients_spawned: AtomicU64,
    pub clients_aborted: AtomicU64,
    pub clients_closed: AtomicU64,
    pub clients_idle_timed_out: AtomicU64,
    pub clients_rejected: AtomicU64,
    pub disconnects_client_close: AtomicU64,
    pub disconnects_server_close: AtomicU64,
    pub disconnects_error: AtomicU64,
    /// Messages that came.
    pub requests: Sizes,
    pub sent_bytes: AtomicU64,
    pub sent_messages: AtomicU64,
    /// What was sent at once may have several messages.
    pub sent_sizes: Sizes,
    pub http_response_bytes: AtomicU64,
}

impl DatabaseCounters {
    pub fn add(&self, other: &DatabaseCounters) {
        for (mine, more) in self.all().into_iter().zip(other.all()) {
            add(mine, more.load(Relaxed));
        }
        self.requests.add(&other.requests);
        self.sent_sizes.add(&other.sent_sizes);
    }

    fn all(&self) -> [&AtomicU64; 12] {
        [
            &self.clients_connected,
            &self.clients_spawned,
            &self.clients_aborted,
            &self.clients_closed,
            &self.clients_idle_timed_out,
            &self.clients_rejected,
            &self.disconnects_client_close,
            &self.disconnects_server_close,
            &self.disconnects_error,
            &self.sent_bytes,
            &self.sent_messages,
            &self.http_response_bytes,
        ]
    }
}

/// What the server counts about itself.
#[derive(Default)]
pub(crate) struct ServerCounters {
    pub connections_open: AtomicU64,
    pub connections_accepted: AtomicU64,
    pub connections_refused: AtomicU64,
    pub polls: Arc<Polls>,
}

pub(crate) fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Relaxed);
}

/// Counts up while it lives.
pub(crate) struct Gauge<'a>(&'a AtomicU64);

impl<'a> Gauge<'a> {
    pub(crate) fn enter(counter: &'a AtomicU64) -> Gauge<'a> {
        counter.fetch_add(1, Relaxed);
        Gauge(counter)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
