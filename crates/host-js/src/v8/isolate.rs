//! One isolate with its context: how it is entered and left, and what it keeps between calls.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use ::v8::{Local, MicrotaskQueue, MicrotasksPolicy, OwnedIsolate, UniqueRef};
use lightcone_host::clock::ticks;
use lightcone_host::{HostEnv, HostError, HostLimits, HostTrap, LimitKind};

use super::exception::FRAMES_MAX;
use super::loading::{build, describe, Roots};
use super::memory::{ArrayBuffers, HeapShare, MemoryGuard};
use super::state::{count_use, State};
use super::watchdog::Watch;
use crate::program::ProgramText;
use crate::trace::Exception;

/// The isolate that this thread stays in.
///
/// Entering and leaving costs more than a short call. So an isolate that stays on its thread stays entered, until another such
/// isolate of the thread is used.
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

    /// A unique number of this thread, cheaper than the standard library's.
    #[inline]
    pub(super) fn thread() -> u64 {
        thread_local! {
            static THREAD: Cell<u64> = const { Cell::new(NONE) };
        }
        match THREAD.get() {
            NONE => {
                let new = number();
                THREAD.set(new);
                new
            }
            known => known,
        }
    }

    /// A unique number for an isolate or thread.
    pub(super) fn number() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(NONE);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Enters the isolate for good, and leaves the one before.
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

    /// Leaves this isolate, if the thread stays in it.
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

/// An isolate with its evaluated program.
pub(crate) struct Isolate {
    /// Dropped by hand, while entered.
    isolate: ManuallyDrop<OwnedIsolate>,
    pub(crate) state: Box<State>,
    pub(crate) roots: Option<Roots>,
    pub(crate) program: Arc<ProgramText>,
    /// The micro-tasks of the context. When a call is stopped, they are dropped with their queue.
    jobs: ManuallyDrop<UniqueRef<MicrotaskQueue>>,
    watch: Arc<Watch>,
    memory: Box<MemoryGuard>,
    limits: HostLimits,
    call_ticks: u64,
    owner: u64,
    number: u64,
    /// Its thread stays in it.
    stays: bool,
}

/// How a call was ended from outside.
pub(crate) enum Interruption {
    Time,
    Memory,
    Trap(HostTrap),
}

impl Isolate {
    /// Makes an isolate and evaluates the program. Runs module code.
    pub(crate) fn new(program: &Arc<ProgramText>, env: HostEnv) -> Result<Isolate, HostError> {
        let limits = env.limits().clone();
        // A heap that asks before it grows collects its garbage more often.
        let account = env.account();
        let share = account.is_bounded().then(|| account.clone());
        let share = share.map(|account| HeapShare::new(account, limits.memory_bytes_max));
        let share = share.transpose().map_err(|trap| HostError::LoadLimit {
            export: "the module".to_owned(),
            trap,
        })?;
        let buffers = ArrayBuffers::new(account, limits.memory_bytes_max);
        let params = ::v8::CreateParams::default()
            .heap_limits(0, limits.memory_bytes_max)
            .array_buffer_allocator(buffers.clone().allocator());
        let mut isolate = ::v8::Isolate::new(params);
        isolate.set_microtasks_policy(MicrotasksPolicy::Explicit);
        let jobs = MicrotaskQueue::new(&mut isolate, MicrotasksPolicy::Explicit);
        isolate.set_capture_stack_trace_for_uncaught_exceptions(true, FRAMES_MAX as i32);
        isolate.set_allow_atomics_wait(false);
        isolate.set_use_counter_callback(count_use);
        let memory = MemoryGuard::install(
            &mut isolate,
            limits.memory_bytes_max,
            share,
            buffers.clone(),
        );
        let watch = Watch::new(isolate.thread_safe_handle(), env.interrupt().clone());
        let call_ticks = ticks(limits.call_ms_max);
        let state = Box::new(State {
            env,
            buffers,
            doomed: None,
            panic: None,
            error_constructor: None,
            noop: None,
            modules: Vec::new(),
            legacy: None,
            tainted: false,
            isolate: isolate.thread_safe_handle(),
            watch: watch.clone(),
            call_ticks,
        });
        // SAFETY: an isolate is entered when it is made; from here on it is only while it is used.
        unsafe { isolate.exit() };
        let mut host = Isolate {
            isolate: ManuallyDrop::new(isolate),
            state,
            roots: None,
            program: program.clone(),
            jobs: ManuallyDrop::new(jobs),
            watch,
            memory,
            call_ticks,
            limits,
            owner: entered::thread(),
            number: entered::number(),
            stays: false,
        };
        let load_ticks = ticks(host.limits.load_ms_max);
        let program = program.clone();
        let (built, stopped) = host.run(load_ticks, |host| {
            build(&mut host.isolate, &mut host.jobs, &program)
        });
        host.state.env.end_script_call();
        host.roots = Some(host.loaded("the module", built, stopped)?);
        Ok(host)
    }

