//! Bindings of the module `modules/transfer-rs`, in the shape that `spacetime generate --lang rust` gives them.

pub mod module_bindings;
