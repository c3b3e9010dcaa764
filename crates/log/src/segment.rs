//! Reading one segment, frame by frame, with every check.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_storage::{Directory, FilePosition, LogOffset, NamedFile, OpenMode};

use crate::chain::Chain;
use crate::error::LogError;
use crate::format::{
    parse_segment_name, FrameHeader, SegmentHeader, SegmentHeaderError, FORMAT_1, FORMAT_VERSION,
    FRAMES_START, FRAME_FIRST_BYTE, FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES,
};
use crate::format_1;

const READ_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub header: SegmentHeader,
}

impl Segment {
    pub fn frame_header_bytes(&self) -> usize {
        match self.header.version {
            FORMAT_1 => format_1::FRAME_HEADER_BYTES,
            _ => FRAME_HEADER_BYTES,
        }
    }

    /// The header of the frame at `position`, if these bytes are one that was written there.
    fn decode_frame(&self, bytes: &[u8], position: FilePosition) -> Option<FrameHeader> {
        match self.header.version {
            FORMAT_1 => format_1::decode(bytes, self.header.salt, position),
            _ => FrameHeader::decode(bytes, self.header.salt, position),
        }
    }
}

/// Behind the name of what a repair took out. It stays.
pub(crate) const REMOVED: &str = ".removed";
/// Behind the name of a segment that an interrupted cut has left. The next opening but one removes it.
pub(crate) const CUT: &str = ".cut";

/// Renames a segment so that it is none any more. Returns its new name and how long it is.
pub(crate) fn set_aside(
    directory: &Directory,
    path: &Path,
    suffix: &str,
) -> Result<(PathBuf, u64), LogError> {
    let to = free_name(directory, &(file_name(path) + suffix))?;
    let end = directory.open(path, OpenMode::Read)?.end()?;
    directory.rename("rename", path, &to)?;
    Ok((to, end.get()))
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `name`, or `name` with a number, whichever is not taken yet.
pub(crate) fn free_name(directory: &Directory, name: &str) -> Result<PathBuf, LogError> {
    let taken = directory.list()?;
    let mut free = name.to_owned();
    let mut number = 1;
    while taken.contains(&free) {
        number += 1;
        free = format!("{name}.{number}");
    }
    Ok(directory.join(free))
}

/// The segment files in `directory`, sorted by their first offset.
pub(crate) fn list_segments(directory: &Directory) -> Result<Vec<(LogOffset, PathBuf)>, LogError> {
    let names = directory.list()?;
    let mut segments: Vec<_> = names
        .iter()
        .filter_map(|name| Some((parse_segment_name(name)?, directory.join(name))))
        .collect();
    segments.sort();
    Ok(segments)
}

/// Fails if segments are missing between the two.
pub(crate) fn check_number(before: &Segment, next: &Segment) -> Result<(), LogError> {
    let (number, number_before) = (next.header.number, before.header.number);
    if number == number_before.wrapping_add(1) {
        return Ok(());
    }
    Err(LogError::Gap {
        file: next.path.clone(),
        found: format!(
            "this is segment number {number}, but the one before it, {}, is number {number_before}",
            before.path.display(),
        ),
    })
}

/// Reads the header of a segment.
pub(crate) fn decode_header(
    directory: &Directory,
    path: &Path,
) -> Result<Result<SegmentHeader, SegmentHeaderError>, LogError> {
    let file = directory.open(path, OpenMode::Read)?;
    let mut block = vec![0; SEGMENT_HEADER_BYTES];
    let bytes = file.read_full(&mut block, FilePosition::START)?;
    Ok(SegmentHeader::decode(&block[..bytes]))
}

/// Reads the header of a segment and checks it against its name and the database.
pub(crate) fn read_header(
    directory: &Directory,
    path: &Path,
    name_offset: LogOffset,
    database: &[u8; 32],
) -> Result<Arc<Segment>, LogError> {
    let damaged = |found: String| LogError::Damaged {
        file: path.to_owned(),
        byte_offset: FilePosition::START,
        found,
    };
    let foreign = |found: String| LogError::Foreign {
        file: path.to_owned(),
        found,
    };
    let header = match decode_header(directory, path)? {
        Ok(header) => header,
        Err(SegmentHeaderError::Damaged(found)) => return Err(damaged(found.to_owned())),
        Err(SegmentHeaderError::Version(version)) => {
            return Err(foreign(format!(
                "its format is version {version}, and this server reads versions up to {FORMAT_VERSION}. Use the server version that wrote it."
            )))
        }
    };
    if header.database != *database {
        return Err(foreign("it belongs to another database. Put each database's files back into its own directory.".to_owned()));
    }
    if header.start.next_offset != name_offset {
        return Err(damaged(format!(
            "its header says that it begins with transaction {}, not {name_offset}",
            header.start.next_offset
        )));
    }
    Ok(Arc::new(Segment {
        path: path.to_owned(),
        header,
    }))
}

/// A place between two frames of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentPlace {
    pub position: FilePosition,
    pub chain: Chain,
}

