//! How an engine is made.

use lightcone_host::HostLimits;

/// How an engine is made.
#[derive(Clone, Debug)]
pub struct JsEngineOptions {
    /// Stack for module code, in bytes (`HostLimits::stack_bytes_max`). The same for all instances of the engine.
    pub stack_bytes_max: usize,
    /// Memory of an instance, in the place of `HostLimits::memory_bytes_max`.
    pub memory_bytes_max: Option<usize>,
}

impl Default for JsEngineOptions {
    fn default() -> Self {
        JsEngineOptions {
            stack_bytes_max: HostLimits::default().stack_bytes_max,
            memory_bytes_max: None,
        }
    }
}
