//! The way in over HTTP: requests, WebSocket connections and assistants (spec chapters 05 and 06).
//!
//! ```text
//! TcpStream ─▶ serve       HTTP/1.1 and HTTP/2, bounds on time
//!                ├▶ http   routes; each handler asks the node
//!                └▶ ws     handshake, then a task per client: frames in, frames out
//! ```

#![forbid(unsafe_code)]

mod budget;
mod client_address;
// The engine of the tests of whole servers.
#[cfg(test)]
#[path = "../../server/tests/common/fake.rs"]
#[allow(dead_code)]
mod fake_engine;
pub mod fuzzing;
mod gateway;
mod http;
mod io;
mod pace;
mod publishing;
mod reply;
mod serve;
mod ws;

pub use client_address::ConnectionAddresses;
pub use gateway::Gateway;
pub use http::{metrics_router, router};
#[doc(hidden)]
pub use http::{Route, ROUTES};
pub use serve::{refusal, serve};
