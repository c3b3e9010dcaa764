//! Calls in WebAssembly, from their turn to their end: where they begin, and how they go on beside the writer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use lightcone_host::{InterruptReason, ProcedureOutcome, SuspendableInstance};
use tokio::sync::OwnedSemaphorePermit;

use super::fiber::{Asks, Body, Fiber, FiberRequest};
use super::leased_transactions::LeasedTransactions;
use super::under_way::UnderWay;
use super::Ended;
use crate::error::Refusal;
use crate::inbox::Input;
use crate::shared::Shared;

/// What a call needs to compute.
type Place = (OwnedSemaphorePermit, Box<dyn SuspendableInstance>);

/// A call that may begin at once, on whatever thread polls it. Otherwise it has gone to wait for its place.
pub(super) fn start(shared: &Arc<Shared>, under_way: UnderWay) -> Option<Fiber> {
    let place = place_at_once(shared, &under_way);
    let begins_here = place.is_some();
    let job = under_way.job();
    let counters = job.module.function(job.function).counters.clone();
    let (asks, control) = (Asks::default(), under_way.control.clone());
    let fiber = Fiber {
        running: Box::pin(run(shared.clone(), under_way, place, asks.clone())),
        asks,
        control,
        counters,
    };
    if begins_here {
        return Some(fiber);
    }
    go_on_beside(fiber, shared);
    None
}

/// Has it run on a thread for procedures until it ends, or asks for the tables.
pub(crate) fn go_on_beside(mut fiber: Fiber, shared: &Arc<Shared>) {
    let to = shared.clone();
    let task = async move {
        let suspended = poll_fn(|context| match fiber.running.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Ok(ended)),
            Poll::Pending => match fiber.asks.take() {
                Some(FiberRequest::Tables(request)) => Poll::Ready(Err(request)),
                _ => Poll::Pending,
            },
        })
        .await;
        let notice = match suspended {
            Ok(ended) => Input::ProcedureEnded(Box::new(ended)),
            Err(request) => Input::Body(Box::new(Body {
                fiber,
                request: *request,
            })),
        };
        // A database that has stopped answers no call: those who wait hear that it is gone.
        let _ = to.inbox.send(notice);
    };
    shared.environment().spawn_task(Box::pin(task));
}

/// What a brief call needs, if it need not wait for any of it.
fn place_at_once(shared: &Shared, under_way: &UnderWay) -> Option<Place> {
    let (job, procedures) = (under_way.job(), &shared.procedures);
    let counters = &job.module.function(job.function).counters;
    if !counters.pace.begins_on_writer() {
        return None;
    }
    let running = procedures.running.clone().try_acquire_owned().ok()?;
    let instance = procedures.take_idle(job.module.version)?;
    Some((running, instance))
}

async fn run(shared: Arc<Shared>, under_way: UnderWay, place: Option<Place>, asks: Asks) -> Ended {
    let place = match place {
        Some(place) => Ok(place),
        None => wait_for_place(&shared, &under_way).await,
    };
    let (running, mut instance) = match place {
        Ok(place) => place,
        Err(Refusal(message)) => return under_way.end(ProcedureOutcome::Failed { message }),
    };
    under_way.control.attach(instance.interrupt());
    let (job, control) = (under_way.job(), &under_way.control);
    let transactions = LeasedTransactions::new(&shared, job, control, Some((asks, running)));
    let call = job.call();
    let outcome = instance.call(Box::new(transactions), &call).await;
    under_way.control.detach();
    // An instance is used again after a success only (spec 03 §3.4).
    let version = job.module.version;
    let is_current = shared.module().version == version;
    if is_current && matches!(outcome, ProcedureOutcome::Returned(_)) {
        shared.procedures.put_idle(version, instance);
    }
    under_way.end(outcome)
}

async fn wait_for_place(shared: &Shared, under_way: &UnderWay) -> Result<Place, Refusal> {
    let procedures = &shared.procedures;
    let running = tokio::select! {
        biased;
        running = procedures.running.clone().acquire_owned() => running.ok(),
        () = under_way.control.ended() => None,
    };
    let Some(running) = running else {
        let reason = under_way.control.reason();
        let reason = reason.unwrap_or(InterruptReason::Stopping);
        return Err(Refusal(
            reason.trap(&shared.options.limits.host).to_string(),
        ));
    };
    let module = &under_way.job().module;
    if let Some(instance) = procedures.take_idle(module.version) {
        return Ok((running, instance));
    }
    let env = module.program.env(shared.procedure_config());
    let made = module.program.loaded.instantiate_suspendable(env);
    let made = made.ok_or_else(|| "its engine runs no procedures beside the writer".to_owned())?;
    let instance = made.await?;
    Ok((running, instance))
}
