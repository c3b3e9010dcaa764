//! The program a database runs, as everybody but the writer sees it.

use std::sync::Arc;

use lightcone_host::{HostEnv, InstanceOptions, LoadedModule, ModuleInstance};
use lightcone_schema::ModuleDef;
use lightcone_types::Hash;

use crate::catalog::CatalogView;
use crate::loads::{Purpose, Task};
use crate::options::{DatabaseOptions, HostKind};
use crate::Error;

/// A program that loaded and whose definition is valid.
pub(crate) struct Program {
    pub bytes: Arc<[u8]>,
    pub kind: HostKind,
    pub hash: Hash,
    pub loaded: Box<dyn LoadedModule>,
    pub def: Arc<ModuleDef>,
}

impl Program {
    /// Compiles, loads and validates. Runs module code, under limits, on a thread that is given up if it does not end.
    pub fn load(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: Arc<[u8]>,
        kind: HostKind,
        purpose: Purpose,
    ) -> Result<Program, Error> {
        let loaded = Self::load_and(options, instance, bytes, kind, purpose, |_| Ok(()))?;
        Ok(loaded.0)
    }

    /// The same, and an instance.
    pub fn load_with_instance(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: Arc<[u8]>,
        kind: HostKind,
        purpose: Purpose,
    ) -> Result<(Program, Box<dyn ModuleInstance>), Error> {
        let env = HostEnv::new(instance.clone());
        Self::load_and(options, instance, bytes, kind, purpose, |loaded| {
            Ok(loaded.instantiate(env)?)
        })
    }

    fn load_and<T: Send + 'static>(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: Arc<[u8]>,
        kind: HostKind,
        purpose: Purpose,
        then: impl FnOnce(&dyn LoadedModule) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Program, T), Error> {
        let engine = match kind {
            HostKind::Wasm => options.engines.wasm.clone(),
            HostKind::Js => options.engines.js.clone().ok_or(Error::NoJavaScript)?,
        };
        let hash = Hash::keccak256(&bytes);
        let task = Task::load(options, purpose, hash, kind, bytes.len());
        let instance = instance.clone();
        options.loads.run(task, move || {
            let loaded = engine.load(&bytes, &instance)?;
            let def = ModuleDef::from_bsatn(loaded.describe())
                .map_err(|error| Error::Module(error.to_string()))?;
            let made = then(loaded.as_ref())?;
            let program = Program {
                hash,
                bytes,
                kind,
                loaded,
                def: Arc::new(def),
            };
            Ok((program, made))
        })?
    }
}

/// The current module: replaced as a whole when a program is published.
pub(crate) struct Module {
    /// Grows with each replacement; requests decoded against an older version are decoded again.
    pub version: u64,
    pub program: Program,
    /// Canonical names by reducer id.
    pub reducer_names: Vec<Arc<str>>,
    /// The same of procedures.
    pub procedure_names: Vec<Arc<str>>,
    /// The same of HTTP handlers.
    pub http_handler_names: Vec<Arc<str>>,
    pub catalog: CatalogView,
}

impl Module {
    pub fn new(version: u64, program: Program, catalog: CatalogView) -> Module {
        let reducers = program.def.reducers.iter();
        let reducer_names = reducers.map(|each| each.name.as_str().into()).collect();
        let procedures = program.def.procedures.iter();
        let procedure_names = procedures.map(|each| each.name.as_str().into()).collect();
        let handlers = program.def.http_handlers.iter();
        let http_handler_names = handlers.map(|each| each.name.as_str().into()).collect();
        Module {
            version,
            program,
            reducer_names,
            procedure_names,
            http_handler_names,
            catalog,
        }
    }

    pub fn def(&self) -> &Arc<ModuleDef> {
        &self.program.def
    }
}
