//! The handle by which the server uses a database.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use lightcone_schema::{ModuleDef, RawVersion};
use lightcone_types::{ConnectionId, Due, Hash, Identity, Timestamp};
use tokio::sync::oneshot;

use crate::budget::HeldBytes;
use crate::calls::{CallArgs, CallError, CallOutcome, Caller};
use crate::connection::Connection;
use crate::due::acts_by_itself;
use crate::error::{ConnectError, Refusal, SqlError};
use crate::inbox::{HttpCall, Input, NewClient, Stop};
use crate::live_shapes::LiveShapes;
use crate::messages::{Message, MessageAnswer};
use crate::metrics::{DatabaseMetrics, SeriesMax};
use crate::module::{Module, ProgramBytes};
use crate::module_log::ModuleLog;
use crate::options::HostKind;
use crate::outgoing::OutgoingQueue;
use crate::peer::{ConnectRequest, Peer};
use crate::resolve::{find_procedure, find_reducer, RefusalReason};
use crate::rights::Rights;
use crate::shared::Shared;
use crate::status::DatabaseStats;
use crate::trace::TraceContext;

/// Longer arguments are read on another thread, so that they do not hold up other clients of this one.
const ARGS_READ_HERE_BYTES_MAX: usize = 64 << 10;

/// Why a database is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownReason {
    Deleted,
    ServerStop,
    /// Whether it is still there is not known: it opens again when that is known.
    Suspended,
    /// It is read-only, and what made it so may be over: see [`DatabaseHandle::may_work_again`].
    Reopen,
    /// It has not been used for long.
    Idle,
}

impl ShutdownReason {
    /// What its clients are told with Close 1001.
    fn text(self) -> &'static str {
        match self {
            ShutdownReason::Deleted
            | ShutdownReason::ServerStop
            | ShutdownReason::Suspended
            | ShutdownReason::Idle => "module exited",
            ShutdownReason::Reopen => "the database is opened anew after its log failed [LC0537]",
        }
    }
}

/// A running database. It stops when the last handle goes.
#[derive(Clone)]
pub struct DatabaseHandle {
    pub(crate) shared: Arc<Shared>,
    _open: Arc<Open>,
}

/// All handles of a database have one together.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        // No caller waits for the end. Most have stopped by now.
        if !self.0.inbox.is_closed() {
            drop(stop(&self.0, ShutdownReason::Suspended));
        }
    }
}

/// Asks the writer to end. What is returned hears of it when it has.
fn stop(shared: &Shared, reason: ShutdownReason) -> oneshot::Receiver<()> {
    tracing::info!(database = %shared.options.identity, ?reason, "the database stops");
    // No caller waits for it that long; the old program is what starts again.
    shared.status.migration.stop();
    shared.status.rehearsals.stop();
    let (done, wait) = oneshot::channel();
    let stop = Stop {
        code: 1001,
        reason: reason.text().to_owned(),
        is_opened_again: matches!(reason, ShutdownReason::ServerStop | ShutdownReason::Idle),
        lets_scheduled_end: matches!(
            reason,
            ShutdownReason::ServerStop | ShutdownReason::Suspended | ShutdownReason::Idle
        ),
        done: vec![done],
    };
    // A writer that waits for one takes no input until it is given up.
    shared.snapshots.cancel();
    // Without a writer, what is returned is closed.
    let _ = shared.inbox.send(Input::Stop(stop));
    wait
}

