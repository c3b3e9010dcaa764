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
    /// A call hears of it.
    Tell(oneshot::Sender<Result<(), NotDurable>>),
}

impl Waiting {
    /// It is durable.
    fn let_go(self, ready: &mut Ready) {
        match self {
            // A queue whose connection is gone drops them.
            Waiting::Deliver { queue, item } => queue.push([item], ready),
            Waiting::Release(action) => action(Ok(())),
            // The call may have ended.
            Waiting::Tell(told) => drop(told.send(Ok(()))),
        }
    }

    /// It will never be durable: it is never sent, and its connection ends (05 §12).
    fn give_up(self, error: &LogError, ready: &mut Ready) {
        match self {
            Waiting::Deliver { queue, .. } => queue.push([poison_close(error)], ready),
            Waiting::Release(action) => action(Err(NotDurable(error.to_string()))),
            Waiting::Tell(told) => drop(told.send(Err(NotDurable(error.to_string())))),
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
        let waiting = [Waiting::Tell(told)].into_iter();
        self.hold(offset, waiting, &mut Ready::default());
        let mut place = CallPlace {
            outbox: self,
            offset,
            known,
        };
        let gone = |_| Err(NotDurable("the database was stopped".to_owned()));
        (&mut place.known).await.unwrap_or_else(gone)
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
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        let stopped = || {
            let text = "the database was stopped before the result was durable";
            Err(NotDurable(text.to_owned()))
        };
        for (_, item) in waiting {
            match item {
                Waiting::Deliver { .. } => {}
                Waiting::Release(action) => action(stopped()),
                Waiting::Tell(told) => drop(told.send(stopped())),
            }
        }
    }
}

/// The place of a call that waits. It goes when the call gives up: while the disk stands still, a call may do so again and again.
struct CallPlace<'o> {
    outbox: &'o Outbox,
    offset: LogOffset,
    known: oneshot::Receiver<Result<(), NotDurable>>,
}

impl Drop for CallPlace<'_> {
    fn drop(&mut self) {
        self.known.close();
        let mut state = self.outbox.0.lock();
        let first = state
            .waiting
            .partition_point(|(offset, _)| *offset < self.offset);
        let mut same = state.waiting.range(first..);
        let gone = same.position(|(offset, item)| {
            let is_gone = matches!(item, Waiting::Tell(told) if told.is_closed());
            *offset == self.offset && is_gone
        });
        if let Some(nth) = gone {
            state.waiting.remove(first + nth);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_call_that_gives_up_leaves_nothing() {
        let outbox = Outbox::new(LogOffset::new(0));
        for _ in 0..3 {
            let reached = outbox.reach(LogOffset::new(7));
            let waited = tokio::time::timeout(Duration::from_millis(1), reached).await;
            assert!(waited.is_err());
            assert!(outbox.0.lock().waiting.is_empty());
        }
        let told =
            async { outbox.release(LogOffset::new(7), &mut Vec::new(), &mut Ready::default()) };
        let (reached, ()) = tokio::join!(outbox.reach(LogOffset::new(7)), told);
        assert!(reached.is_ok());
        let ended = async { outbox.end() };
        let (reached, ()) = tokio::join!(outbox.reach(LogOffset::new(8)), ended);
        assert!(reached.is_err());
    }
}
