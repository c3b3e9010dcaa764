//! Instances: load phase and calls (spec 03 §3.1, §11).

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::clock::ticks;
use lightcone_host::{
    lend, on_own_stack, CallHandles, HandlerResponse, HoldsEnv, HostEnv, HostError,
    InstanceOptions, Interrupt, Lent, LoadedModule, ModuleInstance, OpenTransaction,
    ProcedureOutcome, ReadSet, ReadView, ReducerCall, ReducerOutcome, Reservation,
    SuspendableInstance, Suspended, Transactions, ViewCall, ViewOutcome,
};
use wasmtime::{
    Instance, InstancePre, Store, StoreContextMut, Trap, UpdateDeadline, WasmParams, WasmResults,
};

use crate::check::LoadSteps;
use crate::exports::{
    load_error, not_exported, params, response, unexpected_code, AnonymousViewFunction,
    CallFunction, Failure, HandlerFunction, ViewFunction, CALL_HTTP_HANDLER, CALL_PROCEDURE,
    CALL_VIEW, CALL_VIEW_ANON,
};
use crate::mappings::Mappings;
use crate::state::State;
use crate::suspendable::SuspendableWasm;
use crate::trap::end_call;

pub(crate) struct WasmModule {
    linked: InstancePre<State>,
    /// As `linked`, with host calls that suspend.
    suspending: InstancePre<State>,
    steps: LoadSteps,
    stack_bytes_max: usize,
    mappings: Mappings,
    description: Vec<u8>,
    /// The instance of the load phase, until it is taken.
    first: Mutex<Option<WasmInstance>>,
}

impl WasmModule {
    pub(crate) fn start(
        linked: InstancePre<State>,
        suspending: InstancePre<State>,
        steps: LoadSteps,
        stack_bytes_max: usize,
        mappings: Mappings,
        options: &InstanceOptions,
    ) -> Result<WasmModule, HostError> {
        let env = HostEnv::new(options.clone());
        let (instance, description) =
            WasmInstance::start(&linked, &steps, stack_bytes_max, &mappings, env)?;
        Ok(WasmModule {
            linked,
            suspending,
            steps,
            stack_bytes_max,
            mappings,
            description,
            first: Mutex::new(Some(instance)),
        })
    }
}

impl LoadedModule for WasmModule {
    fn describe(&self) -> &[u8] {
        &self.description
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let first = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut instance) = first {
            instance.adopt(env);
            return Ok(Box::new(instance));
        }
        let (instance, _) = on_own_stack(self.stack_bytes_max, || {
            WasmInstance::start(
                &self.linked,
                &self.steps,
                self.stack_bytes_max,
                &self.mappings,
                env,
            )
        })?;
        Ok(Box::new(instance))
    }

    fn suspends(&self) -> bool {
        true
    }

    fn instantiate_suspendable(
        &self,
        env: HostEnv,
    ) -> Option<Suspended<'_, Result<Box<dyn SuspendableInstance>, HostError>>> {
        let started = SuspendableWasm::start(
            &self.suspending,
            &self.steps,
            self.stack_bytes_max,
            &self.mappings,
            env,
        );
        Some(Box::pin(async move {
            let instance: Box<dyn SuspendableInstance> = Box::new(started.await?);
            Ok(instance)
        }))
    }
}

pub(crate) struct WasmInstance {
    store: Store<State>,
    _mappings: Reservation,
    call_reducer: CallFunction,
    /// None in modules without procedures.
    call_procedure: Option<CallFunction>,
    /// None in modules without HTTP handlers.
    call_http_handler: Option<HandlerFunction>,
    /// None in modules without views.
    call_view: Option<ViewFunction>,
    call_view_anon: Option<AnonymousViewFunction>,
    call_ticks: u64,
    /// The clock checks at each tick whether the call is to end.
    is_watched: bool,
    stack_bytes_max: usize,
    poisoned: bool,
}

