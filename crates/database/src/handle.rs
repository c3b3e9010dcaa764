//! The handle by which the server uses a database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use lightcone_host::{ConsoleLevel, HostConfig, NullConsole};
use lightcone_log::{Committer, LogError};
use lightcone_schema::{diff, ModuleDef, RawVersion};
use lightcone_types::{ConnectionId, Hash, Identity, Timestamp};
use tokio::sync::{mpsc, oneshot, Semaphore};

use crate::budget::{ClientBudget, HeldBytes};
use crate::connection::{ConnectRequest, Connection, INBOX_PERMIT_BYTES};
use crate::error::{CallError, ConnectError, Error, UpdateError};
use crate::fanout::FanoutStats;
use crate::loads::Purpose;
use crate::module::{Module, Program};
use crate::module_log::ModuleLog;
use crate::options::{DatabaseOptions, HostKind, CLIENT_BYTES_CEILING};
use crate::outgoing::OutgoingQueue;
use crate::reads::{Job, Owner};
use crate::request::{find_procedure, find_reducer, Sender};
use crate::rules;
use crate::writer::{Item, FAILED_TEXT};

/// Queries at a time that have no permit of the database, and that the writer is asked about whether they need one.
const FIRST_TRIES_MAX: usize = 16;

/// Reads the log's statistics; dropped when the log ends.
pub(crate) type LogStats = Arc<dyn Fn() -> lightcone_log::CommitterStats + Send + Sync>;

/// What everybody who holds a handle or a connection shares with the writer.
pub(crate) struct Shared {
    pub options: DatabaseOptions,
    pub log: Arc<ModuleLog>,
    pub inbox: mpsc::UnboundedSender<Item>,
    pub inbox_messages: Semaphore,
    pub inbox_message_permits: usize,
    pub inbox_bytes: Semaphore,
    pub inbox_byte_permits: usize,
    /// Queries that clients may have under way, until there is an answer; more wait with their clients.
    pub reads: Arc<Semaphore>,
    /// Queries that are tried on the writer while others have all of these.
    pub first_tries: Arc<Semaphore>,
    /// Tells databases apart.
    number: u64,
    pub runtime: tokio::runtime::Handle,
    pub transactions: AtomicU64,
    pub fanout_stats: Arc<FanoutStats>,
    pub log_stats: Mutex<Option<LogStats>>,
    module: RwLock<Arc<Module>>,
    next_connection: AtomicU64,
    read_only: OnceLock<ReadOnly>,
    /// A running snapshot is to be given up.
    pub snapshot_cancelled: AtomicBool,
    /// Held while a snapshot is written.
    pub snapshot_busy: Mutex<()>,
    /// The database ends because it was asked to.
    pub stopping: AtomicBool,
    /// Closed when the writer has ended and the log is given back. Has no permits.
    pub ended: Semaphore,
}

/// Why a database takes no more writes.
struct ReadOnly {
    reason: String,
    /// Opened anew, it may work again.
    is_passing: bool,
}

/// What snapshot threads may do with the log.
pub(crate) struct CommitterView {
    committer: Arc<Committer>,
}

impl CommitterView {
    pub fn wait_durable(&self, offset: u64) -> Result<(), String> {
        self.committer
            .wait_durable(offset)
            .map_err(|error| error.to_string())
    }

    pub fn trim(&self, before_offset: u64) {
        self.committer.trim(before_offset);
    }
}

impl Shared {
    pub fn new(
        options: DatabaseOptions,
        log: Arc<ModuleLog>,
        inbox: mpsc::UnboundedSender<Item>,
        module: Arc<Module>,
        fanout_stats: Arc<FanoutStats>,
    ) -> Shared {
        let limits = &options.limits;
        let inbox_byte_permits =
            (limits.inbox_bytes_max / INBOX_PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS / 2);
        let inbox_message_permits = limits
            .inbox_messages_max
            .clamp(1, Semaphore::MAX_PERMITS / 2);
        Shared {
            inbox_messages: Semaphore::new(inbox_message_permits),
            inbox_message_permits,
            inbox_bytes: Semaphore::new(inbox_byte_permits),
            inbox_byte_permits,
            log,
            inbox,
            reads: Arc::new(Semaphore::new(limits.reads_per_database_max.max(1))),
            first_tries: Arc::new(Semaphore::new(FIRST_TRIES_MAX)),
            number: options.commons.next_database(),
            runtime: tokio::runtime::Handle::current(),
            transactions: AtomicU64::new(0),
            fanout_stats,
            log_stats: Mutex::new(None),
            module: RwLock::new(module),
            next_connection: AtomicU64::new(1),
            read_only: OnceLock::new(),
            snapshot_cancelled: AtomicBool::new(false),
            snapshot_busy: Mutex::new(()),
            stopping: AtomicBool::new(false),
            ended: Semaphore::new(0),
            options,
        }
    }

