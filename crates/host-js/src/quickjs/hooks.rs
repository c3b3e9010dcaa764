//! The hooks that a program hands over (spec 04 §6).

use rquickjs_sys as qjs;
use rquickjs_sys::JSContext;

use crate::sys::{
    HOOKS_REQUIRED, HOOK_CALL_PROCEDURE_DIRECT, HOOK_CALL_REDUCER_DIRECT, HOOK_HTTP_HANDLER,
};
use crate::texts;

use super::state::{state, throw, Failure, Hooks};
use super::value::{array_bytes, kind, undefined, Owned, Thrown};

/// Why there are no hooks.
pub(crate) enum Missing {
    /// For this reason.
    Text(&'static str),
    /// An exception is pending.
    Thrown,
}

impl From<Thrown> for Missing {
    fn from(_: Thrown) -> Self {
        Missing::Thrown
    }
}

/// Finds the hooks of an evaluated program and keeps them in the state.
///
/// # Safety
/// The context is one of `isolate.rs`, and its state is not borrowed.
pub(crate) unsafe fn find(context: *mut JSContext, namespace: &Owned) -> Result<(), Missing> {
    unsafe {
        let schema = namespace.get(c"default")?;
        if schema.is_nullish() {
            return Err(Missing::Text(texts::NO_DEFAULT_EXPORT));
        }
        if !schema.is_object() {
            return Err(Missing::Text(texts::DEFAULT_EXPORT_NO_OBJECT));
        }
        let symbol = state(context).values.module_hooks.as_ref().map(Owned::raw);
        let atom = qjs::JS_ValueToAtom(context, symbol.unwrap_or(undefined()));
        let function = qjs::JS_GetProperty(context, schema.raw(), atom);
        qjs::JS_FreeAtom(context, atom);
        let function = Owned::checked(context, function)?;
        if !function.is_function() {
            let kind = kind(context, function.raw());
            return Err(type_error(context, texts::expected_hooks_function(&kind)));
        }
        let mut arguments = [namespace.raw()];
        let object = qjs::JS_Call(
            context,
            function.raw(),
            schema.raw(),
            1,
            arguments.as_mut_ptr(),
        );
        let object = Owned::checked(context, object)?;
        if !object.is_object() {
            let kind = kind(context, object.raw());
            return Err(type_error(context, texts::expected_hooks_object(&kind)));
        }
        let hooks = read(context, object)?;
        let before = std::mem::replace(&mut *state(context).hooks, hooks);
        drop(before);
        Ok(())
    }
}

unsafe fn type_error(context: *mut JSContext, text: String) -> Missing {
    unsafe { throw(context, Failure::Type(text)) };
    Missing::Thrown
}

unsafe fn read(context: *mut JSContext, object: Owned) -> Result<Hooks, Missing> {
    let mut hooks = Hooks::default();
    for name in HOOKS_REQUIRED {
        let hook = unsafe { function(context, &object, name, false) }?;
        match *name {
            "__describe_module__" => hooks.describe_module = hook,
            "__get_error_constructor__" => hooks.get_error_constructor = hook,
            "__sender_error_class__" => hooks.sender_error_class = hook,
            "__call_reducer__" => hooks.call_reducer = hook,
            "__call_procedure__" => hooks.call_procedure = hook,
            // Views are not called yet.
            _ => {}
        }
    }
    hooks.call_http_handler = unsafe { function(context, &object, HOOK_HTTP_HANDLER, true) }?;
    let direct = unsafe { property(context, &object, HOOK_CALL_REDUCER_DIRECT) }?;
    hooks.call_reducer_direct = Some(direct).filter(Owned::is_function);
    let direct = unsafe { property(context, &object, HOOK_CALL_PROCEDURE_DIRECT) }?;
    hooks.call_procedure_direct = Some(direct).filter(Owned::is_function);
    hooks.object = Some(object);
    Ok(hooks)
}

unsafe fn property(context: *mut JSContext, object: &Owned, name: &str) -> Result<Owned, Thrown> {
    unsafe {
        let atom = qjs::JS_NewAtomLen(context, name.as_ptr().cast(), name.len() as qjs::size_t);
        let value = qjs::JS_GetProperty(context, object.raw(), atom);
        qjs::JS_FreeAtom(context, atom);
        Owned::checked(context, value)
    }
}

unsafe fn function(
    context: *mut JSContext,
    object: &Owned,
    name: &str,
    optional: bool,
) -> Result<Option<Owned>, Missing> {
    unsafe {
        let hook = property(context, object, name)?;
        if optional && hook.is_nullish() {
            return Ok(None);
        }
        if !hook.is_function() {
            let kind = kind(context, hook.raw());
            return Err(type_error(context, texts::expected_hook(name, &kind)));
        }
        Ok(Some(hook))
    }
}

/// Calls `__describe_module__`.
///
/// # Safety
/// As for [`find`].
pub(crate) unsafe fn describe(context: *mut JSContext) -> Result<Vec<u8>, Thrown> {
    unsafe {
        let hooks = &state(context).hooks;
        let hook = hooks.describe_module.as_ref().map(Owned::raw);
        let this = hooks.object.as_ref().map(Owned::raw);
        let (hook, this) = (hook.unwrap_or(undefined()), this.unwrap_or(undefined()));
        let result = qjs::JS_Call(context, hook, this, 0, std::ptr::null_mut());
        let result = Owned::checked(context, result)?;
        match array_bytes(context, result.raw()) {
            Some(definition) => Ok(definition.to_vec()),
            None => {
                let kind = kind(context, result.raw());
                let text = format!("Expected `Uint8Array` from `__describe_module__`, got {kind}");
                throw(context, Failure::Type(text));
                Err(Thrown)
            }
        }
    }
}