impl SegmentPlace {
    pub fn at_start_of(header: &SegmentHeader) -> SegmentPlace {
        SegmentPlace {
            position: FRAMES_START,
            chain: header.start,
        }
    }
}

/// What is at the place where the next frame is expected.
pub(crate) enum Step {
    /// A good frame; [`SegmentReader::payload`] has its payload unless it was skipped.
    Frame(FrameHeader),
    /// Zeros or the end of the file.
    End,
    Bad {
        found: String,
        /// No crash during the write explains it.
        certain: bool,
    },
}

impl Step {
    /// A crash during the write may have left it.
    fn maybe_torn(found: String) -> Step {
        Step::Bad {
            found,
            certain: false,
        }
    }

    /// No crash explains it.
    fn damaged(found: String) -> Step {
        Step::Bad {
            found,
            certain: true,
        }
    }
}

#[derive(Clone)]
pub(crate) struct SegmentReader {
    pub segment: Arc<Segment>,
    file: Arc<NamedFile>,
    pub position: FilePosition,
    /// Reading ends here.
    pub end: FilePosition,
    /// No frame follows in this file.
    pub is_over: bool,
    pub chain: Chain,
    buffer: Vec<u8>,
    /// Where in the file `buffer` begins.
    buffer_position: FilePosition,
    /// The frames before it were verified already.
    verified_end: FilePosition,
    payload: Range<usize>,
}

impl SegmentReader {
    /// Reading ends at `limit`, or else at the end of the file.
    pub fn open(
        directory: &Directory,
        segment: &Arc<Segment>,
        limit: Option<FilePosition>,
    ) -> Result<SegmentReader, LogError> {
        let start = SegmentPlace::at_start_of(&segment.header);
        SegmentReader::open_at(directory, segment, start, limit)
    }

    /// As `open`, from a place between two frames.
    pub fn open_at(
        directory: &Directory,
        segment: &Arc<Segment>,
        start: SegmentPlace,
        limit: Option<FilePosition>,
    ) -> Result<SegmentReader, LogError> {
        let file = directory.open(&segment.path, OpenMode::Read)?;
        let mut reader = SegmentReader {
            segment: segment.clone(),
            file: Arc::new(file),
            position: start.position,
            end: start.position,
            is_over: false,
            chain: start.chain,
            buffer: Vec::new(),
            buffer_position: FilePosition::START,
            verified_end: FilePosition::START,
            payload: 0..0,
        };
        reader.read_on_to(limit)?;
        Ok(reader)
    }

    /// The frames from the first one on are known, and are neither read from the file nor verified.
    pub fn with_frames(self, frames: Vec<u8>) -> SegmentReader {
        SegmentReader {
            verified_end: FRAMES_START + frames.len() as u64,
            buffer: frames,
            buffer_position: FRAMES_START,
            ..self
        }
    }

    /// What is read from here on comes from the disk, as far as the system allows it, and what was read is not kept in the cache.
    pub fn forget_cached(&self) {
        self.file.file.forget_cached();
    }

    /// Moves the end of reading to `limit`, or else to the end of the file.
    pub fn read_on_to(&mut self, limit: Option<FilePosition>) -> Result<(), LogError> {
        let file_end = self.file.end()?;
        self.end = limit.map_or(file_end, |limit| limit.min(file_end));
        let is_short = limit.is_none_or(|limit| limit > file_end);
        self.is_over = is_short && self.position >= file_end;
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.segment.path
    }

    pub fn damaged(&self, found: String) -> LogError {
        LogError::Damaged {
            file: self.segment.path.clone(),
            byte_offset: self.position,
            found,
        }
    }

