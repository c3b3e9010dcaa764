//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod catalog;
mod common;
mod crash;
#[path = "common/definitions.rs"]
mod definitions;
#[path = "common/history.rs"]
mod history;
mod hostile;
#[path = "common/migrating.rs"]
mod migrating;
mod migration;
mod migration_bounds;
mod migration_crash;
mod migration_function;
mod migration_random;
mod model;
mod old_formats;
mod outbox_tables;
mod schedules;
mod snapshot_costs;
mod transactions;
mod views;
