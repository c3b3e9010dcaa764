//! Snapshots of a database: sets of content-addressed objects (page images), plus what the engine says
//! about them.
//!
//! A snapshot writes only the objects that the last but one does not hold already, so one of an almost
//! unchanged database writes almost nothing, and two snapshots in a row have no pack in common: one that rots
//! cannot spoil both. Of what is taken over a part is read back from the disk and compared first, each time another one. What is
//! new goes into one *pack* file; the *manifest* lists every object with its place, carries the engine's own bytes, and is
//! published by a rename, so that a snapshot is there as a whole or not at all. Byte layouts:
//! `docs/on-disk-formats.md`.
//!
//! The store knows neither rows nor tables. It is used by one process at a time (the log's lock sees to
//! that), from any thread.

#![forbid(unsafe_code)]

mod error;
mod format;
pub mod fuzzing;
mod reader;
mod shared;
mod store;
mod writer;

pub use error::{Problem, SnapshotError};
pub use format::{ObjectHash, OBJECT_BYTES_MAX};
pub use reader::Snapshot;
pub use store::{PruneReport, SnapshotStore, READ_BACK_BYTES_MAX};
pub use writer::{SnapshotStats, SnapshotWriter};
