//! A machine without threads and without time of its own: a seed says what is done next, and when an alarm rings.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use lightcone_database::{Alarm, Environment, Next, Task, Work, Worker};
use lightcone_types::Timestamp;
use tokio::sync::oneshot;

/// The year 2000 in microseconds.
const BEGIN_US: i64 = 946_684_800_000_000;
/// What is not known after so many steps never is.
const STEPS_MAX: usize = 100_000;
/// A slow worker takes one of so many turns.
const SLOW_TURNS: usize = 16;

#[derive(Default)]
pub struct World {
    random: u64,
    /// Readings of the clock, which take a microsecond each, and what passes between them.
    elapsed_us: u64,
    /// By which the time of day is set.
    pub set_us: i64,
    workers: Vec<(String, Box<dyn Worker>)>,
    /// The name of one that is slow.
    pub slow: Option<&'static str>,
    jobs: Vec<Work>,
    tasks: Vec<Task>,
    /// By number.
    alarms: BTreeMap<u64, (u64, Work)>,
    alarms_so_far: u64,
    /// All that was drawn, and what came of it.
    trace: DefaultHasher,
    steps: u64,
    /// What clients and faults did, in words, if they are to be read.
    history: Option<Vec<String>>,
}

impl World {
    fn draw(&mut self, bound: usize) -> usize {
        let drawn = (splitmix(&mut self.random) % bound.max(1) as u64) as usize;
        (bound, drawn).hash(&mut self.trace);
        drawn
    }

    /// Most turns of a slow worker are lost, so that much waits for it.
    fn loses_its_turn(&mut self, worker: usize) -> bool {
        let name = &self.workers[worker].0;
        self.slow.is_some_and(|slow| name == slow) && self.draw(SLOW_TURNS) > 0
    }

    pub fn note(&mut self, what: impl Hash) {
        what.hash(&mut self.trace);
    }

    /// A number for all that has happened.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }
}

pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone)]
pub struct Simulated(Arc<Mutex<World>>, Instant);

impl fmt::Debug for Simulated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a simulated world")
    }
}

impl Environment for Simulated {
    fn now(&self) -> Timestamp {
        let mut world = self.world();
        world.elapsed_us += 1;
        Timestamp(BEGIN_US + world.elapsed_us as i64 + world.set_us)
    }

    fn instant(&self) -> Instant {
        let mut world = self.world();
        world.elapsed_us += 1;
        self.1 + Duration::from_micros(world.elapsed_us)
    }

    fn random(&self) -> u128 {
        self.world().draw(usize::MAX) as u128
    }

    /// A module is loaded at once. Reads have no threads, and are done by who asks for them.
    fn spawn_thread(&self, name: &str, _: usize, work: Work) -> io::Result<()> {
        match name {
            "load" => work(),
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(())
    }

    fn spawn_worker(&self, name: &str, _: usize, worker: Box<dyn Worker>) -> io::Result<()> {
        self.world().workers.push((name.to_owned(), worker));
        Ok(())
    }

    fn spawn_blocking(&self, work: Work) {
        self.world().jobs.push(work);
    }

    fn spawn_task(&self, task: Task) {
        self.world().tasks.push(task);
    }

    fn alarm(&self, delay: Duration, work: Work) -> Alarm {
        let mut world = self.world();
        world.alarms_so_far += 1;
        let (number, due) = (
            world.alarms_so_far,
            world.elapsed_us + delay.as_micros() as u64,
        );
        world.alarms.insert(number, (due, work));
        let of = self.clone();
        Alarm::new(Box::new(move || {
            let cancelled = of.world().alarms.remove(&number);
            drop(cancelled);
        }))
    }
}

impl Simulated {
    pub fn new(seed: u64, is_told: bool) -> Simulated {
        let world = World {
            random: seed,
            history: is_told.then(Vec::new),
            ..World::default()
        };
        Simulated(Arc::new(Mutex::new(world)), Instant::now())
    }

