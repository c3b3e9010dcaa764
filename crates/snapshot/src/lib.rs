//! Snapshots of a database: content-addressed objects (page images), and the engine's own bytes.
//!
//! A snapshot writes only the objects that the last snapshot but one does not have. So one of an almost unchanged database
//! writes almost nothing, and two in a row share no pack: one that rots cannot spoil both. A part of the objects that it takes over
//! is read back from the disk and compared, each time another part. New objects go into one *pack* file. The *manifest* lists every
//! object with its place, and a rename publishes it, so a snapshot is complete or absent. Byte layouts: `docs/on-disk-formats.md`.
//!
//! The store knows neither rows nor tables. One process at a time uses it (the log's lock sees to that), from any thread.

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
pub use store::{PruneReport, SnapshotNeeds, SnapshotStore, READ_BACK_BYTES_MAX};
pub use writer::{SnapshotStats, SnapshotWriter};
