//! The log in segment files of a local directory.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lightcone_storage::{
    disk, Directory, FilePosition, LogOffset, NamedFile, OpenMode, Refused, Storage,
};

use crate::chain::{Chain, Epoch, LogHash};
use crate::error::LogError;
use crate::feed::LogFeed;
use crate::format::{
    segment_name, FrameHeader, SegmentHeader, FORMAT_VERSION, FRAMES_START, FRAME_HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
};
use crate::log::{check_epoch, Frame, Log, Tail};
use crate::prove::{copy_segment, name_copy, Cut, COPY_NAME};
use crate::reader::FrameRef;
use crate::recovery::{recover, remove_cut_away, Found, Recovery};
use crate::segment::{Segment, SegmentPlace, SegmentReader};

/// Keeps a second process out.
pub(crate) const LOCK_NAME: &str = "lock";
const NEW_NAME: &str = "new.tmp";
/// The next segment, filled with zeros ahead of time.
const SPARE_NAME: &str = "spare.tmp";
/// Zeros are added in steps of this size when no spare segment was ready.
const GROW_BYTES_MIN: u64 = 1 << 20;
const GROW_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A log of another database is refused.
    pub database: [u8; 32],
    /// A segment of this size is full. A single frame may be larger.
    pub segment_bytes: u64,
    /// Fill segments with zeros ahead of the writes, so that a sync writes no metadata: two to three times faster syncs
    /// (measurements: `docs/on-disk-formats.md`) for writing every byte twice.
    pub preallocate: bool,
    /// The first offset of a log that does not exist yet.
    pub first_offset: LogOffset,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            database: [0; 32],
            segment_bytes: 64 << 20,
            preallocate: true,
            first_offset: LogOffset::FIRST,
        }
    }
}

/// The file of the next segment, made in the background.
enum Spare {
    None,
    InTheMaking,
    Ready(NamedFile),
}

/// A log in a directory of segment files.
pub struct LocalLog {
    directory: Directory,
    options: LogOptions,
    feed: LogFeed,
    /// The last one, which is written to.
    segment: Arc<Segment>,
    file: NamedFile,
    /// The place of the next frame.
    place: SegmentPlace,
    /// All before it in the last segment is durable.
    synced_position: FilePosition,
    /// The end of the last segment's file.
    file_end: FilePosition,
    spare: Arc<Mutex<Spare>>,
    poison: Option<Arc<LogError>>,
    _lock: Box<dyn Any + Send + Sync>,
}

impl LocalLog {
    /// Opens the log in `directory`, or begins one in [the first epoch](Epoch::FIRST).
    ///
    /// A torn tail is cut; any other damage is an error. What is not proven to be on the disk is written again: after a failed
    /// sync, reads may have come from the cache.
    pub fn open(directory: &Path, options: LogOptions) -> Result<(LocalLog, Recovery), LogError> {
        LocalLog::open_on(disk(), directory, options)
    }

