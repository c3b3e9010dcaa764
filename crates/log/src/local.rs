//! The log in segment files of a local directory.

use std::any::Any;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lightcone_storage::{
    disk, write_all_at, write_zeros, File, FilePosition, LogOffset, OpenMode, Storage,
};

use crate::epoch::Epoch;
use crate::error::LogError;
use crate::format::{
    payload_checksum, segment_name, FrameHeader, SegmentHeader, FRAMES_START, FRAME_HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
};
use crate::log::{Frame, Log, Tail};
use crate::prove::COPY_NAME;
use crate::reader::{FrameReader, LocalSource};
use crate::recovery::{recover, Found, Recovery};
use crate::segment::{remove_if_there, Chain, Segment, SegmentPlace};

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
    Ready(Box<dyn File>),
}

/// A log in a directory of segment files.
pub struct LocalLog {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    options: LogOptions,
    /// Oldest first; the last one is written to.
    segments: VecDeque<Segment>,
    file: Box<dyn File>,
    /// The place of the next frame.
    position: FilePosition,
    /// All before it in the last segment is durable.
    synced_position: FilePosition,
    /// The end of the last segment's file.
    file_end: FilePosition,
    chain: Chain,
    durable_offset: LogOffset,
    spare: Arc<Mutex<Spare>>,
    poison: Option<Arc<LogError>>,
    /// The frames at the opening, for the first reader.
    kept: Mutex<Option<Vec<u8>>>,
    _lock: Box<dyn Any + Send + Sync>,
}

impl LocalLog {
    /// Opens the log in `directory` as the writer of `epoch`, or begins one. An epoch older than the log's is [`LogError::Fenced`];
    /// a newer one is made durable.
    ///
    /// A torn tail is cut; any other damage is an error. What is not proven to be on the disk is written again: after a failed
    /// sync, reads may have come from the cache.
    pub fn open(
        directory: &Path,
        options: LogOptions,
        epoch: Epoch,
    ) -> Result<(LocalLog, Recovery), LogError> {
        LocalLog::open_on(disk(), directory, options, epoch)
    }

