//! Functions, properties and classes that native code implements.

use std::ffi::{c_int, CStr};

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use super::arguments::RawFunction;
use super::state::{state, Classes};
use super::value::{undefined, Owned, Thrown};

/// The flags of a property that is not enumerable.
pub(crate) const HIDDEN: u32 = qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_WRITABLE;

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

unsafe fn new_function(
    context: *mut JSContext,
    name: &CStr,
    function: RawFunction,
    arity: c_int,
    kind: qjs::JSCFunctionEnum,
) -> Result<Owned, Thrown> {
    unsafe {
        let function =
            qjs::JS_NewCFunction2(context, Some(function), name.as_ptr(), arity, kind, 0);
        Owned::checked(context, function)
    }
}

/// A plain function.
///
/// # Safety
/// The context is alive; `function` reads `arity` arguments at most.
pub(crate) unsafe fn plain_function(
    context: *mut JSContext,
    name: &CStr,
    function: RawFunction,
    arity: c_int,
) -> Result<Owned, Thrown> {
    unsafe {
        new_function(
            context,
            name,
            function,
            arity,
            qjs::JSCFunctionEnum_JS_CFUNC_generic,
        )
    }
}

/// A method of a prototype.
///
/// # Safety
/// As for [`plain_function`].
pub(crate) unsafe fn define_method(
    context: *mut JSContext,
    prototype: &Owned,
    name: &CStr,
    function: RawFunction,
    arity: c_int,
) -> Result<(), Thrown> {
    unsafe {
        let function = plain_function(context, name, function, arity)?;
        define_value(context, prototype, name, function, HIDDEN)
    }
}

/// A property that is read by a function.
///
/// # Safety
/// As for [`plain_function`].
pub(crate) unsafe fn define_getter(
    context: *mut JSContext,
    object: &Owned,
    name: &CStr,
    getter: RawFunction,
) -> Result<(), Thrown> {
    unsafe {
        let getter = plain_function(context, name, getter, 0)?;
        let atom = qjs::JS_NewAtom(context, name.as_ptr());
        let defined = qjs::JS_DefinePropertyGetSet(
            context,
            object.raw(),
            atom,
            getter.into_raw(),
            undefined(),
            qjs::JS_PROP_CONFIGURABLE as c_int,
        );
        qjs::JS_FreeAtom(context, atom);
        done(defined)
    }
}

/// A class that native code implements.
pub(crate) struct ClassDefinition {
    pub(crate) name: &'static CStr,
    /// Gets `new.target` in place of `this`.
    pub(crate) constructor: RawFunction,
    pub(crate) arity: c_int,
    /// Where the number of the class is kept.
    pub(crate) class: fn(&mut Classes) -> &mut qjs::JSClassID,
}

/// Defines a global class and gives its prototype.
///
/// # Safety
/// The context is new and one of `isolate.rs`.
pub(crate) unsafe fn define_class(
    context: *mut JSContext,
    definition: ClassDefinition,
) -> Result<Owned, Thrown> {
    unsafe {
        let runtime = qjs::JS_GetRuntime(context);
        let mut class: qjs::JSClassID = 0;
        qjs::JS_NewClassID(runtime, &mut class);
        let plain = qjs::JSClassDef {
            class_name: definition.name.as_ptr(),
            finalizer: None,
            gc_mark: None,
            call: None,
            exotic: std::ptr::null_mut(),
        };
        if qjs::JS_NewClass(runtime, class, &plain) < 0 {
            return Err(Thrown);
        }
        *(definition.class)(&mut state(context).classes) = class;
        let prototype = Owned::checked(context, qjs::JS_NewObject(context))?;
        let constructor = new_function(
            context,
            definition.name,
            definition.constructor,
            definition.arity,
            qjs::JSCFunctionEnum_JS_CFUNC_constructor,
        )?;
        qjs::JS_SetConstructor(context, constructor.raw(), prototype.raw());
        qjs::JS_SetClassProto(context, class, qjs::JS_DupValue(context, prototype.raw()));
        let global = Owned::new(context, qjs::JS_GetGlobalObject(context));
        define_value(context, &global, definition.name, constructor, HIDDEN)?;
        Ok(prototype)
    }
}

/// The arguments that are there, `N` at most, filled up with `undefined`: constructors are not filled up by QuickJS.
///
/// # Safety
/// There are `count` values.
pub(crate) unsafe fn filled<const N: usize>(count: c_int, values: *mut JSValue) -> [JSValue; N] {
    std::array::from_fn(|at| match at < usize::try_from(count).unwrap_or(0) {
        true => unsafe { *values.add(at) },
        false => undefined(),
    })
}

/// A new object of the class, with the prototype that `new` asks for.
///
/// # Safety
/// `new_target` is a live constructor of the context.
pub(crate) unsafe fn instance(
    context: *mut JSContext,
    new_target: JSValue,
    class: qjs::JSClassID,
) -> Result<Owned, Thrown> {
    unsafe {
        let prototype = qjs::JS_GetPropertyStr(context, new_target, c"prototype".as_ptr());
        let prototype = Owned::checked(context, prototype)?;
        let object = match prototype.is_object() {
            true => qjs::JS_NewObjectProtoClass(context, prototype.raw(), class),
            false => qjs::JS_NewObjectClass(context, class),
        };
        Owned::checked(context, object)
    }
}
