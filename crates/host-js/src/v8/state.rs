//! What host functions work on, and how they fail.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use ::v8::{Function, Global, IsolateHandle, Module, Object, UseCounterFeature};
use lightcone_host::{AbiError, HostEnv, HostTrap, Waiting};

use super::memory::ArrayBuffers;
use super::watchdog::Watch;
use crate::sys::SysVersion;

/// What host functions work on.
pub(crate) struct State {
    pub(crate) env: HostEnv,
    pub(super) buffers: Arc<ArrayBuffers>,
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
    /// What the versions 1.x of them share, if one was imported.
    pub(crate) legacy: Option<Global<Object>>,
    /// The module may hold what it must not have, or its heap is beyond its limit and may be full of garbage that it holds:
    /// no further call may run in the isolate.
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
    /// The state of the isolate that runs on this thread; only host functions ask.
    #[inline]
    pub(crate) fn current() -> *mut State {
        CURRENT.get()
    }

    /// Makes it the current one; gives the one before.
    #[inline]
    pub(super) fn make_current(state: *mut State) -> *mut State {
        CURRENT.replace(state)
    }

    /// The array buffers of the isolate that runs on this thread.
    pub(crate) fn buffers() -> Arc<ArrayBuffers> {
        // SAFETY: set by the call that is running on this thread; nothing else uses the state for the time of a clone.
        unsafe { (*CURRENT.get()).buffers.clone() }
    }

    /// Waits on this thread. The time does not count against the call, which may compute as long afterwards as at its
    /// beginning.
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

/// Runs one host function on the state of the running isolate. A panic is kept and ends the call: it must not cross V8.
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

/// Why a host function does not return.
pub(crate) enum Failure {
    Abi(AbiError),
    Type(String),
    Range(&'static str),
    /// An outbound request failed, with this text: errno 21.
    Http(String),
    /// `row_iter_bsatn_advance` needs so many bytes.
    TooSmall(usize),
    /// An exception is pending already, or the call is being ended.
    Thrown,
}

impl From<AbiError> for Failure {
    #[inline]
    fn from(error: AbiError) -> Failure {
        Failure::Abi(error)
    }
}

/// V8 says that code of the module uses a feature. There is no resizable memory in modules (`restrict.js`), as no limit would
/// see it. V8 asks before it makes any, so a module that got around that gets one small buffer and loses its isolate.
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
