//! Threads with a stack of known size.

use std::panic::resume_unwind;

use crate::HostError;

/// What compiling and the host's side of a call may need besides the module's own stack.
const HOST_STACK_BYTES: usize = 4 << 20;

/// Runs code of a module that loads, on a thread that has the stack for it, whoever asked for it. A panic goes on here.
pub fn on_own_stack<R: Send>(
    stack_bytes_max: usize,
    body: impl FnOnce() -> Result<R, HostError> + Send,
) -> Result<R, HostError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("lc-module-load".into())
            .stack_size(stack_bytes_max.saturating_add(HOST_STACK_BYTES))
            .spawn_scoped(scope, body)
            .map_err(|error| HostError::Engine(format!("can't start a thread: {error}")))?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
