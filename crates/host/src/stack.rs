//! Threads with a stack of known size.

use std::panic::resume_unwind;

use lightcone_limits::HostLimits;

use crate::HostError;

/// For compiling and the host's side of a call, besides the module's own stack.
const HOST_STACK_BYTES: usize = 4 << 20;

/// Refuses an engine whose module code wants more stack than instances have: the threads that call them have stacks for their limit.
pub fn check_stack(stack_bytes_max: usize, limits: &HostLimits) -> Result<(), HostError> {
    if limits.stack_bytes_max < stack_bytes_max {
        return Err(HostError::Engine(format!(
            "it was made for stacks of {stack_bytes_max} bytes, and an instance may have {} only",
            limits.stack_bytes_max
        )));
    }
    Ok(())
}

/// Runs the load phase of a module on a thread with enough stack. A panic goes on in the caller.
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
