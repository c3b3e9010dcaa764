//! Calls in JavaScript: an isolate cannot leave its thread in the middle of a call, so each call has one from beginning to end,
//! whether it computes or waits. There are few of them; more calls wait for their turn.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lightcone_host::{HostEnv, ModuleInstance, ProcedureOutcome, ProcedureResult};
use lightcone_types::Identity;
use rustc_hash::FxHashMap;

use super::lease::LeasedTransactions;
use super::{host_config, UnderWay};
use crate::options::WRITER_STACK_EXTRA_BYTES;
use crate::shared::Shared;

/// A thread that has had no call for so long ends, and the memory of its isolate with it.
const IDLE: Duration = Duration::from_secs(10);

/// The threads of one database.
pub(super) struct Threads {
    queue: Mutex<Queue>,
    threads_max: usize,
}

/// Wakes one thread.
type Bell = Arc<Condvar>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<UnderWay>,
    /// How many calls of each caller have a thread.
    running: FxHashMap<Identity, usize>,
    threads: usize,
    /// Threads without a call.
    idle: usize,
    /// Those that nobody has woken yet. The last to fall asleep is woken first, so that a few calls keep a few threads, and the others
    /// end.
    asleep: Vec<Bell>,
    stopped: bool,
}

impl Queue {
    /// The next call: the first one whose caller has fewer threads than are left for all others.
    fn take(&mut self, threads_max: usize) -> Option<UnderWay> {
        let left = threads_max.saturating_sub(self.running.values().sum());
        let next = self.waiting.iter().position(|under_way| {
            let running = self.running.get(&under_way.caller);
            running.copied().unwrap_or_default() < left
        })?;
        let under_way = self.waiting.remove(next)?;
        *self.running.entry(under_way.caller).or_default() += 1;
        Some(under_way)
    }

    fn wake_one(&mut self) {
        if let Some(bell) = self.asleep.pop() {
            bell.notify_one();
        }
    }

    fn wake_all(&mut self) {
        for bell in self.asleep.drain(..) {
            bell.notify_one();
        }
    }
}

/// A call has a thread until this goes.
struct Running<'a> {
    threads: &'a Threads,
    caller: Identity,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut queue = self.threads.queue();
        if let Some(running) = queue.running.get_mut(&self.caller) {
            *running -= 1;
            if *running == 0 {
                queue.running.remove(&self.caller);
            }
        }
        let mut lost = VecDeque::new();
        if std::thread::panicking() {
            // The thread is lost. If it was the last one, nobody else would ever take them.
            queue.threads -= 1;
            if queue.threads == 0 {
                lost = std::mem::take(&mut queue.waiting);
            }
        }
        // The caller may have more threads now, and others too.
        if !queue.waiting.is_empty() {
            queue.wake_all();
        }
        drop(queue);
        drop(lost);
    }
}

impl Threads {
    pub fn new(threads_max: usize) -> Arc<Threads> {
        Arc::new(Threads {
            queue: Mutex::default(),
            threads_max,
        })
    }

    /// Who waits for a turn gets none.
    pub fn stop(&self) {
        let waiting = {
            let mut queue = self.queue();
            queue.stopped = true;
            queue.wake_all();
            std::mem::take(&mut queue.waiting)
        };
        drop(waiting);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call, if there is one in time.
    fn next(&self, bell: &Bell) -> Option<UnderWay> {
        // Whoever is woken for nothing has no more time for that.
        let end = Instant::now() + IDLE;
        let mut queue = self.queue();
        loop {
            if let Some(next) = queue.take(self.threads_max) {
                return Some(next);
            }
            let left = end.saturating_duration_since(Instant::now());
            // What still waits is taken when a call of its caller has ended.
            if queue.stopped || left.is_zero() {
                queue.threads -= 1;
                return None;
            }
            queue.idle += 1;
            queue.asleep.push(bell.clone());
            let woken = bell.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
            queue.idle -= 1;
            queue.asleep.retain(|asleep| !Arc::ptr_eq(asleep, bell));
        }
    }
}

/// Queues a call, and starts a thread for it if there may be one more.
pub(super) fn push(under_way: UnderWay) {
    let shared = under_way.shared.clone();
    let threads = shared.procedures.threads.clone();
    let starts = {
        let mut queue = threads.queue();
        if queue.stopped {
            drop(queue);
            return drop(under_way);
        }
        queue.waiting.push_back(under_way);
        let starts = queue.waiting.len() > queue.idle && queue.threads < threads.threads_max;
        queue.threads += usize::from(starts);
        queue.wake_one();
        starts
    };
    if !starts {
        return;
    }
    let stack_bytes = shared.options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES;
    let (of, working) = (shared.clone(), threads.clone());
    let work = Box::new(move || work(&of, &working));
    let spawned = shared
        .environment()
        .spawn_thread("procedure", stack_bytes, work);
    if let Err(error) = spawned {
        tracing::error!(database = %shared.options.identity, %error, "there is no thread for a procedure");
        let mut queue = threads.queue();
        queue.threads -= 1;
        if queue.threads == 0 {
            // Nobody else would ever take them.
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(waiting);
        }
    }
}

/// A thread with its instance, which is made for the first call.
fn work(shared: &Arc<Shared>, threads: &Threads) {
    let mut instance: Option<(u64, Box<dyn ModuleInstance>)> = None;
    let bell = Bell::default();
    while let Some(under_way) = threads.next(&bell) {
        let _running = Running {
            threads,
            caller: under_way.caller,
        };
        let version = under_way.job().module.version;
        if instance.as_ref().is_none_or(|(of, _)| *of != version) {
            // The old one goes first.
            drop(instance.take());
            match make(&under_way) {
                Ok(made) => instance = Some((version, made)),
                Err(message) => {
                    under_way.end(ProcedureOutcome::Failed { message });
                    continue;
                }
            }
        }
        let (_, used) = instance.as_mut().expect("it was just made");
        let outcome = run(shared, used.as_mut(), &under_way);
        if used.is_poisoned() || !matches!(outcome, ProcedureOutcome::Returned(_)) {
            instance = None;
        }
        under_way.end(outcome);
    }
}

fn run(
    shared: &Arc<Shared>,
    instance: &mut dyn ModuleInstance,
    under_way: &UnderWay,
) -> ProcedureOutcome<ProcedureResult> {
    if let Some(reason) = under_way.control.reason() {
        let message = reason.trap(&shared.options.limits.host).to_string();
        return ProcedureOutcome::Failed { message };
    }
    if let Some(interrupt) = instance.interrupt() {
        under_way.control.attach(interrupt);
    }
    let waited = Arc::new(Mutex::new(Duration::ZERO));
    let job = under_way.job();
    let mut transactions =
        LeasedTransactions::new(shared, job, &under_way.control, None, waited.clone());
    let started = shared.environment().instant();
    let outcome = instance.call_either(&mut transactions, &job.call().call());
    let elapsed = shared.environment().instant() - started;
    let waited = *waited.lock().unwrap_or_else(PoisonError::into_inner);
    job.call()
        .placement()
        .note_run(elapsed.saturating_sub(waited));
    under_way.control.detach();
    outcome
}

fn make(under_way: &UnderWay) -> Result<Box<dyn ModuleInstance>, String> {
    let loaded = &under_way.job().module.program.loaded;
    let instance = loaded.instantiate(HostEnv::new(host_config(&under_way.shared)));
    let mut instance =
        instance.map_err(|error| format!("the module cannot be instantiated: {error}"))?;
    instance.prepare();
    Ok(instance)
}
