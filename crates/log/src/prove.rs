//! Making sure that what was read from a log is on the disk.
//!
//! Reading proves nothing: after a failed sync Linux counts the pages as clean, shows them to every process until it needs the
//! memory, and lets the next sync succeed without writing them. Names of files may behave so too. Only what some process synced
//! before it went on is on the disk for sure: a frame says how much before it was unsynced when it was written, and nothing is
//! written to a segment before its name is durable. All else is written again.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{
    write_all_at, write_zeros, File, FilePosition, LogOffset, OpenMode, Storage,
};

use crate::chain::Epoch;
use crate::error::LogError;
use crate::format::{FrameHeader, SegmentHeader, FORMAT_VERSION, FRAMES_START};
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
/// `written_end`. Returns the segment, its end, and the number of bytes that were written again.
pub(crate) fn prove(
    storage: &dyn Storage,
    directory: &Path,
    segment: &Arc<Segment>,
    read: &ReadEnd,
    written_end: FilePosition,
) -> Result<(Arc<Segment>, SegmentPlace, u64), LogError> {
    let header = &segment.header;
    let is_named = header.named_end > FilePosition::START
        && read.last_frame.is_some_and(|last| last >= header.named_end);
    if !is_named || header.version != FORMAT_VERSION {
        let (copied, end) = replace(storage, directory, segment, read.end)?;
        return Ok((copied, end, end.position - FRAMES_START));
    }
    let path = &segment.path;
    let file = storage
        .open(path, OpenMode::ReadWrite)
        .map_err(LogError::io("open for writing", path))?;
    // The same bytes at the same place: a power failure leaves the old bytes or these.
    let mut copy = Copy::to(&*file, path, header.salt, read.unproven);
    copy.frames(storage, segment, read.unproven, read.end)?;
    let end = copy.write(&[])?;
    write_zeros(&*file, end.position, written_end)
        .map_err(LogError::io("cut the torn tail of", path))?;
    file.sync_data().map_err(LogError::io("sync", path))?;
    storage
        .sync_directory(directory)
        .map_err(LogError::io("sync", directory))?;
    let rewritten_bytes = end.position - read.unproven.position;
    Ok((segment.clone(), end, rewritten_bytes))
}

/// How a log is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// The log stays in this epoch.
    pub epoch: Epoch,
    /// More than any segment has.
    pub cuts: u64,
}

/// Replaces a segment by a copy of its frames up to `end`, durably. The old file stays as it is until then. Returns the segment and
/// its end.
pub(crate) fn replace(
    storage: &dyn Storage,
    directory: &Path,
    segment: &Arc<Segment>,
    end: SegmentPlace,
) -> Result<(Arc<Segment>, SegmentPlace), LogError> {
    let (copied, end) = copy_segment(storage, directory, segment, end, None)?;
    name_copy(storage, directory, &copied)?;
    Ok((copied, end))
}

/// Copies the frames of a segment up to `end` into a file that has no name of a segment yet. With a cut, all behind `end` is cut
/// away, from later segments too, when it gets that. Returns the segment and its end.
pub(crate) fn copy_segment(
    storage: &dyn Storage,
    directory: &Path,
    segment: &Arc<Segment>,
    end: SegmentPlace,
    cut: Option<Cut>,
) -> Result<(Arc<Segment>, SegmentPlace), LogError> {
    let source = directory.join(COPY_NAME);
    let copied = write_copy(storage, &source, segment, end, cut);
    if copied.is_err() {
        // Its bytes may be the last ones that the disk had.
        let _ = storage.remove(&source);
    }
    copied
}

/// Gives a copy the name of its segment, durably.
pub(crate) fn name_copy(
    storage: &dyn Storage,
    directory: &Path,
    copied: &Segment,
) -> Result<(), LogError> {
    let source = directory.join(COPY_NAME);
    storage
        .rename(&source, &copied.path)
        .map_err(LogError::io("name", &copied.path))?;
    storage
        .sync_directory(directory)
        .map_err(LogError::io("sync", directory))
}

