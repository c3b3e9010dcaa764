//! The state of host functions, and their failures.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use ::v8::{Function, Global, IsolateHandle, Module, Object, UseCounterFeature};
use lightcone_host::{HostEnv, HostTrap, Waiting};

use super::memory::ArrayBuffers;
use super::watchdog::Watch;
use crate::host_calls::Failure;
use crate::sys::SysVersion;

pub(crate) struct State {
    pub(crate) env: HostEnv,
    pub(super) buffers: Arc<ArrayBuffers>,
    /// The call is being ended: no module code may run in it any more (§5.3).
    pub(crate) doomed: Option<HostTrap>,
    /// A panic of a host function, to be resumed after the call.
    pub(crate) panic: Option<Box<dyn Any + Send>>,
    /// Makes exceptions of errnos; set once the hooks are found.
    pub(crate) error_constructor: Option<Global<Function>>,
    /// Any call makes a requested termination happen at once.
    pub(crate) noop: Option<Global<Function>>,
    pub(crate) modules: Vec<(SysVersion, Global<Module>)>,
    /// Shared by their versions 1.x, if one was imported.
    pub(crate) legacy: Option<Global<Object>>,
    /// No further call may run in the isolate: the module may have memory that no limit sees, or the heap is beyond its limit.
    pub(super) tainted: bool,
    pub(super) isolate: IsolateHandle,
    pub(super) watch: Arc<Watch>,
    pub(super) call_ticks: u64,
}

thread_local! {
    /// The state of the isolate that runs on this thread.
    static CURRENT: Cell<*mut State> = const { Cell::new(std::ptr::null_mut()) };
}

impl State {
    /// The state of the isolate that runs on this thread. For host functions.
    #[inline]
    pub(crate) fn current() -> *mut State {
        CURRENT.get()
    }

    /// Sets the current state; returns the one before.
    #[inline]
    pub(super) fn make_current(state: *mut State) -> *mut State {
        CURRENT.replace(state)
    }

    pub(crate) fn buffers() -> Arc<ArrayBuffers> {
        // SAFETY: set by the call that is running on this thread; nothing else uses the state for the time of a clone.
        unsafe { (*CURRENT.get()).buffers.clone() }
    }

    /// Blocks this thread. The time does not count against the call, which has its whole time again afterwards.
    pub(crate) fn wait(&mut self, waiting: Option<Waiting>) -> Result<(), Failure> {
        if waiting.is_none() {
            return Ok(());
        }
        if !self.watch.pause() {
            return Err(Failure::Thrown);
        }
        self.env.block(waiting);
        self.watch.begin(self.call_ticks);
        Ok(())
    }
}

/// Runs a host function on the state of the running isolate. A panic is kept and ends the call: it must not cross V8.
#[inline]
pub(crate) fn with_state<R>(
    body: impl FnOnce(&mut State) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let state = State::current();
    // SAFETY: `current` is set by the call that is running on this thread, and no other reference to the state is alive
    // while a host function does its work.
    let state = unsafe { &mut *state };
    if state.doomed.is_some() {
        return Err(Failure::Thrown);
    }
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(state))) {
        Ok(result) => result,
        Err(panic) => {
            state.panic = Some(panic);
            Err(Failure::Abi(
                HostTrap::Internal("a host function panicked".into()).into(),
            ))
        }
    }
}

/// V8 reports that module code uses a feature. Modules have no resizable memory (`restrict.js`), as no limit would see it. V8
/// reports before it makes any, so a module that gets around that has one small buffer and loses its isolate.
///
/// The first argument is not what its type says (V8 passes its own isolate), so it is not used.
pub(super) unsafe extern "C" fn count_use(
    _isolate: &mut ::v8::Isolate,
    feature: UseCounterFeature,
) {
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
