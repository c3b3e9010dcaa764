//! Who takes messages to the sockets: one courier for each network thread. A round of fan-out gives each courier all outlets of its
//! thread that have something, at once, and wakes it once, in place of a task for each connection.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Outlets that deliver before others of the thread have their turn.
const DELIVERIES_MAX: usize = 32;
/// Memory for more is not kept.
const READY_KEPT_MAX: usize = 16_384;

/// The way from a connection's queue to its socket.
pub trait Outlet: Send + Sync {
    /// Takes what is in the queue to the socket. Never waits: what would have to, is left to the connection's own task.
    fn deliver(&self);

    /// The same where it costs no more than waking another thread. False: it would, and is left to the courier.
    fn deliver_at_once(&self) -> bool;
}

type Outlets = Vec<Arc<dyn Outlet>>;

/// See the module's documentation.
#[derive(Default)]
pub struct Courier {
    ready: Mutex<Outlets>,
    wake: Notify,
}

impl Courier {
    /// Has these outlets deliver soon.
    fn give(&self, outlets: impl IntoIterator<Item = Arc<dyn Outlet>>) {
        let mut ready = self.ready.lock();
        let is_awake = !ready.is_empty();
        ready.extend(outlets);
        drop(ready);
        if !is_awake {
            self.wake.notify_one();
        }
    }

    /// Delivers for ever. To be run once.
    pub async fn run(&self) {
        let mut taken = Outlets::new();
        loop {
            std::mem::swap(&mut taken, &mut *self.ready.lock());
            if taken.is_empty() {
                self.wake.notified().await;
                continue;
            }
            for (number, outlet) in taken.drain(..).enumerate() {
                if number > 0 && number.is_multiple_of(DELIVERIES_MAX) {
                    tokio::task::yield_now().await;
                }
                outlet.deliver();
            }
            taken.shrink_to(READY_KEPT_MAX);
        }
    }
}

/// Outlets that have something, by courier.
#[derive(Default)]
pub(crate) struct Ready {
    /// One for each courier that was met: as many as network threads.
    of_couriers: Vec<(Arc<Courier>, Outlets)>,
    count: usize,
}

impl Ready {
    pub fn add(&mut self, outlet: Arc<dyn Outlet>, courier: &Arc<Courier>) {
        self.count += 1;
        let mut known = self.of_couriers.iter_mut();
        match known.find(|(known, _)| Arc::ptr_eq(known, courier)) {
            Some((_, outlets)) => outlets.push(outlet),
            None => self.of_couriers.push((courier.clone(), vec![outlet])),
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Hands them to their couriers.
    pub fn hand_over(&mut self) {
        if std::mem::take(&mut self.count) == 0 {
            return;
        }
        for (courier, outlets) in &mut self.of_couriers {
            if !outlets.is_empty() {
                courier.give(outlets.drain(..));
                outlets.shrink_to(READY_KEPT_MAX);
            }
        }
    }

    /// Has them deliver here, on the thread that calls, if they are at most `count_max` and have little to do: waking another for that
    /// would cost more. Otherwise hands them to their couriers.
    pub fn deliver_or_hand_over(&mut self, count_max: usize) {
        if self.count > count_max {
            return self.hand_over();
        }
        for (_, outlets) in &mut self.of_couriers {
            outlets.retain(|outlet| !outlet.deliver_at_once());
        }
        self.hand_over();
    }
}

/// Has one outlet deliver soon.
pub(crate) fn hand_over(outlet: Arc<dyn Outlet>, courier: &Courier) {
    courier.give([outlet]);
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

        fn deliver_at_once(&self) -> bool {
            let is_little = !self.0.load(Relaxed).is_multiple_of(3);
            if is_little {
                self.deliver();
            }
            is_little
        }
    }

    #[test]
    fn each_outlet_delivers_once_for_each_time_that_it_is_given() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let couriers: [Arc<Courier>; 3] = Default::default();
        let outlet = Arc::new(Counting::default());
        for courier in &couriers {
            let courier = courier.clone();
            runtime.spawn(async move { courier.run().await });
        }
        let (mut given, mut ready) = (0, Ready::default());
        for round in 0..2_000 {
            let count = [1, 2, 40, 300][round % 4];
            for number in 0..count {
                ready.add(outlet.clone(), &couriers[number % couriers.len()]);
            }
            assert_eq!(ready.len(), count);
            match round % 3 {
                0 => ready.deliver_or_hand_over(2),
                _ => ready.hand_over(),
            }
            hand_over(outlet.clone(), &couriers[round % couriers.len()]);
            given += count + 1;
            // Sometimes all sleep before more comes.
            if round % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let wait = || {
            (0..5_000).find(|_| {
                std::thread::sleep(Duration::from_millis(1));
                outlet.0.load(Relaxed) >= given
            })
        };
        assert!(wait().is_some(), "{} of {given}", outlet.0.load(Relaxed));
        assert_eq!(outlet.0.load(Relaxed), given);
    }
}