    /// As [`LocalLog::open`], on any storage.
    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: LogOptions,
    ) -> Result<(LocalLog, Recovery), LogError> {
        let directory = Directory::new(storage, directory);
        directory.create()?;
        let lock = take_lock(&directory)?;
        for name in [NEW_NAME, SPARE_NAME, COPY_NAME] {
            directory.remove_if_there(&directory.join(name))?;
        }
        let found = match recover(&directory, &options.database)? {
            Some(found) => found,
            None => begin_log(&directory, &options)?,
        };
        let segment = found.segments.last();
        let segment = segment.expect("a log has at least one segment").clone();
        let file = directory.open(&segment.path, OpenMode::ReadWrite)?;
        let file_end = file.end()?;
        let segments = found.segments.len();
        let feed = LogFeed::new(directory.clone(), found.segments, found.end);
        feed.keep(found.kept);
        let log = LocalLog {
            feed,
            directory,
            options,
            segment,
            file,
            place: found.end,
            synced_position: found.end.position,
            file_end,
            spare: Arc::new(Mutex::new(Spare::None)),
            poison: None,
            _lock: lock,
        };
        let recovery = Recovery {
            tail: log.tail(),
            torn_bytes_cut: found.torn_bytes_cut,
            rewritten_bytes: found.rewritten_bytes,
            segments,
        };
        Ok((log, recovery))
    }

    /// Frees the frames that were kept for the replay.
    pub fn forget_read(&mut self) {
        self.feed.keep(None);
    }

    /// Writes a frame that fits here.
    fn append_frame(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        let payload_bytes = frame
            .payload
            .iter()
            .try_fold(0usize, |sum, part| sum.checked_add(part.len()));
        let reason = if frame.first_offset != self.place.chain.next_offset {
            format!(
                "it begins with transaction {}, but the next one is {}",
                frame.first_offset, self.place.chain.next_offset
            )
        } else if frame.count == 0 || frame.first_offset.checked_add(frame.count.into()).is_none() {
            format!("it has {} transactions", frame.count)
        } else if payload_bytes.is_none_or(|bytes| bytes > PAYLOAD_BYTES_MAX) {
            format!("its payload is larger than {PAYLOAD_BYTES_MAX} bytes. Change fewer rows in one transaction.")
        } else {
            return self
                .write_frame(epoch, frame.count, frame.payload)
                .map_err(|error| self.poison(error));
        };
        Err(LogError::BadFrame { reason })
    }

    fn check_poison(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(cause) => Err(LogError::Poisoned {
                cause: cause.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Nothing is written after the first failure.
    fn poison(&mut self, cause: LogError) -> LogError {
        let cause = Arc::new(cause);
        self.poison = Some(cause.clone());
        self.feed.end(Some(&cause));
        LogError::Poisoned { cause }
    }

    /// Writes one frame with one write. Any failure poisons the log.
    fn write_frame(&mut self, epoch: Epoch, count: u32, payload: &[&[u8]]) -> Result<(), LogError> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let frame_bytes = (FRAME_HEADER_BYTES + payload_bytes) as u64;
        // A segment is named after its first transaction, so it must have one before the next begins.
        let has_transactions = self.place.chain.next_offset > self.segment.header.start.next_offset;
        if has_transactions && self.place.position + frame_bytes > self.segment_end() {
            self.rotate(epoch)?;
        }
        if self.place.position - self.synced_position > PAYLOAD_BYTES_MAX as u64 {
            self.sync_now()?;
        }
        let SegmentPlace { position, chain } = self.place;
        let unsynced_bytes = (position - self.synced_position) as u32;
        let (header, chain) = FrameHeader::behind(chain, epoch, count, unsynced_bytes, payload);
        let header_bytes = header.encode(self.segment.header.salt, position);
        let mut parts: Vec<&[u8]> = Vec::with_capacity(1 + payload.len());
        parts.push(&header_bytes);
        parts.extend_from_slice(payload);
        self.file.write(&parts, position)?;
        self.place = SegmentPlace {
            position: position + frame_bytes,
            chain,
        };
        if self.place.position > self.file_end {
            self.file_end = self.place.position;
            self.extend()?;
        }
        self.prepare_spare();
        Ok(())
    }

    /// Writes a frame without transactions, durably.
    fn write_mark(&mut self, epoch: Epoch) -> Result<(), LogError> {
        self.write_frame(epoch, 0, &[])
            .and_then(|()| self.sync_now())
            .map_err(|error| self.poison(error))
    }

    fn segment_end(&self) -> FilePosition {
        FilePosition::new(self.options.segment_bytes)
    }

    /// Writes zeros behind the frames, if the segment is to have them.
    fn extend(&mut self) -> Result<(), LogError> {
        let position = self.place.position;
        if !self.options.preallocate || position >= self.segment_end() {
            return Ok(());
        }
        let bytes = position.get().clamp(GROW_BYTES_MIN, GROW_BYTES_MAX);
        let end = self.segment_end().min(position + bytes);
        self.file.write_zeros("extend", position, end)?;
        self.file_end = end;
        Ok(())
    }

    fn sync_now(&mut self) -> Result<(), LogError> {
        if self.synced_position < self.place.position {
            self.file.sync()?;
            self.synced_position = self.place.position;
            self.feed.publish(self.place);
        }
        Ok(())
    }

    fn rotate(&mut self, epoch: Epoch) -> Result<(), LogError> {
        // They belong to the segment before.
        self.forget_read();
        if self.place.position < self.file_end {
            // It only gives unused zeros back.
            let _ = self.file.file.set_length(self.place.position.get());
        }
        self.sync_now()?;
        let spare = {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            match std::mem::replace(&mut *spare, Spare::None) {
                Spare::Ready(file) => Some(file),
                other => {
                    *spare = other;
                    None
                }
            }
        };
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            database: self.options.database,
            number: number_after(&self.segment, self.segment.header.number)?,
            start: Chain {
                epoch: epoch.max(self.place.chain.epoch),
                ..self.place.chain
            },
            salt: self.directory.storage().random_u64(),
            named_end: FRAMES_START,
            cuts: self.segment.header.cuts,
        };
        let zeros_end = first_zeros_end(&self.options);
        let (segment, file, file_end) = begin_segment(&self.directory, header, spare, zeros_end)?;
        self.feed.push(segment.clone());
        self.segment = segment;
        self.file = file;
        self.file_end = file_end;
        self.place.position = FRAMES_START;
        self.synced_position = FRAMES_START;
        Ok(())
    }

    /// Ends the log at a place of `last`, and removes the segments behind it.
    fn cut(
        &mut self,
        last: &Arc<Segment>,
        place: SegmentPlace,
        later: &[Arc<Segment>],
    ) -> Result<(), LogError> {
        let cut = Cut {
            epoch: self.place.chain.epoch,
            // The last segment has the most.
            cuts: number_after(&self.segment, self.segment.header.cuts)?,
        };
        let (segment, end) = copy_segment(&self.directory, last, place, Some(cut))?;
        let name = || name_copy(&self.directory, &segment);
        self.feed.cut(&segment, end, name)?;
        // It is cut. A crash from here on leaves segments that opening sets aside.
        self.file = self.directory.open(&segment.path, OpenMode::ReadWrite)?;
        self.file_end = self.file.end()?;
        self.segment = segment;
        self.place = end;
        self.synced_position = end.position;
        let later: Vec<PathBuf> = later.iter().map(|segment| segment.path.clone()).collect();
        remove_cut_away(&self.directory, &later)
    }

    /// Has the next segment filled with zeros once this one is half full. If that fails or is late, the next segment is extended in
    /// steps.
    fn prepare_spare(&mut self) {
        if !self.options.preallocate || self.place.position.get() < self.options.segment_bytes / 2 {
            return;
        }
        {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*spare, Spare::None) {
                return;
            }
            *spare = Spare::InTheMaking;
        }
        let (directory, place) = (self.directory.clone(), self.spare.clone());
        let bytes = self.options.segment_bytes;
        let task = move || {
            let made = make_spare(&directory, bytes);
            // No second try: the log will meet a full disk itself.
            if let Ok(file) = made {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Spare::Ready(file);
            }
        };
        // Without a thread there is no spare segment, which costs time only.
        let storage = self.directory.storage();
        let _ = storage.run_in_background("log spare segment", Box::new(task));
    }
}

