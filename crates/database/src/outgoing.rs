//! The queue of one connection's messages, between fan-out and the connection's outlet.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use lightcone_wire::Compression;
use parking_lot::Mutex;
use smallvec::{smallvec, SmallVec};
use tokio::sync::{oneshot, Notify, OwnedSemaphorePermit};

use crate::budget::{Charge, ClientBudget};
use crate::courier::{hand_over, Courier, Outlet, Ready};

/// The bytes of messages.
#[derive(Debug)]
pub enum Body {
    /// Of one connection.
    Own(Vec<u8>),
    /// One message that several connections get.
    Shared(Arc<SharedBody>),
}

/// A message that is encoded, and compressed, once for all who get it.
#[derive(Debug)]
pub struct SharedBody {
    bytes: Vec<u8>,
    /// By algorithm: Brotli, gzip.
    compressed: [OnceLock<Vec<u8>>; 2],
}

impl SharedBody {
    /// Whether it has been compressed so already.
    pub fn is_compressed(&self, compression: Compression) -> bool {
        match compression {
            Compression::None => true,
            Compression::Brotli => self.compressed[0].get().is_some(),
            Compression::Gzip => self.compressed[1].get().is_some(),
        }
    }

    /// The message as `compress` makes it, which is asked once for each algorithm.
    pub fn compressed(
        &self,
        compression: Compression,
        compress: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> &[u8] {
        let place = match compression {
            Compression::None => return &self.bytes,
            Compression::Brotli => 0,
            Compression::Gzip => 1,
        };
        self.compressed[place].get_or_init(|| compress(&self.bytes))
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::Own(Vec::new())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Own(bytes)
    }
}

impl Deref for Body {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Body::Own(bytes) => bytes,
            Body::Shared(body) => &body.bytes,
        }
    }
}

impl Body {
    /// A message for several connections.
    pub(crate) fn shared(bytes: Vec<u8>) -> Arc<SharedBody> {
        Arc::new(SharedBody {
            bytes,
            compressed: Default::default(),
        })
    }

    pub fn is_shared(&self) -> bool {
        matches!(self, Body::Shared(_))
    }

    /// Bytes that are this connection's own, to write more messages behind them.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        if let Body::Shared(body) = self {
            *self = Body::Own(body.bytes.clone());
        }
        match self {
            Body::Own(bytes) => bytes,
            Body::Shared(_) => unreachable!("it was just copied"),
        }
    }

    /// Bytes of memory. What is shared counts for each who gets it as if he were the only one.
    fn memory_bytes(&self) -> usize {
        match self {
            Body::Own(bytes) => bytes.capacity(),
            Body::Shared(body) => body.bytes.len(),
        }
    }
}

/// Encoded server messages, back to back, in order, without payload tags.
#[derive(Debug, Default)]
pub struct MessageBatch {
    pub bytes: Body,
    /// End of each message in `bytes`.
    pub ends: SmallVec<[usize; 1]>,
    /// What is reserved for them, until the batch is dropped.
    pub(crate) charge: Charge,
    /// A read whose answer this is.
    pub(crate) ticket: Option<Box<ReadTicket>>,
}

