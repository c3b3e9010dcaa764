//! The engine on V8.
//!
//! | file | what |
//! |---|---|
//! | [`engine`](self) | the platform, loading |
//! | `isolate` | one isolate with its context: entered, left, stopped |
//! | `loading` | globals, evaluation |
//! | `realm`, `scope` | what calls need of an engine ([`crate::instance`], [`crate::invoke`]) |
//! | `imports` | the host functions, in their general form |
//! | `fast` | the same, called by optimized code without leaving it |
//! | [`crate::host_calls`] | what both of them do |
//! | `failures` | what they throw |
//! | `values` | checks of arguments |
//! | `state`, `call_buffers` | the state that host functions use; the buffers that the host writes calls to |
//! | `exception` | what was thrown, in words and frames |
//! | `memory` | limits on the heap and on array buffers |
//! | `watchdog` | what stops endless loops |
//!
//! # How a faulty module is contained
//!
//! | fault | what stops it |
//! |---|---|
//! | exception, wrong argument | an exception; the isolate stays |
//! | endless loop | the watchdog ends the call; the isolate stays |
//! | endless recursion | `stack-bytes-max`: a RangeError that the module may catch |
//! | endless allocation | `memory-bytes-max`: the call ends and the isolate is replaced; array buffers beyond it are a RangeError |
//! | memory that no limit sees | removed (`restrict.js`); a module that gets it all the same loses the call and the isolate |
//! | use of the host that no errno covers | the call ends; no code of the module runs any more in it (§5.3) |
//!
//! # Without `deno_core`
//!
//! The crate `v8` is used as it is. A module needs no event loop, ops or extensions, a call is synchronous, and `deno_core` would add
//! scopes, queues and a tokio runtime to each isolate. A call pays for entering the isolate, one handle scope and the call itself.
//!
//! # Threads
//!
//! V8 takes the stack limit of an isolate from the thread that made it and from a flag of the process (so the first engine
//! of a process decides). So an isolate is used by that thread only: an instance
//! makes its isolate when a thread calls it first ([`ModuleInstance::prepare`]), and makes a new one if it moves.

mod call_buffers;
mod exception;
mod failures;
mod fast;
mod imports;
mod isolate;
mod loading;
mod memory;
mod realm;
mod scope;
mod state;
mod strings;
mod values;
mod watchdog;

use std::sync::{Arc, Once};

use lightcone_host::{
    clock, on_own_stack, HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine,
    ModuleInstance,
};

use crate::instance::JsInstance;
use crate::options::JsEngineOptions;
use crate::program::ProgramText;
use isolate::Isolate;
use realm::V8Realm;

pub fn name() -> String {
    format!("V8 {}", ::v8::V8::get_version())
}

/// Host calls of compiled code that ended in an exception, in this process.
pub fn fast_failures() -> u64 {
    fast::failures()
}

pub struct V8Engine(JsEngineOptions);

impl V8Engine {
    /// Sets up V8 for the whole process and starts the clock.
    pub fn new(options: JsEngineOptions) -> Result<V8Engine, HostError> {
        static PLATFORM: Once = Once::new();
        PLATFORM.call_once(|| {
            // Frames of an uncaught exception cost nothing before; the reference keeps 1024.
            let stack_kib = (options.stack_bytes_max + HOST_FRAMES_BYTES) >> 10;
            ::v8::V8::set_flags_from_string(&format!(
                "--stack-trace-limit=1024 --turbo-fast-api-calls --stack-size={stack_kib} --wasm-max-mem-pages=0"
            ));
            ::v8::icu::set_default_locale("en-001");
            let platform = ::v8::new_unprotected_default_platform(PLATFORM_THREADS, false);
            ::v8::V8::initialize_platform(platform.make_shared());
            ::v8::V8::initialize();
        });
        clock::start()
            .map_err(|error| HostError::Engine(format!("can't start the clock thread: {error}")))?;
        Ok(V8Engine(options))
    }
}

/// For compilation and garbage collection of all isolates. (Isolates are made on many threads that are not descendants of the first
/// one, hence the "unprotected" platform.)
const PLATFORM_THREADS: u32 = 2;

/// V8 counts from the start of the thread's stack; the host's frames above a call are granted on top.
const HOST_FRAMES_BYTES: usize = 128 << 10;

impl ModuleEngine for V8Engine {
    fn name(&self) -> &'static str {
        "v8"
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        let program = Arc::new(ProgramText::read(program)?);
        let memory_bytes_max = self.0.memory_bytes_max;
        let description = on_own_stack(self.0.stack_bytes_max, || {
            let env = HostEnv::new(options.clone()).with_memory_max(memory_bytes_max);
            Isolate::new(&program, env)?.describe()
        })?;
        Ok(Box::new(V8Module {
            program,
            description,
            memory_bytes_max,
        }))
    }
}

struct V8Module {
    program: Arc<ProgramText>,
    description: Vec<u8>,
    memory_bytes_max: Option<usize>,
}

impl LoadedModule for V8Module {
    fn describe(&self) -> &[u8] {
        &self.description
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let env = env.with_memory_max(self.memory_bytes_max);
        let realm = V8Realm::new(self.program.clone(), env);
        Ok(Box::new(JsInstance::new(realm)))
    }
}
