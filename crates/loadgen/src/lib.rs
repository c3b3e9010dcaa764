//! A native load generator. It runs the transfer workload (spec chapter 09, §4): accounts, and an
//! operation that moves an amount from one to another. It drives servers of the client protocol,
//! versions 2 and 3, and, so that no system is limited by the client it is compared with, the others
//! of the benchmark: HTTP RPC servers, reducer calls over HTTP, the WebSocket of the batching SQLite
//! server, PostgreSQL, Convex.
//!
//! It has to cost far less than the server it measures, because both often share a machine. So it
//! works on non-blocking sockets and speaks their protocols itself: all calls that a connection may
//! send leave in one write, and answers are read where they arrived. Parsers of HTTP and PostgreSQL's
//! messages are those of others.
//!
//! The way through the rooms: [`run`] opens connections to a [`target`], hands them to event loops
//! ([`worker`]), which drive them ([`load`]), each in its [`dialect`], adds up what they measured
//! ([`measure`]) and returns a [`Report`].

#![forbid(unsafe_code)]

pub mod address;
pub mod client;
pub mod dialect;
mod error;
pub mod handshake;
pub mod http;
pub mod incoming;
pub mod ledger;
pub mod load;
pub mod measure;
pub mod options;
pub mod pairs;
pub mod postgres;
pub mod process;
pub mod report;
mod run;
pub mod subscribe;
pub mod target;
pub mod websocket;
pub mod worker;

pub use error::Error;
pub use options::Options;
pub use report::Report;
pub use run::{run, Progress};
