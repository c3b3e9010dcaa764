//! Arguments of host functions: the type checks of spec 04 §4.1.

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use lightcone_host::HostEnv;

use crate::messages;

use super::state::{state, terminate, throw, Failure, State};
use super::value::{self, array_bytes, buffer_bytes, kind};

pub(crate) struct Call {
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
    body: impl FnOnce(&Call) -> Result<JSValue, Failure>,
) -> JSValue {
    // SAFETY: the state outlives the context.
    let state: *mut State = unsafe { state(context) };
    if unsafe { (*state).doomed.is_some() } {
        return unsafe { terminate(context) };
    }
    let call = Call {
        context,
        state,
        values,
    };
    // A panic must not unwind into C.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&call))) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => unsafe { throw(context, failure) },
        Err(panic) => {
            unsafe { (*state).panic = Some(panic) };
            let trap = lightcone_host::HostTrap::Internal("a host function panicked".into());
            unsafe { throw(context, Failure::Abi(trap.into())) }
        }
    }
}

impl Call {
    /// The borrow must end before JavaScript can run.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn env(&self) -> &mut HostEnv {
        // SAFETY: the state lives as long as the context, and no other code borrows it while a host function runs.
        unsafe { &mut (*self.state).env }
    }

    /// The borrow must end before JavaScript can run.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn state(&self) -> &mut State {
        // SAFETY: as for `env`.
        unsafe { &mut *self.state }
    }

    #[inline]
    pub(crate) fn value(&self, position: usize) -> JSValue {
        // SAFETY: `host_function` demands enough values.
        unsafe { *self.values.add(position) }
    }

    #[cold]
    fn wrong_type(&self, position: usize, expected: &str) -> Failure {
        // SAFETY: arguments are live values.
        let kind = unsafe { kind(self.context, self.value(position)) };
        Failure::Type(messages::expected(expected, &kind))
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

    #[inline]
    pub(crate) fn u32(&self, position: usize) -> Result<u32, Failure> {
        self.integer(position, "u32")
    }

    /// A count of 16 bits.
    #[inline]
    pub(crate) fn u16(&self, position: usize) -> Result<u16, Failure> {
        let number = self.integer(position, "u16")?;
        u16::try_from(number).map_err(|_| Failure::Type(messages::overflowed("u16")))
    }

    /// A BigInt of up to 128 bits, not negative.
    pub(crate) fn u128(&self, position: usize) -> Result<u128, Failure> {
        let value = self.value(position);
        // SAFETY: the argument is live. The decimal form of a BigInt cannot be changed by the module.
        if !unsafe { qjs::JS_IsBigInt(value) } {
            return Err(self.wrong_type(position, "bigint for `u128`"));
        }
        let parsed =
            unsafe { value::with_utf8(self.context, value, |digits| digits.parse().ok()) }?;
        parsed.ok_or_else(|| Failure::Type(messages::overflowed("u128")))
    }

    /// All bytes of an `ArrayBuffer`. Valid until JavaScript runs; to be called once for each buffer.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn buffer(&self, position: usize, expected: &str) -> Result<&mut [u8], Failure> {
        let value = self.value(position);
        // SAFETY: the argument is live; a host function takes one buffer and runs no JavaScript while it holds it.
        unsafe {
            if qjs::JS_GetClassID(value) != (*self.state).array_buffer_class {
                return Err(self.wrong_type(position, expected));
            }
            Ok(buffer_bytes(self.context, value))
        }
    }

    /// The bytes of a `Uint8Array`, as above.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn array(&self, position: usize) -> Result<&mut [u8], Failure> {
        // SAFETY: the argument is live.
        unsafe { array_bytes(self.context, self.value(position)) }
            .ok_or_else(|| self.wrong_type(position, "`Uint8Array`"))
    }

    pub(crate) fn string<R>(
        &self,
        position: usize,
        body: impl FnOnce(&str) -> R,
    ) -> Result<R, Failure> {
        let value = self.value(position);
        // SAFETY: the argument is live.
        unsafe {
            if !qjs::JS_IsString(value) {
                return Err(self.wrong_type(position, "`string`"));
            }
            Ok(value::with_utf8(self.context, value, body)?)
        }
    }
}

#[inline]
pub(crate) fn prefix(buffer: &mut [u8], length: u32) -> Result<&mut [u8], Failure> {
    buffer
        .get_mut(..length as usize)
        .ok_or_else(|| Failure::Range(messages::LENGTH_OUT_OF_BOUNDS.to_owned()))
}