    pub fn module(&self) -> Arc<Module> {
        self.module
            .read()
            .expect("no code panics while it holds the module")
            .clone()
    }

    pub fn set_module(&self, module: Arc<Module>) {
        *self
            .module
            .write()
            .expect("no code panics while it holds the module") = module;
    }

    pub fn send(&self, item: Item) -> Result<(), ()> {
        self.inbox.send(item).map_err(drop)
    }

    /// Permits of the inbox's byte bound for so many bytes.
    pub fn byte_permits(&self, bytes: usize) -> u32 {
        (bytes / INBOX_PERMIT_BYTES + 1).min(self.inbox_byte_permits) as u32
    }

    /// Waits for room in the inbox, for something that is no message of a connection.
    ///
    /// # Errors
    /// The database is stopping.
    pub async fn inbox_permit(self: &Arc<Self>, bytes: usize) -> Result<InboxPermit, ()> {
        let byte_permits = self.byte_permits(bytes);
        let permits = (
            self.inbox_messages.acquire().await,
            self.inbox_bytes.acquire_many(byte_permits).await,
        );
        let (Ok(message), Ok(bytes)) = permits else {
            return Err(());
        };
        message.forget();
        bytes.forget();
        Ok(InboxPermit {
            shared: self.clone(),
            byte_permits,
        })
    }

    /// The bytes of a new client.
    pub fn client_budget(&self) -> Arc<ClientBudget> {
        let limits = &self.options.limits;
        ClientBudget::new(
            &self.options.commons.memory,
            limits.client_bytes_max.min(CLIENT_BYTES_CEILING),
        )
    }

    /// Does some work of a client on the threads for reads.
    pub fn read(&self, client: &ClientBudget, job: Box<dyn Job>) {
        let owner = Owner {
            database: self.number,
            client: client.number(),
        };
        self.options.commons.reads.push(owner, job);
    }

    /// Why the database takes no more writes, if so.
    pub fn read_only(&self) -> Option<String> {
        self.read_only.get().map(|state| state.reason.clone())
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only.get().is_some()
    }

    pub fn set_read_only(&self, error: &LogError) {
        let _ = self.read_only.set(ReadOnly {
            reason: format!("the database is read-only because its log failed: {error} [LC0537]"),
            is_passing: error.is_passing(),
        });
    }

    /// A thread of the database ended because of a bug: the writer is to end too.
    pub fn fail(&self) {
        // A writer that has ended need not be told.
        let _ = self.send(Item::Failed);
    }

    /// What a caller gets whom nobody answered.
    pub fn gone(&self) -> CallError {
        match self.stopping.load(Ordering::Acquire) {
            true => CallError::ModuleGone,
            false => CallError::Database(FAILED_TEXT.to_owned()),
        }
    }

    /// Nothing more is let in.
    pub fn close_inbox(&self) {
        self.inbox_messages.close();
        self.inbox_bytes.close();
        self.reads.close();
        self.first_tries.close();
    }

    /// Lets go of the log, which is about to end.
    pub fn forget_log(&self) {
        *self
            .log_stats
            .lock()
            .expect("no code panics while it holds the statistics") = None;
    }

    pub fn committer_view(&self, committer: &Arc<Committer>) -> CommitterView {
        CommitterView {
            committer: committer.clone(),
        }
    }
}

/// A place in the inbox; given back when dropped.
pub(crate) struct InboxPermit {
    shared: Arc<Shared>,
    byte_permits: u32,
}

impl Drop for InboxPermit {
    fn drop(&mut self) {
        self.shared.inbox_messages.add_permits(1);
        self.shared
            .inbox_bytes
            .add_permits(self.byte_permits as usize);
    }
}

