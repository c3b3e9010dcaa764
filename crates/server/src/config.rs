//! `config.toml` of the data directory (07 §11.3), and the keys that are Lightcone's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lightcone_types::Identity;
use serde::{Deserialize, Deserializer};

use crate::auth::{parse_issuer, NamedBy};
use crate::client_address::TrustedProxies;
use crate::database::CLIENT_BYTES_CEILING;
use crate::error::Error;

/// The file that is written when the data directory has none: every key, commented out at its default.
pub const DEFAULT_CONFIG: &str = include_str!("config.default.toml");

/// Environment variables for what `[publish]` says, so that a container needs no file.
pub const PUBLISH_ALLOWED_VARIABLE: &str = "LIGHTCONE_PUBLISH_ALLOWED";
pub const PUBLISH_OWNERS_VARIABLE: &str = "LIGHTCONE_PUBLISH_OWNERS";

/// Shorter secrets could be guessed.
const METRICS_TOKEN_BYTES_MIN: usize = 16;

/// The parsed `config.toml`. Unknown keys are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Config {
    pub certificate_authority: CertificateAuthority,
    pub module_http: ModuleHttp,
    pub logs: Logs,
    pub wasm: EnginePool,
    pub v8: EnginePool,
    pub v8_heap_policy: V8HeapPolicy,
    pub commitlog: Commitlog,
    pub network: Network,
    pub threads: Threads,
    pub websocket: WebSocket,
    pub limits: Limits,
    pub publish: Publish,
    pub auth: Auth,
    pub metrics: Metrics,
    pub routes: Routes,
}

/// The key pair of tokens: both files or none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CertificateAuthority {
    pub jwt_priv_key_path: Option<PathBuf>,
    pub jwt_pub_key_path: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ModuleHttp {
    pub enabled: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Logs {
    pub level: String,
    pub directives: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct EnginePool {
    /// `None`: the number of CPUs.
    pub procedure_instance_pool_size: Option<std::num::NonZeroUsize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct V8HeapPolicy {
    pub heap_check_request_interval: u64,
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub heap_check_time_interval: Duration,
    pub heap_gc_trigger_fraction: f64,
    pub heap_retire_fraction: f64,
    pub heap_limit_mb: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Commitlog {
    pub log_format_version: u8,
    pub max_segment_size: u64,
    #[serde(alias = "offset-interval-bytes")]
    pub offset_index_interval_bytes: u64,
    #[serde(alias = "offset-index-require-fsync")]
    pub offset_index_require_segment_fsync: bool,
    pub preallocate_segments: bool,
    pub write_buffer_size: u64,
}

/// The threads behind the sockets, and what stands before them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Network {
    /// `None`: half of the processors, at least one.
    pub threads: Option<std::num::NonZeroUsize>,
    /// Whose `x-forwarded-*` headers count.
    pub trusted_proxies: TrustedProxies,
    /// Names by which a server on loopback may be asked, besides `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Origins of pages that may manage the server, like `https://admin.example.com`.
    pub management_origins: Vec<String>,
}

impl Network {
    /// How many threads read and write sockets. The databases' own threads need the other processors: with as many
    /// threads as processors here, every message wakes more threads than it has work for.
    pub fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .map_or_else(|| (processors() / 2).max(1), usize::from)
    }
}

/// All threads of the server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Threads {
    pub scheduling: Scheduling,
}

/// Linux only.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// A thread that is woken begins when the one on its processor has done its work.
    #[default]
    Batch,
    /// A thread that is woken may interrupt the one on its processor.
    Normal,
}

/// Who may read the metrics besides programs on this machine.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Metrics {
    /// An address of their own, where everybody may read them.
    pub listen: Option<std::net::SocketAddr>,
    /// What a reader from elsewhere sends as `Authorization: Bearer`.
    pub token: Option<String>,
}

// Its token must not reach a log.
impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics")
            .field("listen", &self.listen)
            .field("has_token", &self.token.is_some())
            .finish()
    }
}

/// Answers of modules' HTTP handlers.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Routes {
    /// Sent with every answer; empty: none.
    pub content_security_policy: String,
    /// Whether `x-content-type-options: nosniff` is sent.
    pub nosniff: bool,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            content_security_policy: "sandbox allow-scripts allow-forms allow-modals allow-popups \
                                      allow-popups-to-escape-sandbox allow-downloads"
                .into(),
            nosniff: true,
        }
    }
}

