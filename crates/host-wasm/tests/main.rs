//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod calls;
mod code_cache;
mod common;
mod compile_cost;
mod cpp_modules;
mod csharp_modules;
mod database;
mod load;
#[path = "common/modules.rs"]
mod modules;
#[path = "common/people.rs"]
mod people;
mod rows;
mod rust_modules;
mod schedules;
#[path = "common/script.rs"]
mod script;
mod views;
