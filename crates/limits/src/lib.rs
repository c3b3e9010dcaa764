//! The table of limits.
//!
//! Each configurable limit stands once, in `table.rs`: key, type, default, what it bounds, what happens there. The macro makes
//! of it [`Limits`] and [`WebSocket`], as serde reads them; [`HostLimits`] and [`DatabaseLimits`], the parts that a module instance
//! and a database get; the text of both sections in the `config.toml` that the first start writes; and the tables in
//! `docs/limits.md`, which the test `tests/page.rs` compares and rewrites.

#![forbid(unsafe_code)]

mod compression;
pub mod duration;
mod row;
mod section;
mod table;
mod text;
pub mod word;

pub use compression::CompressionChoice;
pub use row::{Row, Subject};
pub use table::{DatabaseLimits, HostLimits, Limits, WebSocket};
pub use text::{page_table, written};
