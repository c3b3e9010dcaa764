//! The trait of a log, which a replicated one could implement too.

use lightcone_storage::LogOffset;

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::reader::FrameReader;

/// To append: the records of `count` transactions from `first_offset` on.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Must be the log's next offset.
    pub first_offset: LogOffset,
    /// At least 1.
    pub count: u32,
    /// The records, back to back.
    pub payload: &'a [&'a [u8]],
}

/// The ends of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The offset of the next transaction.
    pub next_offset: LogOffset,
    /// At most `next_offset`.
    pub durable_offset: LogOffset,
    /// The offset of the oldest transaction that is still there.
    pub oldest_offset: LogOffset,
    /// The epoch of the last writer.
    pub epoch: Epoch,
}

/// Frames in order, with fencing by epoch.
pub trait Log: Send {
    /// Writes one frame. It is durable after the next [`Log::sync`]. An `epoch` older than the log's is [`LogError::Fenced`]; a
    /// newer one becomes the log's.
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError>;

    /// Makes all appended frames durable.
    fn sync(&mut self) -> Result<(), LogError>;

    /// Reads the frames from the one with transaction `from_offset` on, up to the present end.
    fn read(&self, from_offset: LogOffset) -> Result<FrameReader, LogError>;

    /// Raises the epoch, durably: writers of older epochs are fenced from now on.
    fn seal(&mut self, epoch: Epoch) -> Result<Tail, LogError>;

    /// Removes segments with only transactions before `before_offset`. Returns their number.
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError>;

    fn tail(&self) -> Tail;

    /// Marks the log as properly ended, so that damage to its last frame is not taken for a torn tail. Appending afterwards is
    /// allowed.
    fn close(&mut self) -> Result<(), LogError>;
}
