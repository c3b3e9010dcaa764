//! The time of day in a test of a module: it stands until the test moves it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_types::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::environment::{Alarm, Environment, Task, Work, LOOK_AGAIN};

/// A machine on which it is the time that a test says. Clocks that are never set go on, and so do the alarms of what is bounded by them.
#[derive(Debug)]
pub struct TestClock {
    machine: Arc<dyn Environment>,
    state: Arc<State>,
}

struct State {
    times: Mutex<Times>,
    /// A call beside the writer has ended, or sleeps.
    changed: Notify,
}

#[derive(Default)]
struct Times {
    now: Timestamp,
    /// What is to be woken when, by number. Only procedures sleep until a time of day.
    sleeping: BTreeMap<(Timestamp, u64), Work>,
    last: u64,
    /// Calls beside the writer, those that sleep among them.
    calls: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.times.lock().now.fmt(formatter)
    }
}

/// A call beside the writer, until this goes.
pub(crate) struct CountedCall(Arc<State>);

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.0.times.lock().calls -= 1;
        self.0.changed.notify_waiters();
    }
}

impl TestClock {
    pub(crate) fn new(machine: Arc<dyn Environment>, now: Timestamp) -> TestClock {
        let times = Times {
            now,
            ..Times::default()
        };
        TestClock {
            machine,
            state: Arc::new(State {
                times: Mutex::new(times),
                changed: Notify::new(),
            }),
        }
    }

    /// A call begins beside the writer.
    pub(crate) fn count_call(&self) -> CountedCall {
        self.state.times.lock().calls += 1;
        CountedCall(self.state.clone())
    }

    /// Waits until all calls beside the writer have ended or sleep.
    pub(crate) async fn settled(&self) {
        loop {
            let notified = self.state.changed.notified();
            tokio::pin!(notified);
            // From here on it hears of it.
            notified.as_mut().enable();
            if self.is_settled() {
                return;
            }
            notified.await;
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        let times = self.state.times.lock();
        times.calls <= times.sleeping.len()
    }

    /// When the next of those who sleep is to be woken.
    pub(crate) fn next_sleeper(&self) -> Option<Timestamp> {
        let times = self.state.times.lock();
        times.sleeping.keys().next().map(|&(time, _)| time)
    }

    /// Wakes those whose time has come.
    pub(crate) fn set(&self, now: Timestamp) {
        let mut times = self.state.times.lock();
        let now = times.now.max(now);
        times.now = now;
        let later = times.sleeping.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut times.sleeping, later);
        drop(times);
        due.into_values().for_each(|wake| wake());
    }
}

impl Environment for TestClock {
    fn now(&self) -> Timestamp {
        self.state.times.lock().now
    }

    fn instant(&self) -> Instant {
        self.machine.instant()
    }

    fn random(&self) -> u128 {
        self.machine.random()
    }

    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()> {
        self.machine.spawn_thread(name, stack_bytes, work)
    }

    fn spawn_blocking(&self, work: Work) {
        self.machine.spawn_blocking(work);
    }

    fn spawn_task(&self, task: Task) {
        self.machine.spawn_task(task);
    }

    fn alarm(&self, delay: Duration, work: Work) -> Alarm {
        self.machine.alarm(delay, work)
    }

    /// Who moves the clock has the writer look at it.
    fn until(&self, time: Timestamp, now: Timestamp) -> Duration {
        match time <= now {
            true => Duration::ZERO,
            false => LOOK_AGAIN,
        }
    }

    fn alarm_at(&self, time: Timestamp, work: Work) -> Alarm {
        let mut times = self.state.times.lock();
        if time <= times.now {
            drop(times);
            work();
            return Alarm::new(Box::new(|| ()));
        }
        times.last += 1;
        let place = (time, times.last);
        times.sleeping.insert(place, work);
        drop(times);
        self.state.changed.notify_waiters();
        let state = self.state.clone();
        Alarm::new(Box::new(move || {
            // What was not rung is dropped when the clock is free again.
            let _cancelled = state.times.lock().sleeping.remove(&place);
        }))
    }
}