/// Keep-alive and queues of a client's connection (05 §3.5).
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct WebSocket {
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub ping_interval: Duration,
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub idle_timeout: Duration,
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub close_handshake_timeout: Duration,
    pub incoming_queue_length: usize,
    pub compression: CompressionChoice,
}

/// Whether messages to clients are compressed. Uncompressed ones are legal whatever a client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionChoice {
    /// Never: the least work and latency.
    #[default]
    Off,
    /// As the client asked, except gzip: a client of the reference loses the order of gzip messages (05 §3.2).
    KeepOrder,
    /// As the client asked.
    AsAsked,
}

impl CompressionChoice {
    pub(crate) fn policy(self) -> lightcone_wire::CompressionPolicy {
        match self {
            CompressionChoice::Off => lightcone_wire::CompressionPolicy::Never,
            CompressionChoice::KeepOrder => lightcone_wire::CompressionPolicy::KeepOrder,
            CompressionChoice::AsAsked => lightcone_wire::CompressionPolicy::AsAsked,
        }
    }
}

/// Bounds on what anyone may use. Every one has a default and can be raised.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Limits {
    /// Longest time one reducer call may run, in milliseconds.
    pub call_ms_max: u64,
    /// Most linear memory of one module instance, in bytes.
    pub memory_bytes_max: u64,
    /// Longest time that loading a module may take, in milliseconds.
    pub load_ms_max: u64,
    /// Stack of one module instance, in bytes.
    pub stack_bytes_max: usize,
    /// Most function table elements of one module instance.
    pub table_elements_max: usize,
    /// Most row iterators that one call may hold open.
    pub iterators_max: usize,
    /// Most bytes of rows in the open iterators of one call.
    pub iterator_bytes_max: usize,
    /// Most byte sources that one call may hold unread.
    pub sources_max: usize,
    /// Most bytes that a module may write into one sink (error texts, its definition).
    pub sink_bytes_max: usize,
    pub procedure_bytes_max: usize,
    /// Most running console timers of one module instance.
    pub console_timers_max: usize,
    /// Longest console message in bytes; longer ones are cut.
    pub console_message_bytes_max: usize,
    /// Most bytes of console messages of one call.
    pub console_call_bytes_max: usize,
    /// Most bytes of old and new rows that one transaction may touch.
    pub transaction_bytes_max: usize,
    /// Bytes of received and unprocessed messages of one database; beyond it, clients are read no further.
    pub inbox_bytes_max: usize,
    /// Most bytes that one client has asked for and not yet taken; beyond it, answers are refused and slow clients cut.
    #[serde(alias = "outgoing-queue-bytes")]
    pub client_bytes_max: usize,
    /// The same of all clients together, in percent of the memory that the server may use.
    pub clients_memory_percent: u8,
    /// Most subscribed query sets of one connection.
    pub query_sets_max: usize,
    /// Most queries of one query set.
    pub queries_per_set_max: usize,
    /// Most queries in all query sets of one connection.
    pub queries_per_connection_max: usize,
    /// Most steps that checking one changed row against the queries of one connection may take.
    pub query_steps_per_connection_max: usize,
    /// The same of the queries of all connections over one table.
    pub query_steps_per_table_max: usize,
    /// Most queries that one client has under way; beyond it, it is read no further.
    pub reads_per_client_max: usize,
    /// Most queries of one database that are under way; beyond it, clients take turns.
    pub reads_per_database_max: usize,
    /// Longest time that finding the rows of one query or query set may take.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub read_time_max: Duration,
    /// Most log bytes that wait for the disk; beyond it, the database waits.
    pub log_queue_bytes_max: usize,
    /// A snapshot is written after so many bytes of log.
    pub snapshot_log_bytes: u64,
    /// Snapshots that are kept; older ones are removed, with the log before them.
    pub snapshots_kept: usize,
    /// Most bytes of one database's module logs; the oldest files go.
    pub module_log_bytes_max: u64,
    /// What one module may log on average; what is more is left out and counted.
    pub module_log_bytes_per_second: u64,
    /// All files of the server's own log; the oldest go.
    pub server_log_bytes_max: u64,
    /// What logs, publishes and snapshots leave free of the disk. `None`: 256 MiB, or an eighth of a disk of less than 2 GiB.
    pub disk_reserve_bytes: Option<u64>,
    /// Largest WebSocket message a client may send, in bytes.
    pub message_bytes_max: usize,
    /// Most open TCP connections; more are answered 503.
    pub connections_max: usize,
    /// Most open TCP connections of one address, other than this machine and trusted proxies; more are answered 503.
    pub connections_per_address_max: usize,
    /// Most messages waiting for one slow client; one more ends its connection.
    pub outgoing_queue_length: usize,
    /// Largest module that may be published, in bytes.
    pub program_bytes_max: usize,
    /// Most bytes that all half-received requests and messages may hold together.
    pub buffered_bytes_max: usize,
    /// Most databases; creating one more is refused.
    pub databases_max: usize,
    /// Most bytes that modules which are received, or wait for their turn to be published, may hold together.
    pub upload_bytes_max: usize,
    /// Most publishes that wait for their turn; more are answered 503.
    pub publishes_waiting_max: usize,
    /// The same of one owner; twice as many of one address.
    pub publishes_waiting_per_owner_max: usize,
    /// Modules that cannot be stopped and still run; while there are so many, publishes are answered 503.
    pub loads_given_up_max: usize,
    /// Time a client has to send the head of a request, and to start the next one on a kept-alive connection.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub header_timeout: Duration,
    /// Longest pause inside a request body, and of a client in taking its answer.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub body_timeout: Duration,
    /// Longest time of a whole request body that comes more slowly than 16 KiB a second.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub body_total_timeout: Duration,
    /// Longest time one `call` or `sql` request waits for its answer.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub request_timeout: Duration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Publish {
    /// `None`: the environment decides, or else [`PublishAllowed::Local`].
    pub allowed: Option<PublishAllowed>,
    /// Who may publish when `allowed` is `"local"` or `"owner-list"`.
    #[serde(deserialize_with = "identities")]
    pub owners: Vec<Identity>,
}

