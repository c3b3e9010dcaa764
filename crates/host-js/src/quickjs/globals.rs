//! The globals that are not of the language (spec 04 §2).

use std::ffi::{c_int, CString};

use rquickjs_sys as qjs;
use rquickjs_sys::JSContext;

use crate::scope::CALL_BUFFER_BYTES;
use crate::sys;

use super::host_calls::{function, TEXT_DECODE, TEXT_ENCODE};
use super::natives::{define_value, done, plain_function};
use super::state::{state, Values};
use super::strings::VIEW_PARTS;
use super::value::{self, undefined, Owned, Thrown};

/// As on V8: a script that returns a function of the natives `encode` and `decode`.
const PRELUDE: &str = concat!(include_str!("../prelude.js"), "\0");
const GLOBALS: &str = concat!(include_str!("globals.js"), "\0");

/// Sets up the globals of a new context, and the values that the host keeps.
///
/// # Safety
/// The context is new and one of `isolate.rs`.
pub(crate) unsafe fn define(context: *mut JSContext) -> Result<(), Thrown> {
    unsafe {
        let global = Owned::new(context, qjs::JS_GetGlobalObject(context));
        remember(context, &global)?;
        let encode = plain_function(context, c"encode", TEXT_ENCODE)?;
        let decode = plain_function(context, c"decode", TEXT_DECODE)?;
        let prelude = script(context, PRELUDE)?;
        let mut natives = [encode.raw(), decode.raw()];
        let done = qjs::JS_Call(context, prelude.raw(), undefined(), 2, natives.as_mut_ptr());
        Owned::checked(context, done)?;
        script(context, GLOBALS)?;
        extras(context, &global)
    }
}

unsafe fn remember(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    unsafe {
        let description = CString::new(sys::MODULE_HOOKS).map_err(|_| Thrown)?;
        let symbol = qjs::JS_NewSymbol(context, description.as_ptr(), false);
        let buffer = call_buffer(context)?;
        let values = Values {
            error: Some(global.get(c"Error")?),
            type_error: Some(global.get(c"TypeError")?),
            range_error: Some(global.get(c"RangeError")?),
            data_view: Some(global.get(c"DataView")?),
            join_words: Some(script(context, super::numbers::JOIN_WORDS)?),
            view_parts: Some(script(context, VIEW_PARTS)?),
            module_hooks: Some(Owned::checked(context, symbol)?),
            ..Values::default()
        };
        let state = state(context);
        state.array_buffer_class = qjs::JS_GetClassID(buffer.raw());
        *state.values = Values {
            arguments: Some(buffer),
            ..values
        };
        Ok(())
    }
}

/// A buffer that the host writes calls to.
unsafe fn call_buffer(context: *mut JSContext) -> Result<Owned, Thrown> {
    let zeros = [0; CALL_BUFFER_BYTES];
    let size = CALL_BUFFER_BYTES as qjs::size_t;
    unsafe {
        let buffer = qjs::JS_NewArrayBufferCopy(context, zeros.as_ptr(), size);
        Owned::checked(context, buffer)
    }
}

/// Runs a script of ours; the text ends with a zero byte.
///
/// # Safety
/// The context is alive.
pub(crate) unsafe fn script(context: *mut JSContext, text: &str) -> Result<Owned, Thrown> {
    let length = text.len() - 1;
    unsafe {
        let result = qjs::JS_Eval(
            context,
            text.as_ptr().cast(),
            length as qjs::size_t,
            c"lightcone".as_ptr(),
            (qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_STRICT) as c_int,
        );
        Owned::checked(context, result)
    }
}

/// The optional functions of this host (docs/js-abi.md).
unsafe fn extras(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    unsafe {
        let object = Owned::checked(context, qjs::JS_NewObject(context))?;
        let version = Owned::new(context, value::number(1));
        define_value(context, &object, c"version", version, CONSTANT)?;
        for (name, extra) in sys::extra_functions() {
            let name = CString::new(name).map_err(|_| Thrown)?;
            let extra = plain_function(context, &name, function(extra))?;
            define_value(context, &object, &name, extra, CONSTANT)?;
        }
        let buffer = call_buffer(context)?;
        state(context).values.direct = Some(Owned::share(context, buffer.raw()));
        define_value(context, &object, c"callBuffer", buffer, CONSTANT)?;
        let key = CString::new(sys::EXTRAS).map_err(|_| Thrown)?;
        let symbol = qjs::JS_NewSymbol(context, key.as_ptr(), true);
        let symbol = Owned::checked(context, symbol)?;
        let atom = qjs::JS_ValueToAtom(context, symbol.raw());
        let defined =
            qjs::JS_DefinePropertyValue(context, global.raw(), atom, object.into_raw(), 0);
        qjs::JS_FreeAtom(context, atom);
        done(defined)
    }
}

/// Enumerable, and constant.
const CONSTANT: u32 = qjs::JS_PROP_ENUMERABLE;
