//! The place of a TCP connection among all that the server may have.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use tokio::sync::watch;

use super::address_counts;
use super::threads::{Place, Stage};
use crate::node::Node;

/// Counts a TCP connection from its acceptance to its end, upgraded or not.
#[derive(Clone)]
pub struct ConnectionSlot {
    pub counted: Arc<(Counted, address_counts::Counted)>,
    /// On a network thread.
    pub place: Arc<Place>,
    /// How far the server is with its end.
    pub stopping: watch::Receiver<Stage>,
}

/// Counts an open connection of the node until it is dropped.
pub struct Counted(pub Arc<Node>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counters.connections_open.fetch_sub(1, Relaxed);
    }
}

impl ConnectionSlot {
    /// Completes when the server wants every connection to be gone.
    pub async fn stopped(&mut self) {
        let stopped = |stage: &Stage| *stage == Stage::Stopped;
        let _ = self.stopping.wait_for(stopped).await;
    }
}
