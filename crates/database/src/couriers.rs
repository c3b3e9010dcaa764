//! Who takes messages to the sockets: the outlets whose queues have something, in one list for all connections of a server. A round
//! of fan-out puts all of its outlets there at once and wakes as many tasks as they are work for, in place of a task for each connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Outlets that a task takes at a time: then others of its thread have their turn.
const TAKEN_MAX: usize = 32;
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

/// More threads than this are not woken at once; each that finds more work than it takes wakes nobody, and goes on.
const TASKS_WOKEN_MAX: usize = 64;
