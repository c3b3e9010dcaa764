//! Threads for work that would hold up the writer or the network: scans of frozen tables, long lists of queries.
//!
//! A few threads serve all databases. Jobs are cut into slices; after each, the next database has its turn, and within a
//! database the next client. So a newcomer waits for one slice of each client before it, not for all that they have asked.

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::budget::ClientBudget;
use crate::environment::Environment;
use crate::error::ReadError;
use crate::metrics::Metrics;

/// How long a job runs before others have their turn.
const SLICE: Duration = Duration::from_millis(20);
/// How long a job keeps its processor from threads that wait for it: one that is woken interrupts no other, but waits for the
/// scheduler's next tick, and a call wakes several, one after the other.
const TURN: Duration = Duration::from_micros(50);
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(5);
/// Added to the niceness of the threads: a scan takes what calls leave of the processors.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
/// Jobs recurse no deeper than values do.
const STACK_BYTES: usize = 2 << 20;

/// Whether a job has more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Again,
    Done,
}

/// Work that is done in slices. Dropped as soon as it is done; what it has to tell, it tells before.
pub(crate) trait Job: Send {
    /// Works until about the end of the slice.
    fn run(&mut self, slice: &Slice<'_>) -> Progress;
}

/// A turn of a job.
pub(crate) struct Slice<'e> {
    environment: &'e dyn Environment,
    start: Instant,
    length: Duration,
    /// When others could go first, from the start.
    yielded: Cell<Duration>,
}

