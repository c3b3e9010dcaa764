//! An isolate: one QuickJS runtime with one context (spec 04 §7).

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use lightcone_host::{HostEnv, HostError, LimitKind};
use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSRuntime};

use super::globals;
use super::modules;
use super::stack_size;
use super::state::State;
use super::value::{forget_exception, Owned, Thrown};

/// A runtime with one context. The state has its values; nothing of it outlives the isolate.
pub(crate) struct Isolate {
    runtime: *mut JSRuntime,
    pub(crate) context: *mut JSContext,
    state: *mut State,
    stack_bytes_max: usize,
}

// SAFETY: QuickJS keeps nothing in the thread but the top of its stack, which every entry sets again; and one thread at a
// time has the isolate.
unsafe impl Send for Isolate {}

impl Drop for Isolate {
    fn drop(&mut self) {
        // SAFETY: the state was made by `Box::into_raw`. Runtime, context and values are blocks of its heap and go with
        // it; they are not used any more.
        drop(unsafe { Box::from_raw(self.state) });
    }
}

impl Isolate {
    /// A new isolate with its globals.
    pub(crate) fn new(env: HostEnv, stack_bytes_max: usize) -> Result<Isolate, HostError> {
        let out_of_memory = || {
            HostError::Engine(
                "QuickJS could not be started within the memory that an instance may have"
                    .to_owned(),
            )
        };
        let state = Box::into_raw(Box::new(State::new(env)));
        let mut isolate = Isolate {
            runtime: null_mut(),
            context: null_mut(),
            state,
            stack_bytes_max,
        };
        // SAFETY: the state outlives runtime and context; pointers are checked before they are used.
        unsafe {
            let opaque: *const super::heap::Heap = &*(*state).heap;
            let functions = super::heap::Heap::functions();
            isolate.runtime = qjs::JS_NewRuntime2(&functions, opaque.cast_mut().cast());
            if isolate.runtime.is_null() {
                return Err(out_of_memory());
            }
            isolate.enter();
            qjs::JS_SetCanBlock(isolate.runtime, false);
            qjs::JS_SetInterruptHandler(isolate.runtime, Some(interrupt), state.cast());
            isolate.context = qjs::JS_NewContextRaw(isolate.runtime);
            let context = isolate.context;
            if context.is_null() {
                return Err(out_of_memory());
            }
            qjs::JS_SetContextOpaque(context, state.cast());
            let limits = (*state).env.limits();
            let load_ms_max = limits.load_ms_max;
            (*state).start_clock(LimitKind::LoadTime, load_ms_max);
            let added = [
                qjs::JS_AddIntrinsicBaseObjects(context),
                qjs::JS_AddIntrinsicDate(context),
                qjs::JS_AddIntrinsicEval(context),
                qjs::JS_AddIntrinsicRegExp(context),
                qjs::JS_AddIntrinsicJSON(context),
                qjs::JS_AddIntrinsicProxy(context),
                qjs::JS_AddIntrinsicMapSet(context),
                qjs::JS_AddIntrinsicTypedArrays(context),
                qjs::JS_AddIntrinsicPromise(context),
                qjs::JS_AddIntrinsicWeakRef(context),
            ];
            if added.iter().any(|result| *result != 0) {
                return Err(out_of_memory());
            }
            modules::set_loader(isolate.runtime);
            globals::define(context).map_err(|Thrown| out_of_memory())?;
        }
        Ok(isolate)
    }

    /// The host's side. The borrow must end before JavaScript runs.
    #[inline]
    pub(crate) fn state(&mut self) -> &mut State {
        // SAFETY: the state lives as long as the isolate, and `&mut self` is the only way to it outside of calls.
        unsafe { &mut *self.state }
    }

    /// To be called before JavaScript runs: the thread may have changed.
    #[inline]
    pub(crate) fn enter(&mut self) {
        let stack_bytes = stack_size::stack_bytes(self.stack_bytes_max);
        // SAFETY: the runtime is alive.
        unsafe {
            qjs::JS_SetMaxStackSize(self.runtime, stack_bytes as qjs::size_t);
            qjs::JS_UpdateStackTop(self.runtime);
        }
    }

    /// Whether the running or last call was ended from outside.
    #[inline]
    pub(crate) fn is_doomed(&mut self) -> bool {
        let state = self.state();
        if state.heap.is_exceeded() || state.heap.is_late() {
            state.may_go_on();
        }
        state.doomed.is_some()
    }

    /// Runs the jobs of promises, until there are none or the call is doomed.
    #[inline]
    pub(crate) fn run_jobs(&mut self) {
        // SAFETY: the runtime is alive and the state is not borrowed while a job runs.
        unsafe {
            while qjs::JS_IsJobPending(self.runtime) && self.may_go_on() {
                let mut context = null_mut();
                if qjs::JS_ExecutePendingJob(self.runtime, &mut context) < 0 {
                    // Rejections without a handler are dropped.
                    forget_exception(self.context);
                }
            }
        }
    }

    fn may_go_on(&mut self) -> bool {
        self.state().may_go_on()
    }

    /// Whether jobs of a terminated call are left, which no later call may run.
    pub(crate) fn has_jobs(&self) -> bool {
        // SAFETY: the runtime is alive.
        unsafe { qjs::JS_IsJobPending(self.runtime) }
    }

    /// Frees cycles.
    pub(crate) fn collect_garbage(&mut self) {
        // SAFETY: the runtime is alive and no JavaScript runs.
        unsafe { qjs::JS_RunGC(self.runtime) }
    }

    /// Takes the pending exception.
    pub(crate) fn take_exception(&mut self) -> Owned {
        // SAFETY: the context is alive; the exception is ours from now on.
        unsafe { Owned::new(self.context, qjs::JS_GetException(self.context)) }
    }
}

/// Called by QuickJS every few thousand jumps and calls.
unsafe extern "C" fn interrupt(_runtime: *mut JSRuntime, opaque: *mut c_void) -> c_int {
    // SAFETY: the state outlives the runtime, and no code borrows it while JavaScript runs.
    let state = unsafe { &mut *opaque.cast::<State>() };
    c_int::from(!state.may_go_on())
}
