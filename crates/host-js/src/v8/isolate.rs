//! One isolate with its context: how it is entered and left, and what it holds between calls.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use ::v8::{
    ArrayBuffer, BackingStore, Context, Function, Global, IsolateHandle, Local, MicrotaskQueue,
    MicrotasksPolicy, Module, Object, OwnedIsolate, PinScope, SharedRef, UniqueRef,
    UseCounterFeature,
};
use lightcone_host::{HostEnv, HostError, HostLimits, HostTrap, LimitKind};

use super::exception::FRAMES_MAX;
use super::instance::BigIntCache;
use super::loading::{build, describe};
use super::memory::{as_host, BufferBudget, MemoryGuard};
use super::watchdog::{ticks, Watch};
use crate::program::ProgramText;
use crate::specifier::SysVersion;
use crate::trace::Exception;

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
    /// The module may hold what it must not have: no further call may run in the isolate.
    tainted: bool,
    isolate: IsolateHandle,
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

/// V8 says that code of the module uses a feature. There is no resizable memory in modules (`restrict.js`), as no limit would
/// see it. V8 asks before it makes any, so a module that got around that gets one small buffer and loses its isolate.
///
/// The first argument is not what its type says (V8 passes its own isolate), so it is not used.
unsafe extern "C" fn count_use(_isolate: &mut ::v8::Isolate, feature: UseCounterFeature) {
    if !matches!(
        feature,
        UseCounterFeature::kResizableArrayBuffer | UseCounterFeature::kGrowableSharedArrayBuffer
    ) {
        return;
    }
    // SAFETY: null, or the state of the isolate that runs; code of the module runs, so nothing else refers to it.
    if let Some(state) = unsafe { State::current().as_mut() } {
        state.tainted = true;
        state
            .doomed
            .get_or_insert(HostTrap::Forbidden("a resizable ArrayBuffer"));
        state.isolate.terminate_execution();
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
    pub(super) fn new(scope: &mut PinScope<'_, '_>) -> CallBuffer {
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
    /// The micro-tasks of the context. When a call is stopped, what is left of them is dropped with their queue.
    jobs: ManuallyDrop<UniqueRef<MicrotaskQueue>>,
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
        isolate.set_microtasks_policy(MicrotasksPolicy::Explicit);
        let jobs = MicrotaskQueue::new(&mut isolate, MicrotasksPolicy::Explicit);
        isolate.set_capture_stack_trace_for_uncaught_exceptions(true, FRAMES_MAX as i32);
        isolate.set_allow_atomics_wait(false);
        isolate.set_use_counter_callback(count_use);
        let memory = MemoryGuard::install(&mut isolate, limits.memory_bytes_max, buffers);
        let watch = Watch::new(isolate.thread_safe_handle());
        let state = Box::new(State {
            env,
            doomed: None,
            panic: None,
            error_constructor: None,
            noop: None,
            modules: Vec::new(),
            tainted: false,
            isolate: isolate.thread_safe_handle(),
        });
        // SAFETY: an isolate is entered when it is made; from here on it is only while it is used.
        unsafe { isolate.exit() };
        let mut realm = Realm {
            isolate: ManuallyDrop::new(isolate),
            state,
            roots: None,
            program: program.clone(),
            jobs: ManuallyDrop::new(jobs),
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
        let (built, stopped) = realm.run(load_ticks, |realm| {
            build(&mut realm.isolate, &mut realm.jobs, &program)
        });
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
            describe(&mut realm.isolate, roots, &realm.jobs, &program)
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
        body: impl FnOnce(&mut OwnedIsolate, &mut Roots, &MicrotaskQueue, &ProgramText) -> R,
    ) -> (R, Option<Stopped>) {
        self.run(self.call_ticks, |realm| {
            let roots = realm.roots.as_mut().expect("the realm is built");
            body(&mut realm.isolate, roots, &realm.jobs, &realm.program)
        })
    }

    /// Whether no further call may run in the isolate, whatever its heap is like.
    #[inline]
    pub(crate) fn is_tainted(&self) -> bool {
        self.state.tainted
    }

    #[inline]
    fn run<R>(&mut self, ticks: u64, body: impl FnOnce(&mut Realm) -> R) -> (R, Option<Stopped>) {
        let entered = Entered::new(self, ticks);
        let result = body(&mut *entered.realm);
        (result, entered.end())
    }

    #[cold]
    fn stopped(&mut self, timed_out: bool) -> Option<Stopped> {
        self.isolate.cancel_terminate_execution();
        self.drop_jobs();
        let doomed = self.state.doomed.take();
        if self.memory.exceeded() {
            return Some(Stopped::Memory);
        }
        if timed_out {
            return Some(Stopped::Time);
        }
        doomed.map(Stopped::Trap)
    }

    /// Forgets the micro-tasks of the call that was stopped: its transaction is over, and no other may see them.
    fn drop_jobs(&mut self) {
        let Some(roots) = &self.roots else {
            // A realm that could not be built goes as a whole.
            return;
        };
        let isolate: &mut OwnedIsolate = &mut self.isolate;
        let jobs = MicrotaskQueue::new(isolate, MicrotasksPolicy::Explicit);
        {
            ::v8::scope!(let scope, isolate);
            Local::new(scope, &roots.context).set_microtask_queue(&jobs);
        }
        *self.jobs = jobs;
    }
}

/// An isolate that is entered; it is left again when this goes, also by a panic.
struct Entered<'a> {
    realm: &'a mut Realm,
    /// The state that was current before.
    previous: *mut State,
    ended: bool,
}

impl<'a> Entered<'a> {
    #[inline]
    fn new(realm: &'a mut Realm, ticks: u64) -> Entered<'a> {
        if realm.stays {
            entered::stay(realm.number, &realm.isolate);
        } else {
            // SAFETY: left again when the result is dropped.
            unsafe { realm.isolate.enter() };
        }
        let previous = CURRENT.replace(&raw mut *realm.state);
        realm.watch.begin(ticks);
        Entered {
            realm,
            previous,
            ended: false,
        }
    }

    /// The call is over. Says how it was stopped, if it was.
    #[inline]
    fn end(mut self) -> Option<Stopped> {
        self.ended = true;
        let realm = &mut *self.realm;
        let timed_out = realm.watch.end();
        let stopped = if timed_out || realm.state.doomed.is_some() || realm.memory.exceeded() {
            realm.stopped(timed_out)
        } else {
            None
        };
        realm.memory.settle(&mut realm.isolate);
        stopped
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.ended {
            // A panic of the host. Whatever the isolate is left with, nobody may use it.
            self.realm.state.tainted = true;
            if self.realm.watch.end() {
                self.realm.isolate.cancel_terminate_execution();
            }
        }
        CURRENT.set(self.previous);
        if !self.realm.stays {
            // SAFETY: entered by `new`.
            unsafe { self.realm.isolate.exit() };
        }
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
            // `jobs` stays with the isolate.
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
            ManuallyDrop::drop(&mut self.jobs);
            ManuallyDrop::drop(&mut self.isolate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_host::{HostConfig, NullConsole};
    use lightcone_types::Identity;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    const PROGRAM: &str = "import { moduleHooks } from 'spacetime:sys@2.0';\n\
        const none = () => {};\n\
        export default { [moduleHooks]: () => ({ __describe_module__: none, __get_error_constructor__: none,\n\
          __sender_error_class__: Error, __call_reducer__: none, __call_view__: none, __call_view_anon__: none,\n\
          __call_procedure__: none }) };";

    fn realm() -> Realm {
        crate::engine(crate::JsEngineOptions::default()).expect("the engine");
        let env = HostEnv::new(HostConfig {
            database_identity: Identity::ZERO,
            console: Arc::new(NullConsole),
            limits: HostLimits::default(),
        });
        let program = ProgramText::read(PROGRAM.as_bytes()).expect("a program");
        Realm::new(&Arc::new(program), env).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a script in a context that nothing was taken away from; gives its value as a number.
    fn run_unrestricted(realm: &mut Realm, text: &str) -> (Option<f64>, Option<Stopped>) {
        realm.call(|isolate, _, _, _| {
            ::v8::scope!(let scope, isolate);
            let context = Context::new(scope, ::v8::ContextOptions::default());
            let scope = &mut ::v8::ContextScope::new(scope, context);
            ::v8::tc_scope!(let scope, scope);
            let source = ::v8::String::new(scope, text).expect("a string");
            let script = ::v8::Script::compile(scope, source, None)?;
            script.run(scope)?.number_value(scope)
        })
    }

    /// Whatever way a module may find to a resizable buffer.
    #[test]
    fn a_resizable_buffer_ends_the_call_and_the_isolate() {
        let mut realm = realm();
        let (fixed, stopped) = run_unrestricted(&mut realm, "new ArrayBuffer(7).byteLength");
        assert!(fixed == Some(7.0) && stopped.is_none() && !realm.is_tainted());
        for constructor in ["ArrayBuffer", "SharedArrayBuffer"] {
            let mut realm = self::realm();
            let text = format!("{constructor}(0, {{ maxByteLength: 2 ** 30 }}); for (;;);");
            let (_, stopped) = run_unrestricted(&mut realm, &format!("new {text}"));
            assert!(
                matches!(stopped, Some(Stopped::Trap(HostTrap::Forbidden(_)))),
                "{constructor}"
            );
            assert!(realm.is_tainted());
        }
    }

    /// A panic inside of an isolate leaves the thread as it was: nobody's state is current and no isolate is entered.
    #[test]
    fn a_panic_leaves_the_isolate() {
        for stays in [false, true] {
            let (mut first, mut other) = (realm(), realm());
            if stays {
                first.stay();
                other.stay();
            }
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                first.call(|isolate, roots, _, _| {
                    ::v8::scope!(let scope, isolate);
                    let context = Local::new(scope, &roots.context);
                    let _scope = &mut ::v8::ContextScope::new(scope, context);
                    panic!("a bug of the host");
                })
            }));
            assert!(panicked.is_err());
            assert!(State::current().is_null());
            assert!(first.is_tainted(), "it is not used again");
            assert_eq!(first.watch.deadline(), None, "its clock has stopped");
            let (sum, stopped) = run_unrestricted(&mut other, "1 + 2");
            assert!(sum == Some(3.0) && stopped.is_none());
            drop(first);
            let (sum, _) = run_unrestricted(&mut other, "1 + 3");
            assert_eq!(sum, Some(4.0));
        }
    }
}
