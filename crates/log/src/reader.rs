//! Reading a log from an offset on.

use std::sync::Arc;

use lightcone_storage::{LogOffset, Storage};

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::segment::{Chain, Segment, SegmentPlace, SegmentReader, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// The offset of the first transaction.
    pub first_offset: LogOffset,
    /// The number of transactions.
    pub count: u32,
    /// The epoch of the writer.
    pub epoch: Epoch,
    /// The records.
    pub payload: &'a [u8],
}

/// The source of a [`FrameReader`]; for implementors of [`crate::Log`].
pub trait FrameSource: Send {
    /// `None` after the last.
    fn next_frame(&mut self) -> Result<Option<FrameRef<'_>>, LogError>;
}

/// The frames of a log, each verified. The first one has the wanted offset, and may begin before it.
pub struct FrameReader(Box<dyn FrameSource>);

impl FrameReader {
    pub fn new(source: Box<dyn FrameSource>) -> FrameReader {
        FrameReader(source)
    }

    /// `None` after the last.
    #[allow(clippy::should_implement_trait)] // The frame borrows the reader's buffer, which an Iterator cannot say.
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        self.0.next_frame()
    }
}

/// A run of segments.
pub(crate) struct LocalSource {
    pub storage: Arc<dyn Storage>,
    /// The next one last.
    pub segments: Vec<Segment>,
    pub current: Option<SegmentReader>,
    pub from_offset: LogOffset,
    /// The end of the last segment's frames.
    pub end: SegmentPlace,
    /// The first frames of the last segment, if they were read already.
    kept: Option<Vec<u8>>,
}

impl LocalSource {
    /// Reads `segments` (in order) from `from_offset` on, up to `end` of the last one.
    pub fn new(
        storage: Arc<dyn Storage>,
        mut segments: Vec<Segment>,
        from_offset: LogOffset,
        end: SegmentPlace,
        kept: Option<Vec<u8>>,
    ) -> Result<LocalSource, LogError> {
        segments.reverse();
        let mut source = LocalSource {
            storage,
            segments,
            current: None,
            from_offset,
            end,
            kept,
        };
        source.open_next(None)?;
        Ok(source)
    }

    /// Opens the next segment, which must begin where `before` ended. False if there is none.
    fn open_next(&mut self, before: Option<SegmentReader>) -> Result<bool, LogError> {
        let Some(segment) = self.segments.pop() else {
            return Ok(false);
        };
        if let Some(before) = before {
            check_joint(&before, &segment)?;
        }
        let is_last = self.segments.is_empty();
        let limit = is_last.then_some(self.end.position);
        let reader = SegmentReader::open(&*self.storage, &segment, limit)?;
        self.current = Some(match self.kept.take_if(|_| is_last) {
            Some(kept) => reader.with_frames(kept),
            None => reader,
        });
        Ok(true)
    }
}

/// Fails unless `next` begins exactly where `before` ended.
pub(crate) fn check_joint(before: &SegmentReader, next: &Segment) -> Result<(), LogError> {
    let chain = before.chain;
    let begins = Chain::at_start_of(&next.header);
    if begins.next_offset == chain.next_offset
        && begins.previous_hash == chain.previous_hash
        && begins.epoch >= chain.epoch
    {
        return Ok(());
    }
    let found = format!(
        "the frames end here before transaction {}, but the next segment, {}, goes on with transaction {} after a frame with hash {:016x} (here: {:016x})",
        chain.next_offset,
        next.path.display(),
        begins.next_offset,
        begins.previous_hash,
        chain.previous_hash,
    );
    Err(LogError::Damaged {
        file: before.path.clone(),
        byte_offset: before.position,
        found,
    })
}

impl FrameSource for LocalSource {
    fn next_frame(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        let header = loop {
            let Some(current) = &mut self.current else {
                return Ok(None);
            };
            match current.step(self.from_offset)? {
                Step::Frame(header)
                    if header.count == 0 || current.chain.next_offset <= self.from_offset => {}
                Step::Frame(header) => break header,
                Step::Bad { found, .. } => {
                    return Err(LogError::Damaged {
                        file: current.path.clone(),
                        byte_offset: current.position,
                        found,
                    })
                }
                Step::End => {
                    let before = self.current.take().expect("matched above");
                    if !self.segments.is_empty() {
                        self.open_next(Some(before))?;
                    } else if before.position != self.end.position
                        || before.chain.next_offset != self.end.chain.next_offset
                    {
                        let found = format!(
                            "the frames end here before transaction {}, but the log goes on to {} (exclusive)",
                            before.chain.next_offset, self.end.chain.next_offset
                        );
                        return Err(LogError::Damaged {
                            file: before.path,
                            byte_offset: before.position,
                            found,
                        });
                    }
                }
            }
        };
        let current = self.current.as_ref().expect("a frame was read from it");
        Ok(Some(FrameRef {
            first_offset: header.first_offset,
            count: header.count,
            epoch: header.epoch,
            payload: current.payload(),
        }))
    }
}