    /// All calls will come from this thread, which made the isolate and stays in it from now on.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.owner == entered::thread()
    }

    /// The time limit of later calls.
    pub(crate) fn limit_calls(&mut self, call_ms_max: u64) {
        self.limits.call_ms_max = call_ms_max;
        self.call_ticks = ticks(call_ms_max);
        self.state.call_ticks = self.call_ticks;
        self.state.env.limit_calls(call_ms_max);
    }

    /// Frees memory of earlier calls. On the isolate's thread.
    pub(crate) fn rest(&mut self) {
        // No module code runs, so nothing is stopped.
        self.run(self.call_ticks, |host| host.memory.rest(&mut host.isolate));
    }

    /// The BSATN of the module definition.
    pub(crate) fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        let load_ticks = ticks(self.limits.load_ms_max);
        let program = self.program.clone();
        let (described, stopped) = self.run(load_ticks, |host| {
            let roots = host.roots.as_ref().expect("the isolate is built");
            describe(&mut host.isolate, roots, &host.jobs, &program)
        });
        self.state.env.end_script_call();
        self.loaded("__describe_module__", described, stopped)
    }

    fn loaded<T>(
        &mut self,
        export: &str,
        result: Result<T, Exception>,
        stopped: Option<Interruption>,
    ) -> Result<T, HostError> {
        match stopped {
            None => result.map_err(|exception| HostError::Script(exception.text())),
            Some(stopped) => Err(HostError::LoadLimit {
                export: export.to_owned(),
                trap: self.trap(stopped, LimitKind::LoadTime, self.limits.load_ms_max),
            }),
        }
    }

    /// The trap of a stopped call.
    pub(crate) fn call_trap(&self, stopped: Interruption) -> HostTrap {
        self.trap(stopped, LimitKind::CallTime, self.limits.call_ms_max)
    }

    fn trap(&self, stopped: Interruption, kind: LimitKind, limit: u64) -> HostTrap {
        match stopped {
            Interruption::Time => HostTrap::Limit { kind, limit },
            Interruption::Memory => self.memory.share_trap().unwrap_or(HostTrap::limit(
                LimitKind::Memory,
                self.limits.memory_bytes_max,
            )),
            Interruption::Trap(trap) => trap,
        }
    }

    /// Runs `body` in the isolate, under the time limit of calls.
    #[inline]
    pub(crate) fn call<R>(
        &mut self,
        body: impl FnOnce(&mut OwnedIsolate, &mut Roots, &MicrotaskQueue, &ProgramText) -> R,
    ) -> (R, Option<Interruption>) {
        self.run(self.call_ticks, |host| {
            let roots = host.roots.as_mut().expect("the isolate is built");
            body(&mut host.isolate, roots, &host.jobs, &host.program)
        })
    }

    #[inline]
    pub(crate) fn is_tainted(&self) -> bool {
        self.state.tainted
    }

    #[inline]
    fn run<R>(
        &mut self,
        ticks: u64,
        body: impl FnOnce(&mut Isolate) -> R,
    ) -> (R, Option<Interruption>) {
        let entered = Entered::new(self, ticks);
        let result = body(&mut *entered.host);
        (result, entered.end())
    }

    #[cold]
    fn stopped(&mut self, timed_out: bool) -> Option<Interruption> {
        self.isolate.cancel_terminate_execution();
        self.drop_jobs();
        let doomed = self.state.doomed.take();
        if self.memory.exceeded() {
            self.state.tainted = true;
            return Some(Interruption::Memory);
        }
        if timed_out {
            let trap = self.state.env.interrupted();
            return Some(trap.map_or(Interruption::Time, Interruption::Trap));
        }
        doomed.map(Interruption::Trap)
    }

    /// Drops the micro-tasks of the stopped call: its transaction is over, and no other may see them.
    fn drop_jobs(&mut self) {
        let Some(roots) = &self.roots else {
            // An isolate that could not be built is dropped as a whole.
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

/// An entered isolate; it is left on drop, also after a panic.
struct Entered<'a> {
    host: &'a mut Isolate,
    previous: *mut State,
    ended: bool,
}

impl<'a> Entered<'a> {
    #[inline]
    fn new(host: &'a mut Isolate, ticks: u64) -> Entered<'a> {
        if host.stays {
            entered::stay(host.number, &host.isolate);
        } else {
            // SAFETY: left again when the result is dropped.
            unsafe { host.isolate.enter() };
        }
        let previous = State::make_current(&raw mut *host.state);
        host.watch.begin(ticks);
        Entered {
            host,
            previous,
            ended: false,
        }
    }

    /// Ends the call. Says how it was stopped, if it was.
    #[inline]
    fn end(mut self) -> Option<Interruption> {
        self.ended = true;
        let host = &mut *self.host;
        let timed_out = host.watch.end();
        let stopped = if timed_out || host.state.doomed.is_some() || host.memory.exceeded() {
            host.stopped(timed_out)
        } else {
            None
        };
        host.memory.settle(&mut host.isolate);
        stopped
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.ended {
            // A panic of the host. The isolate may be in any state, and is not used again.
            self.host.state.tainted = true;
            if self.host.watch.end() {
                self.host.isolate.cancel_terminate_execution();
            }
        }
        State::make_current(self.previous);
        if !self.host.stays {
            // SAFETY: entered by `new`.
            unsafe { self.host.isolate.exit() };
        }
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        if self.stays && !self.is_here() {
            // Another thread may be in it, and V8 ends the process if such an isolate is disposed of.
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
    use ::v8::Context;
    use lightcone_host::{HostConfig, NullConsole};
    use lightcone_types::Identity;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    const PROGRAM: &str = "import { moduleHooks } from 'spacetime:sys@2.0';\n\
        const none = () => {};\n\
        export default { [moduleHooks]: () => ({ __describe_module__: none, __get_error_constructor__: none,\n\
          __sender_error_class__: Error, __call_reducer__: none, __call_view__: none, __call_view_anon__: none,\n\
          __call_procedure__: none }) };";

    fn new_isolate() -> Isolate {
        crate::engine(crate::JsEngineOptions::default()).expect("the engine");
        let env = HostEnv::new(HostConfig::new(
            Identity::ZERO,
            Arc::new(NullConsole),
            HostLimits::default(),
        ));
        let program = ProgramText::read(PROGRAM.as_bytes()).expect("a program");
        Isolate::new(&Arc::new(program), env).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a script in a context with all globals; returns its value as a number.
    fn run_unrestricted(host: &mut Isolate, text: &str) -> (Option<f64>, Option<Interruption>) {
        host.call(|isolate, _, _, _| {
            ::v8::scope!(let scope, isolate);
            let context = Context::new(scope, ::v8::ContextOptions::default());
            let scope = &mut ::v8::ContextScope::new(scope, context);
            ::v8::tc_scope!(let scope, scope);
            let source = ::v8::String::new(scope, text).expect("a string");
            let script = ::v8::Script::compile(scope, source, None)?;
            script.run(scope)?.number_value(scope)
        })
    }

    /// Every way by which a module may find a resizable buffer.
    #[test]
    fn a_resizable_buffer_ends_the_call_and_the_isolate() {
        let mut host = new_isolate();
        let (fixed, stopped) = run_unrestricted(&mut host, "new ArrayBuffer(7).byteLength");
        assert!(fixed == Some(7.0) && stopped.is_none() && !host.is_tainted());
        for constructor in ["ArrayBuffer", "SharedArrayBuffer"] {
            let mut host = new_isolate();
            let text = format!("{constructor}(0, {{ maxByteLength: 2 ** 30 }}); for (;;);");
            let (_, stopped) = run_unrestricted(&mut host, &format!("new {text}"));
            assert!(
                matches!(stopped, Some(Interruption::Trap(HostTrap::Forbidden(_)))),
                "{constructor}"
            );
            assert!(host.is_tainted());
        }
    }

    /// Garbage goes when the isolate rests, and what is kept is not collected again and again.
    #[test]
    fn an_isolate_that_rests_gives_memory_back() {
        let mut host = new_isolate();
        let held = |host: &mut Isolate| {
            let (held, _) = host.call(|isolate, _, _, _| super::super::memory::held_bytes(isolate));
            held
        };
        // In the old generation, which is collected rarely.
        let (_, stopped) = run_unrestricted(
            &mut host,
            "globalThis.kept = []; for (let i = 0; i < 4000; i++) kept.push(new Array(4096).fill(i + 0.5)); kept.length",
        );
        assert!(stopped.is_none());
        let before = held(&mut host);
        assert!(before > 100 << 20, "{before}");
        host.rest();
        let after = held(&mut host);
        assert!(after < before / 2, "{before} {after}");
        assert!(!host.is_tainted());
        let (sum, stopped) = run_unrestricted(&mut host, "1 + 2");
        assert!(sum == Some(3.0) && stopped.is_none());
        // A small amount is left alone.
        let (_, _) = run_unrestricted(&mut host, "new Array(4096).fill(0.5).length");
        let before = held(&mut host);
        host.rest();
        assert_eq!(held(&mut host), before);
    }

    /// A panic inside of an isolate leaves the thread as it was: no state is current and no isolate is entered.
    #[test]
    fn a_panic_leaves_the_isolate() {
        for stays in [false, true] {
            let (mut first, mut other) = (new_isolate(), new_isolate());
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
