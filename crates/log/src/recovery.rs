//! Opening a log: which segments there are, where the last one ends, and whether its end is torn.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{FilePosition, LogOffset, Storage};

use crate::error::LogError;
use crate::prove::{prove, ReadEnd};
use crate::segment::{list_segments, read_header, Segment, SegmentPlace, SegmentReader, Step};
use crate::Tail;

/// What opening a log found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Where the log ends and begins.
    pub tail: Tail,
    /// Bytes of an unfinished write that were cut from the end; none of them had been acknowledged.
    pub torn_bytes_cut: u64,
    /// Bytes of frames that were written once more, because nothing proves that they are on the disk.
    pub rewritten_bytes: u64,
    /// How many segments there are.
    pub segments: usize,
}

/// Where the frames of a segment end, and how.
pub(crate) struct SegmentEnd {
    pub read: ReadEnd,
    pub state: EndState,
}

pub(crate) enum EndState {
    /// With zeros or the end of the file.
    Clean,
    /// With the rest of an unfinished write, up to this place.
    Torn { written_end: FilePosition },
    /// With damage.
    Damaged {
        found: String,
        written_end: FilePosition,
    },
}

/// Goes through the frames of the last segment and judges its end.
pub(crate) fn find_end(reader: &mut SegmentReader) -> Result<SegmentEnd, LogError> {
    let mut read = ReadEnd {
        unproven: reader.place(),
        last_frame: None,
        end: reader.place(),
    };
    let state = loop {
        let place = reader.place();
        let (found, certain) = match reader.step(LogOffset::FIRST)? {
            Step::Frame(header) => {
                // It was written after everything before it had been synced.
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
    Ok(SegmentEnd { read, state })
}

/// The segments of a log with their headers, all checked, and where the frames end.
pub(crate) struct Found {
    pub segments: Vec<Segment>,
    /// Where the frames of the last segment end.
    pub end: SegmentPlace,
    pub torn_bytes_cut: u64,
    pub rewritten_bytes: u64,
}

/// Finds the log in `directory`; `None` if there is none yet. A torn tail is cut, and what is not
/// proven to be on the disk is written once more.
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
        torn_bytes_cut: written_end - end.read.end.position,
        rewritten_bytes,
        segments,
    }))
}
