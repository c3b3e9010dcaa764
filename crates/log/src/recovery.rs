//! Opening a log: its segments, the end of the last one, and whether that is torn.

use std::path::PathBuf;
use std::sync::Arc;

use lightcone_storage::{Directory, FilePosition, LogOffset};

use crate::error::LogError;
use crate::format::{parse_segment_name, FORMAT_VERSION};
use crate::log::Tail;
use crate::prove::{prove, ReadEnd};
use crate::segment::{
    check_number, list_segments, read_header, set_aside, Segment, SegmentPlace, SegmentReader,
    Step, CUT,
};

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
    /// The frames, unless they are too large, or of format 1.
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
    let segment = reader.segment.clone();
    let header = &segment.header;
    // The unused part costs no memory.
    let bytes_max = reader.position.bytes_to(reader.end) as usize;
    let mut kept = Some(Vec::with_capacity(bytes_max.min(KEPT_BYTES_MAX)));
    let state = loop {
        let place = reader.place();
        let (found, certain) = match reader.step(LogOffset::FIRST)? {
            Step::Frame(frame) => {
                kept = kept.filter(|kept| {
                    let bytes = kept.len() + frame.frame_bytes() as usize;
                    bytes <= KEPT_BYTES_MAX && header.version == FORMAT_VERSION
                });
                if let Some(kept) = &mut kept {
                    kept.extend_from_slice(&frame.encode(header.salt, place.position));
                    kept.extend_from_slice(reader.payload());
                }
                // All before it had been synced.
                if frame.unsynced_bytes == 0 {
                    read.unproven = place;
                }
                read.last_frame = Some(place.position);
                read.end = reader.place();
                continue;
            }
            Step::End => (None, false),
            Step::Bad { found, certain } => (Some(found), certain),
        };
        break judge_end(reader, found, certain)?;
    };
    Ok(SegmentEnd { read, kept, state })
}

/// What the end of the last segment is, where a reader has found no frame, but zeros or what it says.
pub(crate) fn judge_end(
    reader: &mut SegmentReader,
    found: Option<String>,
    certain: bool,
) -> Result<EndState, LogError> {
    let behind = reader.look_behind()?;
    let named_end = reader.segment.header.named_end;
    // All before the named end was synced before the file got its name.
    let was_named = reader.position < named_end;
    let certain = certain || was_named;
    let zeros_to_end = behind.written_end == reader.position;
    Ok(match behind.proof {
        _ if zeros_to_end && !was_named => EndState::Clean,
        None if !certain => EndState::Torn {
            written_end: behind.written_end,
        },
        proof => {
            let mut found =
                found.unwrap_or_else(|| "there are zeros where a frame is expected".to_owned());
            if was_named {
                found += &format!(
                    "; all before byte {named_end} was on the disk when the file got its name"
                );
            }
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
    })
}

/// The segments of a log with their checked headers.
pub(crate) struct Found {
    pub segments: Vec<Arc<Segment>>,
    /// The end of the last segment's frames.
    pub end: SegmentPlace,
    /// The frames of the last segment, unless they are too large.
    pub kept: Option<Vec<u8>>,
    pub torn_bytes_cut: u64,
    pub rewritten_bytes: u64,
}

/// Finds the log in `directory`, if there is one. A torn tail is cut, and unproven frames are written again.
pub(crate) fn recover(
    directory: &Directory,
    database: &[u8; 32],
) -> Result<Option<Found>, LogError> {
    let (mut segments, cut_away) = find_segments(directory, database)?;
    let Some(last) = segments.last_mut() else {
        return Ok(None);
    };
    let mut reader = SegmentReader::open(directory, last, None)?;
    let SegmentEnd { read, kept, state } = find_end(&mut reader)?;
    let written_end = match state {
        EndState::Clean => read.end.position,
        EndState::Torn { written_end } => written_end,
        EndState::Damaged { found, .. } => return Err(reader.damaged(found)),
    };
    drop(reader);
    let (proven, end, rewritten_bytes) = prove(directory, last, &read, written_end)?;
    *last = proven;
    // The log is whole without those that an earlier opening has set aside.
    remove_cut_away(directory, &list_cut_away(directory)?)?;
    // The name of the segment with the cut is durable only now.
    set_cut_away_aside(directory, &cut_away)?;
    Ok(Some(Found {
        segments,
        end,
        kept,
        torn_bytes_cut: written_end - read.end.position,
        rewritten_bytes,
    }))
}

/// The segments in `directory`, and those that a cut of the log has left.
pub(crate) fn find_segments(
    directory: &Directory,
    database: &[u8; 32],
) -> Result<(Vec<Arc<Segment>>, Vec<PathBuf>), LogError> {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let mut cut_away: Vec<PathBuf> = Vec::new();
    for (first_offset, path) in list_segments(directory)? {
        let segment = read_header(directory, &path, first_offset, database)?;
        match segments.last() {
            Some(before) if segment.header.cuts < before.header.cuts => cut_away.push(path),
            Some(before) => {
                // A segment that was put back may look like a left one; then others follow it.
                check_number(before, &segment)?;
                segments.push(segment);
            }
            None => segments.push(segment),
        }
    }
    Ok((segments, cut_away))
}

/// What [`set_cut_away_aside`] has renamed.
fn list_cut_away(directory: &Directory) -> Result<Vec<PathBuf>, LogError> {
    let names = directory.list()?;
    let is_cut_away = |name: &&String| {
        let first = name
            .split_once(CUT)
            .map(|(name, _)| parse_segment_name(name));
        first.flatten().is_some()
    };
    let names = names.iter().filter(is_cut_away);
    Ok(names.map(|name| directory.join(name)).collect())
}

/// Renames segments that a cut has left, newest first. The number of cuts alone says that they are that, so they are not removed
/// before the log was opened without them.
fn set_cut_away_aside(directory: &Directory, paths: &[PathBuf]) -> Result<(), LogError> {
    if paths.is_empty() {
        return Ok(());
    }
    for path in paths.iter().rev() {
        set_aside(directory, path, CUT)?;
    }
    Ok(directory.sync()?)
}

/// Removes segments that were cut away, the last one first.
pub(crate) fn remove_cut_away(directory: &Directory, paths: &[PathBuf]) -> Result<(), LogError> {
    if paths.is_empty() {
        return Ok(());
    }
    for path in paths.iter().rev() {
        directory.remove_if_there(path)?;
    }
    Ok(directory.sync()?)
}