/// The one after a number in the header of a segment.
fn number_after(segment: &Segment, number: u64) -> Result<u64, LogError> {
    number.checked_add(1).ok_or_else(|| LogError::Damaged {
        file: segment.path.clone(),
        byte_offset: FilePosition::START,
        found: format!("its header counts up to {number}, and there is no number after that"),
    })
}

/// The place in a segment before the transaction with this offset.
fn find_place(
    directory: &Directory,
    segment: &Arc<Segment>,
    offset: LogOffset,
) -> Result<SegmentPlace, LogError> {
    let mut reader = SegmentReader::open(directory, segment, None)?;
    let first_offset = reader.skip_to(offset)?;
    let next_offset = reader.chain.next_offset;
    if next_offset > offset {
        return Err(LogError::InsideFrame {
            offset,
            first_offset,
            next_offset,
        });
    }
    Ok(reader.place())
}

pub(crate) fn take_lock(directory: &Directory) -> Result<Box<dyn Any + Send + Sync>, LogError> {
    let path = directory.join(LOCK_NAME);
    let lock = directory.storage().lock(&path);
    lock.map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => LogError::Locked {
            directory: directory.path().to_owned(),
        },
        _ => LogError::Io {
            action: "lock",
            path,
            source: error,
        },
    })
}

/// The first end of the zeros in a segment without a spare file.
fn first_zeros_end(options: &LogOptions) -> FilePosition {
    FilePosition::new(match options.preallocate {
        true => GROW_BYTES_MIN.min(options.segment_bytes),
        false => 0,
    })
}

fn begin_log(directory: &Directory, options: &LogOptions) -> Result<Found, LogError> {
    let header = SegmentHeader {
        version: FORMAT_VERSION,
        database: options.database,
        number: 0,
        start: Chain::at(options.first_offset, Epoch::FIRST, LogHash::default()),
        salt: directory.storage().random_u64(),
        named_end: FRAMES_START,
        cuts: 0,
    };
    let zeros_end = first_zeros_end(options);
    let (segment, _, _) = begin_segment(directory, header, None, zeros_end)?;
    Ok(Found {
        end: SegmentPlace::at_start_of(&segment.header),
        segments: vec![segment],
        kept: None,
        torn_bytes_cut: 0,
        rewritten_bytes: 0,
    })
}

/// A segment, its file, and the end of that.
type Begun = (Arc<Segment>, NamedFile, FilePosition);

