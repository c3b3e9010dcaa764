//! The writer: the one thread that owns the tables and the module instance, and runs everything in order.

mod answers;
mod calls;
mod lifecycle;
mod maintenance;
mod procedures;
mod queries;
mod recovery;
mod rounds;
mod schedule;

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::Arc;

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{HostConfig, ModuleInstance};
use lightcone_log::Committer;
use lightcone_query::SelectPlan;
use lightcone_types::{ConnectionId, Timestamp};
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};

use crate::error::{CallError, ConnectError, SqlError, UpdateError};
use crate::evaluate::Source;
use crate::fanout::{Batch, Event, Message};
use crate::handle::{CallOutcome, Caller, InboxPermit, Shared};
use crate::http::{HandlerReply, HandlerRequest};
use crate::module::{Module, Program};
use crate::outgoing::OutgoingQueue;
use crate::query_load::QueryLoad;
use crate::request::{CompiledSet, Decoded, Sender};

pub(crate) use maintenance::FAILED_TEXT;

/// Items taken from the inbox at a time.
const ITEMS_PER_ROUND_MAX: usize = 1024;
/// A round is cut when its log records, deltas or events pass these bounds, so that results do not wait for it.
const ROUND_RECORD_BYTES_MAX: usize = 1 << 20;
const ROUND_DELTA_BYTES_MAX: usize = 16 << 20;
const ROUND_EVENTS_MAX: usize = 4096;

/// What the writer is asked to do.
pub(crate) enum Item {
    Requests {
        connection: u64,
        decoded: Decoded,
        message_permits: u32,
        byte_permits: u32,
    },
    Connect {
        permit: InboxPermit,
        connection: u64,
        sender: Sender,
        connection_id: ConnectionId,
        jwt_payload: Arc<str>,
        token: Arc<str>,
        confirmed: bool,
        queue: Arc<OutgoingQueue>,
        reply: oneshot::Sender<Result<oneshot::Receiver<()>, ConnectError>>,
    },
    Disconnect {
        connection: u64,
    },
    Call {
        permit: InboxPermit,
        caller: Caller,
        connection_id: ConnectionId,
        function: String,
        /// Why the call does not reach the module, otherwise: the caller comes and goes all the same.
        args: Result<Vec<u8>, CallError>,
        timestamp: Timestamp,
        reply: oneshot::Sender<Result<CallOutcome, CallError>>,
    },
    HttpRequest {
        permit: InboxPermit,
        request: Box<HandlerRequest>,
        reply: oneshot::Sender<Result<HandlerReply, CallError>>,
    },
    Query {
        permit: InboxPermit,
        caller: Caller,
        connection_id: ConnectionId,
        plan: Result<Arc<SelectPlan>, SqlError>,
        turn: QueryTurn,
        confirmed: bool,
        reply: oneshot::Sender<Result<FoundQuery, SqlError>>,
    },
    /// The first rows of a query set cannot be had; the client was told.
    SubscriptionFailed {
        connection: u64,
        query_set_id: u32,
        /// The set's own: the client may have given its id to another since.
        number: u64,
    },
    Replace {
        program: Box<Program>,
        reply: oneshot::Sender<Result<(), UpdateError>>,
    },
    /// It is time for a scheduled call.
    SchedulesDue {
        alarm: u64,
    },
    /// A snapshot thread has ended.
    SnapshotDone {
        durable_bytes: u64,
    },
    /// Another thread of the database ended because of a bug.
    Failed,
    Stop {
        code: u16,
        reason: String,
        done: oneshot::Sender<()>,
    },
}

/// How often the writer is asked about a query over HTTP, whose caller comes and goes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryTurn {
    Only,
    /// There is no permit of the database for it, and it may turn out that it needs none.
    First,
    /// It needed one.
    Second,
}

/// None: the writer did not find the rows, and may not freeze their table without a permit.
pub(crate) type FoundQuery = (Arc<SelectPlan>, Option<Source>);

struct Client {
    sender: Sender,
    connection_id: ConnectionId,
    queue: Arc<OutgoingQueue>,
    query_sets: FxHashMap<u32, QuerySet>,
    /// In all query sets.
    queries: usize,
    /// [`LiveQuery::steps_of_connection`](crate::live_query::LiveQuery::steps_of_connection) of all of them.
    query_steps: usize,
}

/// A live query set.
struct QuerySet {
    /// Never given to another.
    number: u64,
    set: CompiledSet,
}

pub(crate) struct Writer {
    pub shared: Arc<Shared>,
    pub inbox: mpsc::UnboundedReceiver<Item>,
    /// None only while the module runs.
    pub datastore: Option<Box<Datastore>>,
    pub instance: Box<dyn ModuleInstance>,
    pub module: Arc<Module>,
    pub committer: Arc<Committer>,
    pub fanout: SyncSender<Message>,
    pub used_batches: Receiver<Box<Batch>>,
    /// Offset of the next transaction.
    pub next_offset: u64,
    /// Log bytes since the newest snapshot when the database was opened.
    pub replayed_bytes: u64,
    pub state: WriterState,
}

