//! The virtual modules that a program imports (spec 04 §3).

use std::ffi::{c_char, c_int, c_void, CStr, CString};

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSModuleDef};

use crate::specifier;
use crate::sys::{self, Function};

use super::globals::plain_function;
use super::host_calls;
use super::state::{state, throw, Failure};
use super::value::Owned;

/// Name under which the symbol is exported.
const MODULE_HOOKS: &CStr = c"moduleHooks";

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
            throw(context, Failure::Plain("Not supported"));
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
        for name in exports.names() {
            qjs::JS_AddModuleExport(context, module, name.as_ptr());
        }
        module
    }
}

/// Gives the exports their values.
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
        if exports.module_hooks {
            let symbol = state(context).values.module_hooks.as_ref().map(Owned::raw);
            let symbol = qjs::JS_DupValue(context, symbol.unwrap_or(qjs::JS_UNDEFINED));
            qjs::JS_SetModuleExport(context, module, MODULE_HOOKS.as_ptr(), symbol);
        }
        for (name, function) in exports.functions {
            let Ok(name) = CString::new(*name) else {
                return -1;
            };
            let (function, arity) = host_calls::function(*function);
            let Ok(function) = plain_function(context, &name, function, arity) else {
                return -1;
            };
            qjs::JS_SetModuleExport(context, module, name.as_ptr(), function.into_raw());
        }
        0
    }
}

/// What a virtual module has.
struct Exports {
    module_hooks: bool,
    functions: &'static [(&'static str, Function)],
}

impl Exports {
    fn names(&self) -> impl Iterator<Item = CString> + '_ {
        let hooks = self.module_hooks.then(|| MODULE_HOOKS.to_owned());
        let functions = self.functions.iter();
        hooks
            .into_iter()
            .chain(functions.filter_map(|(name, _)| CString::new(*name).ok()))
    }
}

fn exports_of(specifier: &str) -> Option<Exports> {
    let version = specifier::resolve(specifier).ok()?;
    let (module_hooks, functions) = match (version.major, version.minor) {
        (2, 0) => (true, sys::SYS_2_0),
        (2, 1) => (false, sys::SYS_2_1),
        _ => return None,
    };
    Some(Exports {
        module_hooks,
        functions,
    })
}
