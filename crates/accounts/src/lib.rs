//! Memory that is held for callers, counted where it is held.
//!
//! The accounts of a process are one tree. Its leaves are buffers: a [`Counted`] value has a [`Reservation`], and gives the bytes
//! back on drop.
//!
//! ```text
//! process ─┬─ clients ─────────────── connection, or request over HTTP ── answers, messages, queries
//!          ├─ requests ─────────────────────────────────────────────────── half-received requests and messages
//!          ├─ uploads ──────────────────────────────────────────────────── modules that are received or wait
//!          ├─ state of the past ────────────────────────────────────────── the tables of a database as they were
//!          ├─ database's instances ── instance ──────────────────────────── memory, sources, sinks, timers, rows
//!          └─ procedures ── owner ── database's procedures ── instance ──── the same, stacks, request bodies, answers
//! ```
//!
//! An account takes bytes from its parent in steps, so small reservations touch one counter. A refusal names the account that is
//! exhausted.

#![forbid(unsafe_code)]

mod account;
mod counted;

pub use account::{Account, Exceeded, Kind, Reservation, Terms};
pub use counted::Counted;
