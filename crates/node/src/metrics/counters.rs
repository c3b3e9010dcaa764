//! What the server counts itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use super::sizes::Sizes;
use crate::network::Polls;

macro_rules! database_counters {
    ($($name:ident),*) => {
        /// What the server counts about one database.
        #[derive(Default)]
        pub struct DatabaseCounters {
            $(pub $name: AtomicU64,)*
            /// Messages that came.
            pub requests: Sizes,
            /// What was sent at once may have several messages.
            pub sent_sizes: Sizes,
        }

        impl DatabaseCounters {
            pub fn add(&self, other: &DatabaseCounters) {
                $(add(&self.$name, other.$name.load(Relaxed));)*
                self.requests.add(&other.requests);
                self.sent_sizes.add(&other.sent_sizes);
            }
        }
    };
}

database_counters! {
    clients_connected, clients_spawned, clients_aborted, clients_closed, clients_idle_timed_out, clients_rejected,
    disconnects_client_close, disconnects_server_close, disconnects_error,
    sent_bytes, sent_messages, http_response_bytes
}

/// What the server counts about itself.
#[derive(Default)]
pub struct ServerCounters {
    pub connections_open: AtomicU64,
    pub connections_accepted: AtomicU64,
    pub connections_refused: AtomicU64,
    pub polls: Arc<Polls>,
}

pub fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Relaxed);
}

/// Counts up while it lives.
pub struct Gauge<'a>(&'a AtomicU64);

impl<'a> Gauge<'a> {
    pub fn enter(counter: &'a AtomicU64) -> Gauge<'a> {
        counter.fetch_add(1, Relaxed);
        Gauge(counter)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
