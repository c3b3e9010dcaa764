//! A native load generator for servers of the client protocol, versions 2 and 3. It runs the
//! transfer workload (spec chapter 09, §4): accounts, and a reducer that moves an amount from one
//! to another.
//!
//! It has to cost far less than the server it measures, because both often share a machine. So it
//! speaks WebSocket itself, on non-blocking sockets: all calls that a connection may send leave in
//! one write, answers are read where they arrived, and nothing is allocated per call.
//!
//! The way through the rooms: [`run`] opens connections ([`client`]), hands them to
//! event loops ([`worker`]), which drive them ([`load`]) over frames ([`websocket`]), adds up what
//! they measured ([`measure`]) and returns a [`Report`].

#![forbid(unsafe_code)]

pub mod client;
mod error;
pub mod ledger;
pub mod load;
pub mod measure;
pub mod options;
pub mod pairs;
pub mod process;
pub mod report;
mod run;
pub mod subscribe;
pub mod websocket;
pub mod worker;

pub use error::Error;
pub use options::Options;
pub use report::Report;
pub use run::run;
