//! What every request handler shares.

use std::sync::Arc;

use lightcone_types::Identity;

use crate::auth::Authority;
use crate::budget::ByteBudget;
use crate::config::Config;
use crate::control::{ControlDb, ControlError, DatabaseRecord};
use crate::databases::Databases;
use crate::descriptors::Descriptors;
use crate::http::body::Buffered;
use crate::http::Failure;
use crate::metrics::ServerCounters;
use crate::names::NameOrIdentity;

pub(crate) struct ServerState {
    pub authority: Authority,
    pub control: Arc<ControlDb>,
    pub databases: Databases,
    pub config: Config,
    /// From the environment; see 06 §3.7.
    pub issuer_required_to_publish: Option<String>,
    pub counters: ServerCounters,
    pub descriptors: Descriptors,
    pub buffered_bytes: Arc<ByteBudget>,
    /// Modules are compiled by so many requests at once as there are CPUs.
    pub compiling: tokio::sync::Semaphore,
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
                .resolve(name.as_str())?
                .ok_or_else(|| Failure::unresolved(path)),
        }
    }

    /// The record of an existing database.
    pub(crate) fn record(&self, path: &NameOrIdentity) -> Result<DatabaseRecord, Failure> {
        let identity = self.resolve(path)?;
        self.control
            .database(&identity)?
            .ok_or_else(Failure::no_such_database)
    }

    /// The record of an existing database and the request's body. Without a limit, that of modules applies.
    pub(crate) async fn record_and_body(
        &self,
        path: &NameOrIdentity,
        body: axum::body::Body,
        bytes_max: Option<usize>,
    ) -> Result<(DatabaseRecord, Buffered), Failure> {
        let limits = &self.config.limits;
        let record = self.record(path)?;
        let body = crate::http::body::read(
            body,
            bytes_max.unwrap_or(limits.program_bytes_max),
            limits.body_timeout,
            &self.buffered_bytes,
        );
        Ok((record, body.await?))
    }

    /// The body of a request that uploads a module.
    pub(crate) async fn read_program(&self, body: axum::body::Body) -> Result<Arc<[u8]>, Failure> {
        let limits = &self.config.limits;
        let program = crate::http::body::read(
            body,
            limits.program_bytes_max,
            limits.body_timeout,
            &self.buffered_bytes,
        );
        let program = program.await?;
        Ok(Arc::from(&program[..]))
    }

    /// Waits for the turn to compile a module.
    pub(crate) async fn compile_permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // Never closed, so there always is one.
        self.compiling.acquire().await.ok()
    }

    /// Runs a change of the control database, which waits for the disk, outside the async threads.
    pub(crate) async fn control<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ControlDb) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, Failure> {
        let control = self.control.clone();
        match tokio::task::spawn_blocking(move || change(&control)).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Failure::internal(
                "the control database stopped; see the server's log [LC0106]",
            )),
        }
    }
}
