//! The engine for builds without V8: QuickJS (the `quickjs-ng` that crate `rquickjs-sys` brings), an interpreter in C.
//!
//! # How a faulty module is contained
//!
//! | fault | what stops it |
//! |---|---|
//! | endless loop | QuickJS calls the [interrupt handler](isolate) every few thousand jumps and calls |
//! | endless recursion | `stack-bytes-max`: a RangeError, as in other engines |
//! | endless allocation | `memory-bytes-max`, see [`heap`] |
//! | endless promise jobs | they run under the same clock |
//! | endless handles, console output | the limits in `HostLimits` |
//! | wrong arguments for host functions | every one is checked ([`arguments`]) |
//! | detached or shrunk buffers | a buffer's bytes are looked up in each call and never kept |
//!
//! The exception is code of QuickJS itself that runs long without calling the handler (a search through an array of 2^53 holes,
//! say): it is stopped only where it returns.
//!
//! # Unsafe code
//! QuickJS is used through its C interface, so most functions here are `unsafe`: they rely on a live context of `isolate.rs`,
//! on values being owned by [`value::Owned`] or by their caller, and on the state not being borrowed while JavaScript runs.
//! Other needs of a block stand at the block.

mod arguments;
mod globals;
mod heap;
mod host_calls;
mod isolate;
mod loading;
mod modules;
mod natives;
mod numbers;
mod realm;
mod scope;
mod stack_size;
mod stack_trace;
mod state;
mod strings;
mod value;

use std::sync::Arc;

use lightcone_host::{
    check_stack, on_own_stack, HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine,
    ModuleInstance,
};
use parking_lot::Mutex;

use crate::instance::JsInstance;
use crate::options::JsEngineOptions;
use crate::program::ProgramText;
use realm::QuickJsRealm;

pub fn name() -> String {
    // SAFETY: QuickJS answers with a constant.
    let version = unsafe { std::ffi::CStr::from_ptr(rquickjs_sys::JS_GetVersion()) };
    format!("QuickJS {}", version.to_string_lossy())
}

pub struct QuickJsEngine(JsEngineOptions);

impl QuickJsEngine {
    pub fn new(options: JsEngineOptions) -> Result<QuickJsEngine, HostError> {
        Ok(QuickJsEngine(options))
    }
}

impl ModuleEngine for QuickJsEngine {
    fn name(&self) -> &'static str {
        "quickjs"
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        check_stack(self.0.stack_bytes_max, &options.limits)?;
        let program = Arc::new(ProgramText::read(program)?);
        on_own_stack(self.0.stack_bytes_max, || {
            let env = HostEnv::new(options.clone()).with_memory_max(self.0.memory_bytes_max);
            let mut realm = QuickJsRealm::start(&program, env, self.0.stack_bytes_max)?;
            let description = realm.describe()?;
            Ok(Box::new(QuickJsModule {
                program: program.clone(),
                options: self.0.clone(),
                description,
                first: Mutex::new(Some(realm)),
            }) as Box<dyn LoadedModule>)
        })
    }
}

struct QuickJsModule {
    program: Arc<ProgramText>,
    options: JsEngineOptions,
    description: Vec<u8>,
    /// The isolate of the load phase, until it is taken.
    first: Mutex<Option<QuickJsRealm>>,
}

impl LoadedModule for QuickJsModule {
    fn describe(&self) -> &[u8] {
        &self.description
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let env = env.with_memory_max(self.options.memory_bytes_max);
        let stack_bytes_max = self.options.stack_bytes_max;
        let first = self.first.lock().take();
        if let Some(mut realm) = first {
            realm.adopt(env);
            return Ok(Box::new(JsInstance::new(realm)));
        }
        let realm = on_own_stack(stack_bytes_max, || {
            QuickJsRealm::start(&self.program, env, stack_bytes_max)
        })?;
        Ok(Box::new(JsInstance::new(realm)))
    }
}
