//! Fan-out: committed batches in, messages per connection out, each released when what it reflects is durable.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use lightcone_log::LogError;
use lightcone_table::DeltaBatch;
use lightcone_types::{TableId, Timestamp};
use lightcone_wire::server;
use rustc_hash::FxHashMap;

use crate::courier::Ready;
use crate::environment::Environment;
use crate::events::{encode_result, Answer, Batch, CallResult, Event};
use crate::inbox::NewClient;
use crate::live_shapes::{LiveShapes, MeasuredTime, MEASURED_ONE_IN};
use crate::outbox::{poison_close, Outbox, Waiting};
use crate::outgoing::{Body, Delivery, MessageBatch, OutgoingQueue, SharedBody};
use crate::peer::ConnectionNumber;
use crate::status::FanoutStats;
use crate::subscriptions::{ConnectionUpdate, Receivers, Subscriptions};

/// A connection's messages of one round are accounted when they have this size, and at its end.
const STAGED_BYTES_MAX: usize = 1 << 20;
/// Entries of lists that are kept for the next round.
const TOUCHED_KEPT_MAX: usize = 65_536;
const ITEMS_KEPT_MAX: usize = 1024;
/// So many outlets are handed over before a round is over: their messages are sent while those of others are made.
const READY_MAX: usize = 256;
/// An update that is as long is encoded once, for all who get the same.
const SHARED_BYTES_MIN: usize = 1024;
/// What an update takes beside its query sets, about.
const UPDATE_HEAD_BYTES: usize = 32;

struct Connection {
    queue: Arc<OutgoingQueue>,
    confirmed: bool,
    /// What the present batch has for it.
    staged: Vec<Delivery>,
    open: MessageBatch,
    touched: bool,
    /// What was staged is too much for the client: it is cut at the end of the round.
    overflow: bool,
}

/// Stepped by its thread, and by the writer if nothing waits for that.
pub(crate) struct Fanout {
    connections: FxHashMap<ConnectionNumber, Connection>,
    subscriptions: Subscriptions,
    outbox: Arc<Outbox>,
    environment: Arc<dyn Environment>,
    /// Transactions so far.
    updates: u32,
    /// What the present batch has for it.
    waiting: Vec<Waiting>,
    pub stats: Arc<FanoutStats>,
    touched: Vec<ConnectionNumber>,
    /// Connections that end with this batch.
    closing: Vec<ConnectionNumber>,
    /// Of one connection, while it is looked at.
    items: Vec<Delivery>,
    /// Outlets of queues that have something new.
    ready: Ready,
}

impl Fanout {
    pub fn new(
        outbox: Arc<Outbox>,
        stats: Arc<FanoutStats>,
        environment: Arc<dyn Environment>,
    ) -> Fanout {
        Fanout {
            connections: FxHashMap::default(),
            subscriptions: Subscriptions::default(),
            outbox,
            environment,
            updates: 0,
            waiting: Vec::new(),
            stats,
            touched: Vec::new(),
            closing: Vec::new(),
            items: Vec::new(),
            ready: Ready::default(),
        }
    }

    /// Ends all connections without a Close frame: fan-out failed, or the writer did.
    pub fn cut_all(&mut self) {
        for state in self.connections.values() {
            state.queue.cut();
        }
    }

    /// Has the events of a batch reach those whom they concern, and leaves it empty.
    pub fn batch(&mut self, batch: &mut Batch) {
        let Batch {
            events,
            deltas,
            required_offset,
        } = batch;
        for event in events.drain(..) {
            self.event(event, deltas);
        }
        self.finish_batch();
        self.outbox
            .hold(*required_offset, self.waiting.drain(..), &mut self.ready);
        self.waiting.shrink_to(TOUCHED_KEPT_MAX);
        self.stats
            .live_queries
            .store(self.subscriptions.query_count() as u64, Ordering::Relaxed);
        deltas.clear();
        self.ready.hand_over();
    }

    fn event(&mut self, event: Event, deltas: &DeltaBatch) {
        match event {
            Event::Called {
                connection,
                request_id,
                timestamp,
                result,
                ops,
            } => {
                self.called(connection, request_id, timestamp, &result, deltas, ops);
            }
            Event::Committed { ops } => self.update(deltas, ops, None),
            Event::Connected { client, waiter } => {
                let NewClient {
                    connection,
                    request,
                    queue,
                    ..
                } = *client;
                let mut hello = MessageBatch::default();
                let out = hello.bytes.own();
                let (identity, id) = (request.identity, request.connection_id);
                server::initial_connection(out, identity, id, &request.token);
                hello.end_message();
                // It reflects no transaction, so it waits for none (05 §6.2).
                queue.send(Delivery::Messages(hello));
                let state = Connection {
                    queue,
                    confirmed: request.confirmed,
                    staged: Vec::new(),
                    open: MessageBatch::default(),
                    touched: false,
                    overflow: false,
                };
                self.connections.insert(connection, state);
                // The client may have gone meanwhile; its disconnect follows then.
                waiter.answer(Ok(()));
            }
            Event::Disconnected { connection } => self.forget(connection),
            Event::Subscribed { set, queries } => self.subscriptions.subscribe(set, &queries),
            Event::Unsubscribed { set, answer } => {
                self.subscriptions.unsubscribe(set);
                self.stage_answer(set.connection, answer);
            }
            Event::Resubscribed { sets } => {
                // First all go: what is known of a changed table must not stay because of some of them.
                for (set, _) in &sets {
                    self.subscriptions.unsubscribe(*set);
                }
                for (set, queries) in &sets {
                    self.subscriptions.subscribe(*set, queries);
                }
            }
            Event::Closed {
                connection,
                code,
                reason,
            } => {
                self.subscriptions.unsubscribe_all(connection);
                let reason = reason.to_owned();
                self.stage_item(connection, Delivery::Close { code, reason });
                self.closing.push(connection);
            }
            Event::Answered { connection, answer } => self.stage_answer(connection, answer),
            Event::Release { confirmed, action } => match confirmed {
                true => self.waiting.push(Waiting::Release(action)),
                false => action(Ok(())),
            },
        }
    }

