//! Instances: the load phase and the calls (spec 03 §3.1, §11).

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::clock::ticks;
use lightcone_host::{
    lend, on_own_stack, trap_of, CallHandles, HandlerResponse, HoldsEnv, HostEnv, HostError,
    HostLimits, HostTrap, InstanceOptions, Interrupt, Lent, LimitKind, LoadedModule,
    ModuleInstance, OpenTransaction, ProcedureOutcome, ReadSet, ReadView, ReducerCall,
    ReducerOutcome, Reservation, SuspendableInstance, Suspended, Transactions, ViewCall,
    ViewOutcome,
};
use wasmtime::{
    Instance, InstancePre, Memory, ResourceLimiter, Store, StoreContextMut, Trap, TypedFunc,
    UpdateDeadline, WasmParams, WasmResults,
};

use crate::check::LoadSteps;
use crate::imports::end_call;
use crate::mappings::Mappings;
use crate::suspendable::SuspendableWasm;
use crate::trap::{explain, GuestFailure};

/// What belongs to one instance.
pub(crate) struct State {
    /// Ticks that the call may still compute, if it is one that may be suspended or ended from outside.
    pub(crate) ticks_left: u64,
    /// Ticks since others last had their turn.
    pub(crate) kept_ticks: u64,
    pub(crate) env: HostEnv,
    /// Known once the instance exists; a start function runs before.
    pub(crate) memory: Option<Memory>,
    pub(crate) limiter: Limiter,
}

impl State {
    pub(crate) fn new(env: HostEnv) -> State {
        State {
            ticks_left: 0,
            kept_ticks: 0,
            memory: None,
            limiter: Limiter::new(&env),
            env,
        }
    }
}

/// Keeps memory and tables within their limits, and counts them.
pub(crate) struct Limiter {
    memory: Reservation,
    memory_bytes_max: usize,
    /// Why the memory could not grow.
    refused: Option<Refused>,
    /// What the last growth added, in case that the system refuses it.
    growing_bytes: usize,
    tables: Reservation,
    table_elements: usize,
    table_elements_max: usize,
}

struct Refused {
    /// How large the memory would have been.
    bytes: usize,
    limit: HostTrap,
}

/// What the engine keeps of a table for each of its elements: a pointer.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

impl Limiter {
    fn new(env: &HostEnv) -> Limiter {
        let limits = env.limits();
        Limiter {
            memory: Reservation::none(&env.config().accounts.memory),
            memory_bytes_max: limits.memory_bytes_max,
            refused: None,
            growing_bytes: 0,
            tables: Reservation::none(env.account()),
            table_elements: 0,
            table_elements_max: limits.table_elements_max,
        }
    }

    /// What the instance has counts as somebody else's from now on.
    fn adopt(&mut self, env: &HostEnv) {
        let before = std::mem::replace(self, Limiter::new(env));
        self.memory.hold_anyway(before.memory.bytes());
        self.tables.hold_anyway(before.tables.bytes());
        self.table_elements = before.table_elements;
    }

