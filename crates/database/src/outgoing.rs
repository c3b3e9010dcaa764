//! The queue of one connection's messages, between fan-out and the connection task.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{oneshot, Notify};

/// Encoded server messages, back to back, in order, without payload tags.
#[derive(Debug, Default)]
pub struct MessageBatch {
    pub bytes: Vec<u8>,
    /// End of each message in `bytes`.
    pub ends: Vec<u32>,
}

impl MessageBatch {
    /// Ends the message that was just written to `bytes`.
    #[inline]
    pub(crate) fn end_message(&mut self) {
        self.ends.push(self.bytes.len() as u32);
    }

    pub(crate) fn of(message: Vec<u8>) -> MessageBatch {
        MessageBatch {
            ends: vec![message.len() as u32],
            bytes: message,
        }
    }
}

/// What the connection task has to do next.
#[derive(Debug)]
pub enum Outgoing {
    Messages(MessageBatch),
    Close { code: u16, reason: String },
}

/// An entry of the queue.
pub(crate) enum Item {
    Messages(MessageBatch),
    /// One message that another thread is still making; everything behind it waits (05 §10).
    Deferred(oneshot::Receiver<Vec<u8>>),
    Close {
        code: u16,
        reason: String,
    },
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    messages: usize,
    bytes: usize,
    /// Nothing more will come; what is queued may still be taken.
    ended: bool,
}

/// Shared by fan-out (which pushes) and the connection task (which takes).
pub(crate) struct OutgoingQueue {
    state: Mutex<State>,
    ready: Notify,
    /// Told when the connection is cut, for a connection task that is busy with a socket that takes nothing.
    cut: Notify,
    messages_max: usize,
    bytes_max: usize,
}

impl OutgoingQueue {
    pub fn new(messages_max: usize, bytes_max: usize) -> Arc<OutgoingQueue> {
        let (ready, cut) = (Notify::new(), Notify::new());
        Arc::new(OutgoingQueue {
            state: Mutex::default(),
            ready,
            cut,
            messages_max,
            bytes_max,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no code panics while it holds the queue")
    }

    /// Appends items. A queue over its bounds is cut: the client is too slow and loses its connection.
    /// Returns false if the connection is over.
    pub fn push(&self, items: impl IntoIterator<Item = Item>) -> bool {
        let mut state = self.state();
        if state.ended {
            return false;
        }
        for item in items {
            match &item {
                Item::Messages(batch) => {
                    state.messages += batch.ends.len();
                    state.bytes += batch.bytes.len();
                }
                Item::Deferred(_) => state.messages += 1,
                Item::Close { .. } => state.ended = true,
            }
            state.items.push_back(item);
        }
        let overflow = state.messages > self.messages_max || state.bytes > self.bytes_max;
        if overflow {
            state.items.clear();
            state.ended = true;
        }
        drop(state);
        self.ready.notify_one();
        if overflow {
            self.cut.notify_one();
        }
        !overflow
    }

    /// Whether so much is within the bounds of the queue.
    pub fn has_room(&self, messages: usize, bytes: usize) -> bool {
        messages <= self.messages_max && bytes <= self.bytes_max
    }

    /// Ends the connection without a Close frame.
    pub fn cut(&self) {
        let mut state = self.state();
        state.items.clear();
        state.ended = true;
        drop(state);
        self.ready.notify_one();
        self.cut.notify_one();
    }
}

/// Says when a connection is to be dropped, also while its task is busy writing to a client that does not read.
pub struct CutSignal(Arc<OutgoingQueue>);

impl CutSignal {
    /// Ends when the connection is cut: whatever was not sent yet is gone. For one waiter.
    ///
    /// Cancel safe.
    pub async fn wait(&self) {
        self.0.cut.notified().await;
    }
}

/// The connection task's end.
pub struct OutgoingReceiver {
    pub(crate) queue: Arc<OutgoingQueue>,
    /// Being waited for; kept here so that `recv` can be cancelled and called again.
    pub(crate) deferred: Option<oneshot::Receiver<Vec<u8>>>,
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
                    Ok(message) => return Some(Outgoing::Messages(MessageBatch::of(message))),
                    // The evaluating thread is gone: the stream has a hole and must end.
                    Err(_) => {
                        self.queue.cut();
                        return None;
                    }
                }
            }
            match self.take() {
                Taken::Item(Item::Messages(batch)) => return Some(Outgoing::Messages(batch)),
                Taken::Item(Item::Close { code, reason }) => {
                    return Some(Outgoing::Close { code, reason })
                }
                Taken::Item(Item::Deferred(receiver)) => self.deferred = Some(receiver),
                Taken::Ended => return None,
                Taken::Nothing => self.queue.ready.notified().await,
            }
        }
    }

    /// For waiting for the end of a connection beside `recv`.
    pub fn cut_signal(&self) -> CutSignal {
        CutSignal(self.queue.clone())
    }

    /// The next messages if they are there now.
    pub fn try_recv(&mut self) -> Option<Outgoing> {
        if let Some(deferred) = &mut self.deferred {
            let message = deferred.try_recv().ok()?;
            self.deferred = None;
            return Some(Outgoing::Messages(MessageBatch::of(message)));
        }
        match self.take() {
            Taken::Item(Item::Messages(batch)) => Some(Outgoing::Messages(batch)),
            Taken::Item(Item::Close { code, reason }) => Some(Outgoing::Close { code, reason }),
            Taken::Item(Item::Deferred(receiver)) => {
                self.deferred = Some(receiver);
                self.try_recv()
            }
            Taken::Ended | Taken::Nothing => None,
        }
    }

    fn take(&mut self) -> Taken {
        let mut state = self.queue.state();
        match state.items.pop_front() {
            Some(item) => {
                match &item {
                    Item::Messages(batch) => {
                        state.messages -= batch.ends.len();
                        state.bytes -= batch.bytes.len();
                    }
                    Item::Deferred(_) => state.messages -= 1,
                    Item::Close { .. } => {}
                }
                Taken::Item(item)
            }
            None if state.ended => Taken::Ended,
            None => Taken::Nothing,
        }
    }
}

enum Taken {
    Item(Item),
    Nothing,
    Ended,
}