/// Who may publish modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PublishAllowed {
    /// Programs on this machine, the identities of `publish.owners`, and owners their own databases.
    #[default]
    Local,
    Anyone,
    /// The identities of `publish.owners`.
    OwnerList,
    Identities(Vec<Identity>),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Auth {
    pub foreign_issuers: ForeignIssuers,
    /// One of these must be among the audiences of a foreign token; empty: any audience will do.
    pub audiences: Vec<String>,
}

/// Whose tokens are accepted besides the server's own. Checking one means a request to the issuer that the token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignIssuers {
    listed: Vec<String>,
    any: bool,
}

/// As an entry of the list, or in its place.
const ANY_ISSUER: &str = "any";

/// The issuer of SpacetimeAuth (06 §3.7), whose tokens users of the published tools may have.
const SPACETIME_AUTH: &str = "https://auth.spacetimedb.com/oidc";

impl Default for ForeignIssuers {
    fn default() -> Self {
        Self {
            listed: vec![SPACETIME_AUTH.to_owned()],
            any: false,
        }
    }
}

impl Default for ModuleHttp {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            level: "ERROR".into(),
            directives: Vec::new(),
        }
    }
}

impl Default for V8HeapPolicy {
    fn default() -> Self {
        Self {
            heap_check_request_interval: 4096,
            heap_check_time_interval: Duration::from_secs(5),
            heap_gc_trigger_fraction: 0.67,
            heap_retire_fraction: 0.75,
            heap_limit_mb: 0,
        }
    }
}

