//! The WebAssembly adapter of the module host, on Wasmtime.
//!
//! [`WasmEngine`] loads a program in the order of spec 03 §3.1. `lightcone-host` carries out host calls; this crate turns guest
//! pointers into slices and errors into errnos or traps.
//!
//! # How a faulty module is contained
//!
//! | fault | what stops it |
//! |---|---|
//! | wild pointer inside the module | guard pages around a 4 GiB reservation, so no check is paid for |
//! | wild pointer given to the host | every (pointer, length) is checked; the call traps |
//! | endless loop | epoch interruption: the process-wide [clock](lightcone_host::clock) counts, a check per loop turn |
//! | endless recursion | `stack-bytes-max` |
//! | endless allocation | `memory-bytes-max`: `memory.grow` answers -1 |
//! | endless handles, console output | the limits in `HostLimits` |
//! | a bomb for the compiler | its memory is estimated before it runs; it has threads of its own |
//!
//! After a trap the instance is poisoned and must be replaced: its memory may be half changed.
//!
//! Compiled code is kept between runs and checked before use ([`CodeCacheOptions`]); loading it is the only `unsafe` block of the
//! crate.

#![deny(unsafe_code)]

mod check;
#[allow(unsafe_code)]
mod code_cache;
mod compilers;
mod engine;
mod estimate;
mod exports;
mod imports;
mod instance;
mod load;
mod mappings;
mod memory;
mod state;
mod suspendable;
mod trap;
mod waits;

pub use check::ABI_VERSION;
pub use code_cache::{CodeCacheOptions, CODE_CACHE_BYTES_MAX};
pub use engine::{WasmEngine, WasmEngineOptions};
