//! The server: HTTP API, WebSocket endpoint, authentication and control plane (spec chapters 05 and 06).
//!
//! ```text
//! TcpListener ─▶ server      bounds on connections and time, HTTP/1.1 and HTTP/2
//!                  ├▶ http   routes; auth (tokens), control (names, owners), databases (opened on demand)
//!                  ├▶ ws     handshake, then a task per client: frames in, frames out
//!                  └▶ postgres  PostgreSQL's protocol, on a port of its own
//! ```
//!
//! [`ServerOptions`] → [`Server::bind`] → [`ServerHandle`]. The binary is in the `cli` crate.

#![forbid(unsafe_code)]

// The engine of the tests names this crate as other crates do.
#[cfg(test)]
extern crate self as lightcone_server;

mod address_counts;
pub mod auth;
mod budget;
mod client_address;
mod collaborators;
pub mod config;
mod connection_slot;
pub mod control;
mod data_dir;
mod database;
mod databases;
mod descriptors;
mod error;
#[cfg(test)]
#[path = "../tests/common/fake.rs"]
#[allow(dead_code)]
mod fake_engine;
pub mod fuzzing;
mod hosts;
mod http;
mod io;
mod keeper;
mod memory;
mod metrics;
mod name_locks;
mod names;
mod network;
mod orphans;
mod pace;
#[doc(hidden)]
pub mod permissions;
mod polls;
mod postgres;
mod private_files;
mod publishing;
mod reply;
mod running;
mod server;
mod startup;
mod state;
mod traces;
mod ws;

pub use data_dir::EDITION;
pub use database::Engines;
pub use error::Error;
#[doc(hidden)]
pub use http::{Route, ROUTES};
pub use lightcone_limits::duration::parse_duration;
pub use names::{DatabaseName, NameError, NameOrIdentity};
pub use private_files::{create_directory as create_private_directory, keep_new_files_private};
pub use server::{Server, ServerHandle};
pub use startup::{PublishEnvironment, ServerOptions};
pub use ws::frame;
