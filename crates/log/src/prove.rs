//! Making sure that what was read from a log is on the disk.
//!
//! Reading proves nothing: after a failed sync Linux counts the pages as clean, shows them to every process until it needs the
//! memory, and lets the next sync succeed without writing them. Names of files may behave so too. Only what some process synced
//! before it went on is on the disk for sure: a frame says how much before it was unsynced when it was written, and nothing is
//! written to a segment before its name is durable. All else is written again.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::{Directory, FilePosition, LogOffset, NamedFile, OpenMode};

use crate::chain::Epoch;
use crate::error::LogError;
use crate::format::{FrameHeader, SegmentHeader, FORMAT_VERSION, FRAMES_START};
use crate::segment::{Segment, SegmentPlace, SegmentReader, Step};

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
    directory: &Directory,
    segment: &Arc<Segment>,
    read: &ReadEnd,
    written_end: FilePosition,
) -> Result<(Arc<Segment>, SegmentPlace, u64), LogError> {
    let header = &segment.header;
    let is_named = header.named_end > FilePosition::START
        && read.last_frame.is_some_and(|last| last >= header.named_end);
    if !is_named || header.version != FORMAT_VERSION {
        let (copied, end) = replace(directory, segment, read.end)?;
        return Ok((copied, end, end.position - FRAMES_START));
    }
    let file = directory.open(&segment.path, OpenMode::ReadWrite)?;
    // The same bytes at the same place: a power failure leaves the old bytes or these.
    let mut copy = Copy::to(&file, header.salt, read.unproven);
    copy.frames(directory, segment, read.unproven, read.end)?;
    let end = copy.write(&[])?;
    file.write_zeros("cut the torn tail of", end.position, written_end)?;
    file.sync()?;
    directory.sync()?;
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
    directory: &Directory,
    segment: &Arc<Segment>,
    end: SegmentPlace,
) -> Result<(Arc<Segment>, SegmentPlace), LogError> {
    let (copied, end) = copy_segment(directory, segment, end, None)?;
    name_copy(directory, &copied)?;
    Ok((copied, end))
}

/// Copies the frames of a segment up to `end` into a file that has no name of a segment yet. With a cut, all behind `end` is cut
/// away, from later segments too, when it gets that. Returns the segment and its end.
pub(crate) fn copy_segment(
    directory: &Directory,
    segment: &Arc<Segment>,
    end: SegmentPlace,
    cut: Option<Cut>,
) -> Result<(Arc<Segment>, SegmentPlace), LogError> {
    let source = directory.join(COPY_NAME);
    let copied = write_copy(directory, &source, segment, end, cut);
    if copied.is_err() {
        // Its bytes may be the last ones that the disk had.
        let _ = directory.remove(&source);
    }
    copied
}

/// Gives a copy the name of its segment, durably.
pub(crate) fn name_copy(directory: &Directory, copied: &Segment) -> Result<(), LogError> {
    directory.name(&directory.join(COPY_NAME), &copied.path)?;
    Ok(directory.sync()?)
}

fn write_copy(
    directory: &Directory,
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
    directory.remove_if_there(source)?;
    let file = directory.open(source, OpenMode::CreateNew)?;
    let mut copy = Copy::to(&file, header.salt, start);
    copy.frames(directory, segment, start, end)?;
    if let Some(cut) = cut.filter(|cut| cut.epoch > end.chain.epoch) {
        copy.frame(cut.epoch, 0, 0, &[])?;
    }
    let end = copy.write(&[])?;
    header.named_end = end.position;
    file.write(&[&header.encode()], FilePosition::START)?;
    file.sync()?;
    let path = segment.path.clone();
    Ok((Arc::new(Segment { path, header }), end))
}

/// Writes frames that are read from elsewhere.
struct Copy<'a> {
    file: &'a NamedFile,
    salt: u64,
    /// Behind the last frame.
    place: SegmentPlace,
    /// What is before `place` and not written yet, and where it goes.
    gathered: Vec<u8>,
    written: FilePosition,
}

impl<'a> Copy<'a> {
    fn to(file: &'a NamedFile, salt: u64, place: SegmentPlace) -> Copy<'a> {
        Copy {
            file,
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
        directory: &Directory,
        segment: &Arc<Segment>,
        from: SegmentPlace,
        to: SegmentPlace,
    ) -> Result<(), LogError> {
        let mut reader = SegmentReader::open_at(directory, segment, from, Some(to.position))?;
        while reader.position < to.position {
            let Step::Frame(frame) = reader.step(LogOffset::FIRST)? else {
                break;
            };
            let (count, unsynced_bytes) = (frame.count, frame.unsynced_bytes);
            self.frame(frame.epoch, count, unsynced_bytes, reader.payload())?;
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
        let SegmentPlace { position, chain } = self.place;
        let (header, chain) = FrameHeader::behind(chain, epoch, count, unsynced_bytes, &[payload]);
        let header_bytes = header.encode(self.salt, position);
        self.gathered.extend_from_slice(&header_bytes);
        self.place = SegmentPlace {
            position: position + header.frame_bytes(),
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
        self.file.write(&[&self.gathered, payload], self.written)?;
        self.written = self.place.position;
        self.gathered.clear();
        Ok(self.place)
    }
}
