//! The server: a node and the ways in to it.
//!
//! ```text
//! TcpListener ─▶ server      bounds on connections
//!                  ├▶ lightcone_gateway   HTTP and WebSocket
//!                  └▶ lightcone_postgres  PostgreSQL's protocol, on a port of its own
//! ```
//!
//! [`ServerOptions`] → [`Server::bind`] → [`ServerHandle`]. The binary is in the `cli` crate.

#![forbid(unsafe_code)]

mod error;
#[cfg(test)]
#[path = "../tests/common/fake.rs"]
#[allow(dead_code)]
mod fake_engine;
mod server;

pub use error::Error;
pub use server::{Server, ServerHandle, ServerOptions};
