//! The trait of a log: what a node does to its own copy.

use lightcone_storage::LogOffset;

use crate::chain::{Epoch, LogHash};
use crate::error::LogError;
use crate::feed::LogFeed;
use crate::reader::FrameRef;

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
    /// Writers of older ones are fenced.
    pub epoch: Epoch,
    /// Of all transactions. 0 in a log that keeps nothing.
    pub hash: LogHash,
}

/// Whether a writer with this epoch may change a log that is in another.
pub(crate) fn check_epoch(epoch: Epoch, current: Epoch) -> Result<(), LogError> {
    match epoch < current {
        true => Err(LogError::Fenced { epoch, current }),
        false => Ok(()),
    }
}

/// Frames in order, with fencing by epoch.
pub trait Log: Send {
    /// Writes one frame. It is durable after the next [`Log::sync`]. An `epoch` older than the log's is [`LogError::Fenced`]; a
    /// newer one becomes the log's.
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError>;

    /// Writes a frame of another log, as that has it: with its epoch, in which an earlier leader may have written it. It is durable after
    /// the next [`Log::sync`]. A `leader` older than the log's epoch is [`LogError::Fenced`]; a newer one is promised first, durably, that
    /// no older one is listened to. A frame that leads to another history than that of the other log is [`LogError::BadFrame`].
    fn follow(&mut self, _leader: Epoch, _frame: FrameRef<'_>) -> Result<(), LogError> {
        let reason = "this log keeps no frames, and has no history that another one could follow";
        Err(LogError::BadFrame {
            reason: reason.to_owned(),
        })
    }

    /// Makes all appended frames durable.
    fn sync(&mut self) -> Result<(), LogError>;

    /// The way to read it, also from other threads.
    fn feed(&self) -> LogFeed;

    /// Raises the epoch, durably: writers of older epochs are fenced from now on.
    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError>;

    /// Removes the transactions from `offset` on, durably; the epoch stays. A crash leaves all of them or none. `offset` must lie
    /// between two frames, else it is [`LogError::InsideFrame`].
    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError>;

    /// Removes segments with only transactions before `before_offset`, up to the first that a reader needs. Returns their number.
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError>;

    fn tail(&self) -> Tail;

    /// Marks the log as properly ended, so that damage to its last frame is not taken for a torn tail. Appending afterwards is
    /// allowed.
    fn close(&mut self) -> Result<(), LogError>;
}
