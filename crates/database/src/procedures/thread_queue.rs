//! A queue in front of a few threads: callers share the threads, and a caller with many calls leaves some for the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_types::Identity;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;

/// A thread that has had no call for so long ends, and the memory of its isolate with it.
const IDLE: Duration = Duration::from_secs(10);

/// Calls that wait for one of the threads of a database.
pub(super) struct ThreadQueue<C> {
    state: Mutex<State<C>>,
    threads_max: usize,
}

/// Wakes one thread.
pub(super) type Bell = Arc<Condvar>;

struct State<C> {
    waiting: VecDeque<(Identity, C)>,
    /// How many calls of each caller have a thread.
    running: FxHashMap<Identity, usize>,
    threads: usize,
    /// Threads without a call.
    idle: usize,
    /// Those that were not woken yet. The last to fall asleep is woken first, so that a few calls keep a few threads, and the
    /// others end.
    asleep: Vec<Bell>,
    stopped: bool,
}

impl<C> State<C> {
    /// The next call: the first one whose caller has fewer threads than are left for all others.
    fn take(&mut self, threads_max: usize) -> Option<(Identity, C)> {
        let left = threads_max.saturating_sub(self.running.values().sum());
        let next = self.waiting.iter().position(|(caller, _)| {
            let running = self.running.get(caller);
            running.copied().unwrap_or_default() < left
        })?;
        let (caller, call) = self.waiting.remove(next)?;
        *self.running.entry(caller).or_default() += 1;
        Some((caller, call))
    }

    /// A thread is lost. If it was the last one, no other would ever take what waits: gives it.
    fn lose_thread(&mut self) -> VecDeque<(Identity, C)> {
        self.threads -= 1;
        match self.threads {
            0 => std::mem::take(&mut self.waiting),
            _ => VecDeque::new(),
        }
    }

    fn wake_all(&mut self) {
        for bell in self.asleep.drain(..) {
            bell.notify_one();
        }
    }
}

/// A call has a thread until this goes.
pub(super) struct Running<'q, C> {
    queue: &'q ThreadQueue<C>,
    caller: Identity,
}

impl<C> Drop for Running<'_, C> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        if let Some(running) = state.running.get_mut(&self.caller) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&self.caller);
            }
        }
        let lost = std::thread::panicking().then(|| state.lose_thread());
        // The caller may have more threads now, and others too.
        if !state.waiting.is_empty() {
            state.wake_all();
        }
        drop(state);
        drop(lost);
    }
}

impl<C> ThreadQueue<C> {
    pub fn new(threads_max: usize) -> Arc<ThreadQueue<C>> {
        let state = State {
            waiting: VecDeque::new(),
            running: FxHashMap::default(),
            threads: 0,
            idle: 0,
            asleep: Vec::new(),
            stopped: false,
        };
        Arc::new(ThreadQueue {
            state: Mutex::new(state),
            threads_max,
        })
    }

    /// Who waits for a turn gets none.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.wake_all();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }

    /// Queues a call. True: one more thread is to be started for it, or [`ThreadQueue::lose_thread`] to be called.
    pub fn push(&self, caller: Identity, call: C) -> bool {
        let mut state = self.state.lock();
        if state.stopped {
            drop(state);
            drop(call);
            return false;
        }
        state.waiting.push_back((caller, call));
        let starts = state.waiting.len() > state.idle && state.threads < self.threads_max;
        state.threads += usize::from(starts);
        if let Some(bell) = state.asleep.pop() {
            bell.notify_one();
        }
        starts
    }

    /// A thread could not be started.
    pub fn lose_thread(&self) {
        let lost = self.state.lock().lose_thread();
        drop(lost);
    }

    /// The next call for this thread, if there is one in time. Otherwise the thread is to end.
    pub fn next(&self, bell: &Bell) -> Option<(C, Running<'_, C>)> {
        // A thread that is woken for nothing has no more time for that.
        let end = Instant::now() + IDLE;
        let mut state = self.state.lock();
        loop {
            if let Some((caller, call)) = state.take(self.threads_max) {
                let queue = self;
                return Some((call, Running { queue, caller }));
            }
            let left = end.saturating_duration_since(Instant::now());
            // What still waits is taken when a call of its caller has ended.
            if state.stopped || left.is_zero() {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            state.asleep.push(bell.clone());
            bell.wait_for(&mut state, left);
            state.idle -= 1;
            state.asleep.retain(|asleep| !Arc::ptr_eq(asleep, bell));
        }
    }
}
