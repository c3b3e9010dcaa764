//! Opening a log: which segments there are, where the last one ends, and whether its end is torn.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{write_zeros, OpenMode, Storage};

use crate::error::LogError;
use crate::segment::{list_segments, read_header, Chain, Segment, SegmentReader, Step};
use crate::Tail;

/// What opening a log found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Where the log ends and begins.
    pub tail: Tail,
    /// Bytes of an unfinished write that were cut from the end; none of them had been acknowledged.
    pub torn_bytes_cut: u64,
    /// How many segments there are.
    pub segments: usize,
}

/// Where the frames of a segment end, and how.
pub(crate) struct SegmentEnd {
    pub position: u64,
    pub chain: Chain,
    pub state: EndState,
}

pub(crate) enum EndState {
    /// With zeros or the end of the file.
    Clean,
    /// With the rest of an unfinished write, up to this place.
    Torn { written_end: u64 },
    /// With damage.
    Damaged { found: String, written_end: u64 },
}

/// Goes through the frames of the last segment and judges its end.
pub(crate) fn find_end(reader: &mut SegmentReader) -> Result<SegmentEnd, LogError> {
    let state = loop {
        let (found, certain) = match reader.step(0)? {
            Step::Frame(_) => continue,
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
    Ok(SegmentEnd {
        position: reader.position,
        chain: reader.chain,
        state,
    })
}

/// The segments of a log with their headers, all checked, and where the frames end.
pub(crate) struct Found {
    pub segments: Vec<Segment>,
    pub end_position: u64,
    pub chain: Chain,
    pub torn_bytes_cut: u64,
}

/// Finds the log in `directory`; `None` if there is none yet. A torn tail is cut.
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
    let mut torn_bytes_cut = 0;
    match end.state {
        EndState::Clean => {}
        EndState::Damaged { found, .. } => {
            return Err(LogError::Damaged {
                file: last.path.clone(),
                byte_offset: end.position,
                found,
            })
        }
        EndState::Torn { written_end } => {
            torn_bytes_cut = written_end - end.position;
            clear(&**storage, &last.path, end.position, written_end)?;
        }
    }
    Ok(Some(Found {
        end_position: end.position,
        chain: end.chain,
        torn_bytes_cut,
        segments,
    }))
}

/// Overwrites a part of a segment with zeros, durably.
pub(crate) fn clear(
    storage: &dyn Storage,
    path: &Path,
    from: u64,
    to: u64,
) -> Result<(), LogError> {
    let file = storage
        .open(path, OpenMode::ReadWrite)
        .map_err(LogError::io("open for writing", path))?;
    write_zeros(&*file, from, to).map_err(LogError::io("cut the torn tail of", path))?;
    file.sync_data().map_err(LogError::io("sync", path))
}
