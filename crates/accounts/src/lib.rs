//! Memory that is held on somebody's behalf, counted where it is held.
//!
//! The accounts of a process are one tree. Whoever holds memory for a caller has an account in it, and the leaves of the tree are the
//! buffers: a [`Counted`] value cannot be without its [`Reservation`], and gives the bytes back when it is dropped.
//!
//! ```text
//! process ─┬─ clients ─────────────── connection, or request over HTTP ── answers, messages, queries
//!          ├─ requests ─────────────────────────────────────────────────── half-received requests and messages
//!          ├─ uploads ──────────────────────────────────────────────────── modules that are received or wait
//!          ├─ database's instances ── instance ──────────────────────────── memory, sources, sinks, timers, rows
//!          └─ procedures ── owner ── database's procedures ── instance ──── the same, stacks, request bodies, answers
//! ```
//!
//! What an account holds it takes from the one above, in steps, so that small things touch only counters of the one who holds them.
//! A refusal says which account had no more.

#![forbid(unsafe_code)]

mod account;
mod counted;

pub use account::{Account, Exceeded, Kind, Reservation, Terms};
pub use counted::Counted;