/// Who asks over HTTP.
#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    pub jwt_payload: Arc<str>,
}

/// Arguments of a call over HTTP.
pub enum CallArgs {
    /// SATS-JSON: an array, or an object keyed by parameter names.
    Json(String),
}

/// What a call cost.
#[derive(Clone, Debug, Default)]
pub struct CallOutcome {
    pub execution_us: u64,
    pub energy_used: u64,
    /// What a procedure returned, in the untyped form of 01 §1.7; reducers return nothing.
    pub returned_json: Option<String>,
}

/// What publishing to a running database did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Unchanged,
    Updated,
}

/// What publishing a program would do.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// The differences of the schema, which refuse the update; none if it can go ahead.
    pub differences: Option<String>,
    pub major_version_upgrade: bool,
}

/// A program that was loaded to take the place of the running one.
pub struct PreparedUpdate(Box<Program>);

/// Why a database is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownReason {
    Deleted,
    ServerStop,
    /// Whether it is still there is not known: it opens again when that is known.
    Suspended,
    /// It is read-only, and what made it so may be over: see [`DatabaseHandle::may_work_again`].
    Reopen,
}

impl ShutdownReason {
    /// What its clients are told with Close 1001.
    fn text(self) -> &'static str {
        match self {
            ShutdownReason::Deleted | ShutdownReason::ServerStop | ShutdownReason::Suspended => {
                "module exited"
            }
            ShutdownReason::Reopen => "the database is opened anew after its log failed [LC0537]",
        }
    }
}

/// Counters since the database was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatabaseStats {
    pub transactions: u64,
    /// All transactions before this one are on disk.
    pub durable_offset: u64,
    pub log_bytes: u64,
    pub log_syncs: u64,
    pub live_queries: u64,
    pub messages_sent: u64,
    pub slow_clients_cut: u64,
}

/// A running database.
#[derive(Clone)]
pub struct DatabaseHandle {
    pub(crate) shared: Arc<Shared>,
}

impl DatabaseHandle {
    /// Accepts a client after its connect reducer did (05 §11).
    ///
    /// # Errors
    /// The reducer refused, or the database is stopping.
    pub async fn connect(&self, request: ConnectRequest) -> Result<Connection, ConnectError> {
        let shared = &self.shared;
        let permit = shared.inbox_permit(request.jwt_payload.len()).await;
        let permit = permit.map_err(|()| ConnectError::Closed)?;
        let limits = &shared.options.limits;
        let queue = OutgoingQueue::new(limits.outgoing_queue_length, shared.client_budget());
        let connection = shared.next_connection.fetch_add(1, Ordering::Relaxed);
        let sender = Sender {
            identity: request.identity,
            is_owner: request.identity == shared.options.owner,
            protocol: request.protocol,
            queries_per_set_max: limits.queries_per_set_max,
        };
        // Made first: if this call is given up while it waits, dropping the connection tells the writer.
        let accepted_connection =
            Connection::new(shared.clone(), queue.clone(), connection, sender);
        let (reply, accepted) = oneshot::channel();
        let item = Item::Connect {
            permit,
            connection,
            sender,
            connection_id: request.connection_id,
            jwt_payload: request.jwt_payload,
            token: request.token,
            confirmed: request.confirmed,
            queue,
            reply,
        };
        shared.send(item).map_err(|()| ConnectError::Closed)?;
        let registered = accepted.await.map_err(|_| ConnectError::Closed)??;
        registered.await.map_err(|_| ConnectError::Closed)?;
        Ok(accepted_connection)
    }

    /// Calls a function over HTTP, inside a connection of its own (06 §5.11). Returns when the result is durable.
    ///
    /// # Errors
    /// As 06 §5.11.
    pub async fn call(
        &self,
        caller: Caller,
        function: &str,
        args: CallArgs,
    ) -> Result<CallOutcome, CallError> {
        let shared = &self.shared;
        let module = shared.module();
        let is_owner = caller.identity == shared.options.owner;
        let CallArgs::Json(text) = args;
        let args = read_args(&module, is_owner, function, &text, &shared.log);
        let bytes = function.len() + args.as_ref().map_or(0, Vec::len);
        let permit = shared.inbox_permit(bytes).await;
        let permit = permit.map_err(|()| CallError::ModuleGone)?;
        let (reply, result) = oneshot::channel();
        let item = Item::Call {
            permit,
            caller,
            connection_id: random_connection_id(),
            function: function.to_owned(),
            args,
            timestamp: Timestamp::now(),
            reply,
        };
        shared.send(item).map_err(|()| shared.gone())?;
        result.await.map_err(|_| shared.gone())?
    }

