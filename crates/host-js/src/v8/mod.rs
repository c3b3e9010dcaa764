//! The engine on V8.

use lightcone_host::{HostError, InstanceOptions, LoadedModule, ModuleEngine};

use crate::JsEngineOptions;

/// The engine's name and version.
pub fn name() -> String {
    format!("V8 {}", ::v8::V8::get_version())
}

/// Runs JavaScript modules in V8.
pub struct V8Engine {}

impl V8Engine {
    /// Sets up the engine.
    pub fn new(_options: JsEngineOptions) -> Result<V8Engine, HostError> {
        Ok(V8Engine {})
    }
}

impl ModuleEngine for V8Engine {
    fn name(&self) -> &'static str {
        "v8"
    }

    fn load(
        &self,
        _program: &[u8],
        _options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        Err(HostError::Engine("not there yet".to_owned()))
    }
}