    /// As [`LocalLog::open`], on any storage.
    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
        options: LogOptions,
        epoch: Epoch,
    ) -> Result<(LocalLog, Recovery), LogError> {
        storage
            .create_directory(directory)
            .map_err(LogError::io("create", directory))?;
        let lock = take_lock(&*storage, directory)?;
        for name in [NEW_NAME, SPARE_NAME, COPY_NAME] {
            remove_if_there(&*storage, &directory.join(name))?;
        }
        let found = match recover(&storage, directory, &options.database)? {
            Some(found) => found,
            None => begin_log(&*storage, directory, &options, epoch)?,
        };
        let last = found
            .segments
            .last()
            .expect("a log has at least one segment");
        let file = storage
            .open(&last.path, OpenMode::ReadWrite)
            .map_err(LogError::io("open for writing", &last.path))?;
        let file_end = file
            .length()
            .map(FilePosition::new)
            .map_err(LogError::io("read the length of", &last.path))?;
        let mut log = LocalLog {
            storage,
            directory: directory.to_owned(),
            options,
            file,
            position: found.end.position,
            synced_position: found.end.position,
            file_end,
            chain: found.end.chain,
            durable_offset: found.end.chain.next_offset,
            spare: Arc::new(Mutex::new(Spare::None)),
            poison: None,
            kept: Mutex::new(found.kept),
            segments: found.segments.into(),
            _lock: lock,
        };
        log.seal(epoch)?;
        let recovery = Recovery {
            tail: log.tail(),
            torn_bytes_cut: found.torn_bytes_cut,
            rewritten_bytes: found.rewritten_bytes,
            segments: log.segments.len(),
        };
        Ok((log, recovery))
    }

    /// Frees the frames that were kept for the replay.
    pub fn forget_read(&mut self) {
        *self.kept() = None;
    }

    fn kept(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
        LogError::Poisoned { cause }
    }

    fn last(&self) -> &Segment {
        self.segments
            .back()
            .expect("a log has at least one segment")
    }

    fn path(&self) -> &Path {
        &self.last().path
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), LogError> {
        match self.chain.epoch {
            current if epoch < current => Err(LogError::Fenced { epoch, current }),
            _ => Ok(()),
        }
    }

    /// Writes one frame with one write. Any failure poisons the log.
    fn write_frame(&mut self, epoch: Epoch, count: u32, payload: &[&[u8]]) -> Result<(), LogError> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let frame_bytes = (FRAME_HEADER_BYTES + payload_bytes) as u64;
        // A segment is named after its first transaction, so it must have one before the next begins.
        let has_transactions = self.chain.next_offset > self.last().header.first_offset;
        if has_transactions && self.position + frame_bytes > self.segment_end() {
            self.rotate(epoch)?;
        }
        if self.position - self.synced_position > PAYLOAD_BYTES_MAX as u64 {
            self.sync_now()?;
        }
        let header = FrameHeader {
            payload_checksum: payload_checksum(payload),
            payload_bytes: payload_bytes as u32,
            count,
            unsynced_bytes: (self.position - self.synced_position) as u32,
            first_offset: self.chain.next_offset,
            epoch,
            previous_hash: self.chain.previous_hash,
        };
        let (header_bytes, hash) = header.encode(self.last().header.salt, self.position);
        let mut parts: Vec<&[u8]> = Vec::with_capacity(1 + payload.len());
        parts.push(&header_bytes);
        parts.extend_from_slice(payload);
        write_all_at(&*self.file, &parts, self.position)
            .map_err(LogError::io("write", self.path()))?;
        self.position += frame_bytes;
        self.chain = Chain {
            next_offset: header
                .next_offset()
                .expect("`append` takes no frame that has no next offset"),
            epoch,
            previous_hash: hash,
        };
        if self.position > self.file_end {
            self.file_end = self.position;
            self.extend()?;
        }
        self.prepare_spare();
        Ok(())
    }

    fn segment_end(&self) -> FilePosition {
        FilePosition::new(self.options.segment_bytes)
    }

    /// Writes zeros behind the frames, if the segment is to have them.
    fn extend(&mut self) -> Result<(), LogError> {
        if !self.options.preallocate || self.position >= self.segment_end() {
            return Ok(());
        }
        let bytes = self.position.get().clamp(GROW_BYTES_MIN, GROW_BYTES_MAX);
        let end = self.segment_end().min(self.position + bytes);
        write_zeros(&*self.file, self.position, end)
            .map_err(LogError::io("extend", self.path()))?;
        self.file_end = end;
        Ok(())
    }

    fn sync_now(&mut self) -> Result<(), LogError> {
        if self.synced_position < self.position {
            self.file
                .sync_data()
                .map_err(LogError::io("sync", self.path()))?;
            self.synced_position = self.position;
        }
        self.durable_offset.advance_to(self.chain.next_offset);
        Ok(())
    }

    fn rotate(&mut self, epoch: Epoch) -> Result<(), LogError> {
        // They belong to the segment before.
        self.forget_read();
        if self.position < self.file_end {
            // It only gives unused zeros back.
            let _ = self.file.set_length(self.position.get());
        }
        self.sync_now()?;
        let spare = {
            let mut spare = self
                .spare
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            match std::mem::replace(&mut *spare, Spare::None) {
                Spare::Ready(file) => Some(file),
                other => {
                    *spare = other;
                    None
                }
            }
        };
        let header = SegmentHeader {
            database: self.options.database,
            number: self.last().header.number + 1,
            first_offset: self.chain.next_offset,
            epoch: epoch.max(self.chain.epoch),
            previous_hash: self.chain.previous_hash,
            salt: self.storage.random_u64(),
            named_end: FRAMES_START,
        };
        let zeros_end = first_zeros_end(&self.options);
        let (segment, file, file_end) =
            begin_segment(&*self.storage, &self.directory, header, spare, zeros_end)?;
        self.segments.push_back(segment);
        self.file = file;
        self.file_end = file_end;
        self.position = FRAMES_START;
        self.synced_position = FRAMES_START;
        Ok(())
    }

    /// Has the next segment filled with zeros once this one is half full. If that fails or is late, the next segment is extended in
    /// steps.
    fn prepare_spare(&mut self) {
        if !self.options.preallocate || self.position.get() < self.options.segment_bytes / 2 {
            return;
        }
        {
            let mut spare = self
                .spare
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            if !matches!(*spare, Spare::None) {
                return;
            }
            *spare = Spare::InTheMaking;
        }
        let (storage, place) = (self.storage.clone(), self.spare.clone());
        let (path, bytes) = (self.directory.join(SPARE_NAME), self.options.segment_bytes);
        let task = move || {
            let made = make_spare(&*storage, &path, bytes);
            // No second try: the log will meet a full disk itself.
            if let Ok(file) = made {
                *place
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner()) = Spare::Ready(file);
            }
        };
        // Without a thread there is no spare segment, which costs time only.
        let _ = self
            .storage
            .run_in_background("log spare segment", Box::new(task));
    }
}

