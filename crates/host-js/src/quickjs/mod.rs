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

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::{
    on_own_stack, HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
};

use crate::instance::JsInstance;
use crate::options::JsEngineOptions;
use crate::program::ProgramText;
use realm::QuickJsRealm;

pub fn name() -> String {
    // SAFETY: QuickJS answers with a constant.
    let version = unsafe { std::ffi::CStr::from_ptr(rquickjs_sys::JS_GetVersion()) };
    format!("QuickJS {}", version.to_string_lossy())
}

pub struct QuickJsEngine {
    stack_bytes_max: usize,
    memory_bytes_max: Option<usize>,
}

impl QuickJsEngine {
    pub fn new(options: JsEngineOptions) -> Result<QuickJsEngine, HostError> {
        Ok(QuickJsEngine {
            stack_bytes_max: options.stack_bytes_max,
            memory_bytes_max: options.memory_bytes_max,
        })
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
        // The threads that call the module have stacks for this limit.
        if options.limits.stack_bytes_max < self.stack_bytes_max {
            return Err(HostError::Engine(format!(
                "it was made for stacks of {} bytes, and an instance may have {} only",
                self.stack_bytes_max, options.limits.stack_bytes_max
            )));
        }
        let program = Arc::new(ProgramText::read(program)?);
        let stack_bytes_max = self.stack_bytes_max;
        on_own_stack(stack_bytes_max, || {
            let env = HostEnv::new(options.clone()).with_memory_max(self.memory_bytes_max);
            let mut realm = QuickJsRealm::start(&program, env, stack_bytes_max)?;
            let description = realm.describe()?;
            Ok(Box::new(QuickJsModule {
                program: program.clone(),
                stack_bytes_max,
                memory_bytes_max: self.memory_bytes_max,
                description,
                first: Mutex::new(Some(realm)),
            }) as Box<dyn LoadedModule>)
        })
    }
}

struct QuickJsModule {
    program: Arc<ProgramText>,
    stack_bytes_max: usize,
    memory_bytes_max: Option<usize>,
    description: Vec<u8>,
    /// The isolate of the load phase, until it is taken.
    first: Mutex<Option<QuickJsRealm>>,
}

impl LoadedModule for QuickJsModule {
    fn describe(&self) -> &[u8] {
        &self.description
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let env = env.with_memory_max(self.memory_bytes_max);
        let first = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut realm) = first {
            realm.adopt(env);
            return Ok(Box::new(JsInstance::new(realm)));
        }
        let realm = on_own_stack(self.stack_bytes_max, || {
            QuickJsRealm::start(&self.program, env, self.stack_bytes_max)
        })?;
        Ok(Box::new(JsInstance::new(realm)))
    }
}