impl Default for Commitlog {
    fn default() -> Self {
        let database = lightcone_database::Limits::default();
        Self {
            log_format_version: 1,
            max_segment_size: database.log_segment_bytes,
            offset_index_interval_bytes: 4096,
            offset_index_require_segment_fsync: true,
            preallocate_segments: database.log_preallocate,
            write_buffer_size: 128 * 1024,
        }
    }
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            ping_interval: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(30),
            close_handshake_timeout: Duration::from_millis(250),
            incoming_queue_length: 16_384,
            compression: CompressionChoice::Off,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let database = lightcone_database::Limits::default();
        Self {
            load_ms_max: database.host.load_ms_max,
            stack_bytes_max: database.host.stack_bytes_max,
            table_elements_max: database.host.table_elements_max,
            iterators_max: database.host.iterators_max,
            iterator_bytes_max: database.host.iterator_bytes_max,
            sources_max: database.host.sources_max,
            sink_bytes_max: database.host.sink_bytes_max,
            procedure_bytes_max: database.host.procedure_bytes_max,
            console_timers_max: database.host.console_timers_max,
            console_message_bytes_max: database.host.console_message_bytes_max,
            console_call_bytes_max: database.host.console_call_bytes_max,
            transaction_bytes_max: database.transaction_bytes_max,
            inbox_bytes_max: database.inbox_bytes_max,
            client_bytes_max: database.client_bytes_max,
            clients_memory_percent: 25,
            query_sets_max: database.query_sets_max,
            queries_per_set_max: database.queries_per_set_max,
            queries_per_connection_max: database.queries_per_connection_max,
            query_steps_per_connection_max: database.query_steps_per_connection_max,
            query_steps_per_table_max: database.query_steps_per_table_max,
            reads_per_client_max: database.reads_per_client_max,
            reads_per_database_max: database.reads_per_database_max,
            read_time_max: database.read_time_max,
            log_queue_bytes_max: database.log_queue_bytes_max,
            snapshot_log_bytes: database.snapshot_log_bytes,
            snapshots_kept: database.snapshots_kept,
            module_log_bytes_max: database.module_log_bytes_max,
            module_log_bytes_per_second: database.module_log_bytes_per_second,
            server_log_bytes_max: 256 << 20,
            disk_reserve_bytes: None,
            call_ms_max: 10_000,
            memory_bytes_max: 1 << 30,
            message_bytes_max: 32 * 1024 * 1024,
            connections_max: 20_000,
            connections_per_address_max: 1024,
            outgoing_queue_length: 16_384,
            program_bytes_max: 256 * 1024 * 1024,
            buffered_bytes_max: 1 << 30,
            databases_max: 10_000,
            upload_bytes_max: 1 << 30,
            publishes_waiting_max: 128,
            publishes_waiting_per_owner_max: 16,
            loads_given_up_max: lightcone_database::Loads::GIVEN_UP_MAX_DEFAULT,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            body_total_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// Parses the text of a `config.toml`; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
        let wrong = |message: String| Error::Config {
            path: path.into(),
            message,
        };
        let config: Config =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if config.websocket.ping_interval >= config.websocket.idle_timeout {
            return Err(wrong(
                "websocket.ping-interval must be smaller than websocket.idle-timeout".into(),
            ));
        }
        let keys = &config.certificate_authority;
        if keys.jwt_priv_key_path.is_some() != keys.jwt_pub_key_path.is_some() {
            return Err(wrong(
                "certificate-authority needs both jwt-priv-key-path and jwt-pub-key-path".into(),
            ));
        }
        if config.websocket.ping_interval.is_zero() {
            return Err(wrong(
                "websocket.ping-interval must be greater than zero".into(),
            ));
        }
        check_edge(&config).map_err(wrong)?;
        for (name, value) in [
            ("limits.call-ms-max", config.limits.call_ms_max),
            ("limits.load-ms-max", config.limits.load_ms_max),
            (
                "limits.stack-bytes-max",
                config.limits.stack_bytes_max as u64,
            ),
            (
                "limits.table-elements-max",
                config.limits.table_elements_max as u64,
            ),
            ("limits.iterators-max", config.limits.iterators_max as u64),
            (
                "limits.iterator-bytes-max",
                config.limits.iterator_bytes_max as u64,
            ),
            ("limits.sources-max", config.limits.sources_max as u64),
            ("limits.sink-bytes-max", config.limits.sink_bytes_max as u64),
            (
                "limits.procedure-bytes-max",
                config.limits.procedure_bytes_max as u64,
            ),
            (
                "limits.console-timers-max",
                config.limits.console_timers_max as u64,
            ),
            (
                "limits.console-message-bytes-max",
                config.limits.console_message_bytes_max as u64,
            ),
            (
                "limits.console-call-bytes-max",
                config.limits.console_call_bytes_max as u64,
            ),
            (
                "limits.transaction-bytes-max",
                config.limits.transaction_bytes_max as u64,
            ),
            (
                "limits.inbox-bytes-max",
                config.limits.inbox_bytes_max as u64,
            ),
            (
                "limits.client-bytes-max",
                config.limits.client_bytes_max as u64,
            ),
            (
                "limits.clients-memory-percent",
                config.limits.clients_memory_percent.into(),
            ),
            (
                "limits.queries-per-connection-max",
                config.limits.queries_per_connection_max as u64,
            ),
            (
                "limits.query-steps-per-connection-max",
                config.limits.query_steps_per_connection_max as u64,
            ),
            (
                "limits.query-steps-per-table-max",
                config.limits.query_steps_per_table_max as u64,
            ),
            (
                "limits.reads-per-client-max",
                config.limits.reads_per_client_max as u64,
            ),
            (
                "limits.reads-per-database-max",
                config.limits.reads_per_database_max as u64,
            ),
            (
                "limits.read-time-max",
                config.limits.read_time_max.as_nanos() as u64,
            ),
            ("limits.query-sets-max", config.limits.query_sets_max as u64),
            (
                "limits.queries-per-set-max",
                config.limits.queries_per_set_max as u64,
            ),
            (
                "limits.log-queue-bytes-max",
                config.limits.log_queue_bytes_max as u64,
            ),
            (
                "commitlog.max-segment-size",
                config.commitlog.max_segment_size,
            ),
            (
                "limits.snapshot-log-bytes",
                config.limits.snapshot_log_bytes,
            ),
            ("limits.snapshots-kept", config.limits.snapshots_kept as u64),
            (
                "limits.module-log-bytes-max",
                config.limits.module_log_bytes_max,
            ),
            (
                "limits.module-log-bytes-per-second",
                config.limits.module_log_bytes_per_second,
            ),
            (
                "limits.server-log-bytes-max",
                config.limits.server_log_bytes_max,
            ),
            ("limits.memory-bytes-max", config.limits.memory_bytes_max),
            (
                "limits.message-bytes-max",
                config.limits.message_bytes_max as u64,
            ),
            (
                "limits.connections-max",
                config.limits.connections_max as u64,
            ),
            (
                "limits.connections-per-address-max",
                config.limits.connections_per_address_max as u64,
            ),
            (
                "limits.outgoing-queue-length",
                config.limits.outgoing_queue_length as u64,
            ),
            (
                "limits.program-bytes-max",
                config.limits.program_bytes_max as u64,
            ),
            (
                "limits.buffered-bytes-max",
                config.limits.buffered_bytes_max as u64,
            ),
            ("limits.databases-max", config.limits.databases_max as u64),
            (
                "limits.upload-bytes-max",
                config.limits.upload_bytes_max as u64,
            ),
            (
                "limits.publishes-waiting-max",
                config.limits.publishes_waiting_max as u64,
            ),
            (
                "limits.publishes-waiting-per-owner-max",
                config.limits.publishes_waiting_per_owner_max as u64,
            ),
            (
                "limits.loads-given-up-max",
                config.limits.loads_given_up_max as u64,
            ),
            (
                "websocket.incoming-queue-length",
                config.websocket.incoming_queue_length as u64,
            ),
        ] {
            if value == 0 {
                return Err(wrong(format!("{name} must be greater than zero")));
            }
        }
        if config.limits.client_bytes_max > CLIENT_BYTES_CEILING {
            return Err(wrong(format!(
                "limits.client-bytes-max must be at most {CLIENT_BYTES_CEILING}: lengths in messages have 32 bits"
            )));
        }
        if config.limits.clients_memory_percent > 100 {
            return Err(wrong(
                "limits.clients-memory-percent must be at most 100".into(),
            ));
        }
        Ok(config)
    }

