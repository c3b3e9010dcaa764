//! Calls in WebAssembly: tasks that are suspended while they wait, so thousands need no more threads than there are processors.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lightcone_host::{
    HostEnv, InterruptReason, ProcedureOutcome, ProcedureResult, SuspendableInstance,
};

use super::lease::LeasedTransactions;
use super::{host_config, UnderWay};

/// Runs a call from its turn to its end.
pub(super) async fn run(under_way: UnderWay) {
    let shared = under_way.shared.clone();
    let procedures = &shared.procedures;
    let running = tokio::select! {
        running = procedures.running.clone().acquire_owned() => running.ok(),
        () = under_way.control.ended() => None,
    };
    let Some(running) = running else {
        let reason = under_way.control.reason();
        let reason = reason.unwrap_or(InterruptReason::Stopping);
        let message = reason.trap(&shared.options.limits.host).to_string();
        return under_way.end(ProcedureOutcome::Failed { message });
    };
    let version = under_way.job().module.version;
    let instance = match procedures.take_idle(version) {
        Some(instance) => Ok(instance),
        None => make(&under_way).await,
    };
    let mut instance = match instance {
        Ok(instance) => instance,
        Err(message) => return under_way.end(ProcedureOutcome::Failed { message }),
    };
    under_way.control.attach(instance.interrupt());
    let waited = Arc::new(Mutex::new(Duration::ZERO));
    let job = under_way.job();
    let transactions = LeasedTransactions::new(
        &shared,
        job,
        &under_way.control,
        Some(running),
        waited.clone(),
    );
    let started = shared.environment().instant();
    let call = job.call().call();
    let outcome = instance.call(Box::new(transactions), &call).await;
    let elapsed = shared.environment().instant() - started;
    let waited = *waited.lock().unwrap_or_else(PoisonError::into_inner);
    job.call()
        .placement()
        .note_run(elapsed.saturating_sub(waited));
    under_way.control.detach();
    keep(&under_way, version, instance, &outcome);
    under_way.end(outcome);
}

/// An instance is used again after a success only (spec 03 §3.4).
fn keep(
    under_way: &UnderWay,
    version: u64,
    instance: Box<dyn SuspendableInstance>,
    outcome: &ProcedureOutcome<ProcedureResult>,
) {
    let shared = &under_way.shared;
    let is_current = shared.module().version == version;
    if is_current && matches!(outcome, ProcedureOutcome::Returned(_)) {
        shared.procedures.put_idle(version, instance);
    }
}

async fn make(under_way: &UnderWay) -> Result<Box<dyn SuspendableInstance>, String> {
    let loaded = &under_way.job().module.program.loaded;
    let env = HostEnv::new(host_config(&under_way.shared));
    match loaded.instantiate_suspendable(env) {
        None => Err("its engine runs no procedures beside the writer".to_owned()),
        Some(made) => made
            .await
            .map_err(|error| format!("the module cannot be instantiated: {error}")),
    }
}