    /// Counts an answer as a client's until it is dropped: when the socket has taken it.
    ///
    /// # Errors
    /// Why there is no memory for it.
    pub fn hold(&self, answer: Vec<u8>) -> Result<HeldBytes, String> {
        HeldBytes::new(answer, &self.shared.client_budget()).map_err(|exceeded| {
            format!("the call was carried out, but its answer cannot be sent: {exceeded}")
        })
    }

    pub fn module_def(&self) -> Arc<ModuleDef> {
        self.shared.module().def().clone()
    }

    pub fn program_hash(&self) -> Hash {
        self.shared.module().program.hash
    }

    pub fn program(&self) -> Arc<[u8]> {
        self.shared.module().program.bytes.clone()
    }

    pub fn host_kind(&self) -> HostKind {
        self.shared.module().program.kind
    }

    /// What publishing this program would do. Blocks while it compiles; run it on a thread that may block.
    ///
    /// # Errors
    /// The program is no module.
    pub fn plan_update(&self, program: &[u8], kind: HostKind) -> Result<UpdatePlan, Error> {
        let config = HostConfig {
            console: Arc::new(NullConsole),
            ..self.shared.host_config()
        };
        let program = Program::load(
            &self.shared.options,
            &config,
            program.into(),
            kind,
            Purpose::Publish,
        )?;
        let current = self.shared.module();
        Ok(UpdatePlan {
            differences: differences(current.def(), &program.def),
            major_version_upgrade: current.def().version == RawVersion::V9
                && program.def.version == RawVersion::V10,
        })
    }

    /// Replaces the program if its schema is the same; clients stay connected (02 §14.1).
    ///
    /// # Errors
    /// The program is no module, its schema differs, or the log failed. The old program keeps running.
    pub async fn update(
        &self,
        program: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<UpdateOutcome, UpdateError> {
        if Hash::keccak256(&program) == self.program_hash() {
            return Ok(UpdateOutcome::Unchanged);
        }
        let prepared = self.prepare_update(program, kind).await?;
        self.replace(prepared).await
    }

    /// The first half of [`DatabaseHandle::update`]: compiles and loads the program, which changes nothing yet.
    ///
    /// # Errors
    /// The program is no module, or does not end loading.
    pub async fn prepare_update(
        &self,
        program: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<PreparedUpdate, UpdateError> {
        let shared = self.shared.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            Program::load(
                &shared.options,
                &shared.host_config(),
                program,
                kind,
                Purpose::Publish,
            )
        });
        match loaded.await {
            Ok(Ok(program)) => Ok(PreparedUpdate(Box::new(program))),
            Ok(Err(Error::Load(error))) if error.is_busy() => {
                Err(UpdateError::Busy(error.to_string()))
            }
            Ok(Err(error)) => Err(UpdateError::Module(error.to_string())),
            Err(error) => Err(UpdateError::Database(format!(
                "loading the module failed: {error}"
            ))),
        }
    }

    /// The second half of [`DatabaseHandle::update`]. An update that is given up before the writer came to it is not made.
    ///
    /// # Errors
    /// The schema differs, or the log failed. The old program keeps running.
    pub async fn replace(&self, prepared: PreparedUpdate) -> Result<UpdateOutcome, UpdateError> {
        let program = prepared.0;
        let current = self.shared.module();
        if let Some(mut text) = differences(current.def(), &program.def) {
            // Rules that stay as they are were checked when they came, or came before anybody checked them.
            if current.def().row_level_security != program.def.row_level_security {
                if let Err(error) = rules::check(&program.def, self.shared.options.owner) {
                    text.push_str(&error.to_string());
                }
            }
            return Err(UpdateError::Rejected(text));
        }
        let (reply, result) = oneshot::channel();
        let gone = || UpdateError::Database("no such module".to_owned());
        self.shared
            .send(Item::Replace { program, reply })
            .map_err(|()| gone())?;
        result.await.map_err(|_| gone())??;
        Ok(UpdateOutcome::Updated)
    }