impl WasmInstance {
    /// Instantiates and runs the load phase. The description is the second part of the result.
    fn start(
        linked: &InstancePre<State>,
        steps: &LoadSteps,
        stack_bytes_max: usize,
        mappings: &Mappings,
        env: HostEnv,
    ) -> Result<(WasmInstance, Vec<u8>), HostError> {
        let (load_ticks, call_ticks) = (
            ticks(env.limits().load_ms_max),
            ticks(env.limits().call_ms_max),
        );
        let mappings = mappings.take()?;
        let mut store = Store::new(linked.module().engine(), State::new(env));
        store.limiter(|state| &mut state.limiter);
        // One time limit for everything up to the description.
        store.set_epoch_deadline(load_ticks);
        let instance = linked
            .instantiate(&mut store)
            .map_err(|error| load_error(&store, "the start function", error, stack_bytes_max))?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or(HostError::NoMemory)?;
        store.data_mut().memory = Some(memory);

        let mut phase = LoadPhase {
            store,
            instance,
            stack_bytes_max,
        };
        if steps.initialize {
            phase.call::<(), ()>("_initialize", ())?;
        }
        for preinit in &steps.preinits {
            phase.call::<(), ()>(preinit, ())?;
        }
        if steps.setup {
            phase.setup()?;
        }
        let description = phase.describe()?;
        let LoadPhase {
            mut store,
            instance,
            ..
        } = phase;
        let call_reducer = instance
            .get_typed_func(&mut store, "__call_reducer__")
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        // Their types were checked at compilation.
        let call_procedure = instance.get_typed_func(&mut store, CALL_PROCEDURE).ok();
        let call_http_handler = instance.get_typed_func(&mut store, CALL_HTTP_HANDLER).ok();
        let call_view = instance.get_typed_func(&mut store, CALL_VIEW).ok();
        let call_view_anon = instance.get_typed_func(&mut store, CALL_VIEW_ANON).ok();
        Ok((
            WasmInstance {
                store,
                _mappings: mappings,
                call_reducer,
                call_procedure,
                call_http_handler,
                call_view,
                call_view_anon,
                call_ticks,
                is_watched: false,
                stack_bytes_max,
                poisoned: false,
            },
            description,
        ))
    }

    /// Moves the instance of the load phase into a running database.
    fn adopt(&mut self, env: HostEnv) {
        let state = self.store.data_mut();
        self.call_ticks = ticks(env.limits().call_ms_max);
        state.limiter.adopt(&env);
        state.env = env;
    }

    /// Calls an export with what is lent to it. Returns its code and what it wrote.
    #[inline]
    fn run<R>(
        &mut self,
        lent: Lent<'_>,
        call: &ReducerCall<'_>,
        export: impl FnOnce(&mut WasmInstance, CallHandles) -> wasmtime::Result<R>,
    ) -> Result<R, Failure> {
        if self.poisoned {
            let message = "the instance trapped before and was not replaced";
            return Err(Failure::Fatal(message.to_owned()));
        }
        lend(self, lent, |instance| {
            let state = instance.store.data_mut();
            state.limiter.forget_refusal();
            let begun = state.env.begin_call(call.name, call.args);
            instance.set_deadline();
            let result = begun
                .map_err(end_call)
                .and_then(|handles| export(instance, handles))
                .map_err(|error| instance.stopped(error));
            instance.env().end_call();
            result
        })
    }

    /// The clock checks once, at the end of the call's time; or at each tick, if the call may be ended from outside.
    #[inline]
    fn set_deadline(&mut self) {
        if self.is_watched {
            self.store.data_mut().ticks_left = self.call_ticks;
            return self.store.set_epoch_deadline(1);
        }
        self.store.set_epoch_deadline(self.call_ticks);
    }

    fn run_procedure<R>(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ReducerCall<'_>,
        name: &str,
        export: impl FnOnce(&mut WasmInstance, CallHandles) -> wasmtime::Result<(i32, R)>,
    ) -> ProcedureOutcome<R> {
        match self.run(Lent::Transactions(transactions), call, export) {
            Ok((0, returned)) => ProcedureOutcome::Returned(returned),
            Ok((code, _)) => {
                self.poisoned = true;
                unexpected_code(name, code)
            }
            Err(failure) => failure.outcome(),
        }
    }

    #[cold]
    fn stopped(&mut self, error: wasmtime::Error) -> Failure {
        self.poisoned = true;
        Failure::of(&error, self.store.data(), self.stack_bytes_max)
    }
}

impl HoldsEnv for WasmInstance {
    #[inline]
    fn env(&mut self) -> &mut HostEnv {
        &mut self.store.data_mut().env
    }
}

/// At each tick of a watched call: whether it may go on.
fn watch(state: &mut State) -> wasmtime::Result<UpdateDeadline> {
    if let Some(trap) = state.env.interrupted() {
        return Err(wasmtime::Error::new(trap));
    }
    state.ticks_left = state.ticks_left.saturating_sub(1);
    match state.ticks_left {
        0 => Err(Trap::Interrupt.into()),
        _ => Ok(UpdateDeadline::Continue(1)),
    }
}

