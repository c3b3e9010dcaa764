//! The options of an engine.

use lightcone_host::HostLimits;

#[derive(Clone, Debug)]
pub struct JsEngineOptions {
    /// Stack for module code (`HostLimits::stack_bytes_max`), the same for all instances.
    pub stack_bytes_max: usize,
    /// Replaces `HostLimits::memory_bytes_max`.
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
