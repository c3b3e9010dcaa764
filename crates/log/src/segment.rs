//! Reading one segment, frame by frame, with every check.

use std::path::{Path, PathBuf};

use lightcone_storage::{read_full_at, File, FilePosition, LogOffset, OpenMode, Storage};

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::format::{
    parse_segment_name, payload_checksum, FrameHeader, SegmentHeader, SegmentHeaderError,
    FORMAT_VERSION, FRAMES_START, FRAME_HEADER_BYTES, FRAME_MAGIC, PAYLOAD_BYTES_MAX,
    SEGMENT_HEADER_BYTES,
};

const READ_BYTES: usize = 1 << 20;

/// What the next frame must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub next_offset: LogOffset,
    pub epoch: Epoch,
    pub previous_hash: u64,
}

impl Chain {
    pub fn at_start_of(header: &SegmentHeader) -> Chain {
        Chain {
            next_offset: header.first_offset,
            epoch: header.epoch,
            previous_hash: header.previous_hash,
        }
    }

    /// The check for the frame behind the one with this header and hash; or what is wrong with that one.
    fn after(self, header: &FrameHeader, hash: u64) -> Result<Chain, Step> {
        if header.previous_hash != self.previous_hash {
            // The end of a torn tail may look like this, if it was cut and the cut did not reach the disk everywhere.
            return Err(Step::maybe_torn(format!(
                "the frame does not follow the one before it (hash {:016x}, expected {:016x})",
                header.previous_hash, self.previous_hash
            )));
        }
        if header.first_offset != self.next_offset {
            return Err(Step::damaged(format!(
                "the frame begins with transaction {}, expected {}",
                header.first_offset, self.next_offset
            )));
        }
        if header.epoch < self.epoch {
            return Err(Step::damaged(format!(
                "the frame has epoch {}, but the log was at epoch {}",
                header.epoch, self.epoch
            )));
        }
        match header.next_offset() {
            Some(next_offset) if header.payload_bytes as usize <= PAYLOAD_BYTES_MAX => Ok(Chain {
                next_offset,
                epoch: header.epoch,
                previous_hash: hash,
            }),
            _ => Err(Step::damaged("the frame's sizes are impossible".to_owned())),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub header: SegmentHeader,
}

pub(crate) fn remove_if_there(storage: &dyn Storage, path: &Path) -> Result<(), LogError> {
    match storage.remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LogError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The segment files in `directory`, sorted by their first offset.
pub(crate) fn list_segments(
    storage: &dyn Storage,
    directory: &Path,
) -> Result<Vec<(LogOffset, PathBuf)>, LogError> {
    let names = storage
        .list(directory)
        .map_err(LogError::io("list", directory))?;
    let mut segments: Vec<_> = names
        .iter()
        .filter_map(|name| Some((parse_segment_name(name)?, directory.join(name))))
        .collect();
    segments.sort();
    Ok(segments)
}

/// Reads the header of a segment and checks it against its name, the database and the segment before it.
pub(crate) fn read_header(
    storage: &dyn Storage,
    path: &Path,
    name_offset: LogOffset,
    database: &[u8; 32],
    before: Option<&Segment>,
) -> Result<Segment, LogError> {
    let file = storage
        .open(path, OpenMode::Read)
        .map_err(LogError::io("open", path))?;
    let mut block = vec![0; SEGMENT_HEADER_BYTES];
    let bytes = read_full_at(&*file, &mut block, FilePosition::START)
        .map_err(LogError::io("read", path))?;
    let damaged = |found: String| LogError::Damaged {
        file: path.to_owned(),
        byte_offset: FilePosition::START,
        found,
    };
    let foreign = |found: String| LogError::Foreign {
        file: path.to_owned(),
        found,
    };
    let header = match SegmentHeader::decode(&block[..bytes]) {
        Ok(header) => header,
        Err(SegmentHeaderError::Damaged(found)) => return Err(damaged(found.to_owned())),
        Err(SegmentHeaderError::Version(version)) => {
            return Err(foreign(format!(
                "its format is version {version}, and this server reads version {FORMAT_VERSION}. Use the server version that wrote it."
            )))
        }
    };
    if header.database != *database {
        return Err(foreign("it belongs to another database. Put each database's files back into its own directory.".to_owned()));
    }
    if header.first_offset != name_offset {
        return Err(damaged(format!(
            "its header says that it begins with transaction {}, not {name_offset}",
            header.first_offset
        )));
    }
    if let Some(before) = before {
        if header.number != before.header.number.wrapping_add(1) {
            let found = format!(
                "this is segment number {}, but the one before it, {}, is number {}",
                header.number,
                before.path.display(),
                before.header.number
            );
            return Err(LogError::Gap {
                file: path.to_owned(),
                found,
            });
        }
    }
    Ok(Segment {
        path: path.to_owned(),
        header,
    })
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
            chain: Chain::at_start_of(header),
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

pub(crate) struct SegmentReader {
    pub path: PathBuf,
    file: Box<dyn File>,
    pub salt: u64,
    pub position: FilePosition,
    /// Reading ends here.
    pub end: FilePosition,
    pub chain: Chain,
    buffer: Vec<u8>,
    /// Where in the file `buffer` begins.
    buffer_position: FilePosition,
    payload: std::ops::Range<usize>,
}

impl SegmentReader {
    /// Reading ends at `limit`, or else at the end of the file.
    pub fn open(
        storage: &dyn Storage,
        segment: &Segment,
        limit: Option<FilePosition>,
    ) -> Result<SegmentReader, LogError> {
        let start = SegmentPlace::at_start_of(&segment.header);
        SegmentReader::open_at(storage, segment, start, limit)
    }

    /// As `open`, from a place between two frames.
    pub fn open_at(
        storage: &dyn Storage,
        segment: &Segment,
        start: SegmentPlace,
        limit: Option<FilePosition>,
    ) -> Result<SegmentReader, LogError> {
        let path = segment.path.clone();
        let file = storage
            .open(&path, OpenMode::Read)
            .map_err(LogError::io("open", &path))?;
        let file_end = file
            .length()
            .map(FilePosition::new)
            .map_err(LogError::io("read the length of", &path))?;
        Ok(SegmentReader {
            path,
            file,
            salt: segment.header.salt,
            position: start.position,
            end: limit.map_or(file_end, |limit| limit.min(file_end)),
            chain: start.chain,
            buffer: Vec::new(),
            buffer_position: FilePosition::START,
            payload: 0..0,
        })
    }

    /// The frames from the first one on are known, and are not read from the file.
    pub fn with_frames(self, frames: Vec<u8>) -> SegmentReader {
        SegmentReader {
            buffer: frames,
            buffer_position: FRAMES_START,
            ..self
        }
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
    fn view(
        &mut self,
        position: FilePosition,
        bytes: usize,
    ) -> Result<std::ops::Range<usize>, LogError> {
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
            let read = read_full_at(
                &*self.file,
                &mut self.buffer[kept..],
                position + kept as u64,
            )
            .map_err(LogError::io("read", &self.path))?;
            self.buffer.truncate(kept + read);
        }
        let start = (position - self.buffer_position) as usize;
        Ok(start..(start + bytes).min(self.buffer.len()))
    }

    /// Reads the next frame. The payload of a frame with only transactions before `skip_before` is not read.
    pub fn step(&mut self, skip_before: LogOffset) -> Result<Step, LogError> {
        let view = self.view(self.position, FRAME_HEADER_BYTES)?;
        let bytes = &self.buffer[view];
        if is_zero(bytes) {
            return Ok(Step::End);
        }
        let Ok(bytes) = <&[u8; FRAME_HEADER_BYTES]>::try_from(bytes) else {
            let found = "the file ends inside a frame header".to_owned();
            return Ok(Step::maybe_torn(found));
        };
        let Some((header, hash)) = FrameHeader::decode(bytes, self.salt, self.position) else {
            let found = "there is no frame header, or one whose checksum is wrong".to_owned();
            return Ok(Step::maybe_torn(found));
        };
        let chain = match self.chain.after(&header, hash) {
            Ok(chain) => chain,
            Err(bad) => return Ok(bad),
        };
        let is_skipped = header.count > 0 && chain.next_offset <= skip_before;
        if let Some(bad) = self.read_payload(&header, chain.next_offset, is_skipped)? {
            return Ok(bad);
        }
        self.position += header.frame_bytes();
        self.chain = chain;
        Ok(Step::Frame(header))
    }

    /// Reads the payload behind this header, unless it is skipped, and says what is wrong with it.
    fn read_payload(
        &mut self,
        header: &FrameHeader,
        next_offset: LogOffset,
        is_skipped: bool,
    ) -> Result<Option<Step>, LogError> {
        let start = self.position + FRAME_HEADER_BYTES as u64;
        let payload_bytes = header.payload_bytes as usize;
        if u64::from(header.payload_bytes) > start.bytes_to(self.end) {
            let found = format!("the file ends inside a payload of {payload_bytes} bytes");
            return Ok(Some(Step::maybe_torn(found)));
        }
        if is_skipped {
            self.payload = 0..0;
            return Ok(None);
        }
        let view = self.view(start, payload_bytes)?;
        let bytes = &self.buffer[view.clone()];
        if bytes.len() < payload_bytes || payload_checksum(&[bytes]) != header.payload_checksum {
            return Ok(Some(Step::maybe_torn(format!(
                "the checksum of the payload of {payload_bytes} bytes (transactions {} to {next_offset}, exclusive) is wrong",
                header.first_offset,
            ))));
        }
        self.payload = view;
        Ok(None)
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
            position += (READ_BYTES - FRAME_HEADER_BYTES) as u64;
        }
    }

    /// A frame in `window`, at `position`, that was written after `damaged_at` had been synced.
    fn find_proof(
        &self,
        window: &[u8],
        position: FilePosition,
        damaged_at: FilePosition,
    ) -> Option<FilePosition> {
        let starts = window.len().saturating_sub(FRAME_HEADER_BYTES - 1);
        let mut at = 0;
        while let Some(found) = window[at..starts.max(at)]
            .iter()
            .position(|byte| *byte == FRAME_MAGIC[0])
        {
            let start = at + found;
            let bytes = window[start..start + FRAME_HEADER_BYTES]
                .try_into()
                .expect("a header's length");
            let here = position + start as u64;
            if let Some((header, _)) = FrameHeader::decode(bytes, self.salt, here) {
                // Before a frame only the last `unsynced_bytes` may have been unsynced when it was written.
                if damaged_at.bytes_to(here) > u64::from(header.unsynced_bytes) {
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
