//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod common;
#[path = "../../../fuzz/src/types.rs"]
mod fuzzing;
mod identities;
mod integers;
mod json;
mod oracle;
mod rejects;
mod robustness;
mod text;
mod typed;
mod vectors;
