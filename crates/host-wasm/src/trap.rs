//! Why guest code stopped, and how that reads.

use std::fmt::Write;

use lightcone_host::{ConsoleFrame, HostTrap, LimitKind};
use wasmtime::{Trap, WasmBacktrace};

pub(crate) enum GuestFailure {
    TimedOut,
    /// A limit other than time.
    Limit(HostTrap),
    /// With the backtrace.
    Trapped(String),
}

/// More frames of a backtrace are left out.
const FRAMES_MAX: usize = 32;

pub(crate) fn explain(error: &wasmtime::Error, stack_bytes_max: usize) -> GuestFailure {
    let mut text = match (
        error.downcast_ref::<Trap>(),
        error.downcast_ref::<HostTrap>(),
    ) {
        (Some(Trap::Interrupt), _) => return GuestFailure::TimedOut,
        (Some(Trap::StackOverflow), _) => {
            return GuestFailure::Limit(HostTrap::limit(LimitKind::Stack, stack_bytes_max))
        }
        (_, Some(limit @ HostTrap::Limit { .. })) => return GuestFailure::Limit(limit.clone()),
        (Some(trap), _) => trap.to_string(),
        (_, Some(trap)) => trap.to_string(),
        (None, None) => error.root_cause().to_string(),
    };
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        for frame in frames(backtrace).into_iter().take(FRAMES_MAX) {
            let name = frame.func_name.as_deref().unwrap_or("<unknown>");
            write!(text, "\n    at {name}").expect("writing to a string never fails");
        }
    }
    GuestFailure::Trapped(text)
}

#[cold]
pub(crate) fn end_call(trap: HostTrap) -> wasmtime::Error {
    wasmtime::Error::new(trap)
}

/// Innermost first, demangled.
pub(crate) fn frames(backtrace: &WasmBacktrace) -> Vec<ConsoleFrame> {
    let frame = |frame: &wasmtime::FrameInfo| ConsoleFrame {
        module_name: None,
        func_name: frame
            .func_name()
            .map(|name| format!("{:#}", rustc_demangle::demangle(name))),
    };
    backtrace.frames().iter().map(frame).collect()
}