#[derive(Default)]
pub(crate) struct WriterState {
    output: CommitOutput,
    batch: Box<Batch>,
    /// Transactions in `output.records`.
    records: u32,
    /// Where each of them ends there.
    record_ends: Vec<usize>,
    clients: FxHashMap<u64, Client>,
    /// Live queries per table.
    watchers: FxHashMap<lightcone_types::TableId, usize>,
    query_load: QueryLoad,
    /// Query sets so far.
    query_sets: u64,
    /// Batches given to fan-out.
    sent_batches: u64,
    log_bytes_at_snapshot: u64,
    snapshot_running: bool,
    schedules: schedule::Schedules,
    /// The log failed, and what of the tables was not durable is taken back.
    is_reverted: bool,
    /// A thread of the database ended because of a bug: this one is to end too.
    failed: bool,
    stop: Option<(u16, String, oneshot::Sender<()>)>,
}

impl Writer {
    pub fn run(mut self) {
        let mut items = Vec::with_capacity(ITEMS_PER_ROUND_MAX);
        self.load_schedules();
        self.run_schedules();
        while self.state.stop.is_none()
            && !self.state.failed
            && self
                .inbox
                .blocking_recv_many(&mut items, ITEMS_PER_ROUND_MAX)
                > 0
        {
            self.notice_failed_log();
            for item in items.drain(..) {
                // Who waits for what is dropped hears that the database is gone.
                if self.state.failed {
                    continue;
                }
                self.item(item);
                if self.round_is_full() {
                    self.end_round();
                }
            }
            self.end_round();
            self.run_schedules();
            self.snapshot_if_due();
        }
        self.stop();
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Requests {
                connection,
                decoded,
                message_permits,
                byte_permits,
            } => {
                self.requests(connection, decoded);
                self.shared
                    .inbox_messages
                    .add_permits(message_permits as usize);
                self.shared.inbox_bytes.add_permits(byte_permits as usize);
            }
            Item::Connect {
                permit,
                connection,
                sender,
                connection_id,
                jwt_payload,
                token,
                confirmed,
                queue,
                reply,
            } => {
                let result = self.connect(sender.identity, connection_id, &jwt_payload);
                let result = result.map(|()| {
                    self.state.clients.insert(
                        connection,
                        Client {
                            sender,
                            connection_id,
                            queue: queue.clone(),
                            query_sets: FxHashMap::default(),
                            queries: 0,
                            query_steps: 0,
                        },
                    );
                    let (accepted, receiver) = oneshot::channel();
                    self.event(Event::Connected {
                        connection,
                        queue,
                        identity: sender.identity,
                        connection_id,
                        token,
                        confirmed,
                        accepted,
                    });
                    receiver
                });
                // A caller who went away dropped his connection, whose disconnect follows.
                let _ = reply.send(result.map_err(ConnectError::from));
                drop(permit);
            }
            Item::Disconnect { connection } => self.disconnect_client(connection),
            Item::Call {
                permit,
                caller,
                connection_id,
                function,
                args,
                timestamp,
                reply,
            } => {
                let result = self.http_call(&caller, connection_id, &function, args, timestamp);
                self.reply_when_durable(true, move |durable| {
                    let result = durable.map_err(CallError::Database).and(result);
                    let _ = reply.send(result);
                    drop(permit);
                });
            }
            Item::HttpRequest {
                permit,
                request,
                reply,
            } => {
                let result = self.http_handler(&request);
                self.reply_when_durable(true, move |durable| {
                    let result = durable.map_err(CallError::Database).and(result);
                    let _ = reply.send(result);
                    drop(permit);
                });
            }
            Item::Query {
                permit,
                caller,
                connection_id,
                plan,
                turn,
                confirmed,
                reply,
            } => {
                // Whoever has gone meanwhile needs no answer.
                if !reply.is_closed() {
                    let result = self.http_query(&caller, connection_id, plan, turn);
                    self.reply_when_durable(confirmed, move |durable| {
                        let result = durable.map_err(SqlError::Database).and(result);
                        let _ = reply.send(result);
                        drop(permit);
                    });
                }
            }
            Item::SubscriptionFailed {
                connection,
                query_set_id,
                number,
            } => self.drop_subscription(connection, query_set_id, number),
            Item::Replace { program, reply } => {
                // Whoever publishes has given up waiting, and was told that nothing changed.
                if reply.is_closed() {
                    return;
                }
                let result = self.replace(*program);
                self.reply_when_durable(true, move |durable| {
                    let result = durable.map_err(UpdateError::Database).and(result);
                    let _ = reply.send(result);
                });
            }
            Item::SchedulesDue { alarm } => self.schedules_due(alarm),
            Item::SnapshotDone { durable_bytes } => {
                self.state.snapshot_running = false;
                self.state.log_bytes_at_snapshot = durable_bytes;
            }
            Item::Failed => self.state.failed = true,
            Item::Stop { code, reason, done } => self.state.stop = Some((code, reason, done)),
        }
    }

    fn event(&mut self, event: Event) {
        self.state.batch.events.push(event);
    }

    fn reply_when_durable(
        &mut self,
        confirmed: bool,
        action: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        self.event(Event::Release {
            confirmed,
            action: Box::new(action),
        });
    }

    fn datastore(&mut self) -> &mut Datastore {
        self.datastore
            .as_mut()
            .expect("the module gave the datastore back")
    }
}

impl Shared {
    pub(crate) fn host_config(&self) -> HostConfig {
        HostConfig {
            database_identity: self.options.identity,
            console: self.log.clone(),
            limits: self.options.limits.host.clone(),
        }
    }
}
