//! The host side of modules, whatever their language.
//!
//! A host call (spec 03 §6) does the same for a WebAssembly and a JavaScript module. This crate has it once, on plain slices:
//! [`HostEnv`] is the state of one module instance (row iterators, byte sources and sinks, console timers) with a method for each
//! host call. An adapter (`host-wasm`, `host-js`) turns guest pointers into slices, calls the method, and turns an [`AbiError`]
//! into an errno or a trap.
//!
//! A call may touch what is [`Lent`] to the environment while it runs: nothing, a read view, an open transaction, or
//! [`Transactions`] that it opens itself. `access.rs` has the table of host calls and what each needs.
//!
//! The traits [`ModuleEngine`], [`LoadedModule`] and [`ModuleInstance`] are what the database sees of an adapter.
//!
//! A reducer call:
//!
//! ```text
//! writer thread ──▶ ModuleInstance::call_reducer(transaction, call)
//!                      │ lend                     the environment may use the transaction
//!                      │   HostEnv::begin_call    makes the args source and the error sink
//!                      │   guest code ──▶ host calls ──▶ HostEnv ──▶ access ──▶ Datastore
//!                      │   HostEnv::end_call      clears every handle
//!                      ▼ the loan ends
//!                   ReducerOutcome
//! ```
//!
//! A warm instance allocates nothing on this way: iterator slots, byte buffers and scratch space are reused.

#![deny(unsafe_code)]

#[expect(
    unsafe_code,
    reason = "a borrow of a call is kept as a pointer while the call runs"
)]
mod access;
mod calls;
pub mod clock;
mod console;
mod env;
mod errno;
mod error;
mod handles;
mod http;
mod iterators;
mod lent;
#[expect(unsafe_code, reason = "only a loan knows when what is lent ends")]
mod loan;
mod module;
mod secrets;
mod stack;
mod view;
mod waits;

pub use calls::{
    HandlerResponse, ProcedureCall, ProcedureOutcome, ProcedureResult, ReducerCall, ReducerOutcome,
    FATAL_ERROR_TEXT,
};
pub use console::{ConsoleFrame, ConsoleLevel, ConsoleRecord, ConsoleSink, NullConsole};
pub use env::procedures::HttpSources;
pub use env::{
    CallHandles, HostConfig, HostEnv, ImmediateCalls, InstanceAccounts, InstanceOptions, PointRead,
    ProgramVariables,
};
pub use errno::Errno;
pub use error::{AbiError, HostError, HostTrap, LimitKind};
pub use handles::{trap_of, ReadProgress};
pub use http::{HttpHeader, HttpMethod, HttpRequest, HttpResponse, HttpVersion};
pub use iterators::Advance;
pub use lent::{Lent, OpenTransaction, ReadView, Transactions, HTTP_DISABLED_TEXT};
pub use lightcone_accounts::{Account, Counted, Exceeded, Kind, Reservation, Terms};
pub use lightcone_engine::RangeBounds;
pub use lightcone_limits::HostLimits;
pub use lightcone_table::ReadSet;
pub use loan::{lend, HoldsEnv};
pub use module::{
    import_version, LoadedModule, ModuleEngine, ModuleInstance, SuspendableInstance, Suspended,
};
pub use secrets::{SecretError, Secrets, SecretsKeySource, SECRETS_KEY_BYTES};
pub use stack::{check_stack, on_own_stack};
pub use view::{ViewCall, ViewOutcome};
pub use waits::{Ask, HttpAnswer, Interrupt, InterruptReason, Waiting};
