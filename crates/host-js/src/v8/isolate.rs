//! One isolate with its context: how it is made, and what it holds between calls (spec 04 §2, §6.1).

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use ::v8::{
    ArrayBuffer, BackingStore, Context, Function, Global, Local, Module, Object, OwnedIsolate,
    PinScope, SharedRef,
};
use lightcone_host::{HostEnv, HostError, HostLimits, HostTrap, LimitKind};

use super::exception::{uncaught, FRAMES_MAX};
use super::imports;
use super::instance::BigIntCache;
use super::memory::{as_host, BufferBudget, MemoryGuard};
use super::watchdog::{ticks, Watch};
use crate::program::ProgramText;
use crate::specifier::SysVersion;
use crate::trace::Exception;
use crate::{sys, texts, PRELUDE};

/// What host functions work on.
pub(crate) struct State {
    pub(crate) env: HostEnv,
    /// The call is being ended: no code of the module may run in it any more (§5.3).
    pub(crate) doomed: Option<HostTrap>,
    /// A panic of a host function, to go on beyond the call.
    pub(crate) panic: Option<Box<dyn Any + Send>>,
    /// Makes errnos into exceptions; known once the hooks are.
    pub(crate) error_constructor: Option<Global<Function>>,
    /// Calling anything makes a requested termination happen at once.
    pub(crate) noop: Option<Global<Function>>,
    /// The virtual modules that were imported.
    pub(crate) modules: Vec<(SysVersion, Global<Module>)>,
}

thread_local! {
    /// The state of the isolate that runs on this thread.
    static CURRENT: Cell<*mut State> = const { Cell::new(std::ptr::null_mut()) };
}

impl State {
    /// The state of the isolate that runs on this thread; only host functions ask.
    #[inline]
    pub(crate) fn current() -> *mut State {
        CURRENT.get()
    }
}

/// The functions of the program that the host calls.
pub(crate) struct Hooks {
    pub(crate) receiver: Global<Object>,
    pub(crate) describe: Global<Function>,
    pub(crate) sender_error: Global<Object>,
    pub(crate) call_reducer: Global<Function>,
    pub(crate) call_procedure: Global<Function>,
    /// Older packages do not have it.
    pub(crate) call_http_handler: Option<Global<Function>>,
    /// `__lightcone_call_reducer__` and `__lightcone_call_procedure__` (docs/js-abi.md).
    pub(crate) call_reducer_direct: Option<Global<Function>>,
    pub(crate) call_procedure_direct: Option<Global<Function>>,
}

/// A buffer of the isolate that the host writes calls to.
pub(crate) struct CallBuffer {
    pub(crate) object: Global<ArrayBuffer>,
    /// Keeps the memory alive, whatever the module does with the object.
    store: SharedRef<BackingStore>,
}

/// Bytes of a [`CallBuffer`].
pub(crate) const CALL_BUFFER_BYTES: usize = 4096;

impl CallBuffer {
    fn new(scope: &mut PinScope<'_, '_>) -> CallBuffer {
        let buffer = as_host(|| ArrayBuffer::new(scope, CALL_BUFFER_BYTES));
        CallBuffer {
            object: Global::new(scope, buffer),
            store: buffer.get_backing_store(),
        }
    }

    /// Writes to the start of the buffer. No code of the module may run meanwhile.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= CALL_BUFFER_BYTES);
        let data = self.store.data().expect("the buffer is not empty");
        // SAFETY: the range lies in the buffer, whose memory lives as long as `store`, and only this thread uses it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                data.as_ptr().cast::<u8>().add(offset),
                bytes.len(),
            );
        }
    }
}

/// Which isolate a thread has entered for good.
///
/// Entering and leaving costs more than the rest of a short call. So the isolate of an instance that stays on its thread
/// stays entered, until another such isolate of the thread is used.
mod entered {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    use ::v8::{Isolate, UnsafeRawIsolatePtr};

