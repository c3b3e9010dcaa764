//! What databases take from the machine beside its disk: clocks, random numbers, threads. A simulated world can stand in its
//! place.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lightcone_types::Timestamp;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The longest wait for a time of day, so that a clock that was set, or a machine that was suspended, is noticed.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Work for another thread, or for later.
pub type Work = Box<dyn FnOnce() + Send>;

/// Work that leaves its thread to others while it waits.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clocks of a machine at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub time: Timestamp,
    pub instant: Instant,
}

/// What a database has threads for. Stepped in turn with others on one thread, it does the same.
pub trait Worker: Send {
    /// Does what there is to do, for a bounded time, and waits for nothing but module code and the disk.
    fn step(&mut self) -> Next;

    /// Waits until a step has something to do. Only who has nothing else to step calls it.
    fn wait(&mut self);
}

/// What becomes of a worker after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    More,
    /// There is nothing to do before others have done something.
    Waits,
    /// It is to be dropped.
    Ended,
}

/// The machine that databases run on. (The disk is [`Storage`](lightcone_storage::Storage).)
pub trait Environment: std::fmt::Debug + Send + Sync {
    /// The time of day. It may be set back.
    fn now(&self) -> Timestamp;

    /// A clock that is never set, for durations and deadlines.
    fn instant(&self) -> Instant;

    /// Both.
    fn clocks(&self) -> Now {
        Now {
            time: self.now(),
            instant: self.instant(),
        }
    }

    /// Bits that cannot be guessed.
    fn random(&self) -> u128;

    /// Runs `work` on a thread of its own.
    ///
    /// # Errors
    /// There is no thread for it.
    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()>;

    /// Has `worker` stepped until it ends, on a thread of its own.
    ///
    /// # Errors
    /// There is no thread for it.
    fn spawn_worker(
        &self,
        name: &str,
        stack_bytes: usize,
        mut worker: Box<dyn Worker>,
    ) -> io::Result<()> {
        let work = move || loop {
            match worker.step() {
                Next::More => {}
                Next::Waits => worker.wait(),
                Next::Ended => return,
            }
        };
        self.spawn_thread(name, stack_bytes, Box::new(work))
    }

    /// Runs `work`, which waits for disks and others, on one of the threads for such work.
    fn spawn_blocking(&self, work: Work);

    /// Runs `task`, which may compute for as long as a tick of the hosts' clock at a time, on threads for such tasks.
    fn spawn_task(&self, task: Task);

    /// Runs `work`, which is short and waits for nothing, after `delay`, unless the alarm was dropped by then.
    fn alarm(&self, delay: Duration, work: Work) -> Alarm;

    /// How long to wait for a time of day when it is `now`, before the clock is looked at again.
    fn until(&self, time: Timestamp, now: Timestamp) -> Duration {
        let left_us = time.saturating_since(now).0.max(0);
        Duration::from_micros(left_us as u64).min(LOOK_AGAIN)
    }

    /// The same as [`alarm`](Self::alarm), at that time of day or earlier: then the clock is to be looked at again.
    fn alarm_at(&self, time: Timestamp, work: Work) -> Alarm {
        self.alarm(self.until(time, self.now()), work)
    }
}

/// Does some work on a thread that may block, to its end also if the caller waits for it no more. None: it panicked.
pub(crate) async fn elsewhere<T: Send + 'static>(
    environment: &dyn Environment,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (reply, done) = oneshot::channel();
    let work = move || {
        // The caller may be gone by now.
        let _ = reply.send(work());
    };
    environment.spawn_blocking(Box::new(work));
    done.await.ok()
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
    /// Made for the first task: tasks compute, which network tasks must not wait for.
    tasks: OnceLock<Tasks>,
}

/// Threads for tasks, as many as processors, and two at least.
#[derive(Debug)]
struct Tasks(Option<Runtime>);

impl Drop for Tasks {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // What waits for ever must not hold up the thread that drops this.
            runtime.shutdown_background();
        }
    }
}

impl Tasks {
    fn start() -> Tasks {
        let threads = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            // What is woken from outside has every second turn. Turns are long here, and tokio's own 61 of them would be seconds.
            .global_queue_interval(2)
            .thread_name("procedures")
            .build();
        Tasks(Some(runtime.expect("the operating system has threads")))
    }
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
            tasks: OnceLock::new(),
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

    fn spawn_task(&self, task: Task) {
        let tasks = self.tasks.get_or_init(Tasks::start);
        if let Some(runtime) = &tasks.0 {
            runtime.spawn(task);
        }
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