pub(crate) fn take_lock(
    storage: &dyn Storage,
    directory: &Path,
) -> Result<Box<dyn Any + Send + Sync>, LogError> {
    let path = directory.join(LOCK_NAME);
    storage.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => LogError::Locked {
            directory: directory.to_owned(),
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

fn begin_log(
    storage: &dyn Storage,
    directory: &Path,
    options: &LogOptions,
    epoch: Epoch,
) -> Result<Found, LogError> {
    let header = SegmentHeader {
        database: options.database,
        number: 0,
        first_offset: options.first_offset,
        epoch,
        previous_hash: 0,
        salt: storage.random_u64(),
        named_end: FRAMES_START,
    };
    let zeros_end = first_zeros_end(options);
    let (segment, _, _) = begin_segment(storage, directory, header, None, zeros_end)?;
    Ok(Found {
        end: SegmentPlace::at_start_of(&segment.header),
        segments: vec![segment],
        kept: None,
        torn_bytes_cut: 0,
        rewritten_bytes: 0,
    })
}

/// Writes a segment with only its header, and renames it once that is durable. Returns the end of its file, too.
fn begin_segment(
    storage: &dyn Storage,
    directory: &Path,
    header: SegmentHeader,
    spare: Option<Box<dyn File>>,
    zeros_end: FilePosition,
) -> Result<(Segment, Box<dyn File>, FilePosition), LogError> {
    let path = directory.join(segment_name(header.first_offset));
    let (source, file) = match spare {
        Some(file) => (directory.join(SPARE_NAME), file),
        None => {
            let source = directory.join(NEW_NAME);
            let file = storage
                .open(&source, OpenMode::CreateNew)
                .map_err(LogError::io("create", &source))?;
            write_zeros(&*file, FRAMES_START, zeros_end)
                .map_err(LogError::io("extend", &source))?;
            (source, file)
        }
    };
    write_all_at(&*file, &[&header.encode()], FilePosition::START)
        .map_err(LogError::io("write", &source))?;
    file.sync_data().map_err(LogError::io("sync", &source))?;
    let file_end = file
        .length()
        .map(FilePosition::new)
        .map_err(LogError::io("read the length of", &source))?;
    storage
        .rename(&source, &path)
        .map_err(LogError::io("name", &path))?;
    storage
        .sync_directory(directory)
        .map_err(LogError::io("sync", directory))?;
    Ok((Segment { path, header }, file, file_end))
}

/// Writes a file of zeros. It is synced in pieces, so that the log's own syncs do not wait for all of it.
fn make_spare(storage: &dyn Storage, path: &Path, bytes: u64) -> std::io::Result<Box<dyn File>> {
    let file = storage.open(path, OpenMode::CreateNew)?;
    let mut position = FilePosition::START;
    let file_end = FilePosition::new(bytes);
    while position < file_end {
        let end = file_end.min(position + GROW_BYTES_MIN);
        write_zeros(&*file, position, end)?;
        file.sync_data()?;
        position = end;
    }
    Ok(file)
}

impl Log for LocalLog {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.check_poison()?;
        self.check_epoch(epoch)?;
        let payload_bytes = frame
            .payload
            .iter()
            .try_fold(0usize, |sum, part| sum.checked_add(part.len()));
        let reason = if frame.first_offset != self.chain.next_offset {
            format!(
                "it begins with transaction {}, but the next one is {}",
                frame.first_offset, self.chain.next_offset
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

    fn sync(&mut self) -> Result<(), LogError> {
        self.check_poison()?;
        self.sync_now().map_err(|error| self.poison(error))
    }

    fn read(&self, from_offset: LogOffset) -> Result<FrameReader, LogError> {
        let tail = self.tail();
        if from_offset < tail.oldest_offset || from_offset > tail.next_offset {
            return Err(LogError::OutOfRange {
                wanted: from_offset,
                oldest: tail.oldest_offset,
                next: tail.next_offset,
            });
        }
        let first = self
            .segments
            .partition_point(|segment| segment.header.first_offset <= from_offset)
            .max(1)
            - 1;
        let segments = self.segments.iter().skip(first).cloned().collect();
        let source = LocalSource::new(
            self.storage.clone(),
            segments,
            from_offset,
            SegmentPlace {
                position: self.position,
                chain: self.chain,
            },
            self.kept().take(),
        )?;
        Ok(FrameReader::new(Box::new(source)))
    }

    fn seal(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.check_poison()?;
        self.check_epoch(epoch)?;
        if epoch > self.chain.epoch {
            self.write_frame(epoch, 0, &[])
                .and_then(|()| self.sync_now())
                .map_err(|error| self.poison(error))?;
        }
        Ok(self.tail())
    }

    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.check_poison()?;
        let mut removed = 0;
        // Oldest first: a crash leaves no gap.
        while self.segments.len() > 1 && self.segments[1].header.first_offset <= before_offset {
            let path = self.segments[0].path.clone();
            self.storage
                .remove(&path)
                .map_err(LogError::io("remove", &path))?;
            self.segments.pop_front();
            removed += 1;
        }
        if removed > 0 {
            self.storage
                .sync_directory(&self.directory)
                .map_err(LogError::io("sync", &self.directory))?;
        }
        Ok(removed)
    }

    fn tail(&self) -> Tail {
        Tail {
            next_offset: self.chain.next_offset,
            durable_offset: self.durable_offset,
            oldest_offset: self
                .segments
                .front()
                .map_or(LogOffset::FIRST, |first| first.header.first_offset),
            epoch: self.chain.epoch,
        }
    }

    fn close(&mut self) -> Result<(), LogError> {
        self.sync()?;
        if self.position > FRAMES_START {
            let epoch = self.chain.epoch;
            self.write_frame(epoch, 0, &[])
                .and_then(|()| self.sync_now())
                .map_err(|error| self.poison(error))?;
        }
        Ok(())
    }
}
