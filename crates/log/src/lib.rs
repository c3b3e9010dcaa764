//! The log of one database: the effects of its transactions, in order, durable.
//!
//! The engine proposes batches of records to the [`LogWriter`]. Its thread writes all that has gathered as one frame, syncs once,
//! and reports the committed [offset](LogOffset). The log sees bytes and a count; only the engine knows what is in them. A
//! [`LogReader`] follows what is durable, on any thread.
//!
//! An *offset* counts transactions, a *position* counts bytes of a file, a *place* is a position with the hash and offset there.
//!
//! [`LocalLog`] keeps the frames in segment files (byte layout: `docs/on-disk-formats.md`, reasons: `docs/design/commits.md`), behind
//! the trait [`Log`]. [`MemoryLog`] serves databases that live in memory only.
//!
//! Rules that hold everywhere here:
//! - The first failed write or sync poisons the log for good; a sync is never retried.
//! - Opening takes nothing for durable because it can be read: what no later sync proves is written again.
//! - A torn tail is cut on opening. Damage anywhere else is refused with file, byte and advice; only [`repair`] cuts it.
//! - A writer, or a leader, with an older epoch than the log's is [`Fenced`](LogError::Fenced).

#![forbid(unsafe_code)]

mod chain;
mod check;
mod error;
mod feed;
mod format;
mod format_1;
mod local;
mod log;
mod memory;
mod prove;
mod reader;
mod recovery;
mod repair;
mod segment;
mod writer;

pub use chain::{Epoch, LogHash};
pub use check::LogCheck;
pub use error::LogError;
pub use feed::{LogFeed, SEGMENTS_PINNED_MAX};
pub use format::PAYLOAD_BYTES_MAX;
pub use lightcone_storage::{FilePosition, LogOffset};
pub use local::{LocalLog, LogOptions};
pub use log::{Frame, Log, Tail};
pub use memory::MemoryLog;
pub use reader::{FrameRef, LogReader};
pub use recovery::Recovery;
pub use repair::{owner_of, repair, repair_on, RepairReport};
pub use writer::{
    CommitEvent, Followed, LogWorker, LogWriter, LogWriterOptions, LogWriterStats, ProposeError,
    Proposed, THREAD_NAME,
};