    /// Reads the file at `path`; writes the default file first if there is none.
    pub fn load_or_create(path: &Path) -> Result<Config, Error> {
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::write(path, DEFAULT_CONFIG).map_err(Error::io("write", path))?;
                Config::parse(DEFAULT_CONFIG, path)
            }
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }
}

/// The keys about who reaches the server.
fn check_edge(config: &Config) -> Result<(), String> {
    for host in &config.network.hosts {
        if host.is_empty() || host.contains([':', '/', ' ']) {
            return Err(format!(
                "network.hosts: {host:?} is not a host name; write it without scheme and port, like \"app.example.com\""
            ));
        }
    }
    for origin in &config.network.management_origins {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        if authority.is_none_or(|authority| authority.is_empty() || authority.contains(['/', ' ']))
        {
            return Err(format!(
                "network.management-origins: {origin:?} is not an origin; write scheme, host and, if it is not the usual \
                 one, port, like \"https://admin.example.com\""
            ));
        }
    }
    let policy = &config.routes.content_security_policy;
    if axum::http::HeaderValue::from_str(policy).is_err() {
        return Err(format!(
            "routes.content-security-policy: {policy:?} cannot be sent in a header"
        ));
    }
    if config
        .metrics
        .token
        .as_ref()
        .is_some_and(|token| token.len() < METRICS_TOKEN_BYTES_MIN)
    {
        return Err(format!(
            "metrics.token is shorter than {METRICS_TOKEN_BYTES_MIN} characters; take a random one"
        ));
    }
    Ok(())
}

