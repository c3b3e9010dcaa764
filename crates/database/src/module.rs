//! The program a database runs, as all but the writer see it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_engine::Datastore;
use lightcone_host::{
    HostConfig, HostEnv, HostError, InstanceOptions, LoadedModule, ModuleInstance, ProgramVariables,
};
use lightcone_query::Catalog;
use lightcone_schema::{ModuleDef, RawVersion};
use lightcone_types::{Hash, TableId};
use rustc_hash::FxHashMap;
use tokio::sync::Mutex;

use crate::catalog::CatalogView;
use crate::error::Error;
use crate::loads::{Purpose, Task};
use crate::metrics::{CountedFunction, FunctionKind, ModuleCounters, SeriesMax};
use crate::options::{DatabaseOptions, HostKind, Limits, WRITER_STACK_EXTRA_BYTES};

/// How much longer than its limits module code may take before its thread is given up, on a machine that is busy.
const GRACE: Duration = Duration::from_secs(5);
/// Compiling has no limit of its own; it takes about so long at the least, and at the most.
const COMPILE_TIME_MIN: Duration = Duration::from_secs(15);
const COMPILE_TIME_MAX: Duration = Duration::from_secs(300);
/// Code that is compiled ahead of time, in bytes per second; far below what any engine does.
const COMPILE_RATE: u64 = 64 << 10;

/// The bytes of a program, with their hash. It takes a second for 300 MB and is computed here and nowhere else, so that code with a
/// program has its hash: make one where no client waits for the thread.
#[derive(Clone, Debug)]
pub struct ProgramBytes {
    bytes: Arc<[u8]>,
    hash: Hash,
}

impl ProgramBytes {
    /// Computes the hash.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> ProgramBytes {
        let bytes = bytes.into();
        let hash = Hash::keccak256(&bytes);
        ProgramBytes { bytes, hash }
    }

    pub fn hash(&self) -> Hash {
        self.hash
    }
}

impl std::ops::Deref for ProgramBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for ProgramBytes {
    fn from(bytes: Vec<u8>) -> ProgramBytes {
        ProgramBytes::new(bytes)
    }
}

impl From<Arc<[u8]>> for ProgramBytes {
    fn from(bytes: Arc<[u8]>) -> ProgramBytes {
        ProgramBytes::new(bytes)
    }
}

/// A program that loaded and whose definition is valid.
#[derive(Clone)]
pub(crate) struct Program {
    pub bytes: ProgramBytes,
    pub kind: HostKind,
    pub hash: Hash,
    pub loaded: Arc<dyn LoadedModule>,
    pub def: Arc<ModuleDef>,
    /// For its instances.
    variables: Arc<ProgramVariables>,
}

impl Program {
    /// Compiles, loads and validates. Runs module code, under limits, on a thread that is given up if it does not end.
    pub fn load(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: ProgramBytes,
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
        bytes: ProgramBytes,
        kind: HostKind,
        purpose: Purpose,
    ) -> Result<(Program, Box<dyn ModuleInstance>), Error> {
        let config = instance.clone();
        Self::load_and(options, instance, bytes, kind, purpose, |program| {
            Ok(program.instantiate(config)?)
        })
    }

    /// The host's side of an instance.
    pub fn env(&self, config: HostConfig) -> HostEnv {
        HostEnv::new(HostConfig {
            program: Some(self.variables.clone()),
            ..config
        })
    }

    /// Another instance.
    pub fn instantiate(&self, config: HostConfig) -> Result<Box<dyn ModuleInstance>, HostError> {
        self.loaded.instantiate(self.env(config))
    }

    fn load_and<T: Send + 'static>(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: ProgramBytes,
        kind: HostKind,
        purpose: Purpose,
        then: impl FnOnce(&Program) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Program, T), Error> {
        let engine = match kind {
            HostKind::Wasm => options.engines.wasm.clone(),
            HostKind::Js => options.engines.js.clone().ok_or(Error::NoJavaScript)?,
        };
        let hash = bytes.hash();
        let task = load_task(options, purpose, hash, kind, bytes.len());
        let instance = instance.clone();
        let secrets = options.commons.secrets().clone();
        options.loads.run(options.environment(), task, move || {
            let loaded = engine.load(&bytes, &instance)?;
            let def = ModuleDef::from_bsatn(loaded.describe())
                .map_err(|error| Error::Module(error.to_string()))?;
            let program = Program {
                hash,
                bytes,
                kind,
                loaded: loaded.into(),
                variables: Arc::new(ProgramVariables::new(hash, &def, secrets)),
                def: Arc::new(def),
            };
            let made = then(&program)?;
            Ok((program, made))
        })?
    }
}

