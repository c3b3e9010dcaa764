//! The log of a database that lives in memory only.

use std::sync::Arc;

use lightcone_storage::LogOffset;

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::log::{Frame, Log, Tail};
use crate::reader::{FrameReader, FrameRef, FrameSource};

/// A log whose frames are durable at once, as nothing outlives the process. By default it only counts; [`MemoryLog::retaining`]
/// keeps the frames, for tests.
#[derive(Debug, Default)]
pub struct MemoryLog {
    tail: Tail,
    frames: Option<Vec<Arc<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    first_offset: LogOffset,
    count: u32,
    epoch: Epoch,
    payload: Vec<u8>,
}

impl MemoryLog {
    pub fn new() -> MemoryLog {
        MemoryLog::default()
    }

    /// Keeps its frames for [`Log::read`].
    pub fn retaining() -> MemoryLog {
        MemoryLog {
            frames: Some(Vec::new()),
            ..MemoryLog::default()
        }
    }
}

impl Log for MemoryLog {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        if epoch < self.tail.epoch {
            return Err(LogError::Fenced {
                epoch,
                current: self.tail.epoch,
            });
        }
        let next_offset = frame.first_offset.checked_add(frame.count.into());
        let (Some(next_offset), true) = (
            next_offset,
            frame.first_offset == self.tail.next_offset && frame.count > 0,
        ) else {
            let reason = format!(
                "it has {} transactions and begins with {}, but the next one is {}",
                frame.count, frame.first_offset, self.tail.next_offset
            );
            return Err(LogError::BadFrame { reason });
        };
        if let Some(frames) = &mut self.frames {
            let payload = frame.payload.concat();
            frames.push(Arc::new(Kept {
                first_offset: frame.first_offset,
                count: frame.count,
                epoch,
                payload,
            }));
        } else {
            self.tail.oldest_offset = next_offset;
        }
        self.tail.epoch = epoch;
        self.tail.next_offset = next_offset;
        self.tail.durable_offset = next_offset;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn read(&self, from_offset: LogOffset) -> Result<FrameReader, LogError> {
        let Tail {
            oldest_offset: oldest,
            next_offset: next,
            ..
        } = self.tail;
        if from_offset < oldest || from_offset > next {
            return Err(LogError::OutOfRange {
                wanted: from_offset,
                oldest,
                next,
            });
        }
        let mut left: Vec<_> = self
            .frames
            .iter()
            .flatten()
            .filter(|kept| kept.next_offset() > from_offset)
            .cloned()
            .collect();
        left.reverse();
        Ok(FrameReader::new(Box::new(KeptSource {
            left,
            current: None,
        })))
    }

    fn seal(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        if epoch < self.tail.epoch {
            return Err(LogError::Fenced {
                epoch,
                current: self.tail.epoch,
            });
        }
        self.tail.epoch = epoch;
        Ok(self.tail)
    }

    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        let Some(frames) = &mut self.frames else {
            return Ok(0);
        };
        let removed = frames.partition_point(|kept| kept.next_offset() <= before_offset);
        frames.drain(..removed);
        self.tail.oldest_offset = frames
            .first()
            .map_or(self.tail.next_offset, |kept| kept.first_offset);
        Ok(removed as u64)
    }

    fn tail(&self) -> Tail {
        self.tail
    }

    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

impl Kept {
    fn next_offset(&self) -> LogOffset {
        self.first_offset + u64::from(self.count)
    }
}

struct KeptSource {
    /// The next one last.
    left: Vec<Arc<Kept>>,
    current: Option<Arc<Kept>>,
}

impl FrameSource for KeptSource {
    fn next_frame(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        self.current = self.left.pop();
        Ok(self.current.as_ref().map(|kept| FrameRef {
            first_offset: kept.first_offset,
            count: kept.count,
            epoch: kept.epoch,
            payload: &kept.payload,
        }))
    }
}
