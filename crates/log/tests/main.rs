//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod common;
mod crash;
mod damage;
mod follow;
mod local;
#[path = "../../../fuzz/src/log_segment.rs"]
mod log_segment;
mod restart;
mod writer;
