//! The writer: the one thread that owns the tables and the module instance, and runs everything in order.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::Arc;

use lightcone_engine::{
    CommitOutput, Datastore, DatastoreError, DatastoreSnapshot, ST_CLIENT_ID,
    ST_CONNECTION_CREDENTIALS_ID,
};
use lightcone_host::{
    ConsoleLevel, HostConfig, HostEnv, ModuleInstance, ReducerCall, ReducerOutcome,
    FATAL_ERROR_TEXT,
};
use lightcone_log::Committer;
use lightcone_query::SelectPlan;
use lightcone_types::{ConnectionId, Encode, Identity, Timestamp};
use lightcone_wire::server;
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};

use crate::error::{CallError, ConnectError, SqlError, UpdateError};
use crate::evaluate::{find, Source};
use crate::fanout::{Answer, Batch, CallResult, Event, Message};
use crate::handle::{CallOutcome, Caller, Shared};
use crate::module::{Module, Program};
use crate::outgoing::OutgoingQueue;
use crate::request::{decode, resolve_call, Decoded, Request, Sender};

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
        byte_permits: u32,
    },
    Connect {
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
        caller: Caller,
        connection_id: ConnectionId,
        function: String,
        args: Vec<u8>,
        timestamp: Timestamp,
        reply: oneshot::Sender<Result<CallOutcome, CallError>>,
    },
    Query {
        caller: Caller,
        connection_id: ConnectionId,
        plan: Arc<SelectPlan>,
        confirmed: bool,
        reply: oneshot::Sender<Result<Source, SqlError>>,
    },
    Replace {
        program: Box<Program>,
        reply: oneshot::Sender<Result<(), UpdateError>>,
    },
    /// A snapshot thread has ended.
    SnapshotDone {
        durable_bytes: u64,
    },
    Stop {
        code: u16,
        reason: String,
        done: oneshot::Sender<()>,
    },
}

struct Client {
    sender: Sender,
    connection_id: ConnectionId,
    query_sets: FxHashMap<u32, Vec<Arc<SelectPlan>>>,
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
    clients: FxHashMap<u64, Client>,
    /// Live queries per table.
    watchers: FxHashMap<lightcone_types::TableId, usize>,
    log_bytes_at_snapshot: u64,
    snapshot_running: bool,
    failed: bool,
    stop: Option<(u16, String, oneshot::Sender<()>)>,
}

