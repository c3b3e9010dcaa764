//! Who takes messages to the sockets: the outlets whose queues have something, in one list for all connections of a server. A round
//! of fan-out puts all of its outlets there at once and wakes as many tasks as they are work for, in place of a task for each connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Outlets that a task takes at a time: then others of its thread have their turn.
const TAKEN_MAX: usize = 32;
/// More tasks are not woken at once; each goes on as long as there is something.
const TASKS_WOKEN_MAX: usize = 64;
/// Memory for more is not kept.
const READY_KEPT_MAX: usize = 16_384;

/// The way from a connection's queue to its socket.
pub trait Outlet: Send + Sync {
    /// Takes what is in the queue to the socket. Never waits: what would have to, is left to the connection's own task.
    fn deliver(&self);
}

/// The outlets that are told together.
pub(crate) type Told = Vec<Arc<dyn Outlet>>;

/// See the module's documentation.
#[derive(Default)]
pub struct Couriers {
    ready: Mutex<VecDeque<Arc<dyn Outlet>>>,
    wake: Notify,
}

impl Couriers {
    fn ready(&self) -> MutexGuard<'_, VecDeque<Arc<dyn Outlet>>> {
        self.ready
            .lock()
            .expect("no code panics while it holds the list")
    }

    /// Has these outlets deliver soon.
    pub(crate) fn tell(&self, outlets: &mut Told) {
        if outlets.is_empty() {
            return;
        }
        let tasks = outlets.len().div_ceil(TAKEN_MAX);
        self.ready().extend(outlets.drain(..));
        outlets.shrink_to(READY_KEPT_MAX);
        // Tasks that are at work look at the list before they sleep; waking more than there are does nothing.
        for _ in 0..tasks.min(TASKS_WOKEN_MAX) {
            self.wake.notify_one();
        }
    }

    /// The same of one.
    pub(crate) fn tell_one(&self, outlet: Arc<dyn Outlet>) {
        self.ready().push_back(outlet);
        self.wake.notify_one();
    }

    /// Delivers for ever. To be run by a task for each thread that serves sockets.
    pub async fn run(&self) {
        let mut taken = Told::with_capacity(TAKEN_MAX);
        loop {
            let is_more = self.take(&mut taken);
            if taken.is_empty() {
                self.wake.notified().await;
                continue;
            }
            taken.drain(..).for_each(|outlet| outlet.deliver());
            if is_more {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Takes the next outlets. True: there are more.
    fn take(&self, taken: &mut Told) -> bool {
        let mut ready = self.ready();
        let count = ready.len().min(TAKEN_MAX);
        taken.extend(ready.drain(..count));
        if ready.is_empty() {
            ready.shrink_to(READY_KEPT_MAX);
        }
        !ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Outlet for Counting {
        fn deliver(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn whoever_is_told_delivers_once() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (couriers, outlet) = (Arc::new(Couriers::default()), Arc::new(Counting::default()));
        for _ in 0..3 {
            let couriers = couriers.clone();
            runtime.spawn(async move { couriers.run().await });
        }
        let mut told = 0;
        for round in 0..2_000 {
            let count = [1, 2, 40, 300][round % 4];
            match count {
                1 => couriers.tell_one(outlet.clone()),
                _ => couriers.tell(
                    &mut (0..count)
                        .map(|_| outlet.clone() as Arc<dyn Outlet>)
                        .collect(),
                ),
            }
            told += count;
            // Sometimes all sleep before more comes.
            if round % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let wait = || {
            (0..5_000).find(|_| {
                std::thread::sleep(Duration::from_millis(1));
                outlet.0.load(Relaxed) >= told
            })
        };
        assert!(wait().is_some(), "{} of {told}", outlet.0.load(Relaxed));
        assert_eq!(outlet.0.load(Relaxed), told);
    }
}
