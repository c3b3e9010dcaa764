//! The engine: compilation, and what all instances share.

use std::panic::{catch_unwind, AssertUnwindSafe};

use lightcone_host::{
    check_stack, clock, on_own_stack, HostError, HostLimits, InstanceOptions, LoadedModule,
    ModuleEngine,
};
use wasmtime::{Config, Engine, Linker, Module, OptLevel, Strategy, WasmFeatures};

use crate::code_cache::{CodeCache, CodeCacheOptions, CodeId};
use crate::instance::WasmModule;
use crate::load::Program;
use crate::mappings::Mappings;
use crate::state::State;
use crate::waits::Waits;
use crate::{check, compilers, estimate, imports};

/// All that stable Rust, clang and the compilers of C# emit. Other features only add code that a hostile program can reach; a
/// second memory would cost four more gigabytes of addresses and its mappings for each instance.
const FEATURES: WasmFeatures = WasmFeatures::empty()
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::CALL_INDIRECT_OVERLONG)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::TAIL_CALL);

#[derive(Clone, Debug)]
pub struct WasmEngineOptions {
    /// Stack for guest code (`HostLimits::stack_bytes_max`), the same for all instances.
    pub stack_bytes_max: usize,
    /// `None` compiles a program each time that it is loaded.
    pub code_cache: Option<CodeCacheOptions>,
}

impl Default for WasmEngineOptions {
    fn default() -> Self {
        WasmEngineOptions {
            stack_bytes_max: HostLimits::default().stack_bytes_max,
            code_cache: None,
        }
    }
}

/// Compiles and runs WebAssembly programs. One per process is enough.
pub struct WasmEngine {
    engine: Engine,
    linker: Linker<State>,
    /// For instances that are suspended while a procedure waits.
    suspending: Linker<State>,
    stack_bytes_max: usize,
    code_cache: Option<CodeCache>,
    mappings: Mappings,
}

impl WasmEngine {
    pub fn new(options: WasmEngineOptions) -> Result<WasmEngine, HostError> {
        let failed = |error: wasmtime::Error| HostError::Engine(format!("{error:#}"));
        let mut config = Config::new();
        config
            .strategy(Strategy::Cranelift)
            .cranelift_opt_level(OptLevel::Speed)
            .parallel_compilation(true)
            .epoch_interruption(true)
            .max_wasm_stack(options.stack_bytes_max)
            // A suspendable call has guest code and host calls on its stack.
            .async_stack_size(options.stack_bytes_max + SUSPENDABLE_HOST_STACK_BYTES)
            // All that a 32-bit pointer can reach, with a guard behind it for constant offsets: no bounds checks.
            .memory_reservation(4 << 30)
            .memory_guard_size(32 << 20)
            .memory_may_move(false)
            .signals_based_traps(true)
            .wasm_features(FEATURES.complement(), false)
            .wasm_features(FEATURES, true)
            .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(64));
        let engine = Engine::new(&config).map_err(failed)?;
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker, Waits::Blocking).map_err(failed)?;
        let mut suspending = Linker::new(&engine);
        imports::define(&mut suspending, Waits::Suspending).map_err(failed)?;
        clock::start()
            .map_err(|error| HostError::Engine(format!("can't start the clock thread: {error}")))?;
        count_epochs(&engine);
        let code_cache = options.code_cache.as_ref().map(CodeCache::open);
        Ok(WasmEngine {
            engine,
            linker,
            suspending,
            stack_bytes_max: options.stack_bytes_max,
            code_cache: code_cache.transpose()?,
            mappings: Mappings::of_process(),
        })
    }

    /// The code of the program, cached or compiled.
    fn code(&self, program: &[u8]) -> Result<Module, HostError> {
        let Some(cache) = &self.code_cache else {
            return self.compile(program);
        };
        let id = CodeId::new(&self.engine, program);
        if let Some(module) = cache.load(&self.engine, &id) {
            return Ok(module);
        }
        let module = self.compile(program)?;
        cache.store(&id, &module);
        Ok(module)
    }

    fn compile(&self, program: &[u8]) -> Result<Module, HostError> {
        estimate::check(program, compilers::threads())?;
        // The compiler is foreign code and a program is any user's: a panic refuses one program.
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            compilers::run(|| Module::from_binary(&self.engine, program))
        }));
        match compiled {
            Ok(Ok(Ok(module))) => Ok(module),
            Ok(Ok(Err(error))) => Err(HostError::Compile(format!("{error:#}"))),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(HostError::Compile("the compiler failed on it".into())),
        }
    }
}

impl ModuleEngine for WasmEngine {
    fn name(&self) -> &'static str {
        "wasmtime"
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        check_stack(self.stack_bytes_max, &options.limits)?;
        let module = on_own_stack(self.stack_bytes_max, || {
            let module = self.code(program)?;
            check::abi_version(check::function_import_modules(&module))
                .map_err(|error| check::naming_imports(error, &module))?;
            let link = |linker: &Linker<State>| {
                let linked = linker.instantiate_pre(&module);
                linked.map_err(|error| HostError::Link(error.root_cause().to_string()))
            };
            let program = Program {
                blocking: link(&self.linker)?,
                suspending: link(&self.suspending)?,
                steps: check::exports(&module)?,
                stack_bytes_max: self.stack_bytes_max,
                mappings: self.mappings.clone(),
            };
            WasmModule::start(program, options)
        })?;
        Ok(Box::new(module))
    }
}

/// Stack of a suspendable call for host calls.
const SUSPENDABLE_HOST_STACK_BYTES: usize = 1 << 20;

/// Counts the engine's epoch while the engine lives. A call sets its deadline in ticks.
fn count_epochs(engine: &Engine) {
    let engine = engine.weak();
    clock::every_tick(move |tick| match engine.upgrade() {
        Some(engine) => {
            for _ in 0..tick.passed {
                engine.increment_epoch();
            }
            true
        }
        None => false,
    });
}
