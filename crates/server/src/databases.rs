//! The databases that are running in this process: opened at their first use, each in its replica directory.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use lightcone_types::Identity;
use tokio::sync::{Mutex, MutexGuard};

use crate::control::{DatabaseRecord, HostType};
use crate::data_dir::DataDir;
use crate::database::{DatabaseHandle, DatabaseOptions, Engines, HostKind, Limits, ShutdownReason};
use crate::metrics::DatabaseCounters;

/// A database that would not open is not tried again sooner.
const RETRY_AFTER: Duration = Duration::from_secs(3);
/// How long an ending database may take before its clients are left alone (06 §5.7).
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
const LOCKS: usize = 256;

/// A running database and what the server counts about it.
#[derive(Clone)]
pub(crate) struct Running {
    pub handle: DatabaseHandle,
    pub counters: Arc<DatabaseCounters>,
}

pub(crate) struct Databases {
    data_dir: DataDir,
    in_memory: bool,
    engines: Engines,
    limits: Limits,
    running: RwLock<HashMap<Identity, Running>>,
    failed: RwLock<HashMap<Identity, (Instant, String)>>,
    /// Opening, publishing, resetting and deleting one database exclude each other. Databases share a lock by chance.
    locks: Vec<Mutex<()>>,
    hasher: std::collections::hash_map::RandomState,
}

impl HostType {
    pub(crate) fn kind(self) -> HostKind {
        match self {
            HostType::Wasm => HostKind::Wasm,
            HostType::Js => HostKind::Js,
        }
    }
}

impl Databases {
    pub(crate) fn new(
        data_dir: DataDir,
        in_memory: bool,
        engines: Engines,
        limits: Limits,
    ) -> Databases {
        Databases {
            data_dir,
            in_memory,
            engines,
            limits,
            running: RwLock::default(),
            failed: RwLock::default(),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            hasher: std::collections::hash_map::RandomState::new(),
        }
    }

    /// Keeps every other change of this database out.
    pub(crate) async fn lock(&self, identity: &Identity) -> MutexGuard<'_, ()> {
        let index = self.hasher.hash_one(identity) as usize % LOCKS;
        self.locks[index].lock().await
    }

    pub(crate) fn running(&self, identity: &Identity) -> Option<Running> {
        read(&self.running).get(identity).cloned()
    }

    pub(crate) fn all_running(&self) -> Vec<(Identity, Running)> {
        let mut all: Vec<_> = read(&self.running)
            .iter()
            .map(|(id, running)| (*id, running.clone()))
            .collect();
        all.sort_by_key(|(identity, _)| *identity);
        all
    }

    /// The running database of a record, opened if need be. The error is the reason why it cannot run.
    pub(crate) async fn get(&self, record: &DatabaseRecord) -> Result<Running, String> {
        if let Some(running) = self.running(&record.identity) {
            return Ok(running);
        }
        let _lock = self.lock(&record.identity).await;
        self.get_locked(record).await
    }

    /// As [`Databases::get`], for a caller that holds the lock.
    pub(crate) async fn get_locked(&self, record: &DatabaseRecord) -> Result<Running, String> {
        if let Some(running) = self.running(&record.identity) {
            return Ok(running);
        }
        if let Some((at, reason)) = read(&self.failed).get(&record.identity) {
            if at.elapsed() < RETRY_AFTER {
                return Err(reason.clone());
            }
        }
        let options = self.options(record);
        let opened = blocking(move || DatabaseHandle::open(options)).await;
        match opened {
            Ok(handle) => {
                write(&self.failed).remove(&record.identity);
                Ok(self.insert(record.identity, handle))
            }
            Err(reason) => {
                tracing::error!(database = %record.identity, reason, "a database cannot be opened");
                write(&self.failed).insert(record.identity, (Instant::now(), reason.clone()));
                Err(reason)
            }
        }
    }

    /// Creates the data of a new database or replica. It is not yet the running one: see [`Databases::insert`].
    pub(crate) async fn create(
        &self,
        record: &DatabaseRecord,
        program: Arc<[u8]>,
    ) -> Result<DatabaseHandle, String> {
        let options = self.options(record);
        let kind = record.host_type.kind();
        let directory = options.directory.clone();
        let created = blocking(move || DatabaseHandle::create(options, program, kind)).await;
        if created.is_err() {
            remove_directory(directory).await;
        }
        created
    }

    /// Makes a created database the running one.
    pub(crate) fn insert(&self, identity: Identity, handle: DatabaseHandle) -> Running {
        let running = Running {
            handle,
            counters: Arc::default(),
        };
        write(&self.failed).remove(&identity);
        write(&self.running).insert(identity, running.clone());
        running
    }

    /// Ends a database and removes the files of its replica.
    pub(crate) async fn remove(&self, record: &DatabaseRecord) {
        let running = write(&self.running).remove(&record.identity);
        write(&self.failed).remove(&record.identity);
        if let Some(running) = running {
            end(&record.identity, running.handle, ShutdownReason::Deleted).await;
        }
        remove_directory(self.data_dir.replica(record.replica_id)).await;
    }

    /// Ends every database, all at once.
    pub(crate) async fn shutdown(&self) {
        let running = std::mem::take(&mut *write(&self.running));
        let mut ending = tokio::task::JoinSet::new();
        for (identity, running) in running {
            ending.spawn(async move {
                end(&identity, running.handle, ShutdownReason::ServerStop).await
            });
        }
        ending.join_all().await;
    }

    fn options(&self, record: &DatabaseRecord) -> DatabaseOptions {
        DatabaseOptions {
            directory: self.data_dir.replica(record.replica_id),
            identity: record.identity,
            owner: record.owner,
            in_memory: self.in_memory,
            limits: self.limits.clone(),
            engines: self.engines.clone(),
        }
    }
}

async fn end(identity: &Identity, handle: DatabaseHandle, reason: ShutdownReason) {
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, handle.shutdown(reason))
        .await
        .is_err()
    {
        tracing::error!(database = %identity, "a database did not end in time");
    }
}

async fn remove_directory(directory: std::path::PathBuf) {
    let shown = directory.display().to_string();
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(directory)).await;
    match removed {
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(directory = shown, %error, "files of a removed database stay behind");
        }
        _ => {}
    }
}

async fn blocking<T: Send + 'static, E: std::error::Error + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(crate::http::error_chain(&error)),
        Err(_) => Err(
            "the database stopped while it was being opened; see the server's log [LC0120]".into(),
        ),
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
