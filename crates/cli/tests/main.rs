//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod backup;
mod bindings;
mod builds;
mod commands;
mod common;
mod doctor;
mod end_to_end;
mod environment;
mod error_pages;
mod failing_disk;
mod idle;
mod installation;
mod logins;
mod mcp;
mod migrate;
mod module_tests;
mod outbox_tables;
mod projects;
mod publish;
mod renewals;
mod subscribe;
mod top;