    /// The number of no isolate.
    const NONE: u64 = 0;

    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NONE) };
        static ISOLATE: Cell<Option<UnsafeRawIsolatePtr>> = const { Cell::new(None) };
    }

    /// A number for a new isolate.
    pub(super) fn number() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(NONE);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Enters the isolate for good; the one before is left.
    #[inline]
    pub(super) fn stay(number: u64, isolate: &Isolate) {
        if NUMBER.get() != number {
            change(number, isolate);
        }
    }

    #[cold]
    fn change(number: u64, isolate: &Isolate) {
        leave();
        // SAFETY: it is left before it is disposed of.
        unsafe {
            isolate.enter();
            ISOLATE.set(Some(isolate.as_raw_isolate_ptr()));
        }
        NUMBER.set(number);
    }

    /// Leaves this isolate, if it stayed entered on this thread.
    pub(super) fn leave_if(number: u64) {
        if NUMBER.get() == number {
            leave();
        }
    }

    fn leave() {
        NUMBER.set(NONE);
        if let Some(isolate) = ISOLATE.take() {
            // SAFETY: `change` entered it, and nothing was entered since that is not left again.
            unsafe { Isolate::from_raw_isolate_ptr(isolate).exit() };
        }
    }
}

/// What lives in the heap of the isolate and must go before it.
pub(crate) struct Roots {
    pub(crate) context: Global<Context>,
    pub(crate) hooks: Hooks,
    /// Arguments of `__call_reducer__`.
    pub(crate) args: CallBuffer,
    /// Calls of `__lightcone_call_reducer__` and `__lightcone_call_procedure__`.
    pub(crate) direct: CallBuffer,
    /// Views of `args` by length, made when first needed.
    pub(crate) views: Vec<Option<Global<::v8::DataView>>>,
    /// The senders of the last calls as the module gets them.
    pub(crate) identities: BigIntCache,
}

/// An isolate that evaluated its program.
pub(crate) struct Realm {
    /// Dropped by hand: it must be entered then.
    isolate: ManuallyDrop<OwnedIsolate>,
    pub(crate) state: Box<State>,
    pub(crate) roots: Option<Roots>,
    pub(crate) program: Arc<ProgramText>,
    watch: Arc<Watch>,
    memory: Box<MemoryGuard>,
    limits: HostLimits,
    call_ticks: u64,
    owner: ThreadId,
    number: u64,
    /// The isolate stays entered on the thread of its owner.
    stays: bool,
}

/// How a call into the isolate was ended from outside.
pub(crate) enum Stopped {
    Time,
    Memory,
    Trap(HostTrap),
}

impl Realm {
    /// Makes an isolate and evaluates the program. Runs module code.
    pub(crate) fn new(program: &Arc<ProgramText>, env: HostEnv) -> Result<Realm, HostError> {
        let limits = env.limits().clone();
        let buffers = BufferBudget::new(limits.memory_bytes_max);
        let params = ::v8::CreateParams::default()
            .heap_limits(0, limits.memory_bytes_max)
            .array_buffer_allocator(buffers.clone().allocator());
        let mut isolate = ::v8::Isolate::new(params);
        isolate.set_microtasks_policy(::v8::MicrotasksPolicy::Explicit);
        isolate.set_capture_stack_trace_for_uncaught_exceptions(true, FRAMES_MAX as i32);
        isolate.set_allow_atomics_wait(false);
        let memory = MemoryGuard::install(&mut isolate, limits.memory_bytes_max, buffers);
        let watch = Watch::new(isolate.thread_safe_handle());
        let state = Box::new(State {
            env,
            doomed: None,
            panic: None,
            error_constructor: None,
            noop: None,
            modules: Vec::new(),
        });
        // SAFETY: an isolate is entered when it is made; from here on it is only while it is used.
        unsafe { isolate.exit() };
        let mut realm = Realm {
            isolate: ManuallyDrop::new(isolate),
            state,
            roots: None,
            program: program.clone(),
            watch,
            memory,
            call_ticks: ticks(limits.call_ms_max),
            limits,
            owner: thread::current().id(),
            number: entered::number(),
            stays: false,
        };
        let load_ticks = ticks(realm.limits.load_ms_max);
        let program = program.clone();
        let (built, stopped) = realm.run(load_ticks, |realm| build(&mut realm.isolate, &program));
        realm.state.env.end_script_call();
        realm.roots = Some(realm.loaded("the module", built, stopped)?);
        Ok(realm)
    }