    fn called(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        timestamp: Timestamp,
        result: &CallResult,
        deltas: &DeltaBatch,
        ops: Range<usize>,
    ) {
        if result.is_ok() && !ops.is_empty() {
            return self.update(deltas, ops, Some((connection, request_id, timestamp)));
        }
        self.stage(connection, |out| {
            encode_result(result, out, request_id, timestamp)
        });
    }

    /// Sends a transaction's updates; the caller gets its own inside its result (05 §6.3).
    fn update(
        &mut self,
        deltas: &DeltaBatch,
        ops: Range<usize>,
        caller: Option<(ConnectionNumber, u32, Timestamp)>,
    ) {
        let mut subscriptions = std::mem::take(&mut self.subscriptions);
        self.updates = self.updates.wrapping_add(1);
        let is_measured = self.updates.is_multiple_of(MEASURED_ONE_IN);
        let clock = is_measured.then(|| self.environment.clone());
        let begun = clock.map(|clock| (clock.instant(), clock));
        let mut updates = Updates {
            fanout: self,
            caller,
            answered: false,
            shared: None,
            cut: Vec::new(),
        };
        let took = || begun.map(|(since, clock)| clock.instant() - since);
        subscriptions.evaluate(deltas, deltas.ops(ops), &mut updates, took);
        let Updates { answered, cut, .. } = updates;
        for connection in cut {
            subscriptions.unsubscribe_all(connection);
        }
        self.subscriptions = subscriptions;
        if let (Some((connection, request_id, timestamp)), false) = (caller, answered) {
            self.stage(connection, |out| {
                server::reducer_result_ok_empty(out, request_id, timestamp)
            });
        }
    }

    fn stage(&mut self, connection: ConnectionNumber, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        write(state.open.bytes.own());
        state.open.end_message();
        if state.open.bytes.len() >= STAGED_BYTES_MAX {
            state.close_open();
        }
        if !std::mem::replace(&mut state.touched, true) {
            self.touched.push(connection);
        }
    }

    fn stage_answer(&mut self, connection: ConnectionNumber, answer: Answer) {
        // Each keeps its own charge and ticket until the client has taken it.
        if let Some(item) = answer {
            self.stage_item(connection, *item);
        }
    }

    fn stage_item(&mut self, connection: ConnectionNumber, item: Delivery) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        state.close_open();
        state.staged.push(item);
        if !std::mem::replace(&mut state.touched, true) {
            self.touched.push(connection);
        }
    }

    fn stage_shared(&mut self, connection: ConnectionNumber, body: Arc<SharedBody>) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        state.close_open();
        let batch = state.reserved(MessageBatch::of_shared(body));
        state.staged.extend(batch);
        if !std::mem::replace(&mut state.touched, true) {
            self.touched.push(connection);
        }
    }

    /// Hands the batch's messages to the connections, or to what waits for the disk.
    fn finish_batch(&mut self) {
        let mut sent = 0;
        let Fanout {
            connections,
            touched,
            items,
            waiting,
            ready,
            ..
        } = self;
        for connection in touched.drain(..) {
            let Some(state) = connections.get_mut(&connection) else {
                continue;
            };
            state.touched = false;
            items.extend(std::mem::take(&mut state.staged));
            items.extend(state.take_open());
            sent += items.len() as u64;
            let queue = &state.queue;
            if state.overflow || !queue.admit(items) {
                // As slow as a client that does not read, even if it is the disk that is behind.
                queue.cut();
                self.stats.slow_clients_cut.fetch_add(1, Ordering::Relaxed);
            } else if state.confirmed {
                waiting.extend(items.drain(..).map(|item| {
                    let queue = queue.clone();
                    Waiting::Deliver { queue, item }
                }));
            } else {
                queue.push(items.drain(..), ready);
            }
            items.clear();
            if ready.len() >= READY_MAX {
                ready.hand_over();
            }
        }
        // What waits for them in the queue is still taken.
        for connection in self.closing.drain(..) {
            connections.remove(&connection);
        }
        touched.shrink_to(TOUCHED_KEPT_MAX);
        items.shrink_to(ITEMS_KEPT_MAX);
        self.stats.messages_sent.fetch_add(sent, Ordering::Relaxed);
    }

    /// Connections that asked for results before these are durable end: they may have seen what is taken back now.
    pub fn poisoned(&mut self, error: &LogError) {
        tracing::error!(%error, "the log failed; the database is read-only from now on");
        for state in self.connections.values().filter(|state| !state.confirmed) {
            state.queue.push([poison_close(error)], &mut self.ready);
        }
        self.ready.hand_over();
    }

    /// What clients are subscribed to.
    pub fn shapes(&self, upkeep: &FxHashMap<TableId, MeasuredTime>) -> LiveShapes {
        self.subscriptions.shapes(upkeep)
    }

    fn forget(&mut self, connection: ConnectionNumber) {
        if let Some(state) = self.connections.remove(&connection) {
            state.queue.cut();
        }
        self.subscriptions.unsubscribe_all(connection);
    }

    /// Ends every connection.
    pub fn stop(&mut self, code: u16, reason: &str) {
        self.outbox.end();
        for state in self.connections.values() {
            let (code, reason) = (code, reason.to_owned());
            state
                .queue
                .push([Delivery::Close { code, reason }], &mut self.ready);
        }
        self.ready.hand_over();
    }
}

