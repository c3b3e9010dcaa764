//! Instances for procedures and HTTP handlers. The stack of a call is a fiber of the engine, so a call that waits leaves its thread
//! to others.

use std::sync::Arc;

use lightcone_host::clock::{self, ticks};
use lightcone_host::{
    trap_of, HostEnv, HostError, Interrupt, InterruptReason, ProcedureCall, ProcedureOutcome,
    Reservation, SuspendableInstance, Suspended, Transactions,
};
use wasmtime::{Store, UpdateDeadline};

use crate::exports::{outcome, poisons, Failure, ProcedureExports};
use crate::load::{Loading, Program};
use crate::state::State;
use crate::trap::end_call;
use crate::waits::Waits;

/// The size of an instance beside its memory, tables and guest stack: the stack of host calls, and the engine's own data.
const INSTANCE_BYTES: usize = 64 << 10;

pub(crate) struct SuspendableWasm {
    store: Store<State>,
    /// For its stack and the engine's data.
    _counted: Reservation,
    _mappings: Reservation,
    procedures: ProcedureExports,
    call_ticks: u64,
    stack_bytes_max: usize,
    poisoned: bool,
}

impl SuspendableWasm {
    /// Instantiates, and runs the load phase without keeping the description.
    pub(crate) async fn start(
        program: &Program,
        env: HostEnv,
    ) -> Result<SuspendableWasm, HostError> {
        let limits = env.limits();
        let (load_ticks, call_ticks) = (ticks(limits.load_ms_max), ticks(limits.call_ms_max));
        let mappings = program.mappings.take_suspendable()?;
        let counted = env
            .account()
            .reserve(program.stack_bytes_max + INSTANCE_BYTES)
            .map_err(|exceeded| HostError::LoadLimit {
                export: "the instance".to_owned(),
                trap: trap_of(exceeded),
            })?;
        let mut store = program.new_store(env, Waits::Suspending);
        store.data_mut().ticks_left = load_ticks;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| tick(context.data_mut()));
        let loading = Loading::run(program, store, Waits::Suspending);
        let (
            Loading {
                mut store,
                instance,
                ..
            },
            _,
        ) = loading.await?;
        Ok(SuspendableWasm {
            procedures: ProcedureExports::of(&mut store, &instance),
            store,
            _counted: counted,
            _mappings: mappings,
            call_ticks,
            stack_bytes_max: program.stack_bytes_max,
            poisoned: false,
        })
    }

    async fn run(&mut self, call: &ProcedureCall<'_>) -> ProcedureOutcome {
        if self.poisoned {
            let message = "the instance trapped before and was not replaced".to_owned();
            return ProcedureOutcome::Failed { message };
        }
        self.store.set_epoch_deadline(1);
        let state = self.store.data_mut();
        state.ticks_left = self.call_ticks;
        state.limiter.forget_refusal();
        let begun = state.env.begin_call(call.call.name, call.call.args);
        let called = match begun {
            Err(trap) => Err(end_call(trap)),
            Ok(handles) => {
                let (procedures, store) = (&self.procedures, &mut self.store);
                procedures
                    .call(store, call, handles, Waits::Suspending)
                    .await
            }
        };
        let called =
            called.map_err(|error| Failure::of(&error, self.store.data(), self.stack_bytes_max));
        self.poisoned = poisons(&called);
        outcome(called, call)
    }
}

impl SuspendableInstance for SuspendableWasm {
    fn call<'a>(
        &'a mut self,
        transactions: Box<dyn Transactions>,
        call: &'a ProcedureCall<'a>,
    ) -> Suspended<'a, ProcedureOutcome> {
        self.store.data_mut().env.own(transactions);
        Box::pin(async move {
            let outcome = self.run(call).await;
            let env = &mut self.store.data_mut().env;
            // Rolls back a transaction that is left open.
            env.end_call();
            env.disown();
            outcome
        })
    }

    fn interrupt(&self) -> Arc<Interrupt> {
        self.store.data().env.interrupt().clone()
    }
}

/// At each tick of a computing guest: whether it may go on, after its thread has served others. With an open transaction it goes on
/// at once, as all others wait for its end.
fn tick(state: &mut State) -> wasmtime::Result<UpdateDeadline> {
    state.tick()?;
    if !state.env.has_transaction() {
        return Ok(UpdateDeadline::Yield(1));
    }
    if clock::now() >= state.transaction_end_tick {
        let trap = InterruptReason::TransactionTime.trap(state.env.limits());
        return Err(end_call(trap));
    }
    Ok(UpdateDeadline::Continue(1))
}