    /// All calls will come from the current thread, which made the isolate: it stays entered from now on.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    /// Whether the current thread is the one that made the isolate.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.owner == thread::current().id()
    }

    /// The BSATN of the module's definition.
    pub(crate) fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        let load_ticks = ticks(self.limits.load_ms_max);
        let program = self.program.clone();
        let (described, stopped) = self.run(load_ticks, |realm| {
            let roots = realm.roots.as_ref().expect("the realm is built");
            describe(&mut realm.isolate, roots, &program)
        });
        self.state.env.end_script_call();
        self.loaded("__describe_module__", described, stopped)
    }

    fn loaded<T>(
        &mut self,
        export: &str,
        result: Result<T, Exception>,
        stopped: Option<Stopped>,
    ) -> Result<T, HostError> {
        match stopped {
            None => result.map_err(|exception| HostError::Script(exception.text())),
            Some(stopped) => Err(HostError::LoadLimit {
                export: export.to_owned(),
                trap: match stopped {
                    Stopped::Time => HostTrap::Limit {
                        kind: LimitKind::LoadTime,
                        limit: self.limits.load_ms_max,
                    },
                    Stopped::Memory => self.memory_limit(),
                    Stopped::Trap(trap) => trap,
                },
            }),
        }
    }

    pub(crate) fn memory_limit(&self) -> HostTrap {
        HostTrap::Limit {
            kind: LimitKind::Memory,
            limit: self.limits.memory_bytes_max as u64,
        }
    }

    pub(crate) fn time_limit(&self) -> HostTrap {
        HostTrap::Limit {
            kind: LimitKind::CallTime,
            limit: self.limits.call_ms_max,
        }
    }

    /// Runs something in the isolate, under the time limit of calls.
    #[inline]
    pub(crate) fn call<R>(
        &mut self,
        body: impl FnOnce(&mut OwnedIsolate, &mut Roots, &ProgramText) -> R,
    ) -> (R, Option<Stopped>) {
        self.run(self.call_ticks, |realm| {
            let roots = realm.roots.as_mut().expect("the realm is built");
            body(&mut realm.isolate, roots, &realm.program)
        })
    }

    #[inline]
    fn run<R>(&mut self, ticks: u64, body: impl FnOnce(&mut Realm) -> R) -> (R, Option<Stopped>) {
        if self.stays {
            entered::stay(self.number, &self.isolate);
        } else {
            // SAFETY: left again below; a panic of a host function does not come this way but waits in the state.
            unsafe { self.isolate.enter() };
        }
        let previous = CURRENT.replace(&raw mut *self.state);
        self.watch.begin(ticks);
        let result = body(self);
        let timed_out = self.watch.end();
        CURRENT.set(previous);
        let stopped = if timed_out || self.state.doomed.is_some() || self.memory.exceeded() {
            self.stopped(timed_out)
        } else {
            None
        };
        self.memory.settle(&mut self.isolate);
        if !self.stays {
            // SAFETY: entered above.
            unsafe { self.isolate.exit() };
        }
        (result, stopped)
    }

    #[cold]
    fn stopped(&mut self, timed_out: bool) -> Option<Stopped> {
        self.isolate.cancel_terminate_execution();
        let doomed = self.state.doomed.take();
        if self.memory.exceeded() {
            return Some(Stopped::Memory);
        }
        if timed_out {
            return Some(Stopped::Time);
        }
        doomed.map(Stopped::Trap)
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        if self.stays && !self.is_here() {
            // Another thread may have it entered, and V8 ends the process if such an isolate is disposed of.
            tracing::error!(
                "a JavaScript instance was dropped by a foreign thread; its memory stays"
            );
            std::mem::forget(self.roots.take());
            std::mem::forget(std::mem::replace(
                &mut self.memory,
                MemoryGuard::none(&self.isolate),
            ));
            std::mem::forget(self.state.error_constructor.take());
            std::mem::forget(self.state.noop.take());
            std::mem::forget(std::mem::take(&mut self.state.modules));
            return;
        }
        entered::leave_if(self.number);
        // SAFETY: an isolate must be entered to be dropped, which leaves it; nothing uses it afterwards. Its handles go first.
        unsafe {
            self.isolate.enter();
            self.roots = None;
            self.state.error_constructor = None;
            self.state.noop = None;
            self.state.modules.clear();
            ManuallyDrop::drop(&mut self.isolate);
        }
    }
}

