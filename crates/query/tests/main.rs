//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod both;
mod columns;
mod common;
mod conformance;
mod cost;
mod execution;
#[path = "../../../fuzz/src/query.rs"]
mod fuzzing;
mod joins;
mod live_groups;
mod memory;
mod plans;
mod properties;
mod semi_joins;
mod slt;
mod sqlite;
mod writes;
