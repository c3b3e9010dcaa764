//! Making sure that what was read from a log is on the disk.
//!
//! Reading proves nothing: after a failed sync Linux counts the pages as clean, shows them to every process until it needs the
//! memory, and lets the next sync succeed without writing them. Names of files may behave so too. Only what some process synced
//! before it went on is on the disk for sure: a frame says how much before it was unsynced when it was written, and nothing is
//! written to a segment before its name is durable. All else is written again.

use std::path::Path;

use lightcone_storage::{
    write_all_at, write_zeros, File, FilePosition, LogOffset, OpenMode, Storage,
};

use crate::error::LogError;
use crate::format::{SegmentHeader, FRAMES_START};
use crate::segment::{remove_if_there, Segment, SegmentPlace, SegmentReader, Step};

/// A segment that is being copied.
pub(crate) const COPY_NAME: &str = "copy.tmp";
const COPY_BYTES: usize = 1 << 20;

/// The result of reading the frames of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadEnd {
    /// The frames from here on may never have been synced.
    pub unproven: SegmentPlace,
    /// The place of the last good frame.
    pub last_frame: Option<FilePosition>,
    /// The end of the good frames.
    pub end: SegmentPlace,
}

/// Makes the good frames of the last segment, and the names in its directory, durable, and cuts what is behind them up to
/// `written_end`. Returns the segment, and the number of bytes that were written again.
pub(crate) fn prove(
    storage: &dyn Storage,
    directory: &Path,
    segment: &Segment,
    read: &ReadEnd,
    written_end: FilePosition,
) -> Result<(Segment, u64), LogError> {
    let named_end = segment.header.named_end;
    let is_named =
        named_end > FilePosition::START && read.last_frame.is_some_and(|last| last >= named_end);
    if !is_named {
        let copied = replace(storage, directory, segment, read.end)?;
        return Ok((copied, read.end.position - FRAMES_START));
    }
    let path = &segment.path;
    let file = storage
        .open(path, OpenMode::ReadWrite)
        .map_err(LogError::io("open for writing", path))?;
    // The same bytes at the same place: a power failure leaves the old bytes or these.
    copy_frames(storage, segment, read.unproven, read.end, &*file, path)?;
    write_zeros(&*file, read.end.position, written_end)
        .map_err(LogError::io("cut the torn tail of", path))?;
    file.sync_data().map_err(LogError::io("sync", path))?;
    storage
        .sync_directory(directory)
        .map_err(LogError::io("sync", directory))?;
    let rewritten_bytes = read.end.position - read.unproven.position;
    Ok((segment.clone(), rewritten_bytes))
}

/// Replaces a segment by a copy of its frames up to `end`, durably. The old file stays as it is until then.
pub(crate) fn replace(
    storage: &dyn Storage,
    directory: &Path,
    segment: &Segment,
    end: SegmentPlace,
) -> Result<Segment, LogError> {
    let header = SegmentHeader {
        named_end: end.position,
        ..segment.header.clone()
    };
    let start = SegmentPlace::at_start_of(&header);
    let source = directory.join(COPY_NAME);
    remove_if_there(storage, &source)?;
    let file = storage
        .open(&source, OpenMode::CreateNew)
        .map_err(LogError::io("create", &source))?;
    write_all_at(&*file, &[&header.encode()], FilePosition::START)
        .map_err(LogError::io("write", &source))?;
    copy_frames(storage, segment, start, end, &*file, &source)?;
    file.sync_data().map_err(LogError::io("sync", &source))?;
    storage
        .rename(&source, &segment.path)
        .map_err(LogError::io("name", &segment.path))?;
    storage
        .sync_directory(directory)
        .map_err(LogError::io("sync", directory))?;
    Ok(Segment {
        path: segment.path.clone(),
        header,
    })
}

/// Writes the frames between two places to the same places of `file`. Each is verified again: what is read now may differ from what
/// was read before.
fn copy_frames(
    storage: &dyn Storage,
    segment: &Segment,
    from: SegmentPlace,
    to: SegmentPlace,
    file: &dyn File,
    path: &Path,
) -> Result<(), LogError> {
    let mut reader = SegmentReader::open_at(storage, segment, from, Some(to.position))?;
    let mut gathered: Vec<u8> = Vec::new();
    let mut written = from.position;
    while reader.position < to.position {
        let position = reader.position;
        let Step::Frame(header) = reader.step(LogOffset::FIRST)? else {
            break;
        };
        let (header_bytes, _) = header.encode(segment.header.salt, position);
        gathered.extend_from_slice(&header_bytes);
        let payload = reader.payload();
        if gathered.len() + payload.len() <= COPY_BYTES {
            gathered.extend_from_slice(payload);
            continue;
        }
        write_all_at(file, &[&gathered, payload], written).map_err(LogError::io("write", path))?;
        written = reader.position;
        gathered.clear();
    }
    if reader.place() != to {
        return Err(LogError::Damaged {
            file: segment.path.clone(),
            byte_offset: reader.position,
            found: "this frame was in order a moment ago, and is not any more: the disk or the memory of this machine fails".to_owned(),
        });
    }
    write_all_at(file, &[&gathered], written).map_err(LogError::io("write", path))
}
