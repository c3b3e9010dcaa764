//! What databases take from the machine beside its disk: clocks, random numbers, threads. A simulated world can stand in its
//! place.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_types::Timestamp;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Work for another thread, or for later.
pub type Work = Box<dyn FnOnce() + Send>;

/// The machine that databases run on. (The disk is [`Storage`](lightcone_storage::Storage).)
pub trait Environment: std::fmt::Debug + Send + Sync {
    /// The time of day. It may be set back.
    fn now(&self) -> Timestamp;

    /// A clock that is never set, for durations and deadlines.
    fn instant(&self) -> Instant;

    /// Bits that nobody can guess.
    fn random(&self) -> u128;

    /// Runs `work` on a thread of its own.
    ///
    /// # Errors
    /// There is no thread for it.
    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()>;

    /// Runs `work`, which waits for disks and others, on one of the threads for such work.
    fn spawn_blocking(&self, work: Work);

    /// Runs `work`, which is short and waits for nothing, after `delay`, unless the alarm was dropped by then.
    fn alarm(&self, delay: Duration, work: Work) -> Alarm;
}

/// Something that happens later, unless this is dropped.
pub struct Alarm(Option<Work>);

impl Alarm {
    /// `cancel` keeps the alarm from ringing.
    pub fn new(cancel: Work) -> Alarm {
        Alarm(Some(cancel))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}

/// The machine itself, with the tasks and blocking threads of a tokio runtime.
#[derive(Debug)]
pub struct Machine {
    runtime: Handle,
    random: RandomState,
    drawn: AtomicU64,
}

impl Machine {
    /// With the tokio runtime that this is called in.
    pub fn current() -> Arc<Machine> {
        Machine::new(Handle::current())
    }

    pub fn new(runtime: Handle) -> Arc<Machine> {
        Arc::new(Machine {
            runtime,
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        })
    }
}

impl Environment for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn random(&self) -> u128 {
        let count = self.drawn.fetch_add(1, Ordering::Relaxed);
        let half = |number: u64| u128::from(self.random.hash_one((count, number)));
        half(0) << 64 | half(1)
    }

    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.stack_size(stack_bytes).spawn(work).map(drop)
    }

    fn spawn_blocking(&self, work: Work) {
        self.runtime.spawn_blocking(work);
    }

    fn alarm(&self, delay: Duration, work: Work) -> Alarm {
        let task: JoinHandle<()> = self.runtime.spawn(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            work();
        });
        Alarm::new(Box::new(move || task.abort()))
    }
}