/// The current module: replaced as a whole when a program is published.
pub(crate) struct Module {
    /// Grows with each replacement; requests decoded against an older version are decoded again.
    pub version: u64,
    /// The version with which the tables last changed: code of an older one means others when it reads and writes rows.
    pub tables_version: u64,
    pub program: Program,
    /// By the table that holds the view's rows.
    pub views: FxHashMap<TableId, ViewFunction>,
    pub catalog: CatalogView,
    pub counters: ModuleCounters,
    pub schema_texts: SchemaTexts,
}

/// The definition of a module as text: made once for each version of the form, and shared by all answers.
#[derive(Default)]
pub(crate) struct SchemaTexts {
    v9: Arc<Mutex<Option<Bytes>>>,
    v10: Arc<Mutex<Option<Bytes>>>,
}

impl SchemaTexts {
    pub fn of(&self, version: RawVersion) -> Arc<Mutex<Option<Bytes>>> {
        match version {
            RawVersion::V9 => self.v9.clone(),
            RawVersion::V10 => self.v10.clone(),
        }
    }
}

/// A view of a module, as it is called.
pub(crate) struct ViewFunction {
    /// Among the views of its kind (02 §9.3).
    pub id: u32,
    /// The canonical name.
    pub name: Arc<str>,
    /// Where it is in the definition.
    pub position: usize,
}

/// What is called, by its position in the module's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub kind: FunctionKind,
    pub id: u32,
}

impl Function {
    pub fn reducer(id: u32) -> Function {
        let kind = FunctionKind::Reducer;
        Function { kind, id }
    }

    pub fn procedure(id: u32) -> Function {
        let kind = FunctionKind::Procedure;
        Function { kind, id }
    }
}

impl Module {
    /// For the tables as they are, in the place of another one. If the tables are those that it knows, it says `knows_tables`.
    pub fn new(
        program: Program,
        datastore: &Datastore,
        before: Option<&Module>,
        knows_tables: bool,
        limits: &Limits,
    ) -> Module {
        let version = before.map_or(0, |before| before.version + 1);
        let tables_version = before.filter(|_| knows_tables);
        let counting = before.map(|before| &before.counters);
        let series_max = SeriesMax::of(limits);
        let catalog = CatalogView::new(datastore, &program.def);
        let views = program.def.views.iter().enumerate();
        let views = views.filter_map(|(position, view)| {
            let function = ViewFunction {
                id: view.id,
                name: view.name.as_str().into(),
                position,
            };
            Some((catalog.table(&view.name)?.id, function))
        });
        let views = views.collect();
        Module {
            version,
            tables_version: tables_version.map_or(version, |before| before.tables_version),
            counters: ModuleCounters::new(&program.def, datastore, counting, series_max),
            program,
            views,
            catalog,
            schema_texts: SchemaTexts::default(),
        }
    }

    /// Its name and counters.
    #[inline]
    pub fn function(&self, function: Function) -> &CountedFunction {
        self.counters.function(function.kind, function.id as usize)
    }

    /// The same of a reducer.
    #[inline]
    pub fn reducer(&self, id: u32) -> &CountedFunction {
        self.function(Function::reducer(id))
    }

    pub fn def(&self) -> &Arc<ModuleDef> {
        &self.program.def
    }
}

/// Compiling and the load phase, once for the definition and once more for an instance.
fn load_task(
    options: &DatabaseOptions,
    purpose: Purpose,
    program: Hash,
    kind: HostKind,
    program_bytes: usize,
) -> Task {
    let limits = &options.limits.host;
    let compiling = match kind {
        HostKind::Wasm => {
            COMPILE_TIME_MIN + Duration::from_secs(program_bytes as u64 / COMPILE_RATE)
        }
        // Compiled as it runs, so within the limit of the load phase.
        HostKind::Js => Duration::ZERO,
    };
    Task {
        purpose,
        program,
        owner: options.owner,
        stack_bytes: limits.stack_bytes_max + WRITER_STACK_EXTRA_BYTES,
        deadline: Duration::from_millis(limits.load_ms_max)
            + compiling.min(COMPILE_TIME_MAX)
            + GRACE,
    }
}

/// Another instance, and the `init` reducer.
pub(crate) fn init_task(options: &DatabaseOptions, program: Hash) -> Task {
    let limits = &options.limits.host;
    Task {
        purpose: Purpose::Publish,
        program,
        owner: options.owner,
        stack_bytes: limits.stack_bytes_max + WRITER_STACK_EXTRA_BYTES,
        deadline: Duration::from_millis(limits.load_ms_max + limits.call_ms_max) + GRACE,
    }
}

/// Another instance, and the steps of a migration with its function, tried on a copy.
pub(crate) fn migration_task(options: &DatabaseOptions, program: Hash) -> Task {
    let init = init_task(options, program);
    Task {
        deadline: init.deadline + options.limits.migration_time_max,
        ..init
    }
}
