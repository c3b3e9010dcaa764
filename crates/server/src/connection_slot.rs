//! The place of a TCP connection among all that the server may have.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use tokio::sync::watch;

use crate::address_counts;
use crate::network::{Place, Stage};
use crate::state::ServerState;

/// Counts a TCP connection from its acceptance to its end, upgraded or not.
#[derive(Clone)]
pub(crate) struct ConnectionSlot {
    pub _counted: Arc<(Counted, address_counts::Counted)>,
    /// On a network thread.
    pub place: Arc<Place>,
    /// How far the server is with its end.
    pub stopping: watch::Receiver<Stage>,
}

/// Counts an open connection of the server until it is dropped.
pub(crate) struct Counted(pub Arc<ServerState>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counters.connections_open.fetch_sub(1, Relaxed);
    }
}

impl ConnectionSlot {
    /// Completes when the server wants every connection to be gone.
    pub(crate) async fn stopped(&mut self) {
        let _ = self
            .stopping
            .wait_for(|stage| *stage == Stage::Stopped)
            .await;
    }
}
