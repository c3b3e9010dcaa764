//! What every request handler shares.

use std::future::Future;
use std::sync::Arc;

use axum::http::StatusCode;
use lightcone_accounts::Account;
use lightcone_outbound::OwnPorts;
use lightcone_types::Identity;
use tokio::sync::Semaphore;

use crate::auth::Authority;
use crate::config::Config;
use crate::control::{ControlDb, ControlError, DatabaseRecord};
use crate::databases::Databases;
use crate::descriptors::Descriptors;
use crate::metrics::{Scrapes, ServerCounters};
use crate::names::NameOrIdentity;
use crate::postgres::shared::PostgresShared;
use crate::publishing::{Publisher, Publishing, Turn};
use crate::reply::Failure;
use crate::traces::Traces;

/// Large answers (logs, plans, lists of tables) that are made at a time: until an answer is made, its memory is on no client's account.
pub(crate) const LARGE_ANSWERS_MADE_MAX: usize = 2;
/// When what a full disk refused may be tried again.
const DISK_RETRY_SECONDS: u64 = 60;
/// When a refused publish may be tried again.
const PUBLISH_RETRY_SECONDS: u64 = 10;

pub(crate) struct ServerState {
    pub authority: Authority,
    pub control: Arc<ControlDb>,
    pub databases: Arc<Databases>,
    pub config: Config,
    /// From the environment; see 06 §3.7.
    pub issuer_required_to_publish: Option<String>,
    pub counters: ServerCounters,
    /// None unless traces are sent.
    pub traces: Option<Arc<Traces>>,
    /// Whose turn it is to read the metrics.
    pub scrapes: Arc<Scrapes>,
    pub descriptors: Descriptors,
    /// Where this server listens.
    pub own_ports: OwnPorts,
    pub buffered_bytes: Arc<Account>,
    /// Apart from the others: modules are large, and wait.
    pub upload_bytes: Arc<Account>,
    /// Turns to make a large answer.
    pub making: Arc<Semaphore>,
    /// Whose turn it is to publish.
    pub publishing: Arc<Publishing>,
    /// The same for migrations that are tried on copies of the data, which no publish waits for.
    pub rehearsing: Arc<Publishing>,
    pub postgres: PostgresShared,
    /// The last field, so that it goes when all files are closed.
    pub open: Arc<()>,
}

impl ServerState {
    /// The identity that a path leads to, whether or not there is a database (06 §4.3).
    pub(crate) fn resolve(&self, path: &NameOrIdentity) -> Result<Identity, Failure> {
        match path {
            NameOrIdentity::Identity(identity) => Ok(*identity),
            NameOrIdentity::Name(name) => self
                .control
                .resolve(name.as_str())
                .ok_or_else(|| Failure::unresolved(path)),
        }
    }

    /// The record of an existing database.
    pub(crate) fn record(&self, path: &NameOrIdentity) -> Result<DatabaseRecord, Failure> {
        let identity = self.resolve(path)?;
        self.control
            .database(&identity)
            .ok_or_else(Failure::no_such_database)
    }

    /// Refuses what can wait while the disk has only its reserve left.
    pub(crate) fn check_disk(&self, bytes: u64) -> Result<(), Failure> {
        if self.databases.disk().has_room_for(bytes) {
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
        let done = tokio::time::timeout(self.config.limits.request_timeout, work).await;
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
            let loads = self.databases.loads().check(&publisher.owner);
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

    /// What publishing a program may write: the program to the log, and beside it in memory mode, and a new segment.
    pub(crate) fn publish_bytes(&self, program: &[u8]) -> u64 {
        let segment_bytes = self.databases.new_segment_bytes();
        (program.len() as u64 * 2).saturating_add(segment_bytes)
    }

    /// Runs a change of the control database, which waits for the disk, outside the async threads.
    pub(crate) async fn control<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ControlDb) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, Failure> {
        Ok(self.change_control(change).await?)
    }

    /// The same, for a caller who has something to undo.
    pub(crate) async fn change_control<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ControlDb) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, ControlError> {
        let control = self.control.clone();
        let changed = tokio::task::spawn_blocking(move || change(&control)).await;
        changed.unwrap_or(Err(ControlError::Stopped))
    }
}