    /// False once the database was stopped or failed; it can be opened again then.
    pub fn is_running(&self) -> bool {
        !self.shared.inbox.is_closed()
    }

    /// Waits until a database that was stopped or failed has given its log back, so that it can be opened again.
    pub async fn ended(&self) {
        // Fails when it is closed, which is what this waits for.
        let _ = self.shared.ended.acquire().await;
    }

    pub fn logs(&self) -> &ModuleLog {
        &self.shared.log
    }

    /// Why the database takes no more writes, if so.
    pub fn read_only(&self) -> Option<String> {
        self.shared.read_only()
    }

    /// Whether the database is read-only because something ran out that may be given back, like disk space or file
    /// descriptors. Opened anew from its log, it may work again.
    pub fn may_work_again(&self) -> bool {
        self.shared
            .read_only
            .get()
            .is_some_and(|state| state.is_passing)
    }

    /// Tries whether the disk takes what a log needs, without touching the log. Blocks.
    ///
    /// # Errors
    /// It does not.
    pub fn try_disk(&self) -> std::io::Result<()> {
        let options = &self.shared.options;
        crate::probe::try_disk(&*options.storage, &options.directory.join("log"))
    }

    /// Stops the database: everything committed is made durable, clients get Close 1001 `module exited`.
    pub async fn shutdown(self, reason: ShutdownReason) {
        tracing::info!(database = %self.shared.options.identity, ?reason, "the database stops");
        let (done, wait) = oneshot::channel();
        let item = Item::Stop {
            code: 1001,
            reason: reason.text().to_owned(),
            done,
        };
        if self.shared.send(item).is_ok() {
            let _ = wait.await;
        }
    }

    pub fn stats(&self) -> DatabaseStats {
        let log_stats = self
            .shared
            .log_stats
            .lock()
            .expect("no code panics while it holds the statistics")
            .clone();
        let log = log_stats.map(|read| read()).unwrap_or_default();
        let fanout = &self.shared.fanout_stats;
        DatabaseStats {
            transactions: self.shared.transactions.load(Ordering::Relaxed),
            durable_offset: log.durable_offset,
            log_bytes: log.log_bytes,
            log_syncs: log.syncs,
            live_queries: fanout.live_queries.load(Ordering::Relaxed),
            messages_sent: fanout.messages_sent.load(Ordering::Relaxed),
            slow_clients_cut: fanout.slow_clients_cut.load(Ordering::Relaxed),
        }
    }
}

fn differences(old: &ModuleDef, new: &ModuleDef) -> Option<String> {
    let diff = diff(old, new);
    (!diff.is_empty()).then(|| format!("Errors occurred:\n{diff}\nAutomatic migration is not supported yet; publish with --delete-data to start over [LC0220]\n\n"))
}

/// The arguments of a reducer, or of a procedure if there is no such reducer, from JSON.
fn read_args(
    module: &Module,
    is_owner: bool,
    function: &str,
    text: &str,
    log: &ModuleLog,
) -> Result<Vec<u8>, CallError> {
    let (kind, typespace, params) = match find_reducer(module, is_owner, function) {
        Ok((_, reducer)) => ("reducer", &reducer.params_typespace, &reducer.params),
        Err(refusal) if refusal.message.starts_with("can't directly call") => {
            return Err(CallError::Lifecycle(refusal.message));
        }
        Err(refusal) => {
            // As the reference does, also if there is a procedure (06 §5.13).
            let now = Timestamp::now();
            log.host(ConsoleLevel::Error, Some(function), &refusal.log, now);
            let (_, procedure) =
                find_procedure(module, is_owner, function).ok_or(CallError::NoSuchFunction)?;
            ("procedure", &procedure.params_typespace, &procedure.params)
        }
    };
    lightcone_types::json::args_from_json(typespace, params, function, text).map_err(|error| {
        CallError::InvalidArguments(format!("invalid arguments for {kind} {function}: {error}"))
    })
}

/// A fresh id for the connection of one HTTP request (01 §1.8.4).
pub(crate) fn random_connection_id() -> ConnectionId {
    use std::hash::{BuildHasher, RandomState};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let half = || u128::from(RandomState::new().hash_one(count));
    ConnectionId((half() << 64 | half()).max(1))
}
