//! Fills the history.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::exposition::{each_as_json, server_as_text};
use crate::node::Node;

const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Looks every minute until `stopped` ends.
pub async fn keep_history(node: Arc<Node>, stopped: impl Future<Output = ()>) {
    let work = async {
        loop {
            let looked = node.clone();
            // A panic in it costs one look.
            let _ = tokio::task::spawn_blocking(move || look(&looked)).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped => {}
    }
}

fn look(node: &Node) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_ms = now.unwrap_or_default().as_millis() as u64;
    let server = json!(server_as_text(node));
    node.history.add(at_ms, &server, each_as_json(node));
}