fn write_copy(
    storage: &dyn Storage,
    source: &Path,
    segment: &Arc<Segment>,
    end: SegmentPlace,
    cut: Option<Cut>,
) -> Result<(Arc<Segment>, SegmentPlace), LogError> {
    let mut header = SegmentHeader {
        version: FORMAT_VERSION,
        cuts: cut.map_or(segment.header.cuts, |cut| cut.cuts),
        ..segment.header.clone()
    };
    let start = SegmentPlace::at_start_of(&header);
    remove_if_there(storage, source)?;
    let file = storage
        .open(source, OpenMode::CreateNew)
        .map_err(LogError::io("create", source))?;
    let mut copy = Copy::to(&*file, source, header.salt, start);
    copy.frames(storage, segment, start, end)?;
    if let Some(cut) = cut.filter(|cut| cut.epoch > end.chain.epoch) {
        copy.frame(cut.epoch, 0, 0, &[])?;
    }
    let end = copy.write(&[])?;
    header.named_end = end.position;
    write_all_at(&*file, &[&header.encode()], FilePosition::START)
        .map_err(LogError::io("write", source))?;
    file.sync_data().map_err(LogError::io("sync", source))?;
    let path = segment.path.clone();
    Ok((Arc::new(Segment { path, header }), end))
}

/// Writes frames that are read from elsewhere.
struct Copy<'a> {
    file: &'a dyn File,
    path: &'a Path,
    salt: u64,
    /// Behind the last frame.
    place: SegmentPlace,
    /// What is before `place` and not written yet, and where it goes.
    gathered: Vec<u8>,
    written: FilePosition,
}

impl<'a> Copy<'a> {
    fn to(file: &'a dyn File, path: &'a Path, salt: u64, place: SegmentPlace) -> Copy<'a> {
        Copy {
            file,
            path,
            salt,
            place,
            gathered: Vec::new(),
            written: place.position,
        }
    }

    /// Adds the frames between two places of a segment. Each is verified again: what is read now may differ from what was read
    /// before.
    fn frames(
        &mut self,
        storage: &dyn Storage,
        segment: &Arc<Segment>,
        from: SegmentPlace,
        to: SegmentPlace,
    ) -> Result<(), LogError> {
        let mut reader = SegmentReader::open_at(storage, segment, from, Some(to.position))?;
        while reader.position < to.position {
            let Step::Frame(frame) = reader.step(LogOffset::FIRST)? else {
                break;
            };
            self.frame(
                frame.epoch,
                frame.count,
                frame.unsynced_bytes,
                reader.payload(),
            )?;
        }
        match reader.place() == to {
            true => Ok(()),
            false => Err(reader.damaged("this frame was in order a moment ago, and is not any more: the disk or the memory of this machine fails".to_owned())),
        }
    }

    fn frame(
        &mut self,
        epoch: Epoch,
        count: u32,
        unsynced_bytes: u32,
        payload: &[u8],
    ) -> Result<(), LogError> {
        let chain = self.place.chain.after(epoch, count, &[payload]);
        let header = FrameHeader {
            payload_bytes: payload.len() as u32,
            count,
            unsynced_bytes,
            first_offset: self.place.chain.next_offset,
            epoch,
            hash: chain.hash,
            checks_1: None,
        };
        self.gathered
            .extend_from_slice(&header.encode(self.salt, self.place.position));
        self.place = SegmentPlace {
            position: self.place.position + header.frame_bytes(),
            chain,
        };
        if self.gathered.len() + payload.len() > COPY_BYTES {
            return self.write(payload).map(drop);
        }
        self.gathered.extend_from_slice(payload);
        Ok(())
    }

    /// Writes all that was added, and `payload` behind it. Returns the end.
    fn write(&mut self, payload: &[u8]) -> Result<SegmentPlace, LogError> {
        write_all_at(self.file, &[&self.gathered, payload], self.written)
            .map_err(LogError::io("write", self.path))?;
        self.written = self.place.position;
        self.gathered.clear();
        Ok(self.place)
    }
}
