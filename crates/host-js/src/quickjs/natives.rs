//! Functions and properties that native code implements.

use std::ffi::{c_int, CStr};

use rquickjs_sys as qjs;
use rquickjs_sys::JSContext;

use super::arguments::RawFunction;
use super::value::{Owned, Thrown};

/// Defines a property.
///
/// # Safety
/// The context is alive.
pub(crate) unsafe fn define_value(
    context: *mut JSContext,
    object: &Owned,
    name: &CStr,
    value: Owned,
    flags: u32,
) -> Result<(), Thrown> {
    let (object, name, value) = (object.raw(), name.as_ptr(), value.into_raw());
    done(unsafe { qjs::JS_DefinePropertyValueStr(context, object, name, value, flags as c_int) })
}

/// Checks the result of an engine's function that returns no value.
pub(crate) fn done(result: c_int) -> Result<(), Thrown> {
    match result {
        0.. => Ok(()),
        _ => Err(Thrown),
    }
}

/// A function, with its number of parameters.
///
/// # Safety
/// The context is alive; the function reads so many arguments at most.
pub(crate) unsafe fn plain_function(
    context: *mut JSContext,
    name: &CStr,
    (function, arity): (RawFunction, c_int),
) -> Result<Owned, Thrown> {
    let kind = qjs::JSCFunctionEnum_JS_CFUNC_generic;
    unsafe {
        let function =
            qjs::JS_NewCFunction2(context, Some(function), name.as_ptr(), arity, kind, 0);
        Owned::checked(context, function)
    }
}
