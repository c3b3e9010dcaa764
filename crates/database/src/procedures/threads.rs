//! Calls in JavaScript: an isolate cannot leave its thread in the middle of a call, so each call has one from beginning to end,
//! whether it computes or waits. There are few of them; more calls wait for their turn.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lightcone_host::{HostEnv, ModuleInstance, ProcedureOutcome, ProcedureResult};

use super::lease::LeasedTransactions;
use super::{host_config, UnderWay};
use crate::options::WRITER_STACK_EXTRA_BYTES;
use crate::shared::Shared;

/// A thread without a call ends after this time.
const IDLE: Duration = Duration::from_secs(10);

/// The threads of one database.
pub(super) struct Threads {
    queue: Mutex<Queue>,
    changed: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<UnderWay>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

impl Threads {
    pub fn new(threads_max: usize) -> Arc<Threads> {
        Arc::new(Threads {
            queue: Mutex::default(),
            changed: Condvar::new(),
            threads_max,
        })
    }

    /// Who waits for a turn gets none.
    pub fn stop(&self) {
        let waiting = {
            let mut queue = self.queue();
            queue.stopped = true;
            std::mem::take(&mut queue.waiting)
        };
        drop(waiting);
        self.changed.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call, if there is one in time.
    fn next(&self) -> Option<UnderWay> {
        let mut queue = self.queue();
        loop {
            if let Some(next) = queue.waiting.pop_front() {
                return Some(next);
            }
            if queue.stopped {
                queue.threads -= 1;
                return None;
            }
            queue.idle += 1;
            let (woken, timed_out) = self
                .changed
                .wait_timeout(queue, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if timed_out.timed_out() && queue.waiting.is_empty() {
                queue.threads -= 1;
                return None;
            }
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
        starts
    };
    threads.changed.notify_one();
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
    while let Some(under_way) = threads.next() {
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