    /// Fails unless `next` begins exactly where the frames of this segment end.
    pub fn check_joint(&self, next: &Segment) -> Result<(), LogError> {
        let (chain, begins) = (self.chain, next.header.start);
        if begins.next_offset == chain.next_offset
            && begins.hash == chain.hash
            && begins.epoch >= chain.epoch
        {
            return Ok(());
        }
        Err(self.damaged(format!(
            "the frames end here before transaction {}, in epoch {}, with hash {}, but the next segment, {}, goes on with transaction {}, in epoch {}, after hash {}",
            chain.next_offset,
            chain.epoch,
            chain.hash,
            next.path.display(),
            begins.next_offset,
            begins.epoch,
            begins.hash,
        )))
    }

    pub fn place(&self) -> SegmentPlace {
        SegmentPlace {
            position: self.position,
            chain: self.chain,
        }
    }

    /// The payload of the frame that [`SegmentReader::step`] returned last.
    pub fn payload(&self) -> &[u8] {
        &self.buffer[self.payload.clone()]
    }

    /// Where `bytes` bytes from `position` are in the buffer; fewer at the end.
    fn view(&mut self, position: FilePosition, bytes: usize) -> Result<Range<usize>, LogError> {
        let bytes = bytes.min(position.bytes_to(self.end) as usize);
        let have = self.buffer_position + self.buffer.len() as u64;
        if position < self.buffer_position || position + bytes as u64 > have {
            let wanted = bytes
                .max(READ_BYTES)
                .min(position.bytes_to(self.end) as usize);
            // A frame that crosses the end of the buffer is not read twice.
            let kept = if (self.buffer_position..have).contains(&position) {
                let start = (position - self.buffer_position) as usize;
                self.buffer.copy_within(start.., 0);
                self.buffer.len() - start
            } else {
                0
            };
            self.buffer.resize(wanted.max(kept), 0);
            self.buffer_position = position;
            let rest = position + kept as u64;
            let read = self.file.read_full(&mut self.buffer[kept..], rest)?;
            self.buffer.truncate(kept + read);
        }
        let start = (position - self.buffer_position) as usize;
        Ok(start..(start + bytes).min(self.buffer.len()))
    }

    /// Reads the next frame. One with only transactions before `skip_before` is not verified beyond its header; the next one that is
    /// read verifies what its hash was.
    pub fn step(&mut self, skip_before: LogOffset) -> Result<Step, LogError> {
        let header_bytes = self.segment.frame_header_bytes();
        let view = self.view(self.position, header_bytes)?;
        let bytes = &self.buffer[view];
        if is_zero(bytes) {
            return Ok(Step::End);
        }
        if bytes.len() < header_bytes {
            let found = "the file ends inside a frame header".to_owned();
            return Ok(Step::maybe_torn(found));
        }
        let Some(frame) = self.segment.decode_frame(bytes, self.position) else {
            let found = "there is no frame header, or one whose checksum is wrong".to_owned();
            return Ok(Step::maybe_torn(found));
        };
        let Some(next_offset) = frame.next_offset().filter(|_| frame.is_possible()) else {
            return Ok(Step::damaged("the frame's sizes are impossible".to_owned()));
        };
        let is_skipped = frame.count > 0 && next_offset <= skip_before;
        if let Some(bad) = self.read_payload(&frame, next_offset, is_skipped)? {
            return Ok(bad);
        }
        if let Some(bad) = self.find_break(&frame) {
            return Ok(bad);
        }
        self.position += (header_bytes + frame.payload_bytes as usize) as u64;
        self.chain = self.chain.with(frame.epoch, frame.count, frame.hash);
        Ok(Step::Frame(frame))
    }

    /// Goes to the first end of a frame that is not before `offset`. Returns with which transaction that frame begins.
    pub fn skip_to(&mut self, offset: LogOffset) -> Result<LogOffset, LogError> {
        let mut first_offset = self.chain.next_offset;
        while self.chain.next_offset < offset {
            first_offset = self.chain.next_offset;
            match self.step(offset)? {
                Step::Frame(_) => {}
                Step::Bad { found, .. } => return Err(self.damaged(found)),
                Step::End => {
                    let found = format!("the frames end here, before transaction {offset}");
                    return Err(self.damaged(found));
                }
            }
        }
        Ok(first_offset)
    }