impl<'e> Slice<'e> {
    pub fn new(environment: &'e dyn Environment, length: Duration) -> Slice<'e> {
        Slice {
            environment,
            start: environment.instant(),
            length,
            yielded: Cell::default(),
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.environment
            .instant()
            .saturating_duration_since(self.start)
    }

    /// To ask often: threads that wait for the processor go first meanwhile.
    pub fn is_over(&self) -> bool {
        let elapsed = self.elapsed();
        if elapsed >= self.length {
            return true;
        }
        if elapsed.saturating_sub(self.yielded.get()) >= TURN {
            std::thread::yield_now();
            // What others took counts for nothing here.
            self.yielded.set(self.elapsed());
        }
        false
    }
}

/// What a client waits for, made in slices.
pub(crate) trait Work: Send {
    type Made;
    type Reply: Send;
    /// The time that it takes is counted as that of a read.
    const IS_READ: bool = true;

    /// Works until about the end of the slice. None: there is more to do.
    fn step(
        &mut self,
        budget: &Arc<ClientBudget>,
        slice: &Slice<'_>,
    ) -> Result<Option<Self::Made>, ReadError>;

    /// What the client gets of it, also if it took too long. None: nothing.
    fn reply(&mut self, made: Result<Self::Made, ReadError>) -> Option<Self::Reply>;
}

/// Work as a job, which ends with its client, or when it has taken too long.
pub(crate) struct Waited<W: Work> {
    work: W,
    budget: Arc<ClientBudget>,
    /// None when it was sent.
    reply: Option<oneshot::Sender<W::Reply>>,
    time_max: Duration,
    spent: Duration,
    metrics: Arc<Metrics>,
}

impl<W: Work> Waited<W> {
    pub fn new(
        work: W,
        budget: &Arc<ClientBudget>,
        time_max: Duration,
        metrics: &Arc<Metrics>,
    ) -> (Waited<W>, oneshot::Receiver<W::Reply>) {
        let (reply, made) = oneshot::channel();
        let job = Waited {
            work,
            budget: budget.clone(),
            reply: Some(reply),
            time_max,
            spent: Duration::ZERO,
            metrics: metrics.clone(),
        };
        (job, made)
    }
}

impl<W: Work> Job for Waited<W> {
    fn run(&mut self, slice: &Slice<'_>) -> Progress {
        let reply = self.reply.take().filter(|reply| !reply.is_closed());
        let Some(reply) = reply.filter(|_| !self.budget.is_gone()) else {
            return Progress::Done;
        };
        let step = self.work.step(&self.budget, slice);
        self.spent += slice.elapsed();
        let made = match step {
            Ok(None) if self.spent < self.time_max => {
                self.reply = Some(reply);
                return Progress::Again;
            }
            Ok(None) => Err(ReadError::TooLong {
                limit: self.time_max,
            }),
            Ok(Some(made)) => Ok(made),
            Err(error) => Err(error),
        };
        if W::IS_READ {
            self.metrics.reads.note_shared(self.spent);
        }
        if let Some(made) = self.work.reply(made) {
            // The client may be gone by now.
            let _ = reply.send(made);
        }
        Progress::Done
    }
}

/// A job of one slice.
pub(crate) struct Once<F, T>(Option<(F, oneshot::Sender<T>)>);

impl<F: FnOnce() -> T, T> Once<F, T> {
    pub fn new(work: F) -> (Once<F, T>, oneshot::Receiver<T>) {
        let (sender, result) = oneshot::channel();
        (Once(Some((work, sender))), result)
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Job for Once<F, T> {
    fn run(&mut self, _slice: &Slice<'_>) -> Progress {
        if let Some((work, sender)) = self.0.take().filter(|(_, sender)| !sender.is_closed()) {
            // The caller may be gone by now.
            let _ = sender.send(work());
        }
        Progress::Done
    }
}

/// Whose turn it is: a database and a client of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub database: u64,
    pub client: u64,
}

/// In the place of a client. No client has this number.
pub(crate) const NO_CLIENT: u64 = u64::MAX;

/// Keys that have something, each once, in the order of their turns.
struct Turns<K, V> {
    order: VecDeque<K>,
    of: HashMap<K, V>,
}

impl<K, V> Default for Turns<K, V> {
    fn default() -> Self {
        Turns {
            order: VecDeque::new(),
            of: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Turns<K, V> {
    fn of(&mut self, key: K) -> &mut V {
        match self.of.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.order.push_back(key);
                entry.insert(V::default())
            }
        }
    }

    /// Takes something from the one whose turn it is, with `take`, which also says whether it has more.
    fn next<T>(&mut self, take: impl FnOnce(&mut V) -> (Option<T>, bool)) -> Option<T> {
        let key = self.order.pop_front()?;
        let (taken, more) = take(self.of.get_mut(&key)?);
        if more {
            self.order.push_back(key);
        } else {
            self.of.remove(&key);
        }
        taken
    }
}

type OfClient = VecDeque<Box<dyn Job>>;
type OfDatabase = Turns<u64, OfClient>;

#[derive(Default)]
struct State {
    waiting: Turns<u64, OfDatabase>,
    threads: usize,
    idle: usize,
}

impl State {
    fn push(&mut self, owner: Owner, job: Box<dyn Job>) {
        let database = self.waiting.of(owner.database);
        database.of(owner.client).push_back(job);
    }

    fn pop(&mut self) -> Option<(Owner, Box<dyn Job>)> {
        let database = *self.waiting.order.front()?;
        self.waiting.next(|of_database| {
            let client = of_database.order.front().copied();
            let job = of_database.next(|of_client| {
                let job = of_client.pop_front();
                (job, !of_client.is_empty())
            });
            let owner = client.map(|client| Owner { database, client });
            (owner.zip(job), !of_database.order.is_empty())
        })
    }
}

/// The threads and what waits for them.
pub(crate) struct ReadPool {
    state: Mutex<State>,
    work: Condvar,
    threads_max: usize,
    environment: Arc<dyn Environment>,
}

impl ReadPool {
    pub fn new(environment: Arc<dyn Environment>, threads_max: usize) -> Arc<ReadPool> {
        Arc::new(ReadPool {
            state: Mutex::default(),
            work: Condvar::new(),
            threads_max: threads_max.max(1),
            environment,
        })
    }

    pub fn push(self: &Arc<Self>, owner: Owner, job: Box<dyn Job>) {
        let mut state = self.state.lock();
        state.push(owner, job);
        if state.idle > 0 {
            drop(state);
            self.work.notify_one();
            return;
        }
        if state.threads >= self.threads_max {
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = self.clone();
        let work = Box::new(move || pool.serve());
        let spawned = self.environment.spawn_thread("read", STACK_BYTES, work);
        if let Err(error) = spawned {
            let mut state = self.state.lock();
            state.threads -= 1;
            if state.threads > 0 {
                return;
            }
            drop(state);
            // Slower, but no job waits for ever.
            tracing::error!(%error, "no thread for reads");
            while self.run_one() {}
        }
    }

    fn serve(self: Arc<Self>) {
        give_way();
        loop {
            if self.run_one() {
                continue;
            }
            let mut state = self.state.lock();
            if !state.waiting.order.is_empty() {
                continue;
            }
            state.idle += 1;
            self.work.wait_for(&mut state, IDLE);
            state.idle -= 1;
            if state.waiting.order.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// One slice of the next job. False if there is none.
    fn run_one(&self) -> bool {
        let mut state = self.state.lock();
        let Some((owner, mut job)) = state.pop() else {
            return false;
        };
        // One who pushed may have woken a thread that was awake already.
        if state.idle > 0 && !state.waiting.order.is_empty() {
            self.work.notify_one();
        }
        drop(state);
        let run = AssertUnwindSafe(|| job.run(&Slice::new(&*self.environment, SLICE)));
        match catch_unwind(run) {
            Ok(Progress::Done) => {}
            Ok(Progress::Again) => self.state.lock().push(owner, job),
            // A bug; who waits for the job sees that it is gone.
            Err(_) => tracing::error!("a read failed [LC0308]"),
        }
        true
    }
}

/// Lets other threads go first. On Linux niceness is a thread's own.
#[cfg(target_os = "linux")]
fn give_way() {
    use rustix::process::{getpriority_process, setpriority_process};
    let lowered = getpriority_process(None)
        .and_then(|niceness| setpriority_process(None, (niceness + NICENESS).min(19)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "threads for reads have the priority of all others");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;
    use std::sync::mpsc;

    /// Tells its name in each of its slices.
    struct Told(&'static str, usize, mpsc::Sender<&'static str>);

    impl Job for Told {
        fn run(&mut self, _slice: &Slice<'_>) -> Progress {
            self.1 -= 1;
            self.2.send(self.0).expect("the test listens");
            match self.1 {
                0 => Progress::Done,
                _ => Progress::Again,
            }
        }
    }

    /// Keeps the pool's only thread until it is told to go on.
    struct Gate(mpsc::Receiver<()>);

    impl Job for Gate {
        fn run(&mut self, _slice: &Slice<'_>) -> Progress {
            let _ = self.0.recv();
            Progress::Done
        }
    }

    #[test]
    fn databases_and_their_clients_take_turns() {
        let pool = ReadPool::new(machine(), 1);
        let (open, gate) = mpsc::channel();
        let owner = |database, client| Owner { database, client };
        pool.push(owner(0, 0), Box::new(Gate(gate)));
        let (sender, told) = mpsc::channel();
        let push = |owner, name, slices| {
            pool.push(owner, Box::new(Told(name, slices, sender.clone())));
        };
        push(owner(1, 1), "greedy", 3);
        push(owner(1, 1), "greedy too", 1);
        push(owner(1, 2), "neighbour", 1);
        push(owner(2, 3), "other database", 2);
        open.send(()).expect("the gate waits");
        let order: Vec<_> = told.iter().take(7).collect();
        assert_eq!(
            order,
            [
                "greedy",
                "other database",
                "neighbour",
                "other database",
                "greedy too",
                "greedy",
                "greedy"
            ]
        );
    }

    #[test]
    fn a_panic_ends_its_job_only() {
        struct Panics;
        impl Job for Panics {
            fn run(&mut self, _slice: &Slice<'_>) -> Progress {
                panic!("a test");
            }
        }
        let pool = ReadPool::new(machine(), 1);
        let owner = Owner {
            database: 0,
            client: 0,
        };
        pool.push(owner, Box::new(Panics));
        let (sender, told) = mpsc::channel();
        pool.push(owner, Box::new(Told("still here", 1, sender)));
        assert_eq!(told.recv(), Ok("still here"));
    }
}
