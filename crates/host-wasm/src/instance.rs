//! Instances: load phase and calls (spec 03 §3.1, §11).

use std::sync::Arc;

use lightcone_host::clock::ticks;
use lightcone_host::{
    lend, on_own_stack, CallHandles, HoldsEnv, HostEnv, HostError, InstanceOptions, Interrupt,
    Lent, LoadedModule, ModuleInstance, OpenTransaction, ProcedureCall, ProcedureOutcome, ReadSet,
    ReadView, ReducerCall, ReducerOutcome, Reservation, SuspendableInstance, Suspended,
    Transactions, ViewCall, ViewOutcome,
};
use parking_lot::Mutex;
use wasmtime::{Store, StoreContextMut, UpdateDeadline};

use crate::exports::{
    outcome, params, poisons, AnonymousViewFunction, CallFunction, Failure, ProcedureExports,
    ViewFunction, CALL_VIEW, CALL_VIEW_ANON,
};
use crate::load::{Loading, Program};
use crate::state::State;
use crate::suspendable::SuspendableWasm;
use crate::trap::end_call;
use crate::waits::{at_once, Waits};

pub(crate) struct WasmModule {
    program: Program,
    description: Vec<u8>,
    /// The instance of the load phase, until it is taken.
    first: Mutex<Option<WasmInstance>>,
}

impl WasmModule {
    pub(crate) fn start(
        program: Program,
        options: &InstanceOptions,
    ) -> Result<WasmModule, HostError> {
        let env = HostEnv::new(options.clone());
        let (instance, description) = WasmInstance::start(&program, env)?;
        Ok(WasmModule {
            program,
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
        let first = self.first.lock().take();
        if let Some(mut instance) = first {
            instance.adopt(env);
            return Ok(Box::new(instance));
        }
        let (instance, _) = on_own_stack(self.program.stack_bytes_max, || {
            WasmInstance::start(&self.program, env)
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
        Some(Box::pin(async move {
            let started = SuspendableWasm::start(&self.program, env).await?;
            let instance: Box<dyn SuspendableInstance> = Box::new(started);
            Ok(instance)
        }))
    }
}

pub(crate) struct WasmInstance {
    store: Store<State>,
    _mappings: Reservation,
    call_reducer: CallFunction,
    procedures: ProcedureExports,
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
    fn start(program: &Program, env: HostEnv) -> Result<(WasmInstance, Vec<u8>), HostError> {
        let limits = env.limits();
        let (load_ticks, call_ticks) = (ticks(limits.load_ms_max), ticks(limits.call_ms_max));
        let mappings = program.mappings.take()?;
        let mut store = program.new_store(env, Waits::Blocking);
        // One time limit for everything up to the description.
        store.set_epoch_deadline(load_ticks);
        let loading = Loading::run(program, store, Waits::Blocking);
        let (
            Loading {
                mut store,
                instance,
                ..
            },
            description,
        ) = at_once(loading)?;
        let call_reducer = instance
            .get_typed_func(&mut store, "__call_reducer__")
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        // Their types were checked at compilation.
        let call_view = instance.get_typed_func(&mut store, CALL_VIEW).ok();
        let call_view_anon = instance.get_typed_func(&mut store, CALL_VIEW_ANON).ok();
        Ok((
            WasmInstance {
                _mappings: mappings,
                call_reducer,
                procedures: ProcedureExports::of(&mut store, &instance),
                store,
                call_view,
                call_view_anon,
                call_ticks,
                is_watched: false,
                stack_bytes_max: program.stack_bytes_max,
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

impl ModuleInstance for WasmInstance {
    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        if !self.is_watched {
            self.is_watched = true;
            let look = |mut store: StoreContextMut<'_, State>| {
                let ticked = store.data_mut().tick();
                ticked.map(|()| UpdateDeadline::Continue(1))
            };
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
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        let lent = Lent::Transactions(transactions);
        let called = self.run(lent, &call.call, |instance, handles| {
            let (procedures, store) = (&instance.procedures, &mut instance.store);
            at_once(procedures.call(store, call, handles, Waits::Blocking))
        });
        self.poisoned |= poisons(&called);
        outcome(called, call)
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
            Ok(None) => {
                let export = call.sender.map_or(CALL_VIEW_ANON, |_| CALL_VIEW);
                let message = format!(
                    "the module defines the view {} and does not export `{export}`",
                    call.name
                );
                ViewOutcome::Failed { message }
            }
            Err(Failure::Fatal(message)) => ViewOutcome::Failed { message },
            Err(Failure::TimedOut(message)) => ViewOutcome::TimedOut { message },
        }
    }
}
