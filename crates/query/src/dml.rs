//! Statements that write, and `SET` and `SHOW`: what they say, and the checked plans of them (08 §5.3, §12.4, §12.5).

mod check;
mod find;
mod parse;
mod write_plan;

pub use check::write_target;
pub use find::find_targets;
pub use write_plan::{NewValue, RowChange, Targets, WritePlan};

pub(crate) use check::{plan_set, plan_write, read_variable};
