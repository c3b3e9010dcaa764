//! One process with its data directory, without the ways in: what its configuration says, who asks, what he may, which databases
//! run, and what is counted.
//!
//! ```text
//! NodeOptions ─▶ Node      config      what the operator says
//!                  ├▶ authority        tokens ─▶ callers
//!                  ├▶ control          names ─▶ records, in the crate `control`
//!                  ├▶ permissions      callers and records ─▶ rights
//!                  └▶ databases        records ─▶ running databases
//! ```
//!
//! [`network`] has the threads that serve sockets; what they speak is the business of the crates above.

#![forbid(unsafe_code)]

pub mod auth;
mod carrier;
pub mod collaborators;
pub mod config;
mod data_dir;
pub mod databases;
mod error;
pub mod hosts;
mod keeper;
mod memory;
pub mod metrics;
pub mod network;
mod node;
mod peers;
pub mod permissions;
mod private_files;
mod scrub;
mod traces;

pub use carrier::carry_messages;
pub use data_dir::{DataDir, EDITION};
pub use error::Error;
pub use keeper::keep_open;
pub use node::{Node, NodeOptions, NotFound, PublishEnvironment};
pub use private_files::{
    check_private_key, create_directory as create_private_directory, keep_new_files_private,
};
pub use scrub::{scrub, Scrub};
