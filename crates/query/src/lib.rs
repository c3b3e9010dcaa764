//! SQL text to checked plans, and predicates evaluated on encoded rows (08).
//!
//! A text goes `lexer` → `parser`/`expression` → `ast` → `check` → `condition` → `predicate`. No step recurses over the
//! text's nesting, so a hostile text costs memory and time in proportion to its length and no stack. `literal` turns
//! constants into BSATN once; a row is then compared where it lies.
//!
//! A checked query (`select`, then `query`) may read several relations, and `rules` draws row-level security rules into it. On one
//! relation it is a `select_plan`, which subscriptions are made of. All others are planned (`planner`) and evaluated (`execute`,
//! `collect`, `results`) in bounded pieces of work. `admission` says what may be subscribed to. Statements that write are in
//! `dml`. Views are answered with a code.

#![forbid(unsafe_code)]

mod admission;
mod ast;
mod block;
mod catalog;
mod check;
mod collect;
mod condition;
mod dml;
mod error;
mod estimate;
mod exact_sum;
mod execute;
mod explain;
mod expression;
mod grouping;
mod lexer;
mod literal;
mod live_groups;
mod live_join;
mod parameters;
mod parser;
mod plan;
mod planner;
pub mod postgresql;
mod predicate;
mod query;
mod render;
mod results;
mod routing;
mod rules;
mod scalar;
mod scope;
mod select;
mod select_plan;
mod shape;
mod sort_key;
mod total;
mod window;
mod words;

/// Shared with the tests beside the crate.
#[cfg(test)]
#[path = "../tests/columns/mod.rs"]
mod columns;

pub use admission::admit_subscription;
pub use catalog::{Caller, Catalog};
pub use condition::{ColumnAt, SenderAs, ViewArguments};
pub use dml::{find_targets, write_target, NewValue, RowChange, Targets, WritePlan};
pub use error::{
    SqlError, LIVE_RELATIONS_MAX, QUERY_BYTES_MAX, RELATIONS_MAX, SUBQUERIES_MAX,
    SUBQUERY_DEPTH_MAX,
};
pub use execute::{ExecuteError, Execution, Match, Progress};
pub use grouping::Grouping;
pub use live_groups::{GroupedJoin, LiveGroups};
pub use live_join::{Guard, GuardSays, JoinEdge, JoinRelation, LiveJoin, LiveSubquery, Residual};
pub use parameters::{ParameterText, PARAMETERS_MAX};
pub use plan::{
    check_rule, compile_aggregate, compile_postgresql, compile_statement, compile_subscription,
    expand_subscribe_all, read_subscribe_text, view_instance, Statement, SubscribeText,
};
pub use predicate::{Predicate, Tuple};
pub use query::{Fragment, Output, Query};
pub use results::Run;
pub use routing::{ColumnOrder, ColumnRange, Routing};
pub use rules::FRAGMENTS_MAX;
pub use select_plan::{Projection, SelectPlan};
pub use window::{LiveWindow, RowOrder, WindowSource};