impl MessageBatch {
    /// Ends the message that was just written to `bytes`.
    #[inline]
    pub(crate) fn end_message(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn of(message: Vec<u8>) -> MessageBatch {
        MessageBatch {
            ends: smallvec![message.len()],
            bytes: message.into(),
            ..MessageBatch::default()
        }
    }

    pub(crate) fn of_shared(body: Arc<SharedBody>) -> MessageBatch {
        MessageBatch {
            ends: smallvec![body.bytes.len()],
            bytes: Body::Shared(body),
            ..MessageBatch::default()
        }
    }

    /// Takes over the messages of a batch of the same connection.
    pub fn append(&mut self, other: MessageBatch) {
        let start = self.bytes.len();
        self.bytes.own().extend_from_slice(&other.bytes);
        for end in &other.ends {
            self.ends.push(start + end);
        }
        self.charge.merge(other.charge);
        if self.ticket.is_none() {
            self.ticket = other.ticket;
        }
    }

    /// Bytes of memory that the batch takes.
    fn memory_bytes(&self) -> usize {
        let ends = match self.ends.spilled() {
            true => self.ends.capacity() * size_of::<usize>(),
            false => 0,
        };
        self.bytes.memory_bytes() + ends
    }

    /// Reserves what the batch takes. False if that is too much for the client.
    pub(crate) fn reserve(&mut self, budget: &Arc<ClientBudget>) -> bool {
        if !self.charge.is_none() {
            return true;
        }
        match budget.reserve(self.memory_bytes()) {
            Ok(charge) => {
                self.charge = charge;
                true
            }
            Err(_) => false,
        }
    }
}

/// A query that a client may have under way; given back when it is answered and the client has taken the answer.
#[derive(Debug)]
pub(crate) struct ReadTicket {
    pub _of_client: OwnedSemaphorePermit,
    /// Given back as soon as the answer is there: one client that takes nothing must not hold up the others.
    pub of_database: Option<OwnedSemaphorePermit>,
    /// In place of the database's permit: lets the writer look whether it finds the answer itself, also while others have all
    /// permits of the database.
    pub first_try: Option<OwnedSemaphorePermit>,
    /// Takes the ticket back if the query is to be asked again. Dropped otherwise.
    pub way_back: Option<oneshot::Sender<GivenBack>>,
    /// How often it was given back for an index that was being built.
    pub waits: u32,
}

/// A ticket of a query that is to be asked again, with a permit of the database.
#[derive(Debug)]
pub(crate) struct GivenBack {
    pub ticket: ReadTicket,
    /// Not before this ends.
    pub until: Option<oneshot::Receiver<()>>,
}

impl ReadTicket {
    pub fn new(
        of_client: OwnedSemaphorePermit,
        of_database: Option<OwnedSemaphorePermit>,
    ) -> ReadTicket {
        ReadTicket {
            _of_client: of_client,
            of_database,
            first_try: None,
            way_back: None,
            waits: 0,
        }
    }

    /// For a query that cannot do without a permit of the database.
    pub fn give_back(self) {
        self.give_back_until(None);
    }

    /// For a query that waits for an index.
    pub fn wait_for(mut self, index: oneshot::Receiver<()>) {
        self.waits += 1;
        self.give_back_until(Some(index));
    }

    fn give_back_until(mut self, until: Option<oneshot::Receiver<()>>) {
        let Some(way_back) = self.way_back.take() else {
            return;
        };
        // Others go first meanwhile.
        let ticket = self.evaluated();
        // The connection may be gone by now.
        let _ = way_back.send(GivenBack { ticket, until });
    }

    /// The query is not asked again.
    pub fn settled(mut self) -> ReadTicket {
        self.way_back = None;
        self
    }

    /// The answer is there, and only has to be taken.
    pub fn evaluated(mut self) -> ReadTicket {
        (self.of_database, self.first_try) = (None, None);
        self.settled()
    }
}

/// What the connection task has to do next.
#[derive(Debug)]
pub enum Outgoing {
    Messages(MessageBatch),
    Close { code: u16, reason: String },
}

/// An entry of the queue.
pub(crate) enum Delivery {
    Messages(MessageBatch),
    /// One message that another thread is still making; everything behind it waits (05 §10).
    Deferred(oneshot::Receiver<MessageBatch>),
    Close {
        code: u16,
        reason: String,
    },
}

impl Delivery {
    fn messages(&self) -> usize {
        match self {
            Delivery::Messages(batch) => batch.ends.len(),
            Delivery::Deferred(_) => 1,
            Delivery::Close { .. } => 0,
        }
    }
}

#[derive(Default)]
struct State {
    items: VecDeque<Delivery>,
    /// Nothing more will come; what is queued may still be taken.
    ended: bool,
    /// Who is told when something comes. Until there is one, it is the caller that waits in `recv`.
    outlet: Option<(Arc<dyn Outlet>, Arc<Courier>)>,
    /// The outlet was told, and has not found the queue empty since.
    is_told: bool,
}

/// Shared by fan-out (which pushes) and the connection's outlet (which takes).
pub(crate) struct OutgoingQueue {
    state: Mutex<State>,
    ready: Notify,
    budget: Arc<ClientBudget>,
    /// Messages that were admitted and not yet taken, also those that wait for the disk.
    messages: AtomicUsize,
    messages_max: usize,
    /// The client has said that it leaves, or has to.
    has_left: AtomicBool,
}

impl OutgoingQueue {
    pub fn new(messages_max: usize, budget: Arc<ClientBudget>) -> Arc<OutgoingQueue> {
        Arc::new(OutgoingQueue {
            state: Mutex::default(),
            ready: Notify::new(),
            budget,
            messages: AtomicUsize::new(0),
            messages_max,
            has_left: AtomicBool::new(false),
        })
    }

