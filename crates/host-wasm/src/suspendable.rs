//! Instances for procedures and HTTP handlers. The stack of a call is a fiber of the engine, so a call that waits leaves its thread
//! to others.

use std::sync::Arc;

use lightcone_host::clock::ticks;
use lightcone_host::{
    trap_of, CallHandles, HostEnv, HostError, Interrupt, ProcedureCall, ProcedureOutcome,
    ProcedureResult, Reservation, SuspendableInstance, Suspended, Transactions,
};
use wasmtime::{
    Instance, InstancePre, Store, Trap, TypedFunc, UpdateDeadline, WasmParams, WasmResults,
};

use crate::check::LoadSteps;
use crate::exports::{
    load_error, not_exported, params, response, unexpected_code, CallFunction, Failure,
    HandlerFunction, CALL_HTTP_HANDLER, CALL_PROCEDURE,
};
use crate::mappings::Mappings;
use crate::state::State;
use crate::trap::end_call;

/// The size of an instance beside its memory, tables and guest stack: the stack of host calls, and the engine's own data.
const INSTANCE_BYTES: usize = 64 << 10;

pub(crate) struct SuspendableWasm {
    store: Store<State>,
    /// For its stack and the engine's data.
    _counted: Reservation,
    _mappings: Reservation,
    call_procedure: Option<CallFunction>,
    call_http_handler: Option<HandlerFunction>,
    call_ticks: u64,
    stack_bytes_max: usize,
    poisoned: bool,
}

impl SuspendableWasm {
    /// Instantiates, and runs the load phase without keeping the description.
    pub(crate) async fn start(
        linked: &InstancePre<State>,
        steps: &LoadSteps,
        stack_bytes_max: usize,
        mappings: &Mappings,
        env: HostEnv,
    ) -> Result<SuspendableWasm, HostError> {
        let (load_ticks, call_ticks) = (
            ticks(env.limits().load_ms_max),
            ticks(env.limits().call_ms_max),
        );
        let mappings = mappings.take_suspendable()?;
        let counted = env
            .account()
            .reserve(stack_bytes_max + INSTANCE_BYTES)
            .map_err(|exceeded| HostError::LoadLimit {
                export: "the instance".to_owned(),
                trap: trap_of(exceeded),
            })?;
        let mut store = Store::new(linked.module().engine(), State::new(env));
        store.limiter(|state| &mut state.limiter);
        store.data_mut().ticks_left = load_ticks;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| tick(context.data_mut()));
        let instance = linked.instantiate_async(&mut store).await;
        let instance = instance
            .map_err(|error| load_error(&store, "the start function", error, stack_bytes_max))?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or(HostError::NoMemory)?;
        store.data_mut().memory = Some(memory);
        let mut phase = Phase {
            store,
            instance,
            stack_bytes_max,
        };
        phase.run(steps).await?;
        let Phase {
            mut store,
            instance,
            ..
        } = phase;
        // Their types were checked at compilation.
        let call_procedure = instance.get_typed_func(&mut store, CALL_PROCEDURE).ok();
        let call_http_handler = instance.get_typed_func(&mut store, CALL_HTTP_HANDLER).ok();
        Ok(SuspendableWasm {
            store,
            _counted: counted,
            _mappings: mappings,
            call_procedure,
            call_http_handler,
            call_ticks,
            stack_bytes_max,
            poisoned: false,
        })
    }

    async fn run(&mut self, call: &ProcedureCall<'_>) -> ProcedureOutcome<ProcedureResult> {
        if self.poisoned {
            let message = "the instance trapped before and was not replaced".to_owned();
            return ProcedureOutcome::Failed { message };
        }
        let state = self.store.data_mut();
        state.ticks_left = self.call_ticks;
        state.limiter.forget_refusal();
        let begun = state.env.begin_call(call.call.name, call.call.args);
        let name = match call.body {
            None => CALL_PROCEDURE,
            Some(_) => CALL_HTTP_HANDLER,
        };
        let returned = match (begun, call.body) {
            (Err(trap), _) => Some(Err(end_call(trap))),
            (Ok(handles), None) => self.procedure(call, handles).await,
            (Ok(handles), Some(body)) => self.handler(call, body, handles).await,
        };
        match returned {
            Some(Ok((0, result))) => ProcedureOutcome::Returned(result),
            Some(Ok((code, _))) => {
                self.poisoned = true;
                unexpected_code(name, code)
            }
            Some(Err(error)) => {
                self.poisoned = true;
                Failure::of(&error, self.store.data(), self.stack_bytes_max).outcome()
            }
            None if call.body.is_none() => not_exported("procedure", &call.call, name),
            None => not_exported("http handler", &call.call, name),
        }
    }

    async fn procedure(
        &mut self,
        call: &ProcedureCall<'_>,
        handles: CallHandles,
    ) -> Option<wasmtime::Result<(i32, ProcedureResult)>> {
        let function = self.call_procedure.clone()?;
        let params = params(&call.call, handles);
        let code = function.call_async(&mut self.store, params).await;
        Some(code.and_then(|code| {
            let value = self.store.data_mut().env.take_sink(handles.sink);
            Ok((code, ProcedureResult::Value(value.map_err(end_call)?)))
        }))
    }

    async fn handler(
        &mut self,
        call: &ProcedureCall<'_>,
        body: &[u8],
        handles: CallHandles,
    ) -> Option<wasmtime::Result<(i32, ProcedureResult)>> {
        let function = self.call_http_handler.clone()?;
        let (request, head_sink) = (handles.args, handles.sink);
        let env = &mut self.store.data_mut().env;
        let body = match env.open_source(body) {
            Ok(body) => body,
            Err(trap) => return Some(Err(end_call(trap))),
        };
        let body_sink = env.open_sink();
        let timestamp = call.call.timestamp.0;
        let params = (call.call.id, timestamp, request, body, head_sink, body_sink);
        let code = function.call_async(&mut self.store, params).await;
        Some(code.and_then(|code| {
            let response = response(&mut self.store.data_mut().env, head_sink, body_sink)?;
            Ok((code, ProcedureResult::Response(response)))
        }))
    }
}

