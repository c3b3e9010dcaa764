//! Reading a log once more to find out whether recovery could: it takes no lock, and changes nothing.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{Directory, FilePosition, LogOffset, Storage};

use crate::error::LogError;
use crate::feed::LogFeed;
use crate::recovery::{find_segments, judge_end, EndState};
use crate::segment::{read_header, Segment, SegmentReader, Step};

/// Bytes that are read at a time, or one frame.
const STEP_BYTES: u64 = 1 << 20;

/// Reads, frame by frame, what a recovery from a snapshot reads: the headers of all segments, the frames behind the snapshot, and all
/// of the last segment. It keeps nothing from being trimmed, so a file may go while it reads: then there is an error, and none the next time.
pub struct LogCheck {
    directory: Directory,
    from: LogOffset,
    oldest: LogOffset,
    /// Those behind the one that is read, the last one first.
    behind: Vec<Arc<Segment>>,
    reader: SegmentReader,
    /// All before it in the last segment is durable, and what is behind it is being written. None if no process writes.
    durable_end: Option<FilePosition>,
    is_over: bool,
}

impl LogCheck {
    /// Of a log that is not open, from the transaction `from` on.
    ///
    /// # Errors
    /// What recovery would say of the headers, or that it would lack transactions.
    pub fn of_closed(
        storage: Arc<dyn Storage>,
        directory: &Path,
        database: &[u8; 32],
        from: LogOffset,
    ) -> Result<LogCheck, LogError> {
        let directory = Directory::new(storage, directory);
        let (segments, _) = find_segments(&directory, database)?;
        LogCheck::begin(directory, segments, from, None)
    }

    /// Of an open log, up to what is durable now.
    ///
    /// # Errors
    /// As [`of_closed`](Self::of_closed).
    pub fn of_open(feed: &LogFeed, from: LogOffset) -> Result<LogCheck, LogError> {
        let (segments, end) = feed.segments();
        let directory = feed.directory().clone();
        // As they are on the disk; holding those of the feed would keep them from being trimmed.
        let known = segments.into_iter().map(|known| {
            let header = &known.header;
            let first_offset = header.start.next_offset;
            (known.path.clone(), first_offset, header.database)
        });
        let known: Vec<_> = known.collect();
        let segments = known.iter().map(|(path, first_offset, database)| {
            read_header(&directory, path, *first_offset, database)
        });
        let segments = segments.collect::<Result<_, _>>()?;
        LogCheck::begin(directory, segments, from, Some(end.position))
    }

    fn begin(
        directory: Directory,
        mut segments: Vec<Arc<Segment>>,
        from: LogOffset,
        durable_end: Option<FilePosition>,
    ) -> Result<LogCheck, LogError> {
        let starts = |segment: &Arc<Segment>| segment.header.start.next_offset;
        let oldest = segments.first().map_or(LogOffset::FIRST, starts);
        let before = segments.partition_point(|segment| starts(segment) <= from);
        if before == 0 {
            return Err(LogError::OutOfRange {
                wanted: from,
                oldest,
                next: oldest,
            });
        }
        segments.drain(..before - 1);
        segments.reverse();
        let first = segments.pop().expect("one begins before it");
        let limit = durable_end.filter(|_| segments.is_empty());
        let reader = SegmentReader::open(&directory, &first, limit)?;
        let check = LogCheck {
            directory,
            from,
            oldest,
            behind: segments,
            reader,
            durable_end,
            is_over: false,
        };
        check.forget_cached();
        Ok(check)
    }

    /// Reads some frames. Returns about how many bytes that were; none at the end. Blocks for a bounded piece of work.
    ///
    /// # Errors
    /// What recovery would say.
    pub fn step(&mut self) -> Result<Option<u64>, LogError> {
        if self.is_over {
            return Ok(None);
        }
        let mut bytes = 0;
        while bytes < STEP_BYTES && !self.is_over {
            bytes += self.frame()?;
        }
        Ok(Some(bytes))
    }

    /// Of the next transaction that it reads, or could not read.
    pub fn next_offset(&self) -> LogOffset {
        self.reader.chain.next_offset
    }

    fn frame(&mut self) -> Result<u64, LogError> {
        let is_last = self.behind.is_empty();
        if is_last && self.durable_end == Some(self.reader.position) {
            return self.end();
        }
        // Of the last one recovery reads all.
        let skip_before = match is_last {
            true => LogOffset::FIRST,
            false => self.from,
        };
        let (found, certain) = match self.reader.step(skip_before)? {
            Step::Frame(frame) => return Ok(frame.frame_bytes()),
            Step::End if !is_last => return self.go_on(),
            Step::End => (None, false),
            Step::Bad { found, certain } => (Some(found), certain),
        };
        if !is_last || self.durable_end.is_some() {
            let found = found.unwrap_or_else(|| "the frames end here".to_owned());
            return Err(self.reader.damaged(found));
        }
        match judge_end(&mut self.reader, found, certain)? {
            EndState::Clean | EndState::Torn { .. } => self.end(),
            EndState::Damaged { found, .. } => Err(self.reader.damaged(found)),
        }
    }

    /// With the next segment.
    fn go_on(&mut self) -> Result<u64, LogError> {
        let next = self.behind.pop().expect("it is not the last one");
        self.reader.check_joint(&next)?;
        self.reader.forget_cached();
        let limit = self.durable_end.filter(|_| self.behind.is_empty());
        self.reader = SegmentReader::open(&self.directory, &next, limit)?;
        self.forget_cached();
        Ok(0)
    }

    /// Returns how many bytes are behind it, which were looked at too.
    fn end(&mut self) -> Result<u64, LogError> {
        self.is_over = true;
        let next = self.reader.chain.next_offset;
        if next < self.from {
            return Err(LogError::OutOfRange {
                wanted: self.from,
                oldest: self.oldest,
                next,
            });
        }
        Ok(self.reader.position.bytes_to(self.reader.end))
    }

    fn forget_cached(&self) {
        // What a writer fills next would be read from the disk before each write.
        let is_written = self.durable_end.is_some() && self.behind.is_empty();
        if !is_written {
            self.reader.forget_cached();
        }
    }
}
