//! Predicates compiled to tests with two jump targets, evaluated on encoded rows without recursion or allocation.
//!
//! `AND`, `OR` and `NOT` cost nothing at run time: they only decide where a test goes on. `a = 1 AND (b = 2 OR c = 3)`
//! becomes
//!
//! ```text
//!   0: c = 3   true → accept   false → reject
//!   1: b = 2   true → accept   false → 0
//!   2: a = 1   true → 1        false → reject      ← entry
//! ```
//!
//! Code is made from the end, so every target is a smaller number than the step it stands in, and evaluation ends.

mod compile;
mod cost;
mod evaluate;
mod like;
mod step;

pub(crate) use self::compile::PredicateCompiler;
pub use self::evaluate::{Predicate, Tuple};
pub(crate) use self::like::is_like;
