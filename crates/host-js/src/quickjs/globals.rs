//! The globals that are not of the language (spec 04 §2).

use std::ffi::{c_int, CStr};

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::scope::CALL_BUFFER_BYTES;

use super::arguments::host_function;
use super::host_calls;
use super::natives::{
    define_class, define_getter, define_method, define_value, done, filled, instance,
    plain_function, ClassDefinition, HIDDEN,
};
use super::state::{state, Failure};
use super::strings;
use super::value::{self, undefined, Owned, Thrown};

/// Sets up the globals of a new context, and the values that the host keeps.
///
/// # Safety
/// The context is new and one of `isolate.rs`.
pub(crate) unsafe fn define(context: *mut JSContext) -> Result<(), Thrown> {
    unsafe {
        let global = Owned::new(context, qjs::JS_GetGlobalObject(context));
        remember(context, &global)?;
        strings::define(context)?;
        math_random(context, &global)?;
        console(context, &global)?;
        finalization_registry(context)?;
        extras(context, &global)?;
        remove(context, &global, c"queueMicrotask")?;
        // QuickJS writes ten frames by default, and 64 at most.
        let error = global.get(c"Error")?;
        set(context, &error, c"stackTraceLimit", value::number(64))
    }
}

unsafe fn remember(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    unsafe {
        let error = global.get(c"Error")?;
        let type_error = global.get(c"TypeError")?;
        let range_error = global.get(c"RangeError")?;
        let data_view = global.get(c"DataView")?;
        let join_words = script(context, super::numbers::JOIN_WORDS)?;
        let view_parts = script(context, strings::VIEW_PARTS)?;
        let description = CStr::from_bytes_until_nul(MODULE_HOOKS.as_bytes()).unwrap_or_default();
        let symbol = qjs::JS_NewSymbol(context, description.as_ptr(), false);
        let module_hooks = Owned::checked(context, symbol)?;
        let buffer = call_buffer(context)?;
        let state = state(context);
        state.classes.array_buffer = qjs::JS_GetClassID(buffer.raw());
        state.values.arguments = Some(buffer);
        state.values.error = Some(error);
        state.values.type_error = Some(type_error);
        state.values.range_error = Some(range_error);
        state.values.data_view = Some(data_view);
        state.values.join_words = Some(join_words);
        state.values.view_parts = Some(view_parts);
        state.values.module_hooks = Some(module_hooks);
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

/// [`crate::sys::MODULE_HOOKS`] for C.
const MODULE_HOOKS: &str = "SpacetimeDB.moduleHooks.v2\0";

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

unsafe fn set(
    context: *mut JSContext,
    object: &Owned,
    name: &CStr,
    value: JSValue,
) -> Result<(), Thrown> {
    match unsafe { qjs::JS_SetPropertyStr(context, object.raw(), name.as_ptr(), value) } {
        1.. => Ok(()),
        _ => Err(Thrown),
    }
}

unsafe fn remove(context: *mut JSContext, object: &Owned, name: &CStr) -> Result<(), Thrown> {
    unsafe {
        let atom = qjs::JS_NewAtom(context, name.as_ptr());
        let removed = qjs::JS_DeleteProperty(context, object.raw(), atom, 0);
        qjs::JS_FreeAtom(context, atom);
        done(removed)
    }
}

unsafe fn math_random(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    unsafe { define_getter(context, &global.get(c"Math")?, c"random", no_random) }
}

unsafe extern "C" fn no_random(
    context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS.
    unsafe {
        host_function(context, values, |_| {
            Err(Failure::Type(
                "Math.random is not available in SpacetimeDB modules. Use ctx.random instead."
                    .to_owned(),
            ))
        })
    }
}

/// A `console` whose methods do nothing; the library replaces it.
unsafe fn console(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    const METHODS: &[&CStr] = &[
        c"assert",
        c"clear",
        c"count",
        c"countReset",
        c"debug",
        c"dir",
        c"dirxml",
        c"error",
        c"group",
        c"groupCollapsed",
        c"groupEnd",
        c"info",
        c"log",
        c"table",
        c"time",
        c"timeEnd",
        c"timeLog",
        c"trace",
        c"warn",
    ];
    unsafe {
        let console = Owned::checked(context, qjs::JS_NewObject(context))?;
        for name in METHODS {
            define_method(context, &console, name, nothing, 0)?;
        }
        define_value(context, global, c"console", console, HIDDEN)
    }
}

unsafe extern "C" fn nothing(
    _context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    _values: *mut JSValue,
) -> JSValue {
    undefined()
}

/// The optional functions of this host (docs/js-abi.md).
unsafe fn extras(context: *mut JSContext, global: &Owned) -> Result<(), Thrown> {
    unsafe {
        let object = Owned::checked(context, qjs::JS_NewObject(context))?;
        let version = Owned::new(context, value::number(1));
        define_value(context, &object, c"version", version, CONSTANT)?;
        for (name, function, arity) in host_calls::EXTRAS {
            let function = plain_function(context, name, function, arity)?;
            define_value(context, &object, name, function, CONSTANT)?;
        }
        let buffer = call_buffer(context)?;
        state(context).values.direct = Some(Owned::share(context, buffer.raw()));
        define_value(context, &object, c"callBuffer", buffer, CONSTANT)?;
        let symbol = qjs::JS_NewSymbol(context, EXTRAS.as_ptr(), true);
        let symbol = Owned::checked(context, symbol)?;
        let atom = qjs::JS_ValueToAtom(context, symbol.raw());
        let defined =
            qjs::JS_DefinePropertyValue(context, global.raw(), atom, object.into_raw(), 0);
        qjs::JS_FreeAtom(context, atom);
        done(defined)
    }
}

/// [`crate::sys::EXTRAS`] for C.
const EXTRAS: &CStr = c"lightcone.sys.1";
/// Enumerable, and constant.
const CONSTANT: u32 = qjs::JS_PROP_ENUMERABLE;

/// A `FinalizationRegistry` that never calls back, as the language allows. Host handles are closed at the end of each call; a late
/// callback could hit a reused handle.
unsafe fn finalization_registry(context: *mut JSContext) -> Result<(), Thrown> {
    unsafe {
        let prototype = define_class(
            context,
            ClassDefinition {
                name: c"FinalizationRegistry",
                constructor: registry_new,
                arity: 1,
                class: |classes| &mut classes.finalization_registry,
            },
        )?;
        define_method(context, &prototype, c"register", register, 2)?;
        define_method(context, &prototype, c"unregister", unregister, 1)
    }
}

unsafe extern "C" fn registry_new(
    context: *mut JSContext,
    new_target: JSValue,
    count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS.
    unsafe {
        let [cleanup] = filled(count, values);
        host_function(context, values, |call| {
            if !qjs::JS_IsFunction(context, cleanup) {
                return Err(Failure::Type(
                    "FinalizationRegistry: cleanup must be callable".to_owned(),
                ));
            }
            let class = call.state().classes.finalization_registry;
            Ok(instance(context, new_target, class)?.into_raw())
        })
    }
}

unsafe extern "C" fn register(
    context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS, which fills up two arguments.
    unsafe {
        let target = qjs::JS_VALUE_GET_TAG(*values);
        if target == qjs::JS_TAG_OBJECT || target == qjs::JS_TAG_SYMBOL {
            return undefined();
        }
        host_function(context, values, |_| {
            Err(Failure::Type(
                "FinalizationRegistry.prototype.register: invalid target".to_owned(),
            ))
        })
    }
}

unsafe extern "C" fn unregister(
    _context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    _values: *mut JSValue,
) -> JSValue {
    qjs::JS_FALSE
}
