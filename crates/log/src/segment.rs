//! Reading one segment: frame by frame, with every check.

use std::path::{Path, PathBuf};

use lightcone_storage::{read_full_at, File, OpenMode, Storage};

use crate::error::LogError;
use crate::format::{
    parse_segment_name, payload_checksum, FrameHeader, SegmentHeader, SegmentHeaderError,
    FORMAT_VERSION, FRAME_HEADER_BYTES, FRAME_MAGIC, PAYLOAD_BYTES_MAX, SEGMENT_HEADER_BYTES,
};

/// How much is read from a file at once.
const READ_BYTES: usize = 1 << 20;

/// What the next frame must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub next_offset: u64,
    pub epoch: u64,
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
}

/// A segment file and its header.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub header: SegmentHeader,
}

/// The segment files in `directory`, sorted by their first offset.
pub(crate) fn list_segments(
    storage: &dyn Storage,
    directory: &Path,
) -> Result<Vec<(u64, PathBuf)>, LogError> {
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
    name_offset: u64,
    database: &[u8; 32],
    before: Option<&Segment>,
) -> Result<Segment, LogError> {
    let file = storage
        .open(path, OpenMode::Read)
        .map_err(LogError::io("open", path))?;
    let mut block = vec![0; SEGMENT_HEADER_BYTES as usize];
    let bytes = read_full_at(&*file, &mut block, 0).map_err(LogError::io("read", path))?;
    let damaged = |found: String| LogError::Damaged {
        file: path.to_owned(),
        byte_offset: 0,
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
    pub position: u64,
    pub chain: Chain,
}

/// What stands at the place where the next frame is expected.
pub(crate) enum Step {
    /// A good frame; [`SegmentReader::payload`] has its payload unless it was skipped.
    Frame(FrameHeader),
    /// Zeros or the end of the file.
    End,
    /// Something else.
    Bad {
        found: String,
        /// A crash while the frame was written cannot explain it.
        certain: bool,
    },
}

/// Goes through the frames of one segment.
pub(crate) struct SegmentReader {
    pub path: PathBuf,
    file: Box<dyn File>,
    pub salt: u64,
    /// The place of the next frame.
    pub position: u64,
    /// Nothing is read from here on.
    pub end: u64,
    pub chain: Chain,
    buffer: Vec<u8>,
    /// `buffer` holds the file's bytes from here on.
    buffer_position: u64,
    payload: std::ops::Range<usize>,
}

impl SegmentReader {
    /// Opens a segment. Reading ends at `limit`, or else at the end of the file.
    pub fn open(
        storage: &dyn Storage,
        segment: &Segment,
        limit: Option<u64>,
    ) -> Result<SegmentReader, LogError> {
        let start = SegmentPlace {
            position: SEGMENT_HEADER_BYTES,
            chain: Chain::at_start_of(&segment.header),
        };
        SegmentReader::open_at(storage, segment, start, limit)
    }

    /// Opens a segment at a place between two frames. Reading ends at `limit`, or else at the end of the file.
    pub fn open_at(
        storage: &dyn Storage,
        segment: &Segment,
        start: SegmentPlace,
        limit: Option<u64>,
    ) -> Result<SegmentReader, LogError> {
        let path = segment.path.clone();
        let file = storage
            .open(&path, OpenMode::Read)
            .map_err(LogError::io("open", &path))?;
        let length = file
            .length()
            .map_err(LogError::io("read the length of", &path))?;
        Ok(SegmentReader {
            path,
            file,
            salt: segment.header.salt,
            position: start.position,
            end: limit.map_or(length, |limit| limit.min(length)),
            chain: start.chain,
            buffer: Vec::new(),
            buffer_position: 0,
            payload: 0..0,
        })
    }

    /// Where the reader is.
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

    /// Where `bytes` bytes from `position` on lie in the buffer; fewer at the end.
    fn view(&mut self, position: u64, bytes: usize) -> Result<std::ops::Range<usize>, LogError> {
        let bytes = bytes.min(self.end.saturating_sub(position) as usize);
        let have = self.buffer_position + self.buffer.len() as u64;
        if position < self.buffer_position || position + bytes as u64 > have {
            let wanted = bytes
                .max(READ_BYTES)
                .min(self.end.saturating_sub(position) as usize);
            // Keep what is there of it: a frame that crosses the buffer's end is not read twice.
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

    /// Reads the next frame. Frames with only transactions before `skip_before` are passed over: their
    /// headers are checked, their payloads are not read.
    pub fn step(&mut self, skip_before: u64) -> Result<Step, LogError> {
        let bad = |found: String| {
            Ok(Step::Bad {
                found,
                certain: false,
            })
        };
        let certain = |found: String| {
            Ok(Step::Bad {
                found,
                certain: true,
            })
        };
        let position = self.position;
        let view = self.view(position, FRAME_HEADER_BYTES)?;
        let bytes = &self.buffer[view];
        if is_zero(bytes) {
            return Ok(Step::End);
        }
        let Ok(bytes) = <&[u8; FRAME_HEADER_BYTES]>::try_from(bytes) else {
            return bad("the file ends inside a frame header".to_owned());
        };
        let Some((header, hash)) = FrameHeader::decode(bytes, self.salt, position) else {
            return bad("there is no frame header, or one whose checksum is wrong".to_owned());
        };
        let chain = self.chain;
        if header.previous_hash != chain.previous_hash {
            // The rest of a torn tail may look like this, if its cut did not reach the disk everywhere.
            return bad(format!(
                "the frame does not follow the one before it (hash {:016x}, expected {:016x})",
                header.previous_hash, chain.previous_hash
            ));
        }
        if header.first_offset != chain.next_offset {
            return certain(format!(
                "the frame begins with transaction {}, expected {}",
                header.first_offset, chain.next_offset
            ));
        }
        if header.epoch < chain.epoch {
            return certain(format!(
                "the frame has epoch {}, but the log was at epoch {}",
                header.epoch, chain.epoch
            ));
        }
        if header.payload_bytes as usize > PAYLOAD_BYTES_MAX
            || header
                .first_offset
                .checked_add(header.count.into())
                .is_none()
        {
            return certain("the frame's sizes are impossible".to_owned());
        }
        let payload_position = position + FRAME_HEADER_BYTES as u64;
        if u64::from(header.payload_bytes) > self.end.saturating_sub(payload_position) {
            return bad(format!(
                "the file ends inside a payload of {} bytes",
                header.payload_bytes
            ));
        }
        if header.count > 0 && header.next_offset() <= skip_before {
            self.payload = 0..0;
        } else {
            let view = self.view(payload_position, header.payload_bytes as usize)?;
            if payload_checksum(&[&self.buffer[view.clone()]]) != header.payload_checksum
                || view.len() < header.payload_bytes as usize
            {
                return bad(format!(
                    "the checksum of the payload of {} bytes (transactions {} to {}, exclusive) is wrong",
                    header.payload_bytes,
                    header.first_offset,
                    header.next_offset()
                ));
            }
            self.payload = view;
        }
        self.position += header.frame_bytes();
        self.chain = Chain {
            next_offset: header.next_offset(),
            epoch: header.epoch,
            previous_hash: hash,
        };
        Ok(Step::Frame(header))
    }

    /// Looks at everything after the last good frame, which ends at `self.position`.
    pub fn look_behind(&mut self) -> Result<Behind, LogError> {
        let damaged_at = self.position;
        let mut behind = Behind {
            written_end: damaged_at,
            proof: None,
        };
        let mut position = damaged_at;
        loop {
            // Windows overlap by a header, so that none is missed on a border.
            let view = self.view(position, READ_BYTES)?;
            let window = &self.buffer[view];
            let zeros = is_zero(window);
            if !zeros {
                let last = window
                    .iter()
                    .rposition(|byte| *byte != 0)
                    .expect("not all are zero");
                behind.written_end = position + last as u64 + 1;
            }
            if !zeros && behind.proof.is_none() {
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
                        // Everything this far was on the disk before that frame was written.
                        let synced_end = here.saturating_sub(header.unsynced_bytes.into());
                        if damaged_at < synced_end {
                            behind.proof = Some(here);
                            break;
                        }
                    }
                    at = start + 1;
                }
            }
            if window.len() < READ_BYTES {
                return Ok(behind);
            }
            position += (READ_BYTES - FRAME_HEADER_BYTES) as u64;
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Compared in blocks: preallocated segments hold many megabytes of zeros.
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}

/// What lies behind the last good frame.
pub(crate) struct Behind {
    /// Only zeros from here on.
    pub written_end: u64,
    /// A frame here was written after the place in question had been synced: what is wrong there is damage.
    pub proof: Option<u64>,
}
