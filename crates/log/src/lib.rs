//! The log of one database: the effects of its transactions, in order, durable.
//!
//! The engine hands batches of transaction records to the [`Committer`], a thread that writes all that has
//! gathered as one frame with one write and one sync, and then says up to which [offset](LogOffset) everything is
//! durable. What a payload means is the engine's business; the log sees bytes and a count.
//!
//! Words: an *offset* counts transactions, a *position* counts bytes of a file, a *place* is a position together with what
//! the frames before it add up to.
//!
//! [`LocalLog`] keeps the frames in segment files (byte layout: `docs/on-disk-formats.md`). It sits behind
//! the narrow trait [`Log`], so that a replicated log can stand in its place. [`MemoryLog`] serves
//! databases that live in memory only.
//!
//! Rules that hold everywhere here:
//! - The first failed write or sync poisons the log for good; a sync is never retried.
//! - Opening takes nothing for durable because it can be read: what no later sync proves is written once more.
//! - A torn tail is cut on opening. Damage anywhere else is refused with file, byte and advice;
//!   [`repair`] is called on purpose only.
//! - A writer with an older epoch than the log's is [`Fenced`](LogError::Fenced).

#![forbid(unsafe_code)]

mod committer;
mod epoch;
mod error;
mod format;
pub mod fuzzing;
mod local;
mod memory;
mod prove;
mod reader;
mod recovery;
mod repair;
mod segment;

pub use committer::{
    CommitEvent, Committer, CommitterOptions, CommitterStats, CommitterWork, SubmitError,
    THREAD_NAME,
};
pub use epoch::Epoch;
pub use error::LogError;
pub use format::PAYLOAD_BYTES_MAX;
pub use lightcone_storage::{FilePosition, LogOffset};
pub use local::{LocalLog, LogOptions};
pub use memory::MemoryLog;
pub use reader::{FrameReader, FrameRef, FrameSource};
pub use recovery::Recovery;
pub use repair::{owner_of, repair, repair_on, RepairReport};

/// A frame to append: the records of `count` transactions, beginning with number `first_offset`.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The number of the first transaction; must be the log's next offset.
    pub first_offset: LogOffset,
    /// How many transactions there are; at least 1.
    pub count: u32,
    /// Their records, in pieces that are written one behind the other.
    pub payload: &'a [&'a [u8]],
}

/// Where a log ends and begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The number the next transaction gets.
    pub next_offset: LogOffset,
    /// All transactions before this one are durable. Never past `next_offset`.
    pub durable_offset: LogOffset,
    /// The oldest transaction that is still in the log, if any is.
    pub oldest_offset: LogOffset,
    /// The epoch of the last writer.
    pub epoch: Epoch,
}

/// A log: frames in order, with fencing by epoch.
pub trait Log: Send {
    /// Writes one frame. It is durable after the next [`Log::sync`].
    ///
    /// An `epoch` older than the log's is [`LogError::Fenced`]; a newer one becomes the log's.
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError>;

    /// Makes all appended frames durable.
    fn sync(&mut self) -> Result<(), LogError>;

    /// Reads the frames from the one that holds transaction `from_offset` on, up to what is appended now.
    fn read(&self, from_offset: LogOffset) -> Result<FrameReader, LogError>;

    /// Raises the log's epoch, durably: writers of older epochs are fenced from now on. Returns the tail.
    fn seal(&mut self, epoch: Epoch) -> Result<Tail, LogError>;

    /// Removes what holds only transactions before `before_offset`, in whole segments. Returns how many went.
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError>;

    /// Where the log ends and begins.
    fn tail(&self) -> Tail;

    /// Marks the log as properly ended, so that damage to its last frame cannot be mistaken for a torn tail.
    /// Appending after it is allowed.
    fn close(&mut self) -> Result<(), LogError>;
}