impl Publish {
    /// May this identity publish? `is_local`: from this machine, or to a database of its own.
    pub fn permits(&self, identity: &Identity, is_local: bool) -> bool {
        match self.allowed.as_ref().unwrap_or(&PublishAllowed::Local) {
            PublishAllowed::Local => is_local || self.owners.contains(identity),
            PublishAllowed::Anyone => true,
            PublishAllowed::OwnerList => self.owners.contains(identity),
            PublishAllowed::Identities(list) => list.contains(identity),
        }
    }

    /// What the environment says: who may publish where the file does not say, and further owners. Both as text, the owners
    /// with commas between them.
    pub fn complete(&mut self, allowed: Option<&str>, owners: Option<&str>) -> Result<(), Error> {
        let wrong = |name: &str, error: serde::de::value::Error| Error::Environment {
            name: name.to_owned(),
            message: error.to_string(),
        };
        if let Some(text) = allowed.filter(|text| !text.is_empty()) {
            let allowed =
                PublishAllowed::from_word(text).map_err(|e| wrong(PUBLISH_ALLOWED_VARIABLE, e))?;
            self.allowed.get_or_insert(allowed);
        }
        let owners = owners.unwrap_or_default().split(',').map(str::trim);
        let owners: Vec<_> = owners
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect();
        let owners = parse_identities(owners).map_err(|e| wrong(PUBLISH_OWNERS_VARIABLE, e))?;
        self.owners.extend(owners);
        Ok(())
    }
}

impl ForeignIssuers {
    pub(crate) fn listed(&self) -> &[String] {
        &self.listed
    }