impl Writer {
    pub fn run(mut self) {
        let mut items = Vec::with_capacity(ITEMS_PER_ROUND_MAX);
        while self.state.stop.is_none()
            && !self.state.failed
            && self
                .inbox
                .blocking_recv_many(&mut items, ITEMS_PER_ROUND_MAX)
                > 0
        {
            for item in items.drain(..) {
                self.item(item);
                if self.round_is_full() {
                    self.end_round();
                }
            }
            self.end_round();
            self.snapshot_if_due();
        }
        self.stop();
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Requests {
                connection,
                decoded,
                byte_permits,
            } => {
                self.requests(connection, decoded);
                self.shared.inbox_messages.add_permits(1);
                self.shared.inbox_bytes.add_permits(byte_permits as usize);
            }
            Item::Connect {
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
                            query_sets: FxHashMap::default(),
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
                let _ =
                    reply.send(result.map_err(|refused| ConnectError::Rejected(refused.text())));
            }
            Item::Disconnect { connection } => self.disconnect_client(connection),
            Item::Call {
                caller,
                connection_id,
                function,
                args,
                timestamp,
                reply,
            } => {
                let result = self.http_call(&caller, connection_id, &function, &args, timestamp);
                self.reply_when_durable(true, move |durable| {
                    let result = durable.map_err(CallError::Database).and(result);
                    let _ = reply.send(result);
                });
            }
            Item::Query {
                caller,
                connection_id,
                plan,
                confirmed,
                reply,
            } => {
                let result = self.http_query(&caller, connection_id, &plan);
                self.reply_when_durable(confirmed, move |durable| {
                    let result = durable.map_err(SqlError::Database).and(result);
                    let _ = reply.send(result);
                });
            }
            Item::Replace { program, reply } => {
                let result = self.replace(*program);
                self.reply_when_durable(true, move |durable| {
                    let result = durable.map_err(UpdateError::Database).and(result);
                    let _ = reply.send(result);
                });
            }
            Item::SnapshotDone { durable_bytes } => {
                self.state.snapshot_running = false;
                self.state.log_bytes_at_snapshot = durable_bytes;
            }
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

    // ---- rounds -----------------------------------------------------------------------------------------------------

    fn round_is_full(&self) -> bool {
        let state = &self.state;
        state.output.records.len() >= ROUND_RECORD_BYTES_MAX
            || state.output.deltas.bytes_len() >= ROUND_DELTA_BYTES_MAX
            || state.batch.events.len() >= ROUND_EVENTS_MAX
    }

    /// Gives the round's records to the log and its events to fan-out.
    fn end_round(&mut self) {
        let state = &mut self.state;
        if state.records > 0 {
            let payload =
                std::mem::replace(&mut state.output.records, self.committer.take_buffer());
            state.output.records.clear();
            let first_offset = self.next_offset - u64::from(state.records);
            if let Err(error) = self.committer.submit(first_offset, state.records, payload) {
                // Fan-out hears of the failure from the log itself and never releases these results.
                self.shared.set_read_only(&error.to_string());
            }
            self.shared
                .transactions
                .fetch_add(u64::from(state.records), Ordering::Relaxed);
            state.records = 0;
        }
        if !state.batch.events.is_empty() {
            let mut batch = std::mem::replace(
                &mut state.batch,
                self.used_batches.try_recv().unwrap_or_default(),
            );
            std::mem::swap(&mut batch.deltas, &mut state.output.deltas);
            state.output.deltas.clear();
            batch.required_offset = self.next_offset;
            // Fan-out ends after the writer, unless it failed: then nobody would be answered any more.
            if self.fanout.send(Message::Batch(batch)).is_err() {
                self.state.failed = true;
            }
        }
    }

    /// Commits the open transaction. Returns the changes for fan-out.
    fn commit(&mut self) -> std::ops::Range<usize> {
        let output = &mut self.state.output;
        if output.records.is_empty() {
            lightcone_engine::record::put_clock(&mut output.records, Timestamp::now().0);
        }
        let start = output.deltas.position();
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        if datastore.commit(output) {
            self.state.records += 1;
            self.next_offset += 1;
        }
        start..self.state.output.deltas.position()
    }

    // ---- requests of clients ------------------------------------------------------------------------------------

    fn requests(&mut self, connection: u64, mut decoded: Decoded) {
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let (sender, connection_id) = (client.sender, client.connection_id);
        if decoded.version != self.module.version {
            decoded = decode(&self.module, &sender, decoded.payload, decoded.timestamp);
        }
        let Decoded {
            timestamp,
            payload,
            requests,
            ..
        } = decoded;
        for request in requests {
            match request {
                Request::Call {
                    request_id,
                    reducer,
                    args,
                } => {
                    let args = &payload[args.start as usize..args.end as usize];
                    let (result, ops) =
                        self.call(reducer, sender.identity, connection_id, timestamp, args);
                    self.event(Event::Called {
                        connection,
                        request_id,
                        timestamp,
                        result,
                        ops,
                    });
                }
                Request::RejectedCall {
                    request_id,
                    message,
                    log,
                    function,
                } => {
                    self.shared
                        .log
                        .host(ConsoleLevel::Error, Some(&function), &log, timestamp);
                    let result = CallResult::InternalError(message);
                    self.event(Event::Called {
                        connection,
                        request_id,
                        timestamp: Timestamp::now(),
                        result,
                        ops: 0..0,
                    });
                }
                Request::Procedure {
                    request_id,
                    message,
                } => {
                    let mut answer = Vec::new();
                    server::procedure_result_internal_error(&mut answer, request_id, &message);
                    self.event(Event::Answered {
                        connection,
                        answer: Answer::Ready(answer),
                    });
                }
                Request::Subscribe {
                    request_id,
                    query_set_id,
                    plans,
                } => {
                    self.subscribe(connection, request_id, query_set_id, plans);
                }
                Request::Unsubscribe {
                    request_id,
                    query_set_id,
                    send_dropped_rows,
                } => {
                    self.unsubscribe(connection, request_id, query_set_id, send_dropped_rows);
                }
                Request::OneOff { request_id, plan } => self.one_off(connection, request_id, plan),
            }
            if self.round_is_full() {
                self.end_round();
            }
        }
    }

    /// Runs a reducer as a transaction.
    fn call(
        &mut self,
        reducer: u32,
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) -> (CallResult, std::ops::Range<usize>) {
        if let Some(reason) = self.shared.read_only() {
            return (CallResult::InternalError(reason), 0..0);
        }
        self.datastore().begin();
        match self.execute(reducer, identity, connection_id, timestamp, args) {
            ReducerOutcome::Ok => (CallResult::Committed, self.commit()),
            outcome => {
                self.datastore().rollback();
                (self.failed(reducer, outcome, timestamp), 0..0)
            }
        }
    }

    /// Runs a reducer in the open transaction and replaces the instance if it trapped.
    fn execute(
        &mut self,
        reducer: u32,
        identity: Identity,
        connection_id: ConnectionId,
        timestamp: Timestamp,
        args: &[u8],
    ) -> ReducerOutcome {
        let call = ReducerCall {
            id: reducer,
            name: &self.module.reducer_names[reducer as usize],
            sender: identity,
            connection_id,
            timestamp,
            args,
        };
        let outcome = self.instance.call_reducer(&mut self.datastore, &call);
        if self.instance.is_poisoned() {
            self.replace_instance();
        }
        outcome
    }

    fn replace_instance(&mut self) {
        let env = HostEnv::new(self.shared.host_config());
        match self.module.program.loaded.instantiate(env) {
            Ok(instance) => self.instance = instance,
            // The poisoned instance refuses calls; the next trap of a call tries again.
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the module cannot be instantiated again")
            }
        }
    }