    /// Reads the payload behind this header, unless it is skipped, and says what is wrong with it.
    fn read_payload(
        &mut self,
        frame: &FrameHeader,
        next_offset: LogOffset,
        is_skipped: bool,
    ) -> Result<Option<Step>, LogError> {
        let start = self.position + self.segment.frame_header_bytes() as u64;
        let payload_bytes = frame.payload_bytes as usize;
        if u64::from(frame.payload_bytes) > start.bytes_to(self.end) {
            let found = format!("the file ends inside a payload of {payload_bytes} bytes");
            return Ok(Some(Step::maybe_torn(found)));
        }
        if is_skipped {
            self.payload = 0..0;
            return Ok(None);
        }
        let view = self.view(start, payload_bytes)?;
        let bytes = &self.buffer[view.clone()];
        // The end of a torn tail may look like this, if it was cut and the cut did not reach the disk everywhere.
        let follows = self.position < self.verified_end || frame.follows(self.chain.hash, bytes);
        if bytes.len() < payload_bytes || !follows {
            return Ok(Some(Step::maybe_torn(format!(
                "the hash of the frame (transactions {} to {next_offset}, exclusive; {payload_bytes} bytes) is wrong: it is not as it was written, or does not follow the one before it",
                frame.first_offset,
            ))));
        }
        self.payload = view;
        Ok(None)
    }

    /// What is wrong with a frame that was written here, and should not have been.
    fn find_break(&self, frame: &FrameHeader) -> Option<Step> {
        let chain = &self.chain;
        if frame.first_offset != chain.next_offset {
            return Some(Step::damaged(format!(
                "the frame begins with transaction {}, expected {}",
                frame.first_offset, chain.next_offset
            )));
        }
        // What a leader has sent may be older than what was promised to him.
        let epoch = match frame.count {
            0 => chain.epoch,
            _ => chain.written,
        };
        if frame.epoch < epoch {
            return Some(Step::damaged(format!(
                "the frame has epoch {}, but the log was at epoch {epoch}",
                frame.epoch
            )));
        }
        None
    }

    /// Reads everything behind the last good frame.
    pub fn look_behind(&mut self) -> Result<Behind, LogError> {
        let damaged_at = self.position;
        let mut behind = Behind {
            written_end: damaged_at,
            proof: None,
        };
        let mut position = damaged_at;
        loop {
            // Windows overlap by a header, so that none is missed at a border.
            let view = self.view(position, READ_BYTES)?;
            let window = &self.buffer[view];
            if !is_zero(window) {
                let last = window.iter().rposition(|byte| *byte != 0);
                let last = last.expect("not all are zero");
                behind.written_end = position + last as u64 + 1;
                behind.proof = behind
                    .proof
                    .or_else(|| self.find_proof(window, position, damaged_at));
            }
            if window.len() < READ_BYTES {
                return Ok(behind);
            }
            position += (READ_BYTES - self.segment.frame_header_bytes()) as u64;
        }
    }

    /// A frame in `window`, at `position`, that was written after `damaged_at` had been synced.
    fn find_proof(
        &self,
        window: &[u8],
        position: FilePosition,
        damaged_at: FilePosition,
    ) -> Option<FilePosition> {
        let header_bytes = self.segment.frame_header_bytes();
        let starts = window.len().saturating_sub(header_bytes - 1);
        let mut at = 0;
        while let Some(found) = window[at..starts.max(at)]
            .iter()
            .position(|byte| *byte == FRAME_FIRST_BYTE)
        {
            let start = at + found;
            let bytes = &window[start..start + header_bytes];
            let here = position + start as u64;
            if let Some(frame) = self.segment.decode_frame(bytes, here) {
                // Before a frame only the last `unsynced_bytes` may have been unsynced when it was written.
                if damaged_at.bytes_to(here) > u64::from(frame.unsynced_bytes) {
                    return Some(here);
                }
            }
            at = start + 1;
        }
        None
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // In blocks: preallocated segments have megabytes of zeros.
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}

/// What lies behind the last good frame.
pub(crate) struct Behind {
    /// Only zeros from here on.
    pub written_end: FilePosition,
    /// A frame here was written after the place before was synced: what is wrong there is damage.
    pub proof: Option<FilePosition>,
}
