//! Calls in JavaScript: an isolate cannot leave its thread in the middle of a call, so each call has one from beginning to end,
//! whether it computes or waits. There are few of them; more calls wait for their turn.

use std::sync::Arc;

use lightcone_host::{ModuleInstance, ProcedureOutcome, ProcedureResult};

use super::leased_transactions::LeasedTransactions;
use super::thread_queue::{Bell, ThreadQueue};
use super::under_way::UnderWay;
use crate::error::Refusal;
use crate::shared::Shared;

/// Queues a call, and starts a thread for it if there may be one more.
pub(super) fn push(shared: &Arc<Shared>, under_way: UnderWay) {
    let queue = shared.procedures.threads.clone();
    if !queue.push(under_way.caller, under_way) {
        return;
    }
    let (of, working) = (shared.clone(), queue.clone());
    let work = Box::new(move || work(&of, &working));
    let spawned = shared
        .environment()
        .spawn_thread("procedure", shared.stack_bytes(), work);
    if let Err(error) = spawned {
        tracing::error!(database = %shared.options.identity, %error, "there is no thread for a procedure");
        queue.lose_thread();
    }
}

/// A thread with its instance, which is made for the first call.
fn work(shared: &Arc<Shared>, queue: &ThreadQueue<UnderWay>) {
    let mut instance: Option<(u64, Box<dyn ModuleInstance>)> = None;
    let bell = Bell::default();
    while let Some((under_way, _running)) = queue.next(&bell) {
        let version = under_way.job().module.version;
        if instance.as_ref().is_none_or(|(of, _)| *of != version) {
            // The old one goes first.
            drop(instance.take());
            match make(shared, &under_way) {
                Ok(made) => instance = Some((version, made)),
                Err(Refusal(message)) => {
                    under_way.end_and_tell(ProcedureOutcome::Failed { message });
                    continue;
                }
            }
        }
        let (_, used) = instance.as_mut().expect("it was just made");
        let outcome = run(shared, used.as_mut(), &under_way);
        if used.is_poisoned() || !matches!(outcome, ProcedureOutcome::Returned(_)) {
            instance = None;
        }
        under_way.end_and_tell(outcome);
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
    let (job, control) = (under_way.job(), &under_way.control);
    let mut transactions = LeasedTransactions::new(shared, job, control, None);
    let outcome = instance.call_procedure(&mut transactions, &job.call());
    under_way.control.detach();
    outcome
}

fn make(shared: &Shared, under_way: &UnderWay) -> Result<Box<dyn ModuleInstance>, Refusal> {
    let program = &under_way.job().module.program;
    let mut instance = program.instantiate(shared.procedure_config())?;
    instance.prepare();
    Ok(instance)
}
