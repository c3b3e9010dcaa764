//! A database that runs: what the server has of it, and how it ends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use lightcone_database::{DatabaseHandle, ShutdownReason};
use lightcone_types::{Due, Identity};

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
    /// How often it was asked for.
    pub(super) uses: Arc<AtomicU64>,
}

/// What changes when a database is used, or does something by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Tells one opening from the next.
    number: u64,
    uses: u64,
    transactions: u64,
}

impl Running {
    /// None: it is in use, or does not run as it should.
    pub(crate) fn activity(&self) -> Option<Activity> {
        let handle = &self.handle;
        let rests = handle.is_running() && handle.read_only().is_none() && !handle.has_users();
        rests.then(|| Activity {
            number: handle.number(),
            uses: self.uses.load(Relaxed),
            transactions: handle.transactions(),
        })
    }
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

    /// When it is to be opened after a crash.
    pub fn due(&self) -> Due {
        let acts = |handle: &DatabaseHandle| handle.acts_by_itself();
        match self.handle.as_ref().is_some_and(acts) {
            true => Due::Open,
            false => Due::Never,
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

/// Ends a database, and waits for it for a while. Says what it has still to do; None: it may be anything.
pub async fn end(
    identity: &Identity,
    handle: DatabaseHandle,
    reason: ShutdownReason,
) -> Option<Due> {
    let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, handle.shutdown(reason)).await;
    ended.unwrap_or_else(|_| {
        tracing::error!(database = %identity, "a database did not end in time");
        None
    })
}
