//! What waits for the disk. The thread of the log lets it go as soon as it is durable: no other has to be woken for that.

use std::collections::VecDeque;
use std::sync::Arc;

use lightcone_log::{LogError, LogOffset};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::courier::Ready;
use crate::error::NotDurable;
use crate::events::Release;
use crate::outgoing::{Delivery, OutgoingQueue};

/// Something that waits for an offset.
pub(crate) enum Waiting {
    Deliver {
        queue: Arc<OutgoingQueue>,
        item: Delivery,
    },
    Release(Release),
}

impl Waiting {
    /// It is durable.
    fn let_go(self, ready: &mut Ready) {
        match self {
            // A queue whose connection is gone drops them.
            Waiting::Deliver { queue, item } => queue.push([item], ready),
            Waiting::Release(action) => action(Ok(())),
        }
    }

    /// It will never be durable: it is never sent, and its connection ends (05 §12).
    fn give_up(self, error: &LogError, ready: &mut Ready) {
        match self {
            Waiting::Deliver { queue, .. } => queue.push([poison_close(error)], ready),
            Waiting::Release(action) => action(Err(NotDurable(error.to_string()))),
        }
    }
}

/// How a connection ends whose answers can never be durable.
pub(crate) fn poison_close(error: &LogError) -> Delivery {
    Delivery::Close {
        code: 1001,
        reason: format!("the database is read-only: {error}"),
    }
}

/// Room for so many is kept.
const KEPT_MAX: usize = 4096;

struct State {
    /// In order of offsets. Bounded by the budgets and queues of clients, by the permits of the inbox, and by the calls under way.
    waiting: VecDeque<(LogOffset, Waiting)>,
    /// What waited for transactions before this one is gone.
    released: LogOffset,
    poison: Option<Arc<LogError>>,
}

/// Filled by fan-out and by calls, and emptied by the log's thread. The outlets of what goes are added to
/// `ready`: the caller hands them to the couriers.
pub(crate) struct Outbox(Mutex<State>);

impl Outbox {
    /// All before `durable_offset` is durable.
    pub fn new(durable_offset: LogOffset) -> Outbox {
        Outbox(Mutex::new(State {
            waiting: VecDeque::new(),
            released: durable_offset,
            poison: None,
        }))
    }

    /// Keeps items until all before `offset` is durable, or lets them go if it is.
    pub fn hold(
        &self,
        offset: LogOffset,
        items: impl ExactSizeIterator<Item = Waiting>,
        ready: &mut Ready,
    ) {
        if items.len() == 0 {
            return;
        }
        let mut state = self.0.lock();
        if state.released < offset && state.poison.is_none() {
            // A call may wait for less than what was held before.
            let place = state.waiting.partition_point(|(held, _)| *held <= offset);
            if place == state.waiting.len() {
                state.waiting.extend(items.map(|item| (offset, item)));
            } else {
                for (place, item) in (place..).zip(items) {
                    state.waiting.insert(place, (offset, item));
                }
            }
            return;
        }
        let error = match state.released < offset {
            true => state.poison.clone(),
            false => None,
        };
        drop(state);
        for item in items {
            match &error {
                None => item.let_go(ready),
                Some(error) => item.give_up(error, ready),
            }
        }
    }

    /// Waits until all before `offset` is durable.
    ///
    /// # Errors
    /// It never will be.
    pub async fn reach(&self, offset: LogOffset) -> Result<(), NotDurable> {
        let (told, known) = oneshot::channel();
        let tell = move |durable| {
            // The call may have ended.
            let _ = told.send(durable);
        };
        let waiting = Waiting::Release(Box::new(tell));
        self.hold(offset, [waiting].into_iter(), &mut Ready::default());
        let gone = |_| Err(NotDurable("the database was stopped".to_owned()));
        known.await.unwrap_or_else(gone)
    }

    /// All before `durable` is durable. `due` is empty before and after.
    pub fn release(&self, durable: LogOffset, due: &mut Vec<Waiting>, ready: &mut Ready) {
        let mut state = self.0.lock();
        loop {
            let count = state
                .waiting
                .partition_point(|(offset, _)| *offset <= durable);
            if count == 0 {
                state.released = durable;
                state.waiting.shrink_to(KEPT_MAX);
                break;
            }
            due.extend(state.waiting.drain(..count).map(|(_, item)| item));
            drop(state);
            due.drain(..).for_each(|item| item.let_go(ready));
            due.shrink_to(KEPT_MAX);
            // What is held meanwhile comes behind these.
            state = self.0.lock();
        }
    }

    /// What waits will never be durable, and neither will anything later.
    pub fn give_up(&self, error: &Arc<LogError>, ready: &mut Ready) {
        let mut state = self.0.lock();
        state.poison = Some(error.clone());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting
            .into_iter()
            .for_each(|(_, item)| item.give_up(error, ready));
    }

    /// The database ends: nothing is let go any more.
    pub fn end(&self) {
        for (_, item) in std::mem::take(&mut self.0.lock().waiting) {
            if let Waiting::Release(action) = item {
                let text = "the database was stopped before the result was durable";
                action(Err(NotDurable(text.to_owned())));
            }
        }
    }
}