    /// A world in which something has panicked is looked at, too.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn draw(&self, bound: usize) -> usize {
        self.world().draw(bound)
    }

    /// True once in so many times.
    pub fn once_in(&self, times: usize) -> bool {
        self.draw(times) == 0
    }

    /// Something that a person would want to read of a failure.
    pub fn say(&self, what: impl FnOnce() -> String) {
        let mut world = self.world();
        let at = Duration::from_micros(world.elapsed_us);
        if let Some(history) = &mut world.history {
            history.push(format!("{at:>12?}  {}", what()));
        }
    }

    pub fn history(&self) -> Vec<String> {
        self.world().history.clone().unwrap_or_default()
    }

    /// Steps that were taken, and the time that has passed.
    pub fn lasted(&self) -> (u64, Duration) {
        let world = self.world();
        (world.steps, Duration::from_micros(world.elapsed_us))
    }

    /// A call of a module computes for so long.
    pub fn spend(&self, us: u64) {
        self.world().elapsed_us += us;
    }

    /// Waits for so long.
    pub async fn pause(&self, us: u64) {
        let (rung, ring) = oneshot::channel::<()>();
        let alarm = self.alarm(Duration::from_micros(us), Box::new(move || drop(rung)));
        // It rings by being dropped.
        let _ = ring.await;
        drop(alarm);
    }

    /// Something that is there to be done is done, or time passes.
    pub fn step(&self) {
        let mut world = self.world();
        world.steps += 1;
        let counts = [
            world.workers.len(),
            world.jobs.len(),
            world.tasks.len(),
            usize::from(!world.alarms.is_empty()),
        ];
        let mut drawn = world.draw(counts.iter().sum());
        let mut is_of = |count: usize| match drawn < count {
            true => true,
            false => {
                drawn -= count;
                false
            }
        };
        if is_of(counts[0]) {
            if world.loses_its_turn(drawn) {
                return;
            }
            let (name, mut worker) = world.workers.remove(drawn);
            drop(world);
            let next = worker.step();
            let mut world = self.world();
            if next != Next::Ended {
                let place = drawn.min(world.workers.len());
                world.workers.insert(place, (name, worker));
            }
        } else if is_of(counts[1]) {
            let job = world.jobs.remove(drawn);
            drop(world);
            job();
        } else if is_of(counts[2]) {
            let mut task = world.tasks.remove(drawn);
            drop(world);
            if poll(&mut task).is_none() {
                self.world().tasks.push(task);
            }
        } else if let Some((&number, &(due, _))) =
            world.alarms.iter().min_by_key(|(_, (due, _))| *due)
        {
            world.elapsed_us = world.elapsed_us.max(due);
            let alarm = world.alarms.remove(&number);
            drop(world);
            if let Some((_, ring)) = alarm {
                ring();
            }
        }
    }

    /// Goes on until something is known.
    pub fn until<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let mut future = Box::pin(future);
        for _ in 0..STEPS_MAX {
            if let Some(known) = poll(&mut future) {
                return known;
            }
            self.step();
        }
        panic!("never: {what}");
    }

    /// Nothing is left of those who ran, as if the process had been killed.
    pub fn kill(&self) {
        let mut world = self.world();
        let (mut workers, jobs) = (
            std::mem::take(&mut world.workers),
            std::mem::take(&mut world.jobs),
        );
        let (tasks, alarms) = (
            std::mem::take(&mut world.tasks),
            std::mem::take(&mut world.alarms),
        );
        drop(world);
        // Who drops a log waits for the end of its worker.
        workers.sort_by_key(|(name, _)| name != "log");
        for worker in workers {
            drop(worker);
        }
        drop((jobs, tasks, alarms));
    }
}

pub fn poll<F: Future + ?Sized + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(future).poll(&mut context) {
        Poll::Ready(known) => Some(known),
        Poll::Pending => None,
    }
}
