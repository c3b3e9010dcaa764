//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod client_messages;
mod common;
#[path = "../../../fuzz/src/wire.rs"]
mod fuzzing;
mod payloads;
mod properties;
mod server_messages;
