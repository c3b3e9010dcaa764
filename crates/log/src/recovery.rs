//! Opening a log: its segments, the end of the last one, and whether that is torn.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{FilePosition, LogOffset, Storage};

use crate::error::LogError;
use crate::log::Tail;
use crate::prove::{prove, ReadEnd};
use crate::segment::{list_segments, read_header, Segment, SegmentPlace, SegmentReader, Step};

/// The result of opening a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub tail: Tail,
    /// An unfinished write that was cut; none of it had been acknowledged.
    pub torn_bytes_cut: u64,
    /// Written again, because nothing proves that they are on the disk.
    pub rewritten_bytes: u64,
    pub segments: usize,
}

/// The good frames of the last segment are kept up to this size for the replay: a usual segment and the frame that it may end with.
pub(crate) const KEPT_BYTES_MAX: usize = 72 << 20;

pub(crate) struct SegmentEnd {
    pub read: ReadEnd,
    /// The frames, unless they are too large.
    pub kept: Option<Vec<u8>>,
    pub state: EndState,
}

pub(crate) enum EndState {
    /// Zeros, or the end of the file.
    Clean,
    /// An unfinished write up to this place.
    Torn { written_end: FilePosition },
    Damaged {
        found: String,
        written_end: FilePosition,
    },
}

/// Reads the frames of the last segment and judges its end.
pub(crate) fn find_end(reader: &mut SegmentReader) -> Result<SegmentEnd, LogError> {
    let mut read = ReadEnd {
        unproven: reader.place(),
        last_frame: None,
        end: reader.place(),
    };
    // The unused part costs no memory.
    let bytes_max = reader.position.bytes_to(reader.end) as usize;
    let mut kept = Some(Vec::with_capacity(bytes_max.min(KEPT_BYTES_MAX)));
    let state = loop {
        let place = reader.place();
        let (found, certain) = match reader.step(LogOffset::FIRST)? {
            Step::Frame(header) => {
                kept = kept
                    .filter(|kept| kept.len() + header.frame_bytes() as usize <= KEPT_BYTES_MAX);
                if let Some(kept) = &mut kept {
                    let (header_bytes, _) = header.encode(reader.salt, place.position);
                    kept.extend_from_slice(&header_bytes);
                    kept.extend_from_slice(reader.payload());
                }
                // All before it had been synced.
                if header.unsynced_bytes == 0 {
                    read.unproven = place;
                }
                read.last_frame = Some(place.position);
                read.end = reader.place();
                continue;
            }
            Step::End => (None, false),
            Step::Bad { found, certain } => (Some(found), certain),
        };
        let behind = reader.look_behind()?;
        let zeros_to_end = behind.written_end == reader.position;
        break match behind.proof {
            _ if zeros_to_end => EndState::Clean,
            None if !certain => EndState::Torn {
                written_end: behind.written_end,
            },
            proof => {
                let mut found =
                    found.unwrap_or_else(|| "there are zeros where a frame is expected".to_owned());
                if let Some(proof) = proof {
                    found += &format!(
                        "; a frame at byte {proof} was written after this place had been synced"
                    );
                }
                EndState::Damaged {
                    found,
                    written_end: behind.written_end,
                }
            }
        };
    };
    Ok(SegmentEnd { read, kept, state })
}

/// The segments of a log with their checked headers.
pub(crate) struct Found {
    pub segments: Vec<Segment>,
    /// The end of the last segment's frames.
    pub end: SegmentPlace,
    /// The frames of the last segment, unless they are too large.
    pub kept: Option<Vec<u8>>,
    pub torn_bytes_cut: u64,
    pub rewritten_bytes: u64,
}

/// Finds the log in `directory`, if there is one. A torn tail is cut, and unproven frames are written again.
pub(crate) fn recover(
    storage: &Arc<dyn Storage>,
    directory: &Path,
    database: &[u8; 32],
) -> Result<Option<Found>, LogError> {
    let mut segments: Vec<Segment> = Vec::new();
    for (first_offset, path) in list_segments(&**storage, directory)? {
        let segment = read_header(&**storage, &path, first_offset, database, segments.last())?;
        segments.push(segment);
    }
    let Some(last) = segments.last() else {
        return Ok(None);
    };
    let mut reader = SegmentReader::open(&**storage, last, None)?;
    let end = find_end(&mut reader)?;
    let written_end = match end.state {
        EndState::Clean => end.read.end.position,
        EndState::Torn { written_end } => written_end,
        EndState::Damaged { found, .. } => {
            return Err(LogError::Damaged {
                file: last.path.clone(),
                byte_offset: end.read.end.position,
                found,
            })
        }
    };
    drop(reader);
    let (last, rewritten_bytes) = prove(&**storage, directory, last, &end.read, written_end)?;
    if let Some(place) = segments.last_mut() {
        *place = last;
    }
    Ok(Some(Found {
        end: end.read.end,
        kept: end.kept,
        torn_bytes_cut: written_end - end.read.end.position,
        rewritten_bytes,
        segments,
    }))
}
