//! The engine for builds without V8: QuickJS (the `quickjs-ng` that crate `rquickjs-sys` brings), an interpreter in C.
//!
//! # How a faulty module is contained
//!
//! | fault | what stops it |
//! |---|---|
//! | endless loop | QuickJS asks the [interrupt handler](isolate) every few thousand jumps and calls |
//! | endless recursion | `stack-bytes-max`: a RangeError, as in other engines |
//! | endless allocation | `memory-bytes-max`, see [`heap`] |
//! | endless promise jobs | they run under the same clock |
//! | endless handles, console output | the limits in `HostLimits` |
//! | wrong arguments for host functions | every one is checked ([`arguments`]) |
//! | detached or shrunk buffers | a buffer's bytes are looked up in each call and never kept |
//!
//! Code of QuickJS itself that runs long without asking (a search through an array of 2^53 holes, say) is the exception:
//! it is stopped only where it comes back.
//!
//! # Unsafe code
//! QuickJS is used through its C interface, so most functions here are `unsafe`: they rely on a live context of `isolate.rs`,
//! on values being owned by [`value::Owned`] or by their caller, and on nobody borrowing the state while JavaScript runs.
//! What a block needs beyond that stands at the block.

mod arguments;
mod globals;
mod heap;
mod hooks;
mod host_calls;
mod instance;
mod isolate;
mod modules;
mod numbers;
mod room;
mod stack;
mod state;
mod text;
mod value;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use lightcone_host::{
    HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
};

use crate::program::ProgramText;
use crate::JsEngineOptions;
use instance::QuickJsInstance;

/// The engine's name and version.
pub fn name() -> String {
    // SAFETY: QuickJS answers with a constant.
    let version = unsafe { std::ffi::CStr::from_ptr(rquickjs_sys::JS_GetVersion()) };
    format!("QuickJS {}", version.to_string_lossy())
}

/// Runs JavaScript modules in QuickJS.
pub struct QuickJsEngine {
    stack_bytes_max: usize,
}

impl QuickJsEngine {
    /// Sets up the engine.
    pub fn new(options: JsEngineOptions) -> Result<QuickJsEngine, HostError> {
        Ok(QuickJsEngine {
            stack_bytes_max: options.stack_bytes_max,
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
        // The threads that call the module were sized for this limit.
        if options.limits.stack_bytes_max < self.stack_bytes_max {
            return Err(HostError::Engine(format!(
                "it was made for stacks of {} bytes, and an instance may have {} only",
                self.stack_bytes_max, options.limits.stack_bytes_max
            )));
        }
        let program = Arc::new(ProgramText::read(program)?);
        let stack_bytes_max = self.stack_bytes_max;
        on_own_stack(stack_bytes_max, || {
            let env = HostEnv::new(options.clone());
            let mut instance = QuickJsInstance::start(&program, env, stack_bytes_max)?;
            let description = instance.describe()?;
            Ok(Box::new(QuickJsModule {
                program: program.clone(),
                stack_bytes_max,
                description,
                first: Mutex::new(Some(instance)),
            }) as Box<dyn LoadedModule>)
        })
    }
}

/// A program that loaded.
struct QuickJsModule {
    program: Arc<ProgramText>,
    stack_bytes_max: usize,
    description: Vec<u8>,
    /// The instance of the load, until someone wants it.
    first: Mutex<Option<QuickJsInstance>>,
}

impl LoadedModule for QuickJsModule {
    fn describe(&self) -> &[u8] {
        &self.description
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let first = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut instance) = first {
            instance.adopt(env);
            return Ok(Box::new(instance));
        }
        let instance = on_own_stack(self.stack_bytes_max, || {
            QuickJsInstance::start(&self.program, env, self.stack_bytes_max)
        })?;
        Ok(Box::new(instance))
    }
}

/// What the host's side of a call may need besides the module's stack.
const HOST_STACK_BYTES: usize = 4 << 20;

/// Runs the load phase on a thread that has the stack for it, whoever asked for it.
fn on_own_stack<R: Send>(
    stack_bytes_max: usize,
    body: impl FnOnce() -> Result<R, HostError> + Send,
) -> Result<R, HostError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("lc-js-load".into())
            .stack_size(stack_bytes_max.saturating_add(HOST_STACK_BYTES))
            .spawn_scoped(scope, body)
            .map_err(|error| HostError::Engine(format!("can't start a thread: {error}")))?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
