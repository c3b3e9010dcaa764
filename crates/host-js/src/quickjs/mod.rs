//! The engine for builds without V8.

use lightcone_host::{HostError, InstanceOptions, LoadedModule, ModuleEngine};

use crate::JsEngineOptions;

/// The engine's name.
pub fn name() -> String {
    "quickjs".to_owned()
}

/// Runs JavaScript modules in QuickJS.
pub struct QuickJsEngine {}

impl QuickJsEngine {
    /// Sets up the engine.
    pub fn new(_options: JsEngineOptions) -> Result<QuickJsEngine, HostError> {
        Ok(QuickJsEngine {})
    }
}

impl ModuleEngine for QuickJsEngine {
    fn name(&self) -> &'static str {
        "quickjs"
    }

    fn load(
        &self,
        _program: &[u8],
        _options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        Err(HostError::Engine("not there yet".to_owned()))
    }
}
