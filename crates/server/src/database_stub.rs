//! A stand-in for the database crate while that is being built: the same shapes, no data.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lightcone_types::{ConnectionId, Hash, Identity};
use tokio::sync::{broadcast, mpsc, watch};

#[derive(Clone, Default)]
pub struct Limits {
    pub call_ms_max: u64,
    pub memory_bytes_max: usize,
    pub outgoing_messages_max: usize,
    pub incoming_messages_max: usize,
}

#[derive(Clone, Default)]
pub struct Engines;

#[derive(Clone)]
pub struct DatabaseOptions {
    pub directory: PathBuf,
    pub identity: Identity,
    pub owner: Identity,
    pub in_memory: bool,
    pub limits: Limits,
    pub engines: Engines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    Wasm,
    Js,
}

pub use lightcone_wire::Protocol;

pub fn limits(config: &crate::config::Config) -> Limits {
    Limits {
        call_ms_max: config.limits.call_ms_max,
        memory_bytes_max: config.limits.memory_bytes_max as usize,
        outgoing_messages_max: config.limits.outgoing_queue_length,
        incoming_messages_max: config.websocket.incoming_queue_length,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

pub struct ConnectRequest {
    pub identity: Identity,
    pub connection_id: ConnectionId,
    pub jwt_payload: Arc<str>,
    pub confirmed: bool,
    pub protocol: Protocol,
    pub token: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0}")]
    Rejected(String),
    #[error("no such module")]
    Closed,
}

pub struct Connection {
    pub sender: RequestSender,
    pub outgoing: OutgoingReceiver,
}

pub struct RequestSender(mpsc::UnboundedSender<Outgoing>);

#[derive(Debug)]
pub enum SubmitError {
    Malformed(String),
    Closed,
}

pub struct MessageBatch {
    pub bytes: Vec<u8>,
    pub ends: Vec<u32>,
}

pub enum Outgoing {
    Messages(MessageBatch),
    Close { code: u16, reason: String },
}

pub struct OutgoingReceiver {
    queue: mpsc::UnboundedReceiver<Outgoing>,
    module: watch::Receiver<bool>,
    closed: bool,
}

impl RequestSender {
    /// Echoes; a payload that starts with 0xff is malformed; "bulk" asks for a large message.
    pub async fn submit(&self, payload: Bytes) -> Result<(), SubmitError> {
        if payload.first() == Some(&0xff) {
            return Err(SubmitError::Malformed("unknown tag 0xff for sum type ClientMessage".into()));
        }
        let bytes = if &payload[..] == b"bulk" { vec![7; 17 << 20] } else { payload.to_vec() };
        let ends = vec![bytes.len() as u32];
        self.0.send(Outgoing::Messages(MessageBatch { bytes, ends })).map_err(|_| SubmitError::Closed)
    }
}

impl OutgoingReceiver {
    pub async fn recv(&mut self) -> Option<Outgoing> {
        if self.closed {
            return None;
        }
        tokio::select! {
            biased;
            item = self.queue.recv() => item,
            _ = self.module.wait_for(|ended| *ended) => {
                self.closed = true;
                Some(Outgoing::Close { code: 1001, reason: "module exited".into() })
            }
        }
    }
}

#[derive(Clone)]
pub struct DatabaseHandle {
    inner: Arc<Inner>,
}

struct Inner {
    program: Mutex<Arc<[u8]>>,
    kind: HostKind,
    ended: watch::Sender<bool>,
    log: ModuleLog,
}

pub struct ModuleLog(Mutex<Vec<u8>>, broadcast::Sender<Bytes>);

impl ModuleLog {
    pub fn tail(&self, num_lines: Option<u32>) -> Vec<u8> {
        let text = self.0.lock().expect("not poisoned").clone();
        match num_lines {
            None => text,
            Some(n) => {
                let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
                lines[lines.len().saturating_sub((n as usize).max(1))..].concat()
            }
        }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Bytes> {
        self.1.subscribe()
    }

    fn add(&self, line: &str) {
        self.0.lock().expect("not poisoned").extend_from_slice(line.as_bytes());
        let _ = self.1.send(Bytes::copy_from_slice(line.as_bytes()));
    }
}

#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    pub jwt_payload: Arc<str>,
}

pub enum CallArgs {
    Json(String),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CallOutcome {
    pub execution_us: u64,
    pub energy_used: u64,
}

#[derive(Debug)]
pub enum CallError {
    ConnectRejected(String),
    UserError { message: String, outcome: CallOutcome },
    Fatal { outcome: CallOutcome },
    TimedOut { outcome: CallOutcome },
    InvalidArguments(String),
    Lifecycle(String),
    NoSuchFunction,
    ModuleGone,
    WorkerFailed(String),
    NotSupported(String),
    Database(String),
}

pub struct SqlOutcome {
    pub schema_json: String,
    pub rows_json: String,
    pub duration_us: u64,
    pub stats: SqlStats,
}

#[derive(Default)]
pub struct SqlStats {
    pub rows_inserted: u64,
    pub rows_deleted: u64,
    pub rows_updated: u64,
}

#[derive(Debug)]
pub enum SqlError {
    ConnectRejected(String),
    Query(String),
    ModuleGone,
    Database(String),
}

pub enum UpdateOutcome {
    Unchanged,
    Updated,
}

#[derive(Debug)]
pub enum UpdateError {
    /// Lists the differences of the schema.
    Rejected(String),
    Module(String),
    Database(String),
}

#[derive(Clone, Copy)]
pub enum ShutdownReason {
    Deleted,
    ServerStop,
}

#[derive(Default)]
pub struct DatabaseStats {
    pub transactions: u64,
    pub log_bytes: u64,
    pub log_syncs: u64,
}

pub struct ModuleDef(Arc<[u8]>);

#[derive(Clone, Copy)]
pub enum RawVersion {
    V9,
    V10,
}

impl ModuleDef {
    pub fn schema_json(&self, version: RawVersion) -> String {
        match version {
            RawVersion::V9 => r#"{"tables":[]}"#.into(),
            RawVersion::V10 => r#"{"sections":[]}"#.into(),
        }
    }
}

/// `bad...` does not load; everything up to the first `;` is the schema.
fn schema(program: &[u8]) -> Result<&[u8], Error> {
    if program.starts_with(b"bad") {
        return Err(Error("failed to parse WebAssembly module: bad magic".into()));
    }
    Ok(program.split(|byte| *byte == b';').next().unwrap_or_default())
}

pub fn describe_differences(old: &[u8], new: &[u8]) -> Result<Option<String>, Error> {
    Ok((schema(old)? != schema(new)?).then(|| "Errors occurred:\nschemas differ\n\n".into()))
}

impl DatabaseHandle {
    pub fn create(options: DatabaseOptions, program: Arc<[u8]>, kind: HostKind) -> Result<Self, Error> {
        schema(&program)?;
        std::fs::create_dir_all(&options.directory).map_err(|error| Error(error.to_string()))?;
        std::fs::write(options.directory.join("program"), &program).map_err(|error| Error(error.to_string()))?;
        Self::open(DatabaseOptions { ..options }).map(|mut handle| {
            Arc::get_mut(&mut handle.inner).expect("fresh").kind = kind;
            handle
        })
    }

    pub fn open(options: DatabaseOptions) -> Result<Self, Error> {
        let program =
            std::fs::read(options.directory.join("program")).map_err(|error| Error(error.to_string()))?;
        let log = ModuleLog(Mutex::default(), broadcast::channel(64).0);
        log.add("{\"level\":\"Info\",\"ts\":1,\"message\":\"Database initialized\"}\n");
        log.add("{\"level\":\"Info\",\"ts\":2,\"message\":\"second\"}\n");
        Ok(Self {
            inner: Arc::new(Inner {
                program: Mutex::new(program.into()),
                kind: HostKind::Wasm,
                ended: watch::channel(false).0,
                log,
            }),
        })
    }

    pub async fn connect(&self, request: ConnectRequest) -> Result<Connection, ConnectError> {
        let (sender, queue) = mpsc::unbounded_channel();
        if self.inner.program.lock().expect("not poisoned").ends_with(b"reject") {
            return Err(ConnectError::Rejected("no entry".into()));
        }
        let bytes = format!("initial {}", request.connection_id.to_hex()).into_bytes();
        let ends = vec![bytes.len() as u32];
        let _ = sender.send(Outgoing::Messages(MessageBatch { bytes, ends }));
        Ok(Connection {
            sender: RequestSender(sender),
            outgoing: OutgoingReceiver { queue, module: self.inner.ended.subscribe(), closed: false },
        })
    }

    pub async fn call(&self, _: Caller, function: &str, args: CallArgs) -> Result<CallOutcome, CallError> {
        let outcome = CallOutcome { execution_us: 12, energy_used: 0 };
        let CallArgs::Json(args) = args;
        self.inner.log.add(&format!("{{\"level\":\"Info\",\"ts\":3,\"message\":\"called {function}\"}}\n"));
        match function {
            "ok" => Ok(outcome),
            "fail" => Err(CallError::UserError { message: args, outcome }),
            "panic" => Err(CallError::Fatal { outcome }),
            "slow" => Err(CallError::TimedOut { outcome }),
            "init" => Err(CallError::Lifecycle("can't directly call special Init lifecycle reducer".into())),
            _ => Err(CallError::NoSuchFunction),
        }
    }

    pub async fn sql(&self, _: Caller, text: String, _confirmed: bool) -> Result<SqlOutcome, SqlError> {
        if text.is_empty() {
            return Err(SqlError::Query("Empty SQL query".into()));
        }
        Ok(SqlOutcome {
            schema_json: r#"{"elements":[]}"#.into(),
            rows_json: "[[1]]".into(),
            duration_us: 5,
            stats: SqlStats::default(),
        })
    }

    pub fn module_def(&self) -> Arc<ModuleDef> {
        Arc::new(ModuleDef(self.program()))
    }

    pub fn program_hash(&self) -> Hash {
        Hash::keccak256(&self.program())
    }

    pub fn program(&self) -> Arc<[u8]> {
        self.inner.program.lock().expect("not poisoned").clone()
    }

    pub fn host_kind(&self) -> HostKind {
        self.inner.kind
    }

    pub async fn update(&self, program: Arc<[u8]>, _: HostKind) -> Result<UpdateOutcome, UpdateError> {
        match describe_differences(&self.program(), &program) {
            Err(error) => Err(UpdateError::Module(error.0)),
            Ok(Some(text)) => Err(UpdateError::Rejected(text)),
            Ok(None) if self.program() == program => Ok(UpdateOutcome::Unchanged),
            Ok(None) => {
                *self.inner.program.lock().expect("not poisoned") = program;
                Ok(UpdateOutcome::Updated)
            }
        }
    }

    pub fn logs(&self) -> &ModuleLog {
        &self.inner.log
    }

    pub async fn shutdown(self, _: ShutdownReason) {
        let _ = self.inner.ended.send(true);
    }

    pub fn stats(&self) -> DatabaseStats {
        DatabaseStats { transactions: 3, log_bytes: 100, log_syncs: 2 }
    }
}

pub struct UpdatePlan {
    pub differences: Option<String>,
    pub major_version_upgrade: bool,
}

pub fn plan_update(handle: &DatabaseHandle, program: &[u8], _: HostKind) -> Result<UpdatePlan, Error> {
    Ok(UpdatePlan { differences: describe_differences(&handle.program(), program)?, major_version_upgrade: false })
}
