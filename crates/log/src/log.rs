//! What a log is: frames in order, and the trait that a replicated log could implement in place of the local one.

use lightcone_storage::LogOffset;

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::reader::FrameReader;

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