    fn failed(
        &mut self,
        reducer: u32,
        outcome: ReducerOutcome,
        timestamp: Timestamp,
    ) -> CallResult {
        let name = self.module.reducer_names[reducer as usize].clone();
        match outcome {
            ReducerOutcome::Ok => CallResult::Committed,
            ReducerOutcome::UserError(text) => {
                self.shared
                    .log
                    .host(ConsoleLevel::Error, Some(&name), &text, timestamp);
                CallResult::UserError(text)
            }
            ReducerOutcome::Fatal { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer trapped");
                CallResult::InternalError(FATAL_ERROR_TEXT.to_owned())
            }
            ReducerOutcome::TimedOut { message } => {
                tracing::warn!(database = %self.shared.options.identity, reducer = %name, %message, "a reducer was stopped");
                CallResult::InternalError(format!("reducer ran out of energy: {message}"))
            }
        }
    }

    fn subscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        plans: Result<Vec<Arc<SelectPlan>>, String>,
    ) {
        let query_sets_max = self.shared.options.limits.query_sets_max;
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let plans = plans.and_then(|plans| {
            if client.query_sets.contains_key(&query_set_id) {
                Err(format!("Subscription with id QuerySetId {{ id: {query_set_id} }} already exists for client: ({}, {})", client.sender.identity, client.connection_id))
            } else if client.query_sets.len() >= query_sets_max {
                Err(format!("a connection holds at most {query_sets_max} query sets [LC0704]"))
            } else {
                Ok(plans)
            }
        });
        let caller = client.sender.identity;
        match plans {
            Err(error) => self.subscription_error(connection, request_id, query_set_id, &error),
            Ok(plans) => {
                let answer = self.evaluate(&plans, move |message, rows| {
                    let mut entries = server::subscribe_applied(message, request_id, query_set_id);
                    entries.encoded(&rows.entries, rows.count);
                });
                for plan in &plans {
                    self.watch(plan.table.id, 1);
                }
                let client = self.state.clients.get_mut(&connection).expect("just seen");
                client.query_sets.insert(query_set_id, plans.clone());
                self.event(Event::Subscribed {
                    connection,
                    query_set_id,
                    caller,
                    plans,
                    answer,
                });
            }
        }
    }

    fn subscription_error(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        error: &str,
    ) {
        let mut answer = Vec::new();
        server::subscription_error(&mut answer, Some(request_id), query_set_id, error);
        self.event(Event::Answered {
            connection,
            answer: Answer::Ready(answer),
        });
    }

    fn unsubscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        send_dropped_rows: bool,
    ) {
        let Some(client) = self.state.clients.get_mut(&connection) else {
            return;
        };
        let Some(plans) = client.query_sets.remove(&query_set_id) else {
            let error = format!(
                "Subscription not found: ({}, {}, {query_set_id})",
                client.sender.identity, client.connection_id
            );
            return self.subscription_error(connection, request_id, query_set_id, &error);
        };
        for plan in &plans {
            self.watch(plan.table.id, -1);
        }
        let answer = if send_dropped_rows {
            self.evaluate(&plans, move |message, rows| {
                server::unsubscribe_applied(message, request_id, query_set_id)
                    .encoded(&rows.entries, rows.count);
            })
        } else {
            let mut message = Vec::new();
            server::unsubscribe_applied_without_rows(&mut message, request_id, query_set_id);
            Answer::Ready(message)
        };
        self.event(Event::Unsubscribed {
            connection,
            query_set_id,
            answer,
        });
    }

    fn one_off(&mut self, connection: u64, request_id: u32, plan: Result<Arc<SelectPlan>, String>) {
        let answer = match plan {
            Ok(plan) => self.evaluate_with(&[plan], true, move |message, rows| {
                server::one_off_query_ok(message, request_id).encoded(&rows.entries, rows.count);
            }),
            Err(error) => {
                let mut message = Vec::new();
                server::one_off_query_err(&mut message, request_id, &error);
                Answer::Ready(message)
            }
        };
        self.event(Event::Answered { connection, answer });
    }

    fn evaluate(
        &mut self,
        plans: &[Arc<SelectPlan>],
        write: impl FnOnce(&mut Vec<u8>, Entries) + Send + 'static,
    ) -> Answer {
        self.evaluate_with(plans, false, write)
    }

    /// Evaluates plans on the committed state: here if it is cheap, on another thread otherwise.
    fn evaluate_with(
        &mut self,
        plans: &[Arc<SelectPlan>],
        keep_empty: bool,
        write: impl FnOnce(&mut Vec<u8>, Entries) + Send + 'static,
    ) -> Answer {
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        let sources: Vec<_> = plans
            .iter()
            .map(|plan| (plan.clone(), find(datastore, plan)))
            .collect();
        let deferred = sources.iter().any(|(_, source)| source.is_deferred());
        let make = move || {
            let mut entries = Entries::default();
            for (plan, source) in &sources {
                if keep_empty || !source.table_is_empty() {
                    entries.push(plan, source);
                }
            }
            let mut message = Vec::new();
            write(&mut message, entries);
            message
        };
        if !deferred {
            return Answer::Ready(make());
        }
        let (sender, receiver) = oneshot::channel();
        let scans = self.shared.scans.clone();
        self.shared.runtime.spawn(async move {
            let permit = scans.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                // The connection may be gone by now.
                let _ = sender.send(make());
                drop(permit);
            });
        });
        Answer::Deferred(receiver)
    }

    fn watch(&mut self, table: lightcone_types::TableId, change: isize) {
        let count = self.state.watchers.entry(table).or_default();
        let before = *count;
        *count = before.saturating_add_signed(change);
        let after = *count;
        if (before == 0) != (after == 0) {
            self.datastore().set_watched(table, after > 0);
        }
    }

    // ---- lifecycle --------------------------------------------------------------------------------------------------

    /// One transaction: the client's rows, then the module's connect reducer (05 §11).
    fn connect(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
        jwt_payload: &str,
    ) -> Result<(), CallResultText> {
        if let Some(reason) = self.shared.read_only() {
            // Reads go on; there is just no row about this client.
            tracing::debug!(%reason, "a client connects to a read-only database");
            return Ok(());
        }
        let datastore = self.datastore();
        datastore.begin();
        let mut credentials = connection_id.to_vec();
        jwt_payload.encode(&mut credentials);
        let rows = datastore
            .insert(
                ST_CLIENT_ID,
                &client_row(identity, connection_id),
                &mut Vec::new(),
            )
            .and_then(|()| {
                datastore.insert(ST_CONNECTION_CREDENTIALS_ID, &credentials, &mut Vec::new())
            });
        if let Err(error) = rows {
            datastore.rollback();
            return Err(CallResultText(format!(
                "the connection id is in use: {error}"
            )));
        }
        let Some(reducer) = self.module.def().on_connect else {
            let ops = self.commit();
            self.event(Event::Committed { ops });
            return Ok(());
        };
        let timestamp = Timestamp::now();
        match self.execute(reducer as u32, identity, connection_id, timestamp, &[]) {
            ReducerOutcome::Ok => {
                let ops = self.commit();
                self.event(Event::Committed { ops });
                Ok(())
            }
            outcome => {
                self.datastore().rollback();
                match self.failed(reducer as u32, outcome, timestamp) {
                    CallResult::UserError(text) | CallResult::InternalError(text) => {
                        Err(CallResultText(text))
                    }
                    CallResult::Committed => unreachable!("only failed outcomes get here"),
                }
            }
        }
    }

    fn disconnect_client(&mut self, connection: u64) {
        let Some(client) = self.state.clients.remove(&connection) else {
            return;
        };
        for plan in client.query_sets.values().flatten() {
            self.watch(plan.table.id, -1);
        }
        self.event(Event::Disconnected { connection });
        self.disconnect(client.sender.identity, client.connection_id);
    }

    /// Removes the client's rows, in the transaction of the disconnect reducer if that succeeds (05 §11).
    pub(crate) fn disconnect(&mut self, identity: Identity, connection_id: ConnectionId) {
        if self.shared.read_only().is_some() {
            return;
        }
        if let Some(reducer) = self.module.def().on_disconnect {
            self.datastore().begin();
            if !self.has_client_row(identity, connection_id) {
                return self.datastore().rollback();
            }
            let timestamp = Timestamp::now();
            match self.execute(reducer as u32, identity, connection_id, timestamp, &[]) {
                ReducerOutcome::Ok if self.delete_client_rows(identity, connection_id).is_ok() => {
                    let ops = self.commit();
                    return self.event(Event::Committed { ops });
                }
                outcome => {
                    self.datastore().rollback();
                    self.failed(reducer as u32, outcome, timestamp);
                }
            }
        }
        self.datastore().begin();
        match self.delete_client_rows(identity, connection_id) {
            Ok(()) => {
                let ops = self.commit();
                self.event(Event::Committed { ops });
            }
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the rows of a client that left stay until the next start");
                self.datastore().rollback();
            }
        }
    }

    fn has_client_row(&mut self, identity: Identity, connection_id: ConnectionId) -> bool {
        let table = self
            .datastore()
            .table(ST_CLIENT_ID)
            .expect("system tables exist");
        table
            .find_equal(&client_row(identity, connection_id))
            .is_some()
    }

    fn delete_client_rows(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
    ) -> Result<(), DatastoreError> {
        let mut rows = 1_u32.to_vec();
        rows.extend(client_row(identity, connection_id));
        let datastore = self.datastore();
        let index = datastore
            .schema(ST_CONNECTION_CREDENTIALS_ID)
            .expect("system tables exist")
            .indexes[0]
            .id;
        datastore.delete_all_by_eq(ST_CLIENT_ID, &rows)?;
        datastore.delete_by_index_point(index, &connection_id.to_vec())?;
        Ok(())
    }

    // ---- HTTP -----------------------------------------------------------------------------------------------------

    fn http_call(
        &mut self,
        caller: &Caller,
        connection_id: ConnectionId,
        function: &str,
        args: &[u8],
        timestamp: Timestamp,
    ) -> Result<CallOutcome, CallError> {
        let is_owner = caller.identity == self.shared.options.owner;
        self.connect(caller.identity, connection_id, &caller.jwt_payload)
            .map_err(|refused| CallError::ConnectRejected(refused.text()))?;
        let started = std::time::Instant::now();
        let result = match resolve_call(&self.module, is_owner, function, args) {
            Err(refusal) => {
                self.shared
                    .log
                    .host(ConsoleLevel::Error, Some(function), &refusal.log, timestamp);
                Err(CallError::InvalidArguments(refusal.message))
            }
            Ok(reducer) => {
                let (result, ops) =
                    self.call(reducer, caller.identity, connection_id, timestamp, args);
                self.event(Event::Committed { ops });
                let outcome = CallOutcome {
                    execution_us: started.elapsed().as_micros() as u64,
                    energy_used: 0,
                };
                match result {
                    CallResult::Committed => Ok(outcome),
                    CallResult::UserError(message) => {
                        Err(CallError::UserError { message, outcome })
                    }
                    CallResult::InternalError(text) if text == FATAL_ERROR_TEXT => {
                        Err(CallError::Fatal { outcome })
                    }
                    CallResult::InternalError(text)
                        if text.starts_with("reducer ran out of energy") =>
                    {
                        Err(CallError::TimedOut { outcome })
                    }
                    CallResult::InternalError(text) => Err(CallError::Database(text)),
                }
            }
        };
        self.disconnect(caller.identity, connection_id);
        result
    }

    fn http_query(
        &mut self,
        caller: &Caller,
        connection_id: ConnectionId,
        plan: &Arc<SelectPlan>,
    ) -> Result<Source, SqlError> {
        self.connect(caller.identity, connection_id, &caller.jwt_payload)
            .map_err(|refused| SqlError::ConnectRejected(refused.text()))?;
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        let source = find(datastore, plan);
        self.disconnect(caller.identity, connection_id);
        Ok(source)
    }

    // ---- publish, snapshots, end --------------------------------------------------------------------------------

    /// Swaps the program for one with the same schema. Clients and subscriptions stay (02 §14.1).
    fn replace(&mut self, program: Program) -> Result<(), UpdateError> {
        if let Some(reason) = self.shared.read_only() {
            return Err(UpdateError::Database(reason));
        }
        let env = HostEnv::new(self.shared.host_config());
        let instance = program
            .loaded
            .instantiate(env)
            .map_err(|error| UpdateError::Module(error.to_string()))?;
        let datastore = self.datastore();
        let mut record = datastore
            .module_record()
            .expect("a running database has a module");
        record.program_kind = program.kind as u8;
        record.program_hash = program.hash;
        record.program = program.bytes.to_vec();
        datastore.begin();
        if let Err(error) = datastore.set_module_record(&record) {
            datastore.rollback();
            return Err(UpdateError::Database(error.to_string()));
        }
        let ops = self.commit();
        self.event(Event::Committed { ops });
        let log = self.shared.log.clone();
        log.info(&format!("Updated program to {}", program.hash.to_hex()));
        let catalog = crate::catalog::CatalogView::new(self.datastore(), &program.def);
        let module = Arc::new(Module::new(self.module.version + 1, program, catalog));
        self.module = module.clone();
        self.shared.set_module(module);
        self.instance = instance;
        log.info("Database updated");
        crate::open::warn_unsupported(&log, self.module.def());
        Ok(())
    }

    fn snapshot_if_due(&mut self) {
        let limits = &self.shared.options.limits;
        if self.state.snapshot_running
            || self.shared.options.in_memory
            || self.shared.read_only().is_some()
        {
            return;
        }
        let log_bytes = self.replayed_bytes + self.committer.stats().log_bytes;
        if log_bytes.saturating_sub(self.state.log_bytes_at_snapshot) < limits.snapshot_log_bytes {
            return;
        }
        self.state.snapshot_running = true;
        let snapshot = self.datastore().snapshot();
        let (shared, next_offset) = (self.shared.clone(), self.next_offset);
        let committer = self.shared.committer_view(&self.committer);
        self.shared.runtime.spawn_blocking(move || {
            write_snapshot(&shared, &snapshot, next_offset, &committer);
            let _ = shared.send(Item::SnapshotDone {
                durable_bytes: log_bytes,
            });
        });
    }

    fn stop(mut self) {
        self.inbox.close();
        self.shared.inbox_messages.close();
        self.shared.inbox_bytes.close();
        let (code, reason, done) = match self.state.stop.take() {
            Some((code, reason, done)) => (code, reason, Some(done)),
            None => (1001, "module exited".to_owned(), None),
        };
        self.end_round();
        self.shared.forget_log();
        let committer = sole_owner(self.committer);
        if let Err(error) = committer.shutdown() {
            tracing::error!(database = %self.shared.options.identity, %error, "the log did not end properly");
        }
        let (fanout_done, wait) = oneshot::channel();
        let _ = self.fanout.send(Message::Stop {
            code,
            reason,
            done: fanout_done,
        });
        let _ = wait.blocking_recv();
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

/// Waits for a snapshot thread or a reader of statistics to let go of the log.
fn sole_owner(mut committer: Arc<Committer>) -> Committer {
    loop {
        match Arc::try_unwrap(committer) {
            Ok(committer) => return committer,
            Err(shared) => committer = shared,
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits until the snapshot's transactions are durable in the log, so that the log never ends before it.
fn write_snapshot(
    shared: &Shared,
    snapshot: &DatastoreSnapshot,
    next_offset: u64,
    committer: &crate::handle::CommitterView,
) {
    let result = committer.wait_durable(next_offset).and_then(|()| {
        let store =
            lightcone_snapshot::SnapshotStore::open(&shared.options.directory.join("snapshots"))
                .map_err(|error| error.to_string())?;
        snapshot
            .write_to(&store, next_offset)
            .map_err(|error| error.to_string())?;
        store
            .prune(shared.options.limits.snapshots_kept)
            .map_err(|error| error.to_string())?;
        let oldest = store
            .offsets()
            .map_err(|error| error.to_string())?
            .first()
            .copied();
        if let Some(oldest) = oldest {
            committer.trim(oldest);
        }
        Ok(())
    });
    if let Err(error) = result {
        tracing::error!(database = %shared.options.identity, %error, "no snapshot was written; the log keeps everything");
    }
}

/// The text of a refused connect.
struct CallResultText(String);

impl CallResultText {
    fn text(self) -> String {
        self.0
    }
}

/// `SingleTableRows` entries, encoded.
#[derive(Default)]
struct Entries {
    entries: Vec<u8>,
    count: u32,
}

impl Entries {
    fn push(&mut self, plan: &SelectPlan, source: &Source) {
        plan.table.name.encode(&mut self.entries);
        if let Err(error) = source.write_row_list(plan, &mut self.entries) {
            tracing::error!(query = plan.text, %error, "the result of a query is too large for the protocol");
        }
        self.count += 1;
    }
}

pub(crate) fn client_row(identity: Identity, connection_id: ConnectionId) -> Vec<u8> {
    let mut row = identity.to_vec();
    connection_id.encode(&mut row);
    row
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
