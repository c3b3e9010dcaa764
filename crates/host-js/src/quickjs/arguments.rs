//! Arguments of host functions: the type checks of spec 04 §4.1.

use std::borrow::Cow;

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use lightcone_host::{AbiError, HostEnv, Waiting};

use crate::frame::Frame;
use crate::host_calls::{AnyCall, Call, Failure};
use crate::messages;

use super::stack_trace;
use super::state::{state, terminate, throw, State};
use super::value::{self, array_bytes, buffer_bytes, kind};

pub(crate) struct NativeCall {
    pub(crate) context: *mut JSContext,
    state: *mut State,
    values: *mut JSValue,
}

/// A C function for QuickJS.
pub(crate) type RawFunction =
    unsafe extern "C" fn(*mut JSContext, JSValue, std::ffi::c_int, *mut JSValue) -> JSValue;

/// Runs the body of a host function.
///
/// # Safety
/// Called by QuickJS with at least as many values as `body` reads: QuickJS fills up to the declared number.
#[inline(always)]
pub(crate) unsafe fn host_function(
    context: *mut JSContext,
    values: *mut JSValue,
    body: impl FnOnce(&mut NativeCall) -> Result<JSValue, Failure>,
) -> JSValue {
    // SAFETY: the state outlives the context.
    let state: *mut State = unsafe { state(context) };
    if unsafe { (*state).doomed.is_some() } {
        return unsafe { terminate(context) };
    }
    let mut call = NativeCall {
        context,
        state,
        values,
    };
    // A panic must not unwind into C.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut call))) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => unsafe { throw(context, failure) },
        Err(panic) => {
            unsafe { (*state).panic = Some(panic) };
            let trap = lightcone_host::HostTrap::Internal("a host function panicked".into());
            unsafe { throw(context, Failure::Abi(trap.into())) }
        }
    }
}

impl NativeCall {
    /// The borrow must end before JavaScript can run.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn state(&self) -> &mut State {
        // SAFETY: the state lives as long as the context, and no other code borrows it while a host function runs.
        unsafe { &mut *self.state }
    }

    #[inline]
    pub(crate) fn value(&self, position: usize) -> JSValue {
        // SAFETY: `host_function` demands enough values.
        unsafe { *self.values.add(position) }
    }

    #[inline]
    fn integer(&self, position: usize, name: &str) -> Result<u32, Failure> {
        let value = self.value(position);
        // SAFETY: the union is read as its tag says.
        unsafe {
            match qjs::JS_VALUE_GET_TAG(value) {
                qjs::JS_TAG_INT if value.u.int32 >= 0 => return Ok(value.u.int32 as u32),
                qjs::JS_TAG_FLOAT64 => {
                    let number = value.u.float64;
                    if f64::from(number as u32) == number {
                        return Ok(number as u32);
                    }
                }
                _ => {}
            }
        }
        Err(self.wrong_type(position, &format!("number for `{name}`")))
    }
}

impl Call for NativeCall {
    #[inline]
    fn host<R>(&self, body: impl FnOnce(&mut HostEnv) -> Result<R, Failure>) -> Result<R, Failure> {
        body(&mut self.state().env)
    }

    #[inline]
    fn u32(&self, at: usize) -> Result<u32, Failure> {
        self.integer(at, "u32")
    }

    #[inline]
    fn u16(&self, at: usize) -> Result<u16, Failure> {
        let number = self.integer(at, "u16")?;
        u16::try_from(number).map_err(|_| Failure::Type(messages::overflowed("u16")))
    }

    #[inline]
    fn buffer(&self, at: usize, expected: &str) -> Result<&mut [u8], Failure> {
        let value = self.value(at);
        // SAFETY: the argument is live; a host function takes one buffer and runs no JavaScript while it holds it.
        unsafe {
            if qjs::JS_GetClassID(value) != (*self.state).array_buffer_class {
                return Err(self.wrong_type(at, expected));
            }
            Ok(buffer_bytes(self.context, value))
        }
    }
}

impl AnyCall for NativeCall {
    fn u128(&self, at: usize) -> Result<u128, Failure> {
        let value = self.value(at);
        // SAFETY: the argument is live. The decimal form of a BigInt cannot be changed by the module.
        if !unsafe { qjs::JS_IsBigInt(value) } {
            return Err(self.wrong_type(at, "bigint for `u128`"));
        }
        let parsed =
            unsafe { value::with_utf8(self.context, value, |digits| digits.parse().ok()) }?;
        parsed.ok_or_else(|| Failure::Type(messages::overflowed("u128")))
    }

    fn bytes(&self, at: usize) -> Result<Cow<'_, [u8]>, Failure> {
        // SAFETY: the argument is live, and no JavaScript runs while its bytes are held.
        match unsafe { array_bytes(self.context, self.value(at)) } {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => Err(self.wrong_type(at, messages::BYTES)),
        }
    }

    fn is_text(&self, at: usize) -> bool {
        // SAFETY: the argument is live.
        unsafe { qjs::JS_IsString(self.value(at)) }
    }

    fn text<R>(
        &mut self,
        at: usize,
        body: impl FnOnce(&str, &mut HostEnv) -> Result<R, AbiError>,
    ) -> Result<R, Failure> {
        if !self.is_text(at) {
            return Err(self.wrong_type(at, messages::STRING));
        }
        let call = |text: &str| body(text, &mut self.state().env);
        // SAFETY: the argument is live.
        Ok(unsafe { value::with_utf8(self.context, self.value(at), call) }??)
    }

    #[cold]
    fn wrong_type(&self, at: usize, expected: &str) -> Failure {
        // SAFETY: arguments are live values.
        let kind = unsafe { kind(self.context, self.value(at)) };
        Failure::Type(messages::expected(expected, &kind))
    }

    fn frames(&mut self, _all: bool) -> Vec<Frame> {
        stack_trace::current(self.context)
    }

    fn wait(&self, waiting: Option<Waiting>) -> Result<(), Failure> {
        self.state().wait(waiting);
        Ok(())
    }
}
