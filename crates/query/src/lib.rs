//! SQL text to checked plans, and predicates evaluated on encoded rows (08).
//!
//! A text goes `lexer` → `parser`/`expression` → `ast` → `check` → `condition` → `predicate`. No step recurses over the
//! text's nesting, so a hostile text costs memory and time in proportion to its length and no stack. `literal` turns
//! constants into BSATN once; a row is then compared where it lies.
//!
//! Queries on one table are complete. Joins, DML, system variables, views and row-level security are understood as far
//! as the interface's own refusals go, then answered with a code.

#![forbid(unsafe_code)]

mod ast;
mod check;
mod condition;
mod error;
mod expression;
pub mod fuzzing;
mod lexer;
mod literal;
mod parser;
mod plan;
mod predicate;
mod render;
mod scalar;
mod words;

/// Shared with the tests beside the crate.
#[cfg(test)]
#[path = "../tests/columns/mod.rs"]
mod columns;

pub use error::{SqlError, QUERY_BYTES_MAX};
pub use plan::{
    admit_subscription, check_rule, compile_statement, compile_subscription, expand_subscribe_all,
    read_subscribe_text, view_instance, Caller, Catalog, Projection, SelectPlan, Statement,
    SubscribeText,
};
pub use predicate::Predicate;