impl ModuleInstance for WasmInstance {
    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        if !self.is_watched {
            self.is_watched = true;
            let look = |mut store: StoreContextMut<'_, State>| watch(store.data_mut());
            self.store.epoch_deadline_callback(look);
        }
        Some(self.store.data().env.interrupt().clone())
    }

    fn limit_calls(&mut self, call_ms_max: u64) {
        self.call_ticks = ticks(call_ms_max);
        self.store.data_mut().env.limit_calls(call_ms_max);
    }

    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        let result = self.run(Lent::Transaction(transaction), call, |instance, handles| {
            let params = params(call, handles);
            let code = instance.call_reducer.call(&mut instance.store, params)?;
            let error = (code == 1).then(|| {
                let text = instance.store.data().env.sink_content(handles.sink);
                String::from_utf8_lossy(text).into_owned()
            });
            Ok((code, error))
        });
        match result {
            Ok((0, _)) => ReducerOutcome::Ok,
            Ok((_, Some(error))) => ReducerOutcome::UserError(error),
            Ok((code, None)) => ReducerOutcome::Fatal {
                message: format!("`__call_reducer__` returned the unknown code {code}"),
            },
            Err(Failure::Fatal(message)) => ReducerOutcome::Fatal { message },
            Err(Failure::TimedOut(message)) => ReducerOutcome::TimedOut { message },
        }
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ReducerCall<'_>,
    ) -> ProcedureOutcome {
        let Some(function) = self.call_procedure.clone() else {
            return not_exported("procedure", call, CALL_PROCEDURE);
        };
        self.run_procedure(transactions, call, CALL_PROCEDURE, |instance, handles| {
            let code = function.call(&mut instance.store, params(call, handles))?;
            let value = instance.env().take_sink(handles.sink);
            Ok((code, value.map_err(end_call)?))
        })
    }

    fn call_http_handler(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ReducerCall<'_>,
        body: &[u8],
    ) -> ProcedureOutcome<HandlerResponse> {
        let Some(function) = self.call_http_handler.clone() else {
            return not_exported("http handler", call, CALL_HTTP_HANDLER);
        };
        self.run_procedure(
            transactions,
            call,
            CALL_HTTP_HANDLER,
            |instance, handles| {
                let (request, head_sink) = (handles.args, handles.sink);
                let env = instance.env();
                let body = env.open_source(body).map_err(end_call)?;
                let body_sink = env.open_sink();
                let timestamp = call.timestamp.0;
                let code = function.call(
                    &mut instance.store,
                    (call.id, timestamp, request, body, head_sink, body_sink),
                )?;
                Ok((code, response(instance.env(), head_sink, body_sink)?))
            },
        )
    }

    fn call_view(
        &mut self,
        view: ReadView<'_>,
        call: &ViewCall<'_>,
        reads: &mut ReadSet,
    ) -> ViewOutcome {
        self.env().begin_reads();
        let outcome = self.run_view(view, call);
        reads.extend(self.env().end_reads());
        outcome
    }

    fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

impl WasmInstance {
    fn run_view(&mut self, view: ReadView<'_>, call: &ViewCall<'_>) -> ViewOutcome {
        let (sender_view, anonymous_view) = (self.call_view.clone(), self.call_view_anon.clone());
        let result = self.run(Lent::Read(view), &call.as_call(), |instance, handles| {
            let (store, CallHandles { args, sink }) = (&mut instance.store, handles);
            let code = match (call.sender, sender_view, anonymous_view) {
                (Some(sender), Some(function), _) => {
                    let [a, b, c, d] = sender.to_words();
                    function.call(store, (call.id, a, b, c, d, args, sink))?
                }
                (None, _, Some(function)) => function.call(store, (call.id, args, sink))?,
                _ => return Ok(None),
            };
            Ok(Some((code, instance.env().sink_content(sink).to_vec())))
        });
        match result {
            Ok(Some((2, result))) => ViewOutcome::with_header(result),
            Ok(Some((0, rows))) => ViewOutcome::Rows(rows),
            Ok(Some((1, text))) => ViewOutcome::Failed {
                message: String::from_utf8_lossy(&text).into_owned(),
            },
            Ok(Some((code, _))) => ViewOutcome::Failed {
                message: format!("the view returned the unknown code {code}"),
            },
            Ok(None) => ViewOutcome::Failed {
                message: format!(
                    "the module defines the view {} and does not export `{}`",
                    call.name,
                    if call.sender.is_some() {
                        CALL_VIEW
                    } else {
                        CALL_VIEW_ANON
                    }
                ),
            },
            Err(Failure::Fatal(message)) => ViewOutcome::Failed { message },
            Err(Failure::TimedOut(message)) => ViewOutcome::TimedOut { message },
        }
    }
}

struct LoadPhase {
    store: Store<State>,
    instance: Instance,
    stack_bytes_max: usize,
}

impl LoadPhase {
    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        export: &str,
        params: P,
    ) -> Result<R, HostError> {
        let function = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, export)
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        function
            .call(&mut self.store, params)
            .map_err(|error| load_error(&self.store, export, error, self.stack_bytes_max))
    }

    fn setup(&mut self) -> Result<(), HostError> {
        let sink = self.store.data_mut().env.open_sink();
        let code = self.call::<u32, i32>("__setup__", sink)?;
        let env = &mut self.store.data_mut().env;
        let text = String::from_utf8_lossy(env.sink_content(sink)).into_owned();
        env.end_call();
        match code {
            0 => Ok(()),
            1 => Err(HostError::Setup(text)),
            code => Err(HostError::SetupCode(code)),
        }
    }

    fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        let sink = self.store.data_mut().env.open_sink();
        self.call::<u32, ()>("__describe_module__", sink)?;
        let env = &mut self.store.data_mut().env;
        let description = env.sink_content(sink).to_vec();
        env.end_call();
        Ok(description)
    }
}