impl Connection {
    fn close_open(&mut self) {
        let open = self.take_open();
        self.staged.extend(open);
    }

    /// What is open, with what it takes reserved.
    fn take_open(&mut self) -> Option<Delivery> {
        if self.open.ends.is_empty() {
            return None;
        }
        let batch = std::mem::take(&mut self.open);
        self.reserved(batch)
    }

    /// What a batch takes is reserved.
    fn reserved(&mut self, mut batch: MessageBatch) -> Option<Delivery> {
        self.overflow |= !batch.reserve(self.queue.budget());
        // What is too much is not kept until the end of the round.
        (!self.overflow).then_some(Delivery::Messages(batch))
    }
}

/// The updates of one transaction on their way to the connections.
struct Updates<'f> {
    fanout: &'f mut Fanout,
    /// Who called, and gets its own update inside its result (05 §6.3).
    caller: Option<(ConnectionNumber, u32, Timestamp)>,
    answered: bool,
    /// What the connection before got, if it is shared.
    shared: Option<Arc<SharedBody>>,
    /// Connections that are over, because they would get too much.
    cut: Vec<ConnectionNumber>,
}

impl Receivers for Updates<'_> {
    fn free_bytes(&self, connection: ConnectionNumber) -> usize {
        let state = self.fanout.connections.get(&connection);
        state.map_or(0, |state| {
            let budget = state.queue.budget();
            let of_message = budget.message_bytes_max();
            let of_message = of_message.saturating_sub(UPDATE_HEAD_BYTES);
            budget.free_bytes().min(of_message)
        })
    }

    fn send(&mut self, update: ConnectionUpdate<'_>) {
        if !update.is_as_before {
            self.shared = None;
        }
        match self.caller {
            Some((connection, request_id, timestamp)) if connection == update.connection => {
                self.answered = true;
                self.fanout.stage(connection, |out| {
                    out.reserve(update.sets.len() + UPDATE_HEAD_BYTES);
                    let updates = (update.sets, update.set_count);
                    server::reducer_result_ok(out, request_id, timestamp, &[], updates);
                });
            }
            _ if update.sets.len() < SHARED_BYTES_MIN => {
                self.fanout.stage(update.connection, |out| {
                    out.reserve(update.sets.len() + UPDATE_HEAD_BYTES);
                    server::transaction_update(out, update.sets, update.set_count);
                });
            }
            _ => {
                let body = self.shared.get_or_insert_with(|| {
                    let mut out = Vec::with_capacity(update.sets.len() + UPDATE_HEAD_BYTES);
                    server::transaction_update(&mut out, update.sets, update.set_count);
                    Body::shared(out)
                });
                let body = body.clone();
                self.fanout.stage_shared(update.connection, body);
            }
        }
    }

    fn too_large(&mut self, connection: ConnectionNumber, bytes: usize) {
        self.cut.push(connection);
        self.answered |= self.caller.is_some_and(|(caller, ..)| caller == connection);
        let Some(state) = self.fanout.connections.get_mut(&connection) else {
            return;
        };
        tracing::debug!(bytes, "an update is too large for a client");
        self.fanout
            .stats
            .slow_clients_cut
            .fetch_add(1, Ordering::Relaxed);
        // What was staged before goes with it: the client subscribes anew.
        state.staged.clear();
        state.open = MessageBatch::default();
        let is_large_message =
            bytes.saturating_add(UPDATE_HEAD_BYTES) > state.queue.budget().message_bytes_max();
        let reason = match is_large_message {
            true => "an update is larger than limits.outgoing-message-bytes-max [LC0709]",
            false => "an update is larger than limits.client-bytes-max leaves room for [LC0709]",
        };
        let (code, reason) = (1009, reason.to_owned());
        let close = Delivery::Close { code, reason };
        state.queue.push([close], &mut self.fanout.ready);
    }
}
