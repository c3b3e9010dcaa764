//! From a linked program to an instance: the load phase (spec 03 §3.1).

use lightcone_host::{HostEnv, HostError};
use wasmtime::{Instance, InstancePre, Store, WasmParams, WasmResults};

use crate::check::LoadSteps;
use crate::exports::load_error;
use crate::mappings::Mappings;
use crate::state::State;
use crate::waits::Waits;

/// A program that was compiled, checked and linked.
pub(crate) struct Program {
    /// By how host calls wait.
    pub(crate) blocking: InstancePre<State>,
    pub(crate) suspending: InstancePre<State>,
    pub(crate) steps: LoadSteps,
    pub(crate) stack_bytes_max: usize,
    pub(crate) mappings: Mappings,
}

impl Program {
    fn linked(&self, waits: Waits) -> &InstancePre<State> {
        match waits {
            Waits::Blocking => &self.blocking,
            Waits::Suspending => &self.suspending,
        }
    }

    pub(crate) fn new_store(&self, env: HostEnv, waits: Waits) -> Store<State> {
        let engine = self.linked(waits).module().engine();
        let mut store = Store::new(engine, State::new(env));
        store.limiter(|state| &mut state.limiter);
        store
    }
}

pub(crate) struct Loading {
    pub(crate) store: Store<State>,
    pub(crate) instance: Instance,
    stack_bytes_max: usize,
    waits: Waits,
}

impl Loading {
    /// Instantiates and runs the load phase. The description is the second part of the result.
    pub(crate) async fn run(
        program: &Program,
        mut store: Store<State>,
        waits: Waits,
    ) -> Result<(Loading, Vec<u8>), HostError> {
        let (linked, steps) = (program.linked(waits), &program.steps);
        let stack_bytes_max = program.stack_bytes_max;
        let instance = match waits {
            Waits::Blocking => linked.instantiate(&mut store),
            Waits::Suspending => linked.instantiate_async(&mut store).await,
        };
        let instance = instance
            .map_err(|error| load_error(&store, "the start function", error, stack_bytes_max))?;
        let memory = instance.get_memory(&mut store, "memory");
        store.data_mut().memory = Some(memory.ok_or(HostError::NoMemory)?);
        let mut loading = Loading {
            store,
            instance,
            stack_bytes_max,
            waits,
        };
        if steps.initialize {
            loading.call::<(), ()>("_initialize", ()).await?;
        }
        for preinit in &steps.preinits {
            loading.call::<(), ()>(preinit, ()).await?;
        }
        if steps.setup {
            loading.setup().await?;
        }
        let description = loading.describe().await?;
        Ok((loading, description))
    }

    async fn setup(&mut self) -> Result<(), HostError> {
        let sink = self.store.data_mut().env.open_sink();
        let code = self.call::<u32, i32>("__setup__", sink).await?;
        let env = &mut self.store.data_mut().env;
        let text = String::from_utf8_lossy(env.sink_content(sink)).into_owned();
        env.end_call();
        match code {
            0 => Ok(()),
            1 => Err(HostError::Setup(text)),
            code => Err(HostError::SetupCode(code)),
        }
    }

    async fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        let sink = self.store.data_mut().env.open_sink();
        self.call::<u32, ()>("__describe_module__", sink).await?;
        let env = &mut self.store.data_mut().env;
        let description = env.sink_content(sink).to_vec();
        env.end_call();
        Ok(description)
    }

    async fn call<P: WasmParams + Sync, R: WasmResults + Sync>(
        &mut self,
        export: &str,
        params: P,
    ) -> Result<R, HostError> {
        let function = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, export)
            .map_err(|error| HostError::Instantiate(error.to_string()))?;
        let result = self.waits.call(&function, &mut self.store, params).await;
        result.map_err(|error| load_error(&self.store, export, error, self.stack_bytes_max))
    }
}
