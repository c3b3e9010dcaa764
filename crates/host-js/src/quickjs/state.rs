//! The state of one isolate, at the opaque pointer of its context.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use lightcone_host::{AbiError, Errno, HostEnv, HostTrap, LimitKind, Waiting};
use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::host_calls::Failure;

use super::heap::Heap;
use super::value::{self, Hook, Owned};

/// What the host keeps of an isolate.
///
/// JavaScript reaches it again through any host function, so no code may hold a Rust reference to it while JavaScript
/// runs. Everything goes through [`state`] and short borrows.
pub(crate) struct State {
    pub(crate) env: HostEnv,
    pub(crate) heap: Box<Heap>,
    /// Why the running call has to end. From then on every host function terminates (04 §5.3).
    pub(crate) doomed: Option<HostTrap>,
    /// The deadline of the running call, with its limit.
    pub(crate) deadline: Instant,
    pub(crate) time_limit: (LimitKind, u64),
    /// Imports resolve only during linking; later, `import()` is refused.
    pub(crate) linking: bool,
    /// The class of array buffers in this runtime.
    pub(crate) array_buffer_class: qjs::JSClassID,
    /// A panic of a host function, to be resumed after the call: it must not unwind into C.
    pub(crate) panic: Option<Box<dyn Any + Send>>,
    /// Makes the classes of errnos; set once the hooks are found.
    pub(crate) error_constructor: Option<Hook>,
    // Never released: their heap is freed as a whole.
    pub(crate) values: ManuallyDrop<Values>,
}

/// Values that the host made before any module code ran, so that no module can change them.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) error: Option<Owned>,
    pub(crate) type_error: Option<Owned>,
    pub(crate) range_error: Option<Owned>,
    pub(crate) data_view: Option<Owned>,
    /// Makes one BigInt of four 64-bit ones.
    pub(crate) join_words: Option<Owned>,
    /// Reads `buffer`, `byteOffset` and `byteLength` of a `DataView`.
    pub(crate) view_parts: Option<Owned>,
    pub(crate) module_hooks: Option<Owned>,
    /// Shared by the versions 1.x of the virtual modules, if one was imported.
    pub(crate) legacy: Option<Owned>,
    /// One for each [`crate::scope::CallBuffer`].
    pub(crate) arguments: Option<Owned>,
    pub(crate) direct: Option<Owned>,
}

impl State {
    pub(crate) fn new(env: HostEnv) -> State {
        let heap = Heap::new(env.limits().memory_bytes_max, env.account());
        State {
            env,
            heap,
            doomed: None,
            deadline: Instant::now(),
            time_limit: (LimitKind::LoadTime, 0),
            linking: true,
            array_buffer_class: 0,
            panic: None,
            error_constructor: None,
            values: ManuallyDrop::default(),
        }
    }

    /// Gives module code so much time from now on, and clears the end of the last call.
    pub(crate) fn start_clock(&mut self, kind: LimitKind, ms_max: u64) {
        self.doomed = None;
        self.deadline = Instant::now() + Duration::from_millis(ms_max);
        self.heap.forgive(self.deadline);
        self.time_limit = (kind, ms_max);
    }

    /// Blocks this thread. The time does not count against the call, which has its whole time again afterwards.
    pub(crate) fn wait(&mut self, waiting: Option<Waiting>) {
        if waiting.is_some() {
            self.env.block(waiting);
            self.deadline = Instant::now() + Duration::from_millis(self.time_limit.1);
            self.heap.put_off(self.deadline);
        }
    }

    /// Dooms the running call; the first reason stays.
    #[cold]
    pub(crate) fn doom(&mut self, trap: HostTrap) {
        self.doomed.get_or_insert(trap);
    }

    /// Whether module code may go on. For the interrupt handler.
    pub(crate) fn may_go_on(&mut self) -> bool {
        if self.doomed.is_none() {
            if self.heap.is_exceeded() {
                self.doom(self.heap.trap());
            } else if let Some(trap) = self.env.interrupted() {
                self.doom(trap);
            } else if self.heap.is_late() || Instant::now() >= self.deadline {
                let (kind, limit) = self.time_limit;
                self.doom(HostTrap::Limit { kind, limit });
            }
        }
        self.doomed.is_none()
    }
}

