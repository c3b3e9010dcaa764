//! The virtual modules that a program imports (spec 04 §3).

use std::ffi::{c_char, c_int, c_void, CStr, CString};

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSModuleDef};

use crate::host_calls::Failure;
use crate::specifier;
use crate::sys::{self, Export, Function};

use super::globals::script;
use super::host_calls;
use super::natives::plain_function;
use super::state::{state, throw, throw_new};
use super::value::{raw, undefined, Owned, Thrown};

/// Makes imports resolve here.
///
/// # Safety
/// The runtime's contexts are those of `isolate.rs`.
pub(crate) unsafe fn set_loader(runtime: *mut qjs::JSRuntime) {
    unsafe {
        qjs::JS_SetModuleLoaderFunc(runtime, Some(resolve), Some(load), std::ptr::null_mut());
    }
}

/// Answers with the specifier itself, or throws if there is no such module.
unsafe extern "C" fn resolve(
    context: *mut JSContext,
    _base: *const c_char,
    specifier: *const c_char,
    _opaque: *mut c_void,
) -> *mut c_char {
    // SAFETY: called by QuickJS with text that ends with a zero byte; the answer is memory of its own.
    unsafe {
        if !state(context).linking {
            // Only `import()` comes this late.
            throw_new(context, |values| &values.error, "Not supported");
            return std::ptr::null_mut();
        }
        let text = CStr::from_ptr(specifier).to_string_lossy();
        match specifier::resolve(&text) {
            Ok(_) => qjs::js_strdup(context, specifier),
            Err(error) => {
                throw(context, Failure::Type(error.to_string()));
                std::ptr::null_mut()
            }
        }
    }
}

/// Makes a virtual module with the names of its exports; their values come when it is evaluated.
unsafe extern "C" fn load(
    context: *mut JSContext,
    specifier: *const c_char,
    _opaque: *mut c_void,
) -> *mut JSModuleDef {
    // SAFETY: called by QuickJS with a specifier that `resolve` gave.
    unsafe {
        let text = CStr::from_ptr(specifier).to_string_lossy();
        let Some(exports) = exports_of(&text) else {
            throw(
                context,
                Failure::Type(format!("Could not find module \"{text}\"")),
            );
            return std::ptr::null_mut();
        };
        let module = qjs::JS_NewCModule(context, specifier, Some(evaluate));
        if module.is_null() {
            return module;
        }
        for (name, _) in exports {
            let Ok(name) = CString::new(name) else {
                return std::ptr::null_mut();
            };
            qjs::JS_AddModuleExport(context, module, name.as_ptr());
        }
        module
    }
}

unsafe extern "C" fn evaluate(context: *mut JSContext, module: *mut JSModuleDef) -> c_int {
    // SAFETY: called by QuickJS with a module that `load` made.
    unsafe {
        let atom = qjs::JS_GetModuleName(context, module);
        let name = Owned::new(context, qjs::JS_AtomToString(context, atom));
        qjs::JS_FreeAtom(context, atom);
        let text = super::value::to_text(context, name.raw()).unwrap_or_default();
        let Some(exports) = exports_of(&text) else {
            return -1;
        };
        for (name, export) in exports {
            let value = match export {
                Export::Legacy(key) => legacy_export(context, key, name),
                Export::Function(function) => host_function(context, name, function),
                Export::ModuleHooks => Ok(module_hooks(context)),
            };
            let (Ok(value), Ok(name)) = (value, CString::new(name)) else {
                return -1;
            };
            qjs::JS_SetModuleExport(context, module, name.as_ptr(), value.into_raw());
        }
        0
    }
}

unsafe fn host_function(
    context: *mut JSContext,
    name: &str,
    function: Function,
) -> Result<Owned, Thrown> {
    let name = CString::new(name).map_err(|_| Thrown)?;
    unsafe { plain_function(context, &name, host_calls::function(function)) }
}

unsafe fn module_hooks(context: *mut JSContext) -> Owned {
    unsafe { Owned::share(context, raw(&state(context).values.module_hooks)) }
}

unsafe fn legacy_export(
    context: *mut JSContext,
    version: &str,
    name: &str,
) -> Result<Owned, Thrown> {
    let version = CString::new(version).map_err(|_| Thrown)?;
    let name = CString::new(name).map_err(|_| Thrown)?;
    unsafe { legacy(context)?.get(&version)?.get(&name) }
}

/// Shared by the versions 1.x; made when the first of them is imported (§10).
unsafe fn legacy(context: *mut JSContext) -> Result<Owned, Thrown> {
    const TEXT: &str = concat!(include_str!("../legacy.js"), "\0");
    unsafe {
        if let Some(legacy) = &state(context).values.legacy {
            return Ok(Owned::share(context, legacy.raw()));
        }
        let sys = Owned::checked(context, qjs::JS_NewObject(context))?;
        for (name, function) in sys::functions() {
            let value = host_function(context, name, function)?.into_raw();
            let name = CString::new(name).map_err(|_| Thrown)?;
            if qjs::JS_SetPropertyStr(context, sys.raw(), name.as_ptr(), value) < 0 {
                return Err(Thrown);
            }
        }
        let make = script(context, TEXT)?;
        let symbol = module_hooks(context);
        let mut arguments = [sys.raw(), symbol.raw()];
        let made = qjs::JS_Call(context, make.raw(), undefined(), 2, arguments.as_mut_ptr());
        let made = Owned::checked(context, made)?;
        state(context).values.legacy = Some(Owned::share(context, made.raw()));
        Ok(made)
    }
}

fn exports_of(specifier: &str) -> Option<Vec<(&'static str, Export)>> {
    sys::exports(specifier::resolve(specifier).ok()?)
}