/// Writes a segment with only its header, and renames it once that is durable.
fn begin_segment(
    directory: &Directory,
    header: SegmentHeader,
    spare: Option<NamedFile>,
    zeros_end: FilePosition,
) -> Result<Begun, LogError> {
    let path = directory.join(segment_name(header.start.next_offset));
    let mut file = match spare {
        Some(file) => file,
        None => {
            let file = directory.open(&directory.join(NEW_NAME), OpenMode::CreateNew)?;
            file.write_zeros("extend", FRAMES_START, zeros_end)?;
            file
        }
    };
    file.write(&[&header.encode()], FilePosition::START)?;
    file.sync()?;
    let file_end = file.end()?;
    directory.name(&file.path, &path)?;
    directory.sync()?;
    file.path.clone_from(&path);
    Ok((Arc::new(Segment { path, header }), file, file_end))
}

/// Writes a file of zeros. It is synced in pieces, so that the log's own syncs do not wait for all of it.
fn make_spare(directory: &Directory, bytes: u64) -> Result<NamedFile, Refused> {
    let file = directory.open(&directory.join(SPARE_NAME), OpenMode::CreateNew)?;
    let mut position = FilePosition::START;
    let file_end = FilePosition::new(bytes);
    while position < file_end {
        let end = file_end.min(position + GROW_BYTES_MIN);
        file.write_zeros("extend", position, end)?;
        file.sync()?;
        position = end;
    }
    Ok(file)
}

impl Log for LocalLog {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.check_poison()?;
        check_epoch(epoch, self.place.chain.epoch)?;
        self.append_frame(epoch, frame)
    }

    fn follow(&mut self, leader: Epoch, frame: FrameRef<'_>) -> Result<(), LogError> {
        self.raise_epoch(leader)?;
        let chain = self.place.chain;
        if frame.epoch < chain.written || frame.epoch > leader {
            let reason = format!(
                "it has epoch {}, where only {} to {leader} can follow",
                frame.epoch, chain.written
            );
            return Err(LogError::BadFrame { reason });
        }
        let payload = &[frame.payload];
        let follows = frame.first_offset != chain.next_offset
            || chain.after(frame.epoch, frame.count, payload).hash == frame.hash;
        if !follows {
            let reason = format!(
                "it does not follow what this log has before transaction {}, or has changed",
                frame.first_offset
            );
            return Err(LogError::BadFrame { reason });
        }
        let own = Frame {
            first_offset: frame.first_offset,
            count: frame.count,
            payload,
        };
        self.append_frame(frame.epoch, own)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.check_poison()?;
        self.sync_now().map_err(|error| self.poison(error))
    }

    fn feed(&self) -> LogFeed {
        self.feed.clone()
    }

    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.check_poison()?;
        check_epoch(epoch, self.place.chain.epoch)?;
        if epoch > self.place.chain.epoch {
            self.write_mark(epoch)?;
            // It proves that the first one was on the disk, so that one that rots is no torn tail.
            self.write_mark(epoch)?;
        }
        Ok(self.tail())
    }

    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.check_poison()?;
        let mut removed = 0;
        // Oldest first: a crash leaves no gap.
        while let Some(segment) = self.feed.take_oldest(before_offset) {
            if let Err(error) = self.directory.remove(&segment.path) {
                self.feed.put_back(segment);
                return Err(error.into());
            }
            removed += 1;
        }
        if removed > 0 {
            self.directory.sync()?;
        }
        Ok(removed)
    }

    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        self.check_poison()?;
        let tail = self.tail();
        if offset < tail.oldest_offset || offset > tail.next_offset {
            return Err(LogError::OutOfRange {
                wanted: offset,
                oldest: tail.oldest_offset,
                next: tail.next_offset,
            });
        }
        self.sync()?;
        if offset < tail.next_offset {
            let (last, later) = self.feed.around(offset);
            let place = find_place(&self.directory, &last, offset)?;
            self.cut(&last, place, &later)
                .map_err(|error| self.poison(error))?;
        }
        Ok(self.tail())
    }

    fn tail(&self) -> Tail {
        let chain = self.place.chain;
        Tail {
            next_offset: chain.next_offset,
            durable_offset: self.feed.durable_offset(),
            oldest_offset: self.feed.oldest_offset(),
            epoch: chain.epoch,
            hash: chain.hash,
        }
    }

    fn close(&mut self) -> Result<(), LogError> {
        self.sync()?;
        match self.place.position > FRAMES_START {
            true => self.write_mark(self.place.chain.epoch),
            false => Ok(()),
        }
    }
}

impl Drop for LocalLog {
    fn drop(&mut self) {
        self.feed.end(None);
    }
}
