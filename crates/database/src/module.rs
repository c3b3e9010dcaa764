//! The program a database runs, as everybody but the writer sees it.

use std::sync::Arc;

use lightcone_host::{InstanceOptions, LoadedModule};
use lightcone_schema::ModuleDef;
use lightcone_types::Hash;

use crate::catalog::CatalogView;
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
    /// Compiles, loads and validates. Runs module code, under limits; takes as long as compiling takes.
    pub fn load(
        options: &DatabaseOptions,
        instance: &InstanceOptions,
        bytes: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<Program, Error> {
        let engine = match kind {
            HostKind::Wasm => &options.engines.wasm,
            HostKind::Js => options.engines.js.as_ref().ok_or(Error::NoJavaScript)?,
        };
        let loaded = engine.load(&bytes, instance)?;
        let def = ModuleDef::from_bsatn(loaded.describe())
            .map_err(|error| Error::Module(error.to_string()))?;
        Ok(Program {
            hash: Hash::keccak256(&bytes),
            bytes,
            kind,
            loaded,
            def: Arc::new(def),
        })
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