    pub fn budget(&self) -> &Arc<ClientBudget> {
        &self.budget
    }

    /// Accounts items, which are pushed now or when they are durable. False: the client is too slow, or what it asked for
    /// is too much; its connection is to be cut.
    pub fn admit(&self, items: &mut [Delivery]) -> bool {
        let mut count = 0;
        for item in items {
            count += item.messages();
            let is_reserved = match item {
                Delivery::Messages(batch) => batch.reserve(&self.budget),
                Delivery::Deferred(_) | Delivery::Close { .. } => true,
            };
            if !is_reserved {
                return false;
            }
        }
        self.messages.fetch_add(count, Relaxed) + count <= self.messages_max
    }

    /// Admits and pushes one item, or cuts the connection. False if the connection is over.
    pub fn send(&self, item: Delivery) -> bool {
        let mut items = [item];
        if !self.admit(&mut items) {
            self.cut();
            return false;
        }
        match self.append(items) {
            Appended::Over => return false,
            Appended::Told(outlet, courier) => hand_over(outlet, &courier),
            Appended::Seen => {}
        }
        true
    }

    /// Appends items that were admitted. The outlet, if it has to be told, is added to `ready`.
    pub fn push(&self, items: impl IntoIterator<Item = Delivery>, ready: &mut Ready) {
        if let Appended::Told(outlet, courier) = self.append(items) {
            ready.add(outlet, &courier);
        }
    }

    fn append(&self, items: impl IntoIterator<Item = Delivery>) -> Appended {
        let mut state = self.state.lock();
        if state.ended {
            return Appended::Over;
        }
        for item in items {
            state.ended |= matches!(item, Delivery::Close { .. });
            state.items.push_back(item);
        }
        if std::mem::replace(&mut state.is_told, true) {
            return Appended::Seen;
        }
        match &state.outlet {
            Some((outlet, courier)) => Appended::Told(outlet.clone(), courier.clone()),
            None => {
                drop(state);
                self.ready.notify_one();
                Appended::Seen
            }
        }
    }

    /// The client does not come back in this session.
    pub fn leave(&self) {
        self.has_left.store(true, Relaxed);
    }

    pub fn has_left(&self) -> bool {
        self.has_left.load(Relaxed)
    }

    /// Ends the connection without a Close frame. Work for it ends.
    pub fn cut(&self) {
        let mut state = self.state.lock();
        let items = std::mem::take(&mut state.items);
        let outlet = state.outlet.take();
        state.ended = true;
        drop(state);
        // The outlet has the queue: each would keep the other.
        drop((items, outlet));
        self.ready.notify_one();
        self.budget.leave();
    }
}

/// What appending to a queue asks for.
enum Appended {
    /// The connection is over.
    Over,
    /// This outlet has to be told, by its courier.
    Told(Arc<dyn Outlet>, Arc<Courier>),
    /// The reader of the queue knows, or will look.
    Seen,
}

/// Gives a connection's queue its outlet.
pub struct OutletPlace(Arc<OutgoingQueue>);

impl OutletPlace {
    /// From now on, this outlet is told when something comes, until the connection is over, mostly by the courier of its thread. What is
    /// there already it has to take by itself.
    pub fn put(self, outlet: Arc<dyn Outlet>, courier: Arc<Courier>) {
        let mut state = self.0.state.lock();
        if !state.ended {
            state.outlet = Some((outlet, courier));
        }
    }
}

/// Says when a connection is to be dropped, also while its task is busy writing to a client that does not read.
pub struct CutSignal(Arc<OutgoingQueue>);

impl CutSignal {
    /// Cuts the connection.
    pub fn cut(&self) {
        self.0.cut();
    }

