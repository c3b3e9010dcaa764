//! Live queries: from the changes of tables to the changes of results (08 §13, §14).
//!
//! A query becomes a [`LiveQuery`]. Queries that differ only in constants, or in the caller, are one *shape*; the values are their
//! *key*. The writer keeps [joins](Joins) and [windows](Windows) up to date after each transaction: what comes out are changes like
//! those of a table, with a key. A [`Router`] finds the queries that a changed row concerns, at a cost that does not depend on queries
//! for other values, and [`Dependents`] the results of functions that have read a row.
//!
//! The crate has no thread, clock, file or lock of a caller: time and tables are given.

#![forbid(unsafe_code)]

mod area_tree;
mod bound_query;
mod dependents;
mod held_indexes;
mod holders;
mod joins;
mod key;
mod live_query;
mod query_load;
mod registry;
mod router;
mod shape_id;
mod windows;
mod work;

/// Shared with the tests of the crates above this one.
#[cfg(test)]
#[path = "../tests/items/mod.rs"]
mod items;

#[cfg(test)]
extern crate self as lightcone_live;

pub use bound_query::{BoundQuery, BoundWindow, Shapes};
pub use dependents::{Dependent, Dependents, Looked};
pub use held_indexes::{
    no_index, IndexBuilding, IndexUser, RuleColumns, Takers, BUILT_AT_ONCE_ROWS_MAX,
};
pub use holders::Holder;
pub use joins::{JoinShape, JoinShapes, JoinWork, Joins};
pub use live_query::{LiveQuery, QueryKey, QueryShape, QueryShapeKind};
pub use query_load::QueryLoad;
pub use router::{Places, QueryIndex, Router};
pub use windows::{Entry, WindowLimits, WindowShape, WindowUser, Windows};
pub use work::{FirstRows, WorkBudget};
