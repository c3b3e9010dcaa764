//! What a database is opened with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lightcone_engine::Datastore;
use lightcone_host::{ConsoleSink, HostConfig, ModuleEngine, SharedMemory};
/// Bounds of one database.
pub use lightcone_limits::DatabaseLimits as Limits;
use lightcone_outbound::Outbound;
use lightcone_storage::{DiskReserve, Storage};
use lightcone_types::Identity;
use tokio::sync::Semaphore;

use crate::budget::MemoryBudget;
use crate::environment::Environment;
use crate::loads::Loads;
use crate::procedures::ImmediateQueue;
use crate::reads::ReadPool;
use crate::snapshot::SNAPSHOTS_AT_ONCE_MAX;
use crate::trace::Tracer;

/// Stack of a thread that runs module code, beyond what the code may use, in bytes.
pub(crate) const WRITER_STACK_EXTRA_BYTES: usize = 4 << 20;

/// How a program is interpreted (03 §1). The numbers are those of `st_module.program_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    Wasm = 0,
    Js = 1,
}

impl HostKind {
    pub(crate) fn from_u8(kind: u8) -> HostKind {
        match kind {
            1 => HostKind::Js,
            _ => HostKind::Wasm,
        }
    }
}

/// The engines that run modules.
#[derive(Clone)]
pub struct Engines {
    pub wasm: Arc<dyn ModuleEngine>,
    /// None where this build has no JavaScript engine.
    pub js: Option<Arc<dyn ModuleEngine>>,
}

/// No message to a client is larger: lengths in messages have 32 bits.
pub const CLIENT_BYTES_CEILING: usize = 2 << 30;

/// What all databases of a server have together.
pub struct Commons {
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) reads: Arc<ReadPool>,
    pub(crate) environment: Arc<dyn Environment>,
    /// For requests of procedures; without it they make none.
    pub(crate) outbound: Option<Arc<Outbound>>,
    /// The turns of databases that write snapshots.
    pub(crate) snapshots: Arc<Semaphore>,
    databases: AtomicU64,
    tracer: OnceLock<Arc<dyn Tracer>>,
}

impl Commons {
    /// `clients_bytes_max`: what all clients together have asked for and not yet taken. `read_threads`: how many scans run
    /// at a time.
    pub fn new(
        environment: Arc<dyn Environment>,
        clients_bytes_max: usize,
        read_threads: usize,
    ) -> Arc<Commons> {
        Commons::with_outbound(environment, clients_bytes_max, read_threads, None)
    }

    /// The same with a client for the requests of procedures.
    pub fn with_outbound(
        environment: Arc<dyn Environment>,
        clients_bytes_max: usize,
        read_threads: usize,
        outbound: Option<Arc<Outbound>>,
    ) -> Arc<Commons> {
        Arc::new(Commons {
            outbound,
            memory: MemoryBudget::new(environment.clone(), clients_bytes_max),
            reads: ReadPool::new(environment.clone(), read_threads),
            environment,
            snapshots: Arc::new(Semaphore::new(SNAPSHOTS_AT_ONCE_MAX)),
            databases: AtomicU64::new(0),
            tracer: OnceLock::new(),
        })
    }

    /// Has calls traced from now on. The first one stays.
    pub fn set_tracer(&self, tracer: Arc<dyn Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    pub(crate) fn tracer(&self) -> Option<&Arc<dyn Tracer>> {
        self.tracer.get()
    }

    /// Bytes that clients have asked for and not yet taken.
    pub fn clients_bytes(&self) -> usize {
        self.memory.used()
    }

    /// Tells databases apart.
    pub(crate) fn next_database(&self) -> u64 {
        self.databases.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a database is opened with.
#[derive(Clone)]
pub struct DatabaseOptions {
    /// Holds `log/`, `snapshots/` and `module_logs/`.
    pub directory: PathBuf,
    pub identity: Identity,
    /// Who may publish, read private tables and the log.
    pub owner: Identity,
    /// Nothing but module logs is written to disk.
    pub in_memory: bool,
    pub limits: Limits,
    pub engines: Engines,
    pub commons: Arc<Commons>,
    /// The disk that log and snapshots are on.
    pub storage: Arc<dyn Storage>,
    /// Shared by all databases of a server.
    pub loads: Arc<Loads>,
    /// What module logs and snapshots leave free of the disk.
    pub disk: Arc<DiskReserve>,
}

impl DatabaseOptions {
    /// Gives a datastore its limit and its clock. To do before its first transaction that is not replayed.
    pub(crate) fn configure(&self, datastore: &mut Datastore) {
        datastore.set_transaction_bytes_max(self.limits.transaction_bytes_max);
        let environment = self.commons.environment.clone();
        datastore.set_clock(Arc::new(move || environment.now()));
    }

    pub(crate) fn host_config(&self, console: Arc<dyn ConsoleSink>) -> HostConfig {
        HostConfig::new(self.identity, console, self.limits.host.clone())
    }

    /// The same for instances of a running database.
    pub(crate) fn live_config(
        &self,
        console: Arc<dyn ConsoleSink>,
        immediate: Arc<ImmediateQueue>,
        memory: Arc<SharedMemory>,
    ) -> HostConfig {
        HostConfig {
            immediate: Some(immediate),
            counted_memory: Some(memory),
            ..self.host_config(console)
        }
    }
}