/// Continues with what a step gave, or ends with what it threw.
macro_rules! step {
    ($scope:ident, $program:expr, $step:expr) => {
        match $step {
            Some(value) => value,
            None => return Err(caught!($scope, $program)),
        }
    };
}

/// The pending exception.
macro_rules! caught {
    ($scope:ident, $program:expr) => {{
        match ($scope.exception(), $scope.message()) {
            (Some(value), message) if !$scope.has_terminated() => {
                $scope.reset();
                uncaught($scope, value, message, $program)
            }
            _ => text("the module was stopped"),
        }
    }};
}

fn text(message: impl Into<String>) -> Exception {
    Exception {
        message: message.into(),
        frames: Vec::new(),
    }
}

fn type_error(message: String) -> Exception {
    text(format!("Uncaught TypeError: {message}"))
}

/// Makes the context, evaluates the program and finds its hooks.
fn build(isolate: &mut OwnedIsolate, program: &ProgramText) -> Result<Roots, Exception> {
    ::v8::scope!(let scope, isolate);
    let context = Context::new(scope, ::v8::ContextOptions::default());
    let scope = &mut ::v8::ContextScope::new(scope, context);
    let direct = CallBuffer::new(scope);
    globals(scope, &direct, program)?;
    let namespace = evaluate(scope, program)?;
    let hooks = find_hooks(scope, namespace, program)?;
    let args = CallBuffer::new(scope);
    Ok(Roots {
        context: Global::new(scope, context),
        hooks,
        args,
        direct,
        views: Vec::new(),
        identities: BigIntCache::default(),
    })
}

/// What is taken away: memory that no limit would see.
const RESTRICT: &str = include_str!("restrict.js");

/// The globals that the language does not have (§2), and without those that modules may not use.
fn globals(
    scope: &mut PinScope<'_, '_>,
    direct: &CallBuffer,
    program: &ProgramText,
) -> Result<(), Exception> {
    ::v8::tc_scope!(let scope, scope);
    let noop = step!(scope, program, imports::noop(scope));
    let noop = Global::new(scope, noop);
    // SAFETY: the state of the isolate that is being built; see `with_state`.
    unsafe { (*State::current()).noop = Some(noop) };
    let source = step!(scope, program, ::v8::String::new(scope, PRELUDE));
    let script = step!(scope, program, ::v8::Script::compile(scope, source, None));
    let prelude = step!(scope, program, script.run(scope));
    let prelude: Local<'_, Function> = step!(scope, program, prelude.try_cast().ok());
    let encode = step!(scope, program, imports::encode(scope)).into();
    let decode = step!(scope, program, imports::decode(scope)).into();
    let undefined = ::v8::undefined(scope).into();
    step!(
        scope,
        program,
        prelude.call(scope, undefined, &[encode, decode])
    );
    let source = step!(scope, program, ::v8::String::new(scope, RESTRICT));
    let script = step!(scope, program, ::v8::Script::compile(scope, source, None));
    step!(scope, program, script.run(scope));
    step!(scope, program, imports::define_extras(scope, direct));
    Ok(())
}

/// Compiles, links and runs the program. Gives its namespace (§1).
fn evaluate<'s>(
    scope: &mut PinScope<'s, '_>,
    program: &ProgramText,
) -> Result<Local<'s, Object>, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let name = step!(
        scope,
        program,
        ::v8::String::new(scope, texts::RESOURCE_NAME)
    );
    let text_local = step!(scope, program, ::v8::String::new(scope, &program.text));
    let origin = ::v8::ScriptOrigin::new(
        scope,
        name.into(),
        0,
        0,
        false,
        0,
        None,
        false,
        false,
        true,
        None,
    );
    let mut source = ::v8::script_compiler::Source::new(text_local, Some(&origin));
    let module = ::v8::script_compiler::compile_module(scope, &mut source);
    let module = step!(scope, program, module);
    step!(
        scope,
        program,
        module.instantiate_module(scope, imports::resolve)
    );
    let result = step!(scope, program, module.evaluate(scope));
    scope.perform_microtask_checkpoint();
    if scope.is_execution_terminating() {
        return Err(text("the module was stopped"));
    }
    if module.get_status() == ::v8::ModuleStatus::Errored {
        let exception = module.get_exception();
        return Err(uncaught(scope, exception, None, program));
    }
    if let Ok(promise) = result.try_cast::<::v8::Promise>() {
        match promise.state() {
            ::v8::PromiseState::Fulfilled => {}
            ::v8::PromiseState::Pending => return Err(type_error(texts::PENDING.to_owned())),
            ::v8::PromiseState::Rejected => {
                let reason = promise.result(scope);
                return Err(uncaught(scope, reason, None, program));
            }
        }
    }
    let namespace = module.get_module_namespace();
    step!(scope, program, namespace.try_cast().ok().map(Some)).ok_or_else(|| text("no namespace"))
}

