//! What waits for the disk. The thread of the log lets it go as soon as it is durable: no other has to be woken for that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lightcone_log::{LogError, LogOffset};

use crate::courier::Ready;
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
            Waiting::Release(action) => action(Err(error.to_string())),
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
    /// In order of offsets. Bounded by the budgets and queues of clients, and by the permits of the inbox.
    waiting: VecDeque<(LogOffset, Waiting)>,
    /// What waited for transactions before this one is gone.
    released: LogOffset,
    poison: Option<Arc<LogError>>,
}

/// Filled by the writer and by fan-out, one after the other, and emptied by the log's thread. The outlets of what goes are added to
/// `ready`: the caller hands them to the couriers.
pub(crate) struct Held(Mutex<State>);

impl Held {
    /// All before `durable_offset` is durable.
    pub fn new(durable_offset: LogOffset) -> Held {
        Held(Mutex::new(State {
            waiting: VecDeque::new(),
            released: durable_offset,
            poison: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left a list that is still one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps items until all before `offset` is durable, or lets them go if it is. Offsets never fall.
    pub fn hold(
        &self,
        offset: LogOffset,
        items: impl ExactSizeIterator<Item = Waiting>,
        ready: &mut Ready,
    ) {
        if items.len() == 0 {
            return;
        }
        let mut state = self.state();
        if state.released < offset && state.poison.is_none() {
            state.waiting.extend(items.map(|item| (offset, item)));
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

    /// All before `durable` is durable. `due` is empty before and after.
    pub fn release(&self, durable: LogOffset, due: &mut Vec<Waiting>, ready: &mut Ready) {
        let mut state = self.state();
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
            state = self.state();
        }
    }

    /// What waits will never be durable, and neither will anything later.
    pub fn give_up(&self, error: &Arc<LogError>, ready: &mut Ready) {
        let mut state = self.state();
        state.poison = Some(error.clone());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting
            .into_iter()
            .for_each(|(_, item)| item.give_up(error, ready));
    }

    /// The database ends: nothing is let go any more.
    pub fn end(&self) {
        for (_, item) in std::mem::take(&mut self.state().waiting) {
            if let Waiting::Release(action) = item {
                let text = "the database was stopped before the result was durable";
                action(Err(text.to_owned()));
            }
        }
    }
}
