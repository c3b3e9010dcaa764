//! Calls in WebAssembly: tasks that are suspended while they wait, so thousands need no more threads than there are processors.

use std::sync::Arc;

use lightcone_host::{HostEnv, InterruptReason, ProcedureOutcome, SuspendableInstance};

use super::leased_transactions::LeasedTransactions;
use super::under_way::UnderWay;
use crate::shared::Shared;

/// Runs a call from its turn to its end.
pub(super) async fn run(shared: Arc<Shared>, under_way: UnderWay) {
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
        None => make(&shared, &under_way).await,
    };
    let mut instance = match instance {
        Ok(instance) => instance,
        Err(message) => return under_way.end(ProcedureOutcome::Failed { message }),
    };
    under_way.control.attach(instance.interrupt());
    let (job, control) = (under_way.job(), &under_way.control);
    let transactions = LeasedTransactions::new(&shared, job, control, Some(running));
    let call = job.call().call();
    let outcome = instance.call(Box::new(transactions), &call).await;
    under_way.control.detach();
    // An instance is used again after a success only (spec 03 §3.4).
    let is_current = shared.module().version == version;
    if is_current && matches!(outcome, ProcedureOutcome::Returned(_)) {
        procedures.put_idle(version, instance);
    }
    under_way.end(outcome);
}

async fn make(
    shared: &Shared,
    under_way: &UnderWay,
) -> Result<Box<dyn SuspendableInstance>, String> {
    let loaded = &under_way.job().module.program.loaded;
    let env = HostEnv::new(shared.procedure_config());
    match loaded.instantiate_suspendable(env) {
        None => Err("its engine runs no procedures beside the writer".to_owned()),
        Some(made) => made
            .await
            .map_err(|error| format!("the module cannot be instantiated: {error}")),
    }
}