impl DatabaseHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> DatabaseHandle {
        let open = Arc::new(Open(shared.clone()));
        DatabaseHandle {
            shared,
            _open: open,
        }
    }

    /// What clients are subscribed to. None: the database ends.
    pub async fn live_shapes(&self) -> Option<LiveShapes> {
        let inbox = &self.shared.inbox;
        let permit = inbox.capacity.permit(0).await.ok()?;
        let shapes = self.shared.ask(Some(permit), false, Input::LiveShapes);
        shapes.await.ok()
    }

    /// Accepts a client after its connect reducer did (05 §11).
    ///
    /// # Errors
    /// The reducer refused, or the database is stopping.
    pub async fn connect(&self, request: ConnectRequest) -> Result<Connection, ConnectError> {
        let shared = &self.shared;
        let permit = shared
            .inbox
            .capacity
            .permit(request.jwt_payload.len())
            .await?;
        let limits = &shared.options.limits;
        let messages_max = limits.outgoing_queue_length;
        let queue = OutgoingQueue::new(messages_max, shared.client_budget());
        let number = shared.next_connection();
        let peer = Peer {
            identity: request.identity,
            rights: shared.rights_of(&request.identity, request.rights),
            protocol: request.protocol,
            queries_per_set_max: limits.queries_per_set_max,
            query_sets_max: limits.query_sets_max,
        };
        // Made first: if this call is given up while it waits, dropping the connection tells the writer.
        let connection = Connection::new(shared.clone(), queue.clone(), number, peer);
        let client = NewClient {
            connection: number,
            peer,
            request,
            queue,
        };
        let connect = |waiter| Input::Connect(Box::new(client), waiter);
        shared.ask(Some(permit), false, connect).await??;
        Ok(connection)
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
        self.call_traced(caller, function, args, true, None).await
    }

    /// The same as a part of a trace. Unless it is `confirmed`, the answer does not wait until what the call did is durable.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_traced(
        &self,
        caller: Caller,
        function: &str,
        args: CallArgs,
        confirmed: bool,
        trace: Option<TraceContext>,
    ) -> Result<CallOutcome, CallError> {
        let shared = &self.shared;
        let rights = shared.rights_of(&caller.identity, caller.rights);
        let CallArgs::Json(text) = args;
        let environment = shared.environment();
        let (timestamp, received) = (environment.now(), environment.instant());
        let args = self.args(rights, function, text, timestamp).await?;
        let bytes = function.len() + args.as_ref().map_or(0, Vec::len);
        let permit = shared.inbox.capacity.permit(bytes).await?;
        let call = HttpCall {
            caller,
            connection_id: self.new_connection_id(),
            function: function.to_owned(),
            args,
            timestamp: shared.environment().now(),
            received,
            trace,
        };
        let call = |waiter| Input::Call(Box::new(call), waiter);
        let result = shared.ask(Some(permit), confirmed, call).await;
        result.map_err(|_| shared.gone())?
    }

    /// Applies a message of another database, once, in the order of its stream. Returns when what came of it is durable.
    ///
    /// # Errors
    /// It is not known what comes of it: it is to be sent again.
    pub async fn receive(&self, message: Message) -> Result<MessageAnswer, CallError> {
        let shared = &self.shared;
        let bytes = message.reducer.len() + message.args.len();
        let permit = shared.inbox.capacity.permit(bytes).await?;
        let receive = |waiter| Input::Receive(Box::new(message), waiter);
        let answer = shared.ask(Some(permit), true, receive).await;
        answer.map_err(|_| shared.gone())?
    }

    /// The arguments of a call, or what is wrong with them.
    async fn args(
        &self,
        rights: Rights,
        function: &str,
        text: String,
        now: Timestamp,
    ) -> Result<Result<Vec<u8>, CallError>, CallError> {
        let (shared, module) = (&self.shared, self.shared.module());
        if text.len() <= ARGS_READ_HERE_BYTES_MAX {
            let args = read_args(&module, rights, function, &text, &shared.log, now);
            return Ok(args);
        }
        let (log, function) = (shared.log.clone(), function.to_owned());
        let read = move || read_args(&module, rights, &function, &text, &log, now);
        let read = shared.elsewhere(read).await;
        read.ok_or_else(|| shared.gone())
    }

    /// A fresh id for the connection of one HTTP request (01 §1.8.4).
    pub(crate) fn new_connection_id(&self) -> ConnectionId {
        ConnectionId(self.shared.environment().random().max(1))
    }

    /// Counts an answer as a client's until it is dropped: when the socket has taken it.
    ///
    /// # Errors
    /// Why there is no memory for it.
    pub fn hold(&self, answer: Vec<u8>) -> Result<HeldBytes, Refusal> {
        HeldBytes::new(answer, &self.shared.client_budget()).map_err(|exceeded| {
            Refusal(format!(
                "the call was carried out, but its answer cannot be sent: {exceeded}"
            ))
        })
    }

    pub fn module_def(&self) -> Arc<ModuleDef> {
        self.shared.module().def().clone()
    }

    /// The definition of the running module (06 §5.12). It counts once as memory that clients have asked for, however many have it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub async fn schema_text(&self, version: RawVersion) -> Result<Bytes, SqlError> {
        let module = self.shared.module();
        let mut text = module.schema_texts.of(version).lock_owned().await;
        if let Some(text) = &*text {
            return Ok(text.clone());
        }
        let holder = self.holder();
        // It may have megabytes. Others who want it wait for this one, also if the caller has gone.
        let made = self.shared.elsewhere(move || {
            let mut bytes = module.def().schema_json(version).into_bytes();
            bytes.shrink_to_fit();
            let made = holder.hold(bytes).map(Bytes::from_owner);
            *text = made.as_ref().ok().cloned();
            made
        });
        made.await.ok_or(SqlError::ModuleGone)?
    }

    pub fn program_hash(&self) -> Hash {
        self.shared.module().program.hash
    }

    pub fn program(&self) -> ProgramBytes {
        self.shared.module().program.bytes.clone()
    }

    pub fn host_kind(&self) -> HostKind {
        self.shared.module().program.kind
    }

    /// False once the database was stopped or failed; it can be opened again then.
    pub fn is_running(&self) -> bool {
        !self.shared.inbox.is_closed()
    }

    /// Waits until a database that was stopped or failed has given its log back, so that it can be opened again.
    pub async fn ended(&self) {
        self.shared.status.ended().await;
    }

    pub fn logs(&self) -> &ModuleLog {
        &self.shared.log
    }

    /// Why the database takes no more writes, if so.
    pub fn read_only(&self) -> Option<String> {
        self.shared.status.read_only()
    }

    /// Whether the database is read-only because something ran out that may be given back, like disk space or file
    /// descriptors. Opened anew from its log, it may work again.
    pub fn may_work_again(&self) -> bool {
        self.shared.status.may_work_again()
    }

    /// Tries whether the disk takes what a log needs, without touching the log. Blocks.
    ///
    /// # Errors
    /// It does not.
    pub fn try_disk(&self) -> std::io::Result<()> {
        let options = &self.shared.options;
        crate::probe::try_disk(&*options.storage, &options.log_directory())
    }

    /// Stops the database: everything committed is made durable, clients get Close 1001 `module exited`. Says what there was still
    /// to do; None: it did not end properly, and may have anything to do.
    pub async fn shutdown(self, reason: ShutdownReason) -> Option<Due> {
        // Sent or closed, it has ended.
        let _ = stop(&self.shared, reason).await;
        self.shared.status.due()
    }

    /// What there is still to do without a request. None: calls beside the writer are under way, or the database ends.
    pub async fn due(&self) -> Option<Due> {
        let permit = self.shared.inbox.capacity.permit(0).await.ok()?;
        let due = self
            .shared
            .ask(Some(permit), false, Input::Due)
            .await
            .ok()?;
        self.shared.procedures.is_idle().then_some(due)
    }

    /// Whether the database may have something to do after a crash without a request.
    pub fn acts_by_itself(&self) -> bool {
        acts_by_itself(self.shared.module().def()) || self.shared.status.migration.is_backfill()
    }

    /// Whether there are connections, streams of changes, or readers that follow the log.
    pub fn has_users(&self) -> bool {
        Arc::strong_count(&self.shared.users) > 1 || self.shared.log.is_followed()
    }

    /// Whether this is the only handle, and there are no users: no request is under way either, as each has a handle.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self._open) == 1 && !self.has_users()
    }

    /// Transactions since the database was opened.
    pub fn transactions(&self) -> u64 {
        self.shared.status.transactions.load(Ordering::Relaxed)
    }

    /// From now on an identity has no more than these rights: its connections that have more are ended, before anything that they
    /// send from now on is carried out.
    pub fn lower_rights(&self, identity: Identity, rights: Rights) {
        // Without a writer there are no connections.
        let _ = self
            .shared
            .inbox
            .send(Input::LowerRights { identity, rights });
    }

    /// What it has counted. Looks at every function and table.
    pub fn metrics(&self) -> DatabaseMetrics {
        let (shared, metrics) = (&self.shared, &self.shared.metrics);
        let limits = &shared.options.limits;
        let reads_max = limits.reads_per_database_max.max(1);
        let reads_left = shared.reads.available_permits();
        let procedures = &shared.procedures.accounts;
        DatabaseMetrics {
            module: shared.module().counters.read(SeriesMax::of(limits)),
            rounds: metrics.rounds.snapshot(),
            waits: metrics.waits.snapshot(),
            queries: std::array::from_fn(|kind| metrics.queries[kind].snapshot()),
            reads: metrics.reads.snapshot(),
            other_transactions: metrics.other_transactions.get(),
            outbound: metrics.outbound.read(),
            messages: metrics.messages.read(),
            module_log: shared.log.metrics(),
            snapshots: metrics.snapshots.read(),
            retained: self.retained(),
            replayed: metrics.replayed,
            wasm_memory_bytes: (shared.config.accounts.memory.used() + procedures.memory.used())
                as u64,
            procedure_memory_bytes: procedures.all.used() as u64,
            inbox_messages: shared.inbox.capacity.messages_taken() as u64,
            reads_under_way: reads_max.saturating_sub(reads_left) as u64,
            log_queue_bytes: self.stats().log_queue_bytes,
        }
    }

    /// Databases of a process have numbers in the order in which they were opened.
    pub fn number(&self) -> u64 {
        self.shared.number()
    }

    pub fn stats(&self) -> DatabaseStats {
        self.shared.status.stats()
    }
}

/// The arguments of a reducer, or of a procedure if there is no such reducer, from JSON.
fn read_args(
    module: &Module,
    rights: Rights,
    function: &str,
    text: &str,
    log: &ModuleLog,
    now: Timestamp,
) -> Result<Vec<u8>, CallError> {
    let (kind, typespace, params, names) = match find_reducer(module, rights, function) {
        Ok((_, reducer)) => (
            "reducer",
            &reducer.params_typespace,
            &reducer.params,
            &reducer.param_names,
        ),
        Err(refusal) if refusal.reason == RefusalReason::IsLifecycle => {
            return Err(CallError::Lifecycle(refusal.message));
        }
        Err(refusal) => {
            // As the reference does, also if there is a procedure (06 §5.13).
            log.refused_call(function, &refusal.log, now);
            let (_, procedure) =
                find_procedure(module, rights, function).ok_or(CallError::NoSuchFunction)?;
            (
                "procedure",
                &procedure.params_typespace,
                &procedure.params,
                &procedure.param_names,
            )
        }
    };
    let args = lightcone_types::json::args_from_json(typespace, params, names, function, text);
    args.map_err(|error| {
        CallError::InvalidArguments(format!("invalid arguments for {kind} {function}: {error}"))
    })
}
