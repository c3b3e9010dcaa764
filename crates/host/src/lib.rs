//! What a module may ask of its host, whatever language it is written in.
//!
//! The functions that a module imports ("host calls", spec 03 §6) mean the same to a WebAssembly and to a JavaScript
//! module. This crate holds that meaning once, on plain slices: [`HostEnv`] is the state of one module instance (open
//! transaction, row iterators, byte sources and sinks, console timers) with one method per host call. An adapter
//! (`host-wasm`) turns guest pointers into slices, calls the method, and turns an [`AbiError`] into an errno or a trap.
//!
//! The traits [`ModuleEngine`], [`LoadedModule`] and [`ModuleInstance`] are what the database sees of an adapter.
//!
//! The way of one reducer call:
//!
//! ```text
//! writer thread ──▶ ModuleInstance::call_reducer(datastore, call)
//!                      │ HostEnv::begin_call   moves the datastore in, makes the args source and the error sink
//!                      │ guest code ──▶ host calls ──▶ HostEnv::datastore_* ──▶ Datastore
//!                      │ HostEnv::end_call     clears every handle, moves the datastore out
//!                      ▼
//!                   ReducerOutcome
//! ```
//!
//! Nothing on this way allocates once an instance is warm: iterator slots, byte buffers and scratch space are reused.

#![forbid(unsafe_code)]

mod console;
mod env;
mod errno;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod handles;
mod http;
mod iterators;
mod module;
mod procedure;

pub use console::{ConsoleFrame, ConsoleLevel, ConsoleRecord, ConsoleSink, NullConsole};
pub use env::{CallHandles, HostConfig, HostEnv, InstanceOptions, PointRead};
pub use errno::Errno;
pub use error::{AbiError, HostError, HostTrap, LimitKind};
pub use handles::ReadProgress;
pub use http::{HttpHeader, HttpMethod, HttpRequest, HttpResponse, HttpVersion};
pub use iterators::Advance;
pub use lightcone_limits::HostLimits;
pub use module::{
    HandlerResponse, LoadedModule, ModuleEngine, ModuleInstance, ProcedureOutcome, ReducerCall,
    ReducerOutcome, FATAL_ERROR_TEXT,
};
pub use procedure::{CommittedTransaction, ProcedureScope};
