//! Cutting a damaged log on purpose.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_storage::{disk, Directory, FilePosition, LogOffset, OpenMode, Storage};

use crate::error::LogError;
use crate::local::{take_lock, LogOptions};
use crate::prove::replace;
use crate::recovery::{find_end, EndState};
use crate::segment::{
    check_number, decode_header, file_name, free_name, list_segments, read_header, set_aside,
    SegmentReader, REMOVED,
};

const COPY_BYTES: usize = 1 << 20;

/// What a repair found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// In words; `None` if the log is intact and was not changed.
    pub damage: Option<String>,
    /// All from this byte of this segment on was removed. `None` with damage means that no segment is left.
    pub cut: Option<(PathBuf, FilePosition)>,
    /// `None` if no segment is left.
    pub next_offset: Option<LogOffset>,
    /// The files with the removed bytes.
    pub saved: Vec<PathBuf>,
    /// Without preallocated zeros.
    pub removed_bytes: u64,
}

/// The owner in the first segment with a readable header, if there is one.
pub fn owner_of(directory: &Path) -> Result<Option<[u8; 32]>, LogError> {
    let directory = Directory::new(disk(), directory);
    for (_, path) in list_segments(&directory)? {
        if let Ok(header) = decode_header(&directory, &path)? {
            return Ok(Some(header.database));
        }
    }
    Ok(None)
}

/// Reads the log in `directory` and cuts it at the first damage: the good part before it stays, the bytes behind it in that segment
/// are saved as `*.removed-<byte>`, and later segments are renamed to `*.removed`. A torn tail counts as damage here.
///
/// Transactions in the removed part are lost: this is for databases without a backup of them.
pub fn repair(directory: &Path, options: &LogOptions) -> Result<RepairReport, LogError> {
    repair_on(disk(), directory, options)
}

/// As [`repair`], on any storage.
pub fn repair_on(
    storage: Arc<dyn Storage>,
    directory: &Path,
    options: &LogOptions,
) -> Result<RepairReport, LogError> {
    let directory = Directory::new(storage, directory);
    let _lock = take_lock(&directory)?;
    let files = list_segments(&directory)?;
    let (last, damage) = find_damage(&directory, &files, &options.database)?;
    match damage {
        Some(damage) => cut(&directory, &files, last, damage),
        None => Ok(RepairReport {
            damage: None,
            cut: None,
            next_offset: last.map(|reader| reader.chain.next_offset),
            saved: Vec::new(),
            removed_bytes: 0,
        }),
    }
}

struct Damage {
    text: String,
    /// These files stay; the last of them up to its good frames if it has the damage.
    files_kept: usize,
    /// The end of the bytes behind these frames.
    written_end: Option<FilePosition>,
}

/// Reads all segments up to the first damage. Returns a reader at the end of the good frames of the last segment that stays, and the
/// damage.
fn find_damage(
    directory: &Directory,
    files: &[(LogOffset, PathBuf)],
    database: &[u8; 32],
) -> Result<(Option<SegmentReader>, Option<Damage>), LogError> {
    let mut last: Option<SegmentReader> = None;
    for (index, (first_offset, path)) in files.iter().enumerate() {
        let joined = open_joined(directory, path, *first_offset, database, last.as_ref());
        let mut reader = match joined {
            Ok(reader) => reader,
            // Not the segment's fault: another key or version may read it.
            Err(error @ (LogError::Io { .. } | LogError::Foreign { .. })) => return Err(error),
            Err(error) => {
                let damage = Damage {
                    text: error.to_string(),
                    files_kept: index,
                    written_end: None,
                };
                return Ok((last, Some(damage)));
            }
        };
        let end = find_end(&mut reader)?;
        let reader = last.insert(reader);
        let (found, written_end) = match end.state {
            EndState::Clean => continue,
            EndState::Torn { written_end } => {
                ("an unfinished or damaged frame".to_owned(), written_end)
            }
            EndState::Damaged { found, written_end } => (found, written_end),
        };
        let damage = Damage {
            text: reader.damaged(found).to_string(),
            files_kept: index + 1,
            written_end: Some(written_end),
        };
        return Ok((last, Some(damage)));
    }
    Ok((last, None))
}

/// Opens a segment that goes on where the one before it ends.
fn open_joined(
    directory: &Directory,
    path: &Path,
    first_offset: LogOffset,
    database: &[u8; 32],
    before: Option<&SegmentReader>,
) -> Result<SegmentReader, LogError> {
    let segment = read_header(directory, path, first_offset, database)?;
    if let Some(before) = before {
        check_number(&before.segment, &segment)?;
        before.check_joint(&segment)?;
    }
    SegmentReader::open(directory, &segment, None)
}

/// Cuts a log at its first damage: sets aside the files behind it, and what `last` holds behind its good frames.
fn cut(
    directory: &Directory,
    files: &[(LogOffset, PathBuf)],
    last: Option<SegmentReader>,
    damage: Damage,
) -> Result<RepairReport, LogError> {
    let mut report = RepairReport {
        damage: Some(damage.text),
        cut: None,
        next_offset: None,
        saved: Vec::new(),
        removed_bytes: 0,
    };
    // Newest first, and the damaged segment at the end: a crash in between leaves something to repair again.
    for (_, path) in files[damage.files_kept..].iter().rev() {
        let (to, bytes) = set_aside(directory, path, REMOVED)?;
        report.removed_bytes += bytes;
        report.saved.push(to);
    }
    directory.sync()?;
    if let Some(last) = last {
        let position = last.position;
        if let Some(written_end) = damage.written_end {
            let name = format!("{}{REMOVED}-{position}", file_name(last.path()));
            let to = free_name(directory, &name)?;
            copy(directory, last.path(), (position, written_end), &to)?;
            directory.sync()?;
            // Not zeros over the old bytes: some of these might stay, and would prove the damage again.
            replace(directory, &last.segment, last.place())?;
            report.removed_bytes += written_end - position;
            report.saved.push(to);
        }
        report.next_offset = Some(last.chain.next_offset);
        report.cut = Some((last.path().to_owned(), position));
    }
    Ok(report)
}

/// Copies the bytes between two places of a file into a new one.
fn copy(
    directory: &Directory,
    from: &Path,
    (start, end): (FilePosition, FilePosition),
    to: &Path,
) -> Result<(), LogError> {
    let source = directory.open(from, OpenMode::Read)?;
    let target = directory.open(to, OpenMode::CreateNew)?;
    let mut buffer = vec![0; COPY_BYTES.min((end - start) as usize)];
    let mut copied = 0;
    while copied < end - start {
        let wanted = buffer.len().min((end - start - copied) as usize);
        let bytes = source.read_full(&mut buffer[..wanted], start + copied)?;
        if bytes == 0 {
            break;
        }
        target.write(&[&buffer[..bytes]], FilePosition::START + copied)?;
        copied += bytes as u64;
    }
    Ok(target.sync()?)
}
