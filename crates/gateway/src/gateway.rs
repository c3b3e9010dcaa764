//! What every request handler shares.

use std::future::Future;
use std::sync::Arc;

use axum::http::StatusCode;
use lightcone_accounts::{Account, Kind, Terms};
use lightcone_node::metrics::Scrapes;
use lightcone_node::Node;
use tokio::sync::Semaphore;

use crate::publishing::{Publisher, Publishing, Turn, WaitingMax};
use crate::reply::Failure;

/// Large answers (logs, plans, lists of tables) that are made at a time: until an answer is made, its memory is on no client's account.
const LARGE_ANSWERS_MADE_MAX: usize = 2;
/// Databases that are brought back at a time: each takes the memory of a whole database.
const RESTORES_MAX: usize = 2;
/// When what a full disk refused may be tried again.
const DISK_RETRY_SECONDS: u64 = 60;
/// When a refused publish may be tried again.
const PUBLISH_RETRY_SECONDS: u64 = 10;

/// A node, and what is for those who come over HTTP alone.
pub struct Gateway {
    pub(crate) node: Arc<Node>,
    /// Whose turn it is to read the metrics.
    pub(crate) scrapes: Arc<Scrapes>,
    pub(crate) buffered_bytes: Arc<Account>,
    /// Apart from the others: modules are large, and wait.
    pub(crate) upload_bytes: Arc<Account>,
    /// Turns to make a large answer.
    pub(crate) making: Arc<Semaphore>,
    /// Whose turn it is to publish.
    pub(crate) publishing: Arc<Publishing>,
    /// The same for migrations that are tried on copies of the data, which no publish waits for.
    pub(crate) rehearsing: Arc<Publishing>,
    /// Turns to bring back a backup.
    pub(crate) restoring: Arc<Semaphore>,
}

impl Gateway {
    pub fn new(node: Arc<Node>) -> Arc<Gateway> {
        let limits = &node.config.limits;
        let account = |kind, bytes_max| node.process.open(kind, Terms::exact(bytes_max));
        let waiting_max = WaitingMax {
            all: limits.publishes_waiting_max,
            per_owner: limits.publishes_waiting_per_owner_max,
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Gateway {
            scrapes: Arc::default(),
            buffered_bytes: account(Kind::Requests, limits.buffered_bytes_max),
            upload_bytes: account(Kind::Uploads, limits.upload_bytes_max),
            making: Arc::new(Semaphore::new(LARGE_ANSWERS_MADE_MAX)),
            publishing: Publishing::new(processors, waiting_max),
            rehearsing: Publishing::few(waiting_max),
            restoring: Arc::new(Semaphore::new(RESTORES_MAX)),
            node,
        })
    }

    /// Refuses what can wait while the disk has only its reserve left.
    pub(crate) fn check_disk(&self, bytes: u64) -> Result<(), Failure> {
        if self.node.databases.disk().has_room_for(bytes) {
            return Ok(());
        }
        let text = "the disk is nearly full, and what is left is kept for running databases; free some space and try again [LC0125]";
        Err(Failure::busy_for(DISK_RETRY_SECONDS, text))
    }

    /// What becomes of a request's work within `limits.request-timeout`; `late` is the answer otherwise.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T>,
        late: &'static str,
    ) -> Result<T, Failure> {
        let done = tokio::time::timeout(self.node.config.limits.request_timeout, work).await;
        done.map_err(|_| Failure::text(StatusCode::GATEWAY_TIMEOUT, late))
    }

    /// Waits for the turn to load a module that writes about so many bytes.
    pub(crate) async fn publish_turn(
        &self,
        publisher: Publisher,
        bytes: u64,
    ) -> Result<Turn, Failure> {
        let busy = |text: String| Failure::busy_for(PUBLISH_RETRY_SECONDS, text);
        let check = || {
            let loads = self.node.databases.loads().check(&publisher.owner);
            loads.map_err(|error| busy(error.to_string()))?;
            self.check_disk(bytes)
        };
        check()?;
        let turn = self.publishing.turn(publisher).await;
        let turn = turn.map_err(|full| busy(full.to_string()))?;
        // Others may have been given up, and may have filled the disk, while this one waited.
        check()?;
        Ok(turn)
    }

    /// The right to try a migration on a copy of the data: one of an owner at a time, and few of all.
    pub(crate) async fn rehearsal_turn(&self, publisher: Publisher) -> Result<Turn, Failure> {
        let turn = self.rehearsing.turn(publisher).await;
        turn.map_err(|full| Failure::busy_for(PUBLISH_RETRY_SECONDS, full.to_string()))
    }
}

/// A node that does not listen.
#[cfg(test)]
pub(crate) fn node_for_tests(directory: &std::path::Path) -> Node {
    let engines = crate::fake_engine::engines();
    let mut options = lightcone_node::NodeOptions::new(directory.join("data"), engines);
    options.jwt_key_dir = Some(directory.join("keys"));
    options.config = Some(lightcone_node::config::Config::default());
    Node::open(options).expect("a node")
}
