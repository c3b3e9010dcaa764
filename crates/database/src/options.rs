//! What a database is opened with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use lightcone_host::{ConsoleSink, HostConfig, HostLimits, ModuleEngine};
use lightcone_storage::{DiskReserve, Storage};
use lightcone_types::Identity;

use crate::budget::MemoryBudget;
use crate::environment::Environment;
use crate::loads::Loads;
use crate::reads::ReadPool;

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

/// Bounds of one database. Each names its policy when it is reached.
#[derive(Clone, Debug)]
pub struct Limits {
    pub host: HostLimits,
    /// WebSocket messages received and not yet executed, over all connections. At the limit, connections are read no
    /// further until the writer has caught up.
    pub inbox_messages_max: usize,
    /// The same in bytes.
    pub inbox_bytes_max: usize,
    /// Messages queued for one client. One more ends its connection without a Close frame (05 §3.7).
    pub outgoing_messages_max: usize,
    /// Bytes that one client has asked for and not yet taken, with what its registered queries take. An answer that does not
    /// fit is refused; updates beyond it end the connection. At most [`CLIENT_BYTES_CEILING`].
    pub client_bytes_max: usize,
    /// Live query sets of one connection. One more is refused.
    pub query_sets_max: usize,
    /// Queries in one `Subscribe`. One more fails the request.
    pub queries_per_set_max: usize,
    /// Queries in all live query sets of one connection. The request that exceeds it fails.
    pub queries_per_connection_max: usize,
    /// Steps, of a few nanoseconds each, that checking one changed row against the queries of one connection may take, if the
    /// row concerns them all. The `Subscribe` that exceeds it fails.
    pub query_steps_per_connection_max: usize,
    /// The same of the different queries of all connections over one table, where these need no value in a column that is
    /// looked up, or the same value.
    pub query_steps_per_table_max: usize,
    /// Queries that one client has under way, until it has taken their answers. It is read no further at the limit.
    pub reads_per_client_max: usize,
    /// Queries that all clients of a database have under way, until there is an answer. Clients take turns.
    pub reads_per_database_max: usize,
    /// Time that finding and writing the rows of one query, or set, may take. Longer ones fail.
    pub read_time_max: Duration,
    /// Bytes of old and new rows that one transaction may touch; beyond it the call traps.
    pub transaction_bytes_max: usize,
    /// Log bytes waiting for the disk. At the limit the writer waits.
    pub log_queue_bytes_max: usize,
    /// A segment of the log that has reached this size is followed by a new one.
    pub log_segment_bytes: u64,
    /// Fill segments with zeros ahead of the writes, which makes syncs faster.
    pub log_preallocate: bool,
    /// A snapshot is written after so many bytes of log.
    pub snapshot_log_bytes: u64,
    /// Snapshots kept; older ones and the log before the oldest go.
    pub snapshots_kept: usize,
    /// Bytes of all files of the module's log; the oldest go.
    pub module_log_bytes_max: u64,
    /// What a module may log on average. What is more is left out and counted.
    pub module_log_bytes_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            host: HostLimits::default(),
            inbox_messages_max: 16_384,
            inbox_bytes_max: 256 << 20,
            outgoing_messages_max: 16_384,
            client_bytes_max: 256 << 20,
            query_sets_max: 4096,
            queries_per_set_max: 4096,
            queries_per_connection_max: 16_384,
            query_steps_per_connection_max: 32_768,
            query_steps_per_table_max: 524_288,
            reads_per_client_max: 8,
            reads_per_database_max: 64,
            read_time_max: Duration::from_secs(30),
            transaction_bytes_max: 1 << 30,
            log_queue_bytes_max: 64 << 20,
            log_segment_bytes: 64 << 20,
            log_preallocate: true,
            snapshot_log_bytes: 256 << 20,
            snapshots_kept: 2,
            module_log_bytes_max: 64 << 20,
            module_log_bytes_per_second: 1 << 20,
        }
    }
}

/// No message to a client is larger: lengths in messages have 32 bits.
pub const CLIENT_BYTES_CEILING: usize = 2 << 30;

/// What all databases of a server have together.
pub struct Commons {
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) reads: Arc<ReadPool>,
    pub(crate) environment: Arc<dyn Environment>,
    databases: AtomicU64,
}

impl Commons {
    /// `clients_bytes_max`: what all clients together have asked for and not yet taken. `read_threads`: how many scans run
    /// at a time.
    pub fn new(
        environment: Arc<dyn Environment>,
        clients_bytes_max: usize,
        read_threads: usize,
    ) -> Arc<Commons> {
        Arc::new(Commons {
            memory: MemoryBudget::new(environment.clone(), clients_bytes_max),
            reads: ReadPool::new(environment.clone(), read_threads),
            environment,
            databases: AtomicU64::new(0),
        })
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
    pub(crate) fn host_config(&self, console: Arc<dyn ConsoleSink>) -> HostConfig {
        HostConfig {
            database_identity: self.identity,
            console,
            limits: self.limits.host.clone(),
        }
    }
}