    /// Ends when the connection is cut: whatever was not sent yet is gone. For one waiter.
    ///
    /// Cancel safe.
    pub async fn wait(&self) {
        self.0.budget.left().await;
    }
}

/// The connection task's end.
pub struct OutgoingReceiver {
    pub(crate) queue: Arc<OutgoingQueue>,
    /// Being waited for; kept here so that `recv` can be cancelled and called again.
    pub(crate) deferred: Option<oneshot::Receiver<MessageBatch>>,
}

impl OutgoingReceiver {
    /// The next messages or the request to close. None: drop the connection without a Close frame.
    ///
    /// Cancel safe.
    pub async fn recv(&mut self) -> Option<Outgoing> {
        loop {
            if let Some(deferred) = &mut self.deferred {
                let message = deferred.await;
                self.deferred = None;
                match message {
                    Ok(batch) => return Some(Outgoing::Messages(batch)),
                    // The evaluating thread is gone: the stream has a hole and must end.
                    Err(_) => {
                        self.queue.cut();
                        return None;
                    }
                }
            }
            match self.take() {
                Taken::Item(Delivery::Messages(batch)) => return Some(Outgoing::Messages(batch)),
                Taken::Item(Delivery::Close { code, reason }) => {
                    return Some(Outgoing::Close { code, reason })
                }
                Taken::Item(Delivery::Deferred(receiver)) => self.deferred = Some(receiver),
                Taken::Ended => return None,
                Taken::Nothing => self.queue.ready.notified().await,
            }
        }
    }

    /// Where the connection's outlet is put.
    pub fn outlet_place(&self) -> OutletPlace {
        OutletPlace(self.queue.clone())
    }

    /// Whether `recv` has something to give, or to wait for that was announced.
    pub fn has_more(&self) -> bool {
        let state = self.queue.state.lock();
        self.deferred.is_some() || !state.items.is_empty() || state.ended
    }

    /// The next messages if they are there and take no more than so many bytes.
    pub fn take_small(&mut self, bytes_max: usize) -> Small {
        if self.deferred.is_some() {
            return Small::Other;
        }
        let mut state = self.queue.state.lock();
        match state.items.front() {
            Some(Delivery::Messages(batch)) if batch.bytes.len() <= bytes_max => {}
            Some(_) => return Small::Other,
            None => {
                state.is_told = false;
                return match state.ended {
                    true => Small::Other,
                    false => Small::Nothing,
                };
            }
        }
        let item = state.items.pop_front();
        drop(state);
        match item {
            Some(Delivery::Messages(batch)) => {
                self.queue.messages.fetch_sub(batch.ends.len(), Relaxed);
                Small::Messages(batch)
            }
            _ => unreachable!("it was just looked at"),
        }
    }

    /// For waiting for the end of a connection beside `recv`.
    pub fn cut_signal(&self) -> CutSignal {
        CutSignal(self.queue.clone())
    }

    /// The next messages if they are there now.
    pub fn try_recv(&mut self) -> Option<Outgoing> {
        if let Some(deferred) = &mut self.deferred {
            let batch = deferred.try_recv().ok()?;
            self.deferred = None;
            return Some(Outgoing::Messages(batch));
        }
        match self.take() {
            Taken::Item(Delivery::Messages(batch)) => Some(Outgoing::Messages(batch)),
            Taken::Item(Delivery::Close { code, reason }) => Some(Outgoing::Close { code, reason }),
            Taken::Item(Delivery::Deferred(receiver)) => {
                self.deferred = Some(receiver);
                self.try_recv()
            }
            Taken::Ended | Taken::Nothing => None,
        }
    }

    fn take(&mut self) -> Taken {
        let mut state = self.queue.state.lock();
        match state.items.pop_front() {
            Some(item) => {
                drop(state);
                self.queue.messages.fetch_sub(item.messages(), Relaxed);
                Taken::Item(item)
            }
            None => {
                state.is_told = false;
                match state.ended {
                    true => Taken::Ended,
                    false => Taken::Nothing,
                }
            }
        }
    }
}

/// What [`OutgoingReceiver::take_small`] finds.
pub enum Small {
    Messages(MessageBatch),
    Nothing,
    /// Something that is larger, has to be waited for, or ends the connection: it stays where it is.
    Other,
}

enum Taken {
    Item(Delivery),
    Nothing,
    Ended,
}