    /// Are issuers accepted that are not listed?
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    fn add(&mut self, issuer: String) -> Result<(), String> {
        parse_issuer(&issuer, NamedBy::Operator).map_err(|reason| {
            format!("auth.foreign-issuers: {issuer:?} is not the address of an issuer: {reason}")
        })?;
        self.listed.push(issuer);
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WordOrList {
    Word(String),
    List(Vec<String>),
}

fn parse_identities<E: serde::de::Error>(list: Vec<String>) -> Result<Vec<Identity>, E> {
    list.iter()
        .map(|text| {
            Identity::from_hex(text).map_err(|_| {
                E::custom(format!(
                    "{text:?} is not an identity; write its 64 hexadecimal digits"
                ))
            })
        })
        .collect()
}

fn identities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Identity>, D::Error> {
    parse_identities(Vec::<String>::deserialize(deserializer)?)
}

impl PublishAllowed {
    fn from_word<E: serde::de::Error>(word: &str) -> Result<PublishAllowed, E> {
        match word {
            "local" => Ok(PublishAllowed::Local),
            "anyone" => Ok(PublishAllowed::Anyone),
            "owner-list" => Ok(PublishAllowed::OwnerList),
            _ => Err(E::custom(format!(
                "publish.allowed is {word:?}; expected \"local\", \"anyone\", \"owner-list\" or a list of identities"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for PublishAllowed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WordOrList::deserialize(deserializer)? {
            WordOrList::Word(word) => PublishAllowed::from_word(&word),
            WordOrList::List(list) => Ok(PublishAllowed::Identities(parse_identities(list)?)),
        }
    }
}

impl<'de> Deserialize<'de> for ForeignIssuers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut issuers = ForeignIssuers {
            listed: Vec::new(),
            any: false,
        };
        let entries = match WordOrList::deserialize(deserializer)? {
            WordOrList::Word(word) if word == "none" => Vec::new(),
            WordOrList::Word(word) if word == ANY_ISSUER => vec![word],
            WordOrList::Word(word) => {
                return Err(serde::de::Error::custom(format!(
                    "auth.foreign-issuers is {word:?}; expected \"any\", \"none\" or a list of issuer URLs"
                )))
            }
            WordOrList::List(list) => list,
        };
        for entry in entries {
            if entry == ANY_ISSUER {
                issuers.any = true;
                continue;
            }
            issuers.add(entry).map_err(serde::de::Error::custom)?;
        }
        Ok(issuers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(text, Path::new("config.toml"))
    }

    #[test]
    fn the_default_file_says_the_defaults() {
        // Every commented key, uncommented, must parse to what an empty file means.
        let uncommented: String = DEFAULT_CONFIG
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if key.contains(" = ") && !key.starts_with(char::is_uppercase) => {
                    format!("{key}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let mut full = parse(&uncommented).expect("the default file parses when uncommented");
        assert!(std::mem::take(&mut full.certificate_authority)
            .jwt_pub_key_path
            .is_some());
        assert!(full.wasm.procedure_instance_pool_size.take().is_some());
        assert!(full.v8.procedure_instance_pool_size.take().is_some());
        assert!(full.network.threads.take().is_some());
        assert!(full.limits.disk_reserve_bytes.take().is_some());
        full.publish.owners.clear();
        assert_eq!(full.publish.allowed.take(), Some(PublishAllowed::Local));
        assert!(full.metrics.listen.take().is_some());
        assert!(full.metrics.token.take().is_some());
        assert_eq!(
            format!("{full:?}"),
            format!("{:?}", parse("").expect("empty file"))
        );
        parse(DEFAULT_CONFIG).expect("the default file parses as it is");
    }

    #[test]
    fn the_environment_completes_the_file() {
        let allowed = |file: &str, variable: Option<&str>| {
            let mut publish = parse(file).expect(file).publish;
            publish.complete(variable, None).expect("understood");
            publish.allowed
        };
        assert_eq!(allowed("", None), None);
        assert_eq!(allowed("", Some("")), None);
        assert_eq!(
            allowed("", Some("owner-list")),
            Some(PublishAllowed::OwnerList)
        );
        let file = "[publish]\nallowed = \"local\"";
        assert_eq!(allowed(file, Some("anyone")), Some(PublishAllowed::Local));
        let mut publish = Publish::default();
        let one = Identity::from_claims("a", "b");
        let owners = format!(" {one}, ,");
        publish.complete(None, Some(&owners)).expect("understood");
        assert_eq!(publish.owners, [one]);
        for (allowed, owners) in [(Some("me"), None), (None, Some("c200"))] {
            let error = publish
                .complete(allowed, owners)
                .expect_err("wrong")
                .to_string();
            assert!(
                error.contains("LIGHTCONE_PUBLISH_") && error.ends_with("[LC0102]"),
                "{error}"
            );
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, expected) in [
            (
                "[websocket]\nping-interval = \"40s\"",
                "ping-interval must be smaller",
            ),
            ("[websocket]\nping-interval = 15", "invalid type"),
            ("[wasm]\nprocedure-instance-pool-size = 0", "nonzero"),
            (
                "[certificate-authority]\njwt-pub-key-path = \"x\"",
                "needs both",
            ),
            ("[network]\nthreads = 0", "nonzero"),
            (
                "[threads]\nscheduling = \"fifo\"",
                "expected `batch` or `normal`",
            ),
            ("[publish]\nallowed = \"me\"", "\"anyone\", \"owner-list\""),
            ("[network]\nhosts = [\"http://x\"]", "network.hosts"),
            (
                "[network]\ntrusted-proxies = [\"x\"]",
                "network.trusted-proxies",
            ),
            (
                "[network]\nmanagement-origins = [\"x\"]",
                "is not an origin",
            ),
            (
                "[network]\nmanagement-origins = [\"https://x/\"]",
                "is not an origin",
            ),
            (
                "[routes]\ncontent-security-policy = \"a\\nb\"",
                "cannot be sent",
            ),
            ("[metrics]\ntoken = \"short\"", "metrics.token"),
            ("[auth]\nforeign-issuers = \"x\"", "expected \"any\""),
            (
                "[auth]\nforeign-issuers = [\"http://a.example\"]",
                "must begin with https",
            ),
            (
                "[auth]\nforeign-issuers = [\"https://a.example/#\"]",
                "no #",
            ),
            ("[metrics]\nlisten = \"here\"", "invalid"),
            ("[publish]\nallowed = [\"c200\"]", "64 hexadecimal digits"),
            ("[limits]\nconnections-max = 0", "limits.connections-max"),
            ("[broken", "config.toml"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(expected), "{message}");
        }
        parse("[unknown]\nkey = 1\n[websocket]\nother = 2").expect("unknown keys are ignored");
    }
}
