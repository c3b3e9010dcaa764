//! The log of a database that lives in memory only.

use std::path::Path;

use lightcone_storage::{disk, Directory, FilePosition, LogOffset};

use crate::chain::{Chain, Epoch, LogHash};
use crate::error::LogError;
use crate::feed::LogFeed;
use crate::log::{check_epoch, Frame, Log, Tail};
use crate::segment::SegmentPlace;

/// A log that counts, and keeps nothing: its transactions are durable and trimmed at once, as nothing outlives the process.
pub struct MemoryLog {
    next_offset: LogOffset,
    epoch: Epoch,
    feed: LogFeed,
}

impl Default for MemoryLog {
    fn default() -> MemoryLog {
        let (next_offset, epoch) = (LogOffset::FIRST, Epoch::FIRST);
        let no_files = Directory::new(disk(), Path::new(""));
        MemoryLog {
            next_offset,
            epoch,
            feed: LogFeed::new(no_files, Vec::new(), place(next_offset, epoch)),
        }
    }
}

impl MemoryLog {
    pub fn new() -> MemoryLog {
        MemoryLog::default()
    }
}

/// There are no files.
fn place(next_offset: LogOffset, epoch: Epoch) -> SegmentPlace {
    SegmentPlace {
        position: FilePosition::START,
        chain: Chain::at(next_offset, epoch, LogHash::default()),
    }
}

impl Log for MemoryLog {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        check_epoch(epoch, self.epoch)?;
        let next_offset = frame.first_offset.checked_add(frame.count.into());
        let (Some(next_offset), true) = (
            next_offset,
            frame.first_offset == self.next_offset && frame.count > 0,
        ) else {
            let reason = format!(
                "it has {} transactions and begins with {}, but the next one is {}",
                frame.count, frame.first_offset, self.next_offset
            );
            return Err(LogError::BadFrame { reason });
        };
        self.epoch = epoch;
        self.next_offset = next_offset;
        self.feed.publish(place(next_offset, epoch));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn feed(&self) -> LogFeed {
        self.feed.clone()
    }

    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        check_epoch(epoch, self.epoch)?;
        self.epoch = epoch;
        Ok(self.tail())
    }

    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        match offset == self.next_offset {
            true => Ok(self.tail()),
            false => Err(LogError::OutOfRange {
                wanted: offset,
                oldest: self.next_offset,
                next: self.next_offset,
            }),
        }
    }

    fn trim(&mut self, _before_offset: LogOffset) -> Result<u64, LogError> {
        Ok(0)
    }

    fn tail(&self) -> Tail {
        Tail {
            next_offset: self.next_offset,
            durable_offset: self.next_offset,
            oldest_offset: self.next_offset,
            epoch: self.epoch,
            hash: LogHash::default(),
        }
    }

    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        self.feed.end(None);
    }
}