/// The state of a context.
///
/// # Safety
/// The context is one of `isolate.rs`. The borrow ends before JavaScript runs or the state is borrowed again.
#[inline]
pub(crate) unsafe fn state<'a>(context: *mut JSContext) -> &'a mut State {
    unsafe { &mut *qjs::JS_GetContextOpaque(context).cast() }
}

/// Turns a failure into a pending exception.
///
/// # Safety
/// The context is one of `isolate.rs` and alive.
#[cold]
pub(crate) unsafe fn throw(context: *mut JSContext, failure: Failure) -> JSValue {
    // SAFETY: the state is borrowed for moments in which no JavaScript runs; values are owned by us.
    unsafe {
        match failure {
            Failure::Thrown => {}
            Failure::Type(text) => throw_new(context, |values| &values.type_error, &text),
            Failure::Range(text) => throw_new(context, |values| &values.range_error, text),
            Failure::Abi(AbiError::Trap(trap)) => {
                state(context).doom(trap);
                return terminate(context);
            }
            Failure::Abi(AbiError::Errno(errno)) => {
                throw_errno(context, errno.number(), errno.text())
            }
            Failure::Http(text) => throw_errno(context, Errno::HTTP_ERROR.number(), &text),
            Failure::TooSmall(bytes) => throw_size(context, bytes),
        }
    }
    qjs::JS_EXCEPTION
}

/// Ends the running call: an exception that no `catch` and no `finally` sees.
///
/// # Safety
/// The context is alive.
#[cold]
pub(crate) unsafe fn terminate(context: *mut JSContext) -> JSValue {
    unsafe {
        qjs::JS_ThrowInternalError(context, c"terminated".as_ptr());
        let exception = qjs::JS_GetException(context);
        qjs::JS_SetUncatchableError(context, exception);
        qjs::JS_Throw(context, exception)
    }
}

/// Throws an instance of one of the classes that the host keeps.
///
/// # Safety
/// The context is one of `isolate.rs` and alive.
pub(crate) unsafe fn throw_new(
    context: *mut JSContext,
    class: fn(&Values) -> &Option<Owned>,
    text: &str,
) {
    unsafe {
        let Some(class) = class(&state(context).values).as_ref().map(Owned::raw) else {
            // Only while the globals are made.
            qjs::JS_ThrowInternalError(context, c"not set up".as_ptr());
            return;
        };
        let message = Owned::new(context, value::string(context, text));
        throw_instance(context, class, message);
    }
}

unsafe fn throw_instance(context: *mut JSContext, class: JSValue, message: Owned) {
    unsafe {
        let mut arguments = [message.raw()];
        let error = qjs::JS_CallConstructor(context, class, 1, arguments.as_mut_ptr());
        if !qjs::JS_IsException(error) {
            qjs::JS_Throw(context, error);
        }
    }
}

/// The class comes from the module (04 §5.1); before the hooks are known it is a plain `Error`.
unsafe fn throw_errno(context: *mut JSContext, errno: u16, text: &str) {
    unsafe {
        let hook = state(context).error_constructor.as_ref().map(Hook::raw);
        let Some(hook) = hook else {
            return throw_new(context, |values| &values.error, text);
        };
        let mut arguments = [value::number(u32::from(errno))];
        let class = qjs::JS_Call(context, hook, value::undefined(), 1, arguments.as_mut_ptr());
        if let Ok(class) = Owned::checked(context, class) {
            let message = Owned::new(context, value::string(context, text));
            throw_instance(context, class.raw(), message);
        }
    }
}

/// The object is no error (04 §4.3).
unsafe fn throw_size(context: *mut JSContext, bytes: usize) {
    let size = u32::try_from(bytes).unwrap_or(u32::MAX);
    unsafe {
        let object = qjs::JS_NewObject(context);
        if qjs::JS_IsException(object) {
            return;
        }
        // `messages::BUFFER_TOO_SMALL` for C.
        let name = c"__buffer_too_small__";
        qjs::JS_SetPropertyStr(context, object, name.as_ptr(), value::number(size));
        qjs::JS_Throw(context, object);
    }
}
