//! Looks after databases that no client uses: opens those with scheduled calls, and those whose log failed for a reason
//! that has passed.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use lightcone_control::DatabaseRecord;
use lightcone_types::Identity;

use crate::databases::Running;
use crate::node::Node;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Databases that are opened at once after the start. Requests open others beside them.
const OPENING_MAX: usize = 2;
/// The longest pause between two attempts with one database; they begin with [`LOOK_EVERY`] and double.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// When a database is looked at again.
struct Attempt {
    next: Instant,
    pause: Duration,
}

/// Runs until `stopped` ends.
pub async fn keep_open(node: Arc<Node>, stopped: impl Future<Output = ()>) {
    let work = async {
        let mut attempts = Attempts::default();
        open_scheduled(&node, &mut attempts).await;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            look(&node, &mut attempts).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped => {}
    }
}

#[derive(Default)]
struct Attempts(HashMap<Identity, Attempt>);

impl Attempts {
    fn is_due(&self, identity: &Identity) -> bool {
        self.0
            .get(identity)
            .is_none_or(|attempt| attempt.next <= Instant::now())
    }

    fn count(&mut self, identity: Identity) {
        let attempt = self.0.entry(identity).or_insert(Attempt {
            next: Instant::now(),
            pause: LOOK_EVERY / 2,
        });
        attempt.pause = (attempt.pause * 2).min(PAUSE_MAX);
        attempt.next = Instant::now() + attempt.pause;
    }
}

/// Opens the databases that may have scheduled calls, a few at a time.
async fn open_scheduled(node: &Arc<Node>, attempts: &mut Attempts) {
    let asked = node.clone();
    let found = tokio::task::spawn_blocking(move || asked.databases.scheduled()).await;
    let records = found.unwrap_or_default();
    if records.is_empty() {
        return;
    }
    tracing::info!(
        count = records.len(),
        "opening the databases that may have scheduled calls"
    );
    // Dropping a handle of a task does not end it: an opening that has begun is finished, also when the server stops.
    let openings = stream::iter(records).map(|record| {
        let identity = record.identity;
        let opening = tokio::spawn(open(node.clone(), record));
        async move { (identity, opening.await) }
    });
    let mut openings = openings.buffer_unordered(OPENING_MAX);
    while let Some((identity, opened)) = openings.next().await {
        // One that did not open is looked at again later.
        if matches!(opened, Ok(false)) {
            attempts.count(identity);
        }
    }
}

async fn open(node: Arc<Node>, record: DatabaseRecord) -> bool {
    // Why it does not open is logged there.
    node.databases.get(&record).await.is_ok()
}

async fn look(node: &Arc<Node>, attempts: &mut Attempts) {
    // They take no writes, for a reason that may pass.
    let read_only = |running: &Running| running.handle.may_work_again();
    for identity in node.databases.identities_of(read_only) {
        if attempts.is_due(&identity) {
            attempts.count(identity);
            let node = node.clone();
            let _ = tokio::spawn(async move { node.databases.reopen(&identity).await }).await;
        }
    }
    // Those that ended by themselves because of a bug, or did not open, and have calls planned.
    let failed = |running: &Running| !running.handle.is_running();
    let mut ended = node.databases.identities_of(failed);
    let closed = |identity: &&Identity| node.databases.running(identity).is_none();
    ended.extend(attempts.0.keys().filter(closed));
    ended.sort();
    ended.dedup();
    for identity in ended {
        if !attempts.is_due(&identity) {
            continue;
        }
        let record = node.control.database(&identity);
        let Some(record) = record.filter(|record| node.databases.may_be_scheduled(record)) else {
            attempts.0.remove(&identity);
            continue;
        };
        attempts.count(identity);
        let _ = tokio::spawn(open(node.clone(), record)).await;
    }
    // Those that have been well for so long that the next failure is a new one are forgotten.
    let now = Instant::now();
    let attempts = &mut attempts.0;
    attempts.retain(|_, attempt| now < attempt.next + PAUSE_MAX);
}