/// Asks the program's default export for the hooks (§6.1).
fn find_hooks(
    scope: &mut PinScope<'_, '_>,
    namespace: Local<'_, Object>,
    program: &ProgramText,
) -> Result<Hooks, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let name = step!(scope, program, ::v8::String::new(scope, "default"));
    let schema = step!(scope, program, namespace.get(scope, name.into()));
    if schema.is_null_or_undefined() {
        return Err(text(texts::NO_DEFAULT_EXPORT));
    }
    let Ok(schema) = schema.try_cast::<Object>() else {
        return Err(text(texts::DEFAULT_EXPORT_NO_OBJECT));
    };
    let symbol = step!(scope, program, imports::module_hooks(scope));
    let function = step!(scope, program, schema.get(scope, symbol.into()));
    let Ok(function) = function.try_cast::<Function>() else {
        return Err(type_error(texts::expected_hooks_function(
            function.type_repr(),
        )));
    };
    let hooks = step!(
        scope,
        program,
        function.call(scope, schema.into(), &[namespace.into()])
    );
    let Ok(receiver) = hooks.try_cast::<Object>() else {
        return Err(type_error(texts::expected_hooks_object(hooks.type_repr())));
    };
    let mut found = Vec::with_capacity(sys::HOOKS_REQUIRED.len());
    for hook in sys::HOOKS_REQUIRED.iter().copied().chain([
        sys::HOOK_HTTP_HANDLER,
        sys::HOOK_CALL_REDUCER_DIRECT,
        sys::HOOK_CALL_PROCEDURE_DIRECT,
    ]) {
        let key = step!(scope, program, ::v8::String::new(scope, hook));
        let value = step!(scope, program, receiver.get(scope, key.into()));
        let is_optional = !sys::HOOKS_REQUIRED.contains(&hook);
        match value.try_cast::<Function>() {
            Ok(function) => found.push(Some(Global::new(scope, function))),
            Err(_) if is_optional && value.is_null_or_undefined() => found.push(None),
            Err(_) => return Err(type_error(texts::expected_hook(hook, value.type_repr()))),
        }
    }
    let mut found = found.into_iter();
    let mut required = || found.next().flatten().ok_or_else(|| text("no hook"));
    let describe = required()?;
    let error_constructor = required()?;
    let sender_error = required()?;
    let call_reducer = required()?;
    let _views = (required()?, required()?);
    let call_procedure = required()?;
    // SAFETY: the state of the isolate that is being built; see `with_state`.
    unsafe { (*State::current()).error_constructor = Some(error_constructor) };
    let sender_error = Local::new(scope, sender_error);
    Ok(Hooks {
        receiver: Global::new(scope, receiver),
        describe,
        sender_error: Global::new(scope, Local::<Object>::from(sender_error)),
        call_reducer,
        call_procedure,
        call_http_handler: found.next().flatten(),
        call_reducer_direct: found.next().flatten(),
        call_procedure_direct: found.next().flatten(),
    })
}

fn describe(
    isolate: &mut OwnedIsolate,
    roots: &Roots,
    program: &ProgramText,
) -> Result<Vec<u8>, Exception> {
    ::v8::scope!(let scope, isolate);
    let context = Local::new(scope, &roots.context);
    let scope = &mut ::v8::ContextScope::new(scope, context);
    ::v8::tc_scope!(let scope, scope);
    let receiver = Local::new(scope, &roots.hooks.receiver);
    let function = Local::new(scope, &roots.hooks.describe);
    let description = step!(scope, program, function.call(scope, receiver.into(), &[]));
    super::values::array_bytes(description).ok_or_else(|| {
        type_error(format!(
            "Expected `Uint8Array` return from `__describe_module__`, got {}",
            description.type_repr()
        ))
    })
}
