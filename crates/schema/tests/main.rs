//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod case;
#[macro_use]
mod common;
mod compatible;
mod environment;
mod hostile;
mod migration_function;
#[path = "../../../fuzz/src/module_def.rs"]
mod module_def;
#[path = "../../../fuzz/src/module_def_json.rs"]
mod module_def_json;
mod oracle;
mod outbox_tables;
mod plan;
mod plan_text;
mod validation;
mod validation_functions;
mod vectors;
