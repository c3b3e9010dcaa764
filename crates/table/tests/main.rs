//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod common;
mod index_builds;
mod key_order;
mod model;
mod pages;