impl SuspendableInstance for SuspendableWasm {
    fn call<'a>(
        &'a mut self,
        transactions: Box<dyn Transactions>,
        call: &'a ProcedureCall<'a>,
    ) -> Suspended<'a, ProcedureOutcome<ProcedureResult>> {
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

/// A guest with an open transaction keeps its thread for so many ticks before other calls run.
const TRANSACTION_TICKS_MAX: u64 = 5;

/// At each tick of a computing guest: whether it may go on, after other calls ran. A brief transaction ends first, as its writer
/// waits for it. A long one holds up only its own writer, and all databases share the threads.
fn tick(state: &mut State) -> wasmtime::Result<UpdateDeadline> {
    if let Some(trap) = state.env.interrupted() {
        return Err(wasmtime::Error::new(trap));
    }
    state.ticks_left = state.ticks_left.saturating_sub(1);
    if state.ticks_left == 0 {
        return Err(Trap::Interrupt.into());
    }
    if state.env.has_transaction() && state.kept_ticks < TRANSACTION_TICKS_MAX {
        state.kept_ticks += 1;
        return Ok(UpdateDeadline::Continue(1));
    }
    state.kept_ticks = 0;
    Ok(UpdateDeadline::Yield(1))
}

struct Phase {
    store: Store<State>,
    instance: Instance,
    stack_bytes_max: usize,
}

impl Phase {
    async fn run(&mut self, steps: &LoadSteps) -> Result<(), HostError> {
        if steps.initialize {
            self.call::<(), ()>("_initialize", ()).await?;
        }
        for preinit in &steps.preinits {
            self.call::<(), ()>(preinit, ()).await?;
        }
        if steps.setup {
            let sink = self.store.data_mut().env.open_sink();
            let code = self.call::<u32, i32>("__setup__", sink).await?;
            let env = &mut self.store.data_mut().env;
            let text = String::from_utf8_lossy(env.sink_content(sink)).into_owned();
            env.end_call();
            match code {
                0 => {}
                1 => return Err(HostError::Setup(text)),
                code => return Err(HostError::SetupCode(code)),
            }
        }
        let sink = self.store.data_mut().env.open_sink();
        self.call::<u32, ()>("__describe_module__", sink).await?;
        self.store.data_mut().env.end_call();
        Ok(())
    }

    async fn call<P: WasmParams + Sync, R: WasmResults + Sync>(
        &mut self,
        export: &str,
        params: P,
    ) -> Result<R, HostError> {
        let function: TypedFunc<P, R> = self
            .instance
            .get_typed_func(&mut self.store, export)
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        let result = function.call_async(&mut self.store, params).await;
        result.map_err(|error| load_error(&self.store, export, error, self.stack_bytes_max))
    }
}
