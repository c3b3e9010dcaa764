//! A database that runs: what the server has of it, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use lightcone_database::{DatabaseHandle, ShutdownReason};
use lightcone_types::Identity;

use crate::metrics::{DatabaseCounters, Looks};

/// How long an ending database may take before its clients are left alone (06 §5.7).
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A running database and what the server counts about it.
#[derive(Clone)]
pub struct Running {
    pub handle: DatabaseHandle,
    pub counters: Arc<DatabaseCounters>,
    /// Whether the metrics show it by itself, for as long as it runs. Of the others they show the sum.
    pub has_series: bool,
    pub looks: Looks,
}

/// A database that was started and is not yet among the running ones. It ends when this is dropped, as nothing else
/// holds its handle, and it holds its log.
pub struct Started {
    pub identity: Identity,
    handle: Option<DatabaseHandle>,
}

impl Started {
    pub fn new(identity: Identity, handle: DatabaseHandle) -> Started {
        Started {
            identity,
            handle: Some(handle),
        }
    }

    pub fn into_handle(mut self) -> DatabaseHandle {
        self.handle.take().expect("it is taken once")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let (Some(handle), identity) = (self.handle.take(), self.identity) else {
            return;
        };
        // None while the whole process ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { end(&identity, handle, ShutdownReason::ServerStop).await });
        }
    }
}

/// Ends a database, and waits for it for a while.
pub async fn end(identity: &Identity, handle: DatabaseHandle, reason: ShutdownReason) {
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, handle.shutdown(reason))
        .await
        .is_err()
    {
        tracing::error!(database = %identity, "a database did not end in time");
    }
}