    /// A new call begins.
    pub(crate) fn forget_refusal(&mut self) {
        self.refused = None;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growing = desired.saturating_sub(current);
        let bytes = self.memory.bytes().saturating_add(growing);
        self.growing_bytes = 0;
        let limit = match bytes > self.memory_bytes_max {
            true => Some(HostTrap::Limit {
                kind: LimitKind::Memory,
                limit: self.memory_bytes_max as u64,
            }),
            false => self.memory.grow(growing).err().map(trap_of),
        };
        if let Some(limit) = limit {
            self.refused = Some(Refused { bytes, limit });
            return Ok(false);
        }
        self.growing_bytes = growing;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let refused = std::mem::take(&mut self.growing_bytes);
        self.memory.shrink(self.memory.bytes() - refused);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growing = desired.saturating_sub(current);
        let total = self.table_elements.saturating_add(growing);
        let bytes = growing.saturating_mul(TABLE_ELEMENT_BYTES);
        if total > self.table_elements_max || self.tables.grow(bytes).is_err() {
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        64
    }
}

/// A program that loaded.
pub(crate) struct WasmModule {
    linked: InstancePre<State>,
    /// The same with host calls that suspend their instance.
    suspending: InstancePre<State>,
    steps: LoadSteps,
    stack_bytes_max: usize,
    mappings: Mappings,
    description: Vec<u8>,
    /// The instance of the load, until someone wants it.
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

/// id, sender, connection id, timestamp, args, sink for the error text or the result.
pub(crate) type CallFunction = TypedFunc<(u32, u64, u64, u64, u64, u64, u64, i64, u32, u32), i32>;

/// id, sender, args, sink for the rows.
type ViewFunction = TypedFunc<(u32, u64, u64, u64, u64, u32, u32), i32>;

/// id, args, sink for the rows.
type AnonymousViewFunction = TypedFunc<(u32, u32, u32), i32>;

/// id, timestamp, request, its body, sink for the response, sink for its body.
pub(crate) type HandlerFunction = TypedFunc<(u32, i64, u32, u32, u32, u32), i32>;

pub(crate) struct WasmInstance {
    store: Store<State>,
    _mappings: Reservation,
    call_reducer: CallFunction,
    /// Modules without procedures lack it.
    call_procedure: Option<CallFunction>,
    /// Modules without HTTP handlers lack it.
    call_http_handler: Option<HandlerFunction>,
    /// Modules without views lack them.
    call_view: Option<ViewFunction>,
    call_view_anon: Option<AnonymousViewFunction>,
    call_ticks: u64,
    /// Calls may be ended from outside: the clock looks at each tick.
    is_watched: bool,
    stack_bytes_max: usize,
    poisoned: bool,
}

impl WasmInstance {
    /// Instantiates and runs the load phase; the description is in the second part.
    fn start(
        linked: &InstancePre<State>,
        steps: &LoadSteps,
        stack_bytes_max: usize,
        mappings: &Mappings,
        env: HostEnv,
    ) -> Result<(WasmInstance, Vec<u8>), HostError> {
        let limits = env.limits().clone();
        let mappings = mappings.take()?;
        let mut store = Store::new(linked.module().engine(), State::new(env));
        store.limiter(|state| &mut state.limiter);
        // One budget for everything up to the description.
        store.set_epoch_deadline(ticks(limits.load_ms_max));
        let instance = linked.instantiate(&mut store).map_err(|error| {
            load_error(
                &store,
                "the start function",
                error,
                stack_bytes_max,
                &limits,
            )
        })?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or(HostError::NoMemory)?;
        store.data_mut().memory = Some(memory);

        let mut phase = LoadPhase {
            store,
            instance,
            stack_bytes_max,
            limits,
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
            limits,
            ..
        } = phase;
        let call_reducer = instance
            .get_typed_func(&mut store, "__call_reducer__")
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        // Their types were checked when the module was compiled.
        let call_procedure = instance.get_typed_func(&mut store, CALL_PROCEDURE).ok();
        let call_http_handler = instance.get_typed_func(&mut store, CALL_HTTP_HANDLER).ok();
        let call_view = instance.get_typed_func(&mut store, CALL_VIEW).ok();
        let call_view_anon = instance.get_typed_func(&mut store, CALL_VIEW_ANON).ok();
        let call_ticks = ticks(limits.call_ms_max);
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

    /// Gives the instance of the load its place in a running database.
    fn adopt(&mut self, env: HostEnv) {
        let state = self.store.data_mut();
        self.call_ticks = ticks(env.limits().call_ms_max);
        state.limiter.adopt(&env);
        state.env = env;
    }

    /// Calls an export with what is lent to it; gives the code that it returned, and what it wrote.
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

    /// The clock looks once, at the end of the call's time; or at each tick, if the call may be ended from outside.
    #[inline]
    fn set_deadline(&mut self) {
        if self.is_watched {
            self.store.data_mut().ticks_left = self.call_ticks;
            return self.store.set_epoch_deadline(1);
        }
        self.store.set_epoch_deadline(self.call_ticks);
    }

    /// Runs a function that opens its own transactions.
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

/// Why an export did not return.
pub(crate) enum Failure {
    Fatal(String),
    TimedOut(String),
}

impl Failure {
    pub(crate) fn of(error: &wasmtime::Error, state: &State, stack_bytes_max: usize) -> Failure {
        match explain(error, stack_bytes_max) {
            GuestFailure::TimedOut => {
                let limit = HostTrap::Limit {
                    kind: LimitKind::CallTime,
                    limit: state.env.limits().call_ms_max,
                };
                Failure::TimedOut(limit.to_string())
            }
            GuestFailure::Limit(limit) => Failure::Fatal(limit.to_string()),
            GuestFailure::Trapped(message) => Failure::Fatal(with_refused_memory(message, state)),
        }
    }

    pub(crate) fn outcome<R>(self) -> ProcedureOutcome<R> {
        match self {
            Failure::TimedOut(message) => ProcedureOutcome::TimedOut { message },
            Failure::Fatal(message) => ProcedureOutcome::Failed { message },
        }
    }
}

/// A procedure or handler that returned another code than 0.
#[cold]
pub(crate) fn unexpected_code<R>(name: &str, code: i32) -> ProcedureOutcome<R> {
    ProcedureOutcome::Failed {
        message: format!(
            "`{name}` returned unexpected code {code}. Procedures should return code 0 or trap."
        ),
    }
}

impl HoldsEnv for WasmInstance {
    #[inline]
    fn env(&mut self) -> &mut HostEnv {
        &mut self.store.data_mut().env
    }
}

/// What a handler wrote.
pub(crate) fn response(
    env: &mut HostEnv,
    head_sink: u32,
    body_sink: u32,
) -> wasmtime::Result<HandlerResponse> {
    Ok(HandlerResponse {
        head: env.take_sink(head_sink).map_err(end_call)?,
        body: env.take_sink(body_sink).map_err(end_call)?,
    })
}

/// At each tick of a call that may be ended from outside: whether it may go on.
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

const CALL_VIEW: &str = "__call_view__";
const CALL_VIEW_ANON: &str = "__call_view_anon__";
pub(crate) const CALL_PROCEDURE: &str = "__call_procedure__";
pub(crate) const CALL_HTTP_HANDLER: &str = "__call_http_handler__";

#[cold]
pub(crate) fn not_exported<R>(
    kind: &str,
    call: &ReducerCall<'_>,
    export: &str,
) -> ProcedureOutcome<R> {
    ProcedureOutcome::Failed {
        message: format!(
            "Module defines {kind} {} but does not export `{export}`",
            call.name
        ),
    }
}

/// What `__call_reducer__` and `__call_procedure__` are called with (§11.2).
#[inline]
pub(crate) fn params(
    call: &ReducerCall<'_>,
    handles: CallHandles,
) -> (u32, u64, u64, u64, u64, u64, u64, i64, u32, u32) {
    let sender = call.sender.to_words();
    let connection = call.connection_id.0;
    (
        call.id,
        sender[0],
        sender[1],
        sender[2],
        sender[3],
        connection as u64,
        (connection >> 64) as u64,
        call.timestamp.0,
        handles.args,
        handles.sink,
    )
}

/// An instance that is not ready for calls yet.
struct LoadPhase {
    store: Store<State>,
    instance: Instance,
    stack_bytes_max: usize,
    limits: HostLimits,
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
        function.call(&mut self.store, params).map_err(|error| {
            load_error(
                &self.store,
                export,
                error,
                self.stack_bytes_max,
                &self.limits,
            )
        })
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

#[cold]
pub(crate) fn load_error(
    store: &Store<State>,
    export: &str,
    error: wasmtime::Error,
    stack_bytes_max: usize,
    limits: &HostLimits,
) -> HostError {
    let export = export.to_owned();
    match explain(&error, stack_bytes_max) {
        GuestFailure::TimedOut => HostError::LoadLimit {
            export,
            trap: HostTrap::Limit {
                kind: LimitKind::LoadTime,
                limit: limits.load_ms_max,
            },
        },
        GuestFailure::Limit(trap) => HostError::LoadLimit { export, trap },
        GuestFailure::Trapped(message) => {
            let message = with_refused_memory(message, store.data());
            match store.data().memory {
                // Before the memory is known there is no telling a failed instantiation from a failed start function.
                None => HostError::Instantiate(message),
                Some(_) => HostError::LoadTrap { export, message },
            }
        }
    }
}

/// Languages report a failed allocation in their own way or not at all; the limit is what explains it.
fn with_refused_memory(message: String, state: &State) -> String {
    match &state.limiter.refused {
        None => message,
        Some(Refused { bytes, limit }) => {
            format!("{limit} (it asked for {bytes}); then: {message}")
        }
    }
}
