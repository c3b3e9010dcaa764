//! Files of a log that people read: `YYYY-MM-DD.log` is written to, `YYYY-MM-DD.000001.log` and so on are full. All together
//! have a bound; the oldest go. Nothing is synced.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::DiskReserve;

/// The most bytes read from the end of the files for a reader.
const TAIL_BYTES_MAX: u64 = 64 << 20;
/// A file is followed by the next one when it has this share of what all may have.
const FILE_SHARE: u64 = 8;
/// The least that a file may have, however little all may have.
const FILE_BYTES_MIN: u64 = 4 << 10;
const DATE_BYTES: usize = "YYYY-MM-DD".len();

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// All files together.
    pub bytes_max: u64,
    /// One file; at most an eighth of all of them.
    pub file_bytes_max: u64,
    /// Files of days that are longer ago go. None: they stay.
    pub days_max: Option<u64>,
}

impl LogBounds {
    /// Nothing but a bound for all files together.
    pub fn of_bytes(bytes_max: u64) -> LogBounds {
        LogBounds {
            bytes_max,
            file_bytes_max: u64::MAX,
            days_max: None,
        }
    }
}

/// The files of one log.
pub struct LogFiles {
    directory: PathBuf,
    /// Before the date.
    prefix: &'static str,
    bounds: LogBounds,
    disk: Arc<DiskReserve>,
    current: Option<Current>,
}

/// Lines that were not written.
#[derive(Debug)]
pub struct NotWritten {
    /// So many bytes of the lines were.
    pub written: usize,
    /// Why the rest was not.
    pub error: std::io::Error,
}

struct Current {
    date: String,
    file: File,
    bytes: u64,
}

impl LogFiles {
    /// Files whose names begin with `prefix`, in a directory that is created when it is needed.
    pub fn new(
        directory: PathBuf,
        prefix: &'static str,
        bounds: LogBounds,
        disk: Arc<DiskReserve>,
    ) -> LogFiles {
        LogFiles {
            directory,
            prefix,
            bounds,
            disk,
            current: None,
        }
    }

    /// Where the files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file_bytes_max(&self) -> u64 {
        let share = self.bounds.bytes_max / FILE_SHARE;
        share.min(self.bounds.file_bytes_max).max(FILE_BYTES_MIN)
    }

    /// Writes whole lines, on this day (`YYYY-MM-DD`).
    ///
    /// # Errors
    /// The disk takes no more, or only its reserve is left.
    pub fn write(&mut self, date: &str, lines: &[u8]) -> Result<(), NotWritten> {
        let mut written = 0;
        while written < lines.len() {
            let rest = &lines[written..];
            let result = match self.disk.has_room_for(rest.len() as u64) {
                true => self.write_some(date, rest),
                false => Err(std::io::ErrorKind::StorageFull.into()),
            };
            match result {
                Ok(bytes) => written += bytes,
                Err(error) => {
                    self.current = None;
                    return Err(NotWritten { written, error });
                }
            }
        }
        Ok(())
    }

    /// Writes the lines for which the current file has room, one at least.
    fn write_some(&mut self, date: &str, lines: &[u8]) -> std::io::Result<usize> {
        let file_bytes_max = self.file_bytes_max();
        let mut current = match self.current.take() {
            Some(current) if current.date == date => current,
            _ => self.open(date)?,
        };
        let room = file_bytes_max.saturating_sub(current.bytes) as usize;
        if first_lines(lines, room) == 0 && current.bytes > 0 {
            drop(current);
            self.rotate(date)?;
            current = self.open(date)?;
        }
        let room = file_bytes_max.saturating_sub(current.bytes) as usize;
        let bytes = match first_lines(lines, room) {
            0 => first_line(lines),
            bytes => bytes,
        };
        current.file.write_all(&lines[..bytes])?;
        current.bytes += bytes as u64;
        self.current = Some(current);
        Ok(bytes)
    }

    fn open(&self, date: &str) -> std::io::Result<Current> {
        std::fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(format!("{}{date}.log", self.prefix));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        self.remove_days(date)?;
        self.remove_old(&path)?;
        Ok(Current {
            date: date.to_owned(),
            file,
            bytes,
        })
    }

    /// The current file of the day becomes a full one.
    fn rotate(&self, date: &str) -> std::io::Result<()> {
        let newest = parts(&self.directory)
            .into_iter()
            .filter_map(|path| number_of(&path, self.prefix, date))
            .max();
        let next = newest.unwrap_or(0) + 1;
        let name = format!("{}{date}", self.prefix);
        std::fs::rename(
            self.directory.join(format!("{name}.log")),
            self.directory.join(format!("{name}.{next:06}.log")),
        )
    }

    /// Bytes of the file that is written to.
    pub fn current_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.bytes)
    }

    /// Removes the files of days that are too long before this one.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_days(&self, today: &str) -> std::io::Result<()> {
        let (Some(days_max), Some(today)) = (self.bounds.days_max, day_number(today)) else {
            return Ok(());
        };
        for path in parts(&self.directory) {
            let name = path.file_name().and_then(|name| name.to_str());
            let date = name.and_then(|name| name.strip_prefix(self.prefix));
            let day = date.and_then(|date| day_number(date.get(..DATE_BYTES)?));
            // What has another name is nobody's of ours.
            if day.is_some_and(|day| today.saturating_sub(day) > days_max as i64) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the oldest files until there is room for one more full one.
    fn remove_old(&self, current: &Path) -> std::io::Result<()> {
        let room = self.bounds.bytes_max.saturating_sub(self.file_bytes_max());
        let files = parts(&self.directory).into_iter();
        let mut files: Vec<(PathBuf, u64)> = files
            .filter(|path| path != current)
            .filter_map(|path| {
                let bytes = path.metadata().ok()?.len();
                Some((path, bytes))
            })
            .collect();
        let mut all: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        files.reverse();
        while all > room {
            let Some((path, bytes)) = files.pop() else {
                break;
            };
            std::fs::remove_file(&path)?;
            all -= bytes;
        }
        Ok(())
    }
}

/// How many days a date (`YYYY-MM-DD`) is after 1970-01-01.
fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || parts.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day that is not always there is the last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// How many bytes the lines have that fit.
fn first_lines(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    let fitting = &lines[..room];
    let last = fitting.iter().rposition(|byte| *byte == b'\n');
    last.map_or(0, |at| at + 1)
}

fn first_line(lines: &[u8]) -> usize {
    let end = lines.iter().position(|byte| *byte == b'\n');
    end.map_or(lines.len(), |at| at + 1)
}

/// All files, oldest first: full ones of a day sort before the one that is written to.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut parts: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    parts.sort();
    parts
}

/// The number of a full file of this day.
fn number_of(path: &Path, prefix: &str, date: &str) -> Option<u64> {
    let name = path.file_stem()?.to_str()?.strip_prefix(prefix)?;
    name.strip_prefix(date)?.strip_prefix('.')?.parse().ok()
}

/// Does a directory have log files?
pub fn has_log_files(directory: &Path) -> bool {
    !parts(directory).is_empty()
}

/// The last lines of the newest day in a directory of files without prefix: so many, or all.
pub fn log_tail(directory: &Path, num_lines: Option<u32>) -> Vec<u8> {
    let mut parts = parts(directory);
    let date = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.get(..DATE_BYTES).map(str::to_owned)
    };
    let newest = parts.last().and_then(|path| date(path));
    let wanted = num_lines.map_or(usize::MAX, |count| count.max(1) as usize);
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let (mut lines, mut bytes) = (0, 0);
    while let Some(path) = parts.pop() {
        if date(&path) != newest || lines >= wanted || bytes >= TAIL_BYTES_MAX {
            break;
        }
        // A file that has just gone was old.
        let Ok(piece) = read_end(&path, TAIL_BYTES_MAX - bytes) else {
            continue;
        };
        bytes += piece.len() as u64;
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
        pieces.push(piece);
    }
    pieces.reverse();
    let mut text = pieces.concat();
    let start = start_of_last_lines(&text, wanted);
    text.drain(..start);
    text
}

fn start_of_last_lines(text: &[u8], count: usize) -> usize {
    let ends = text.iter().enumerate().rev();
    let starts = ends
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    starts
        .filter(|start| *start < text.len())
        .nth(count.saturating_sub(1))
        .unwrap_or(0)
}

fn read_end(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length > bytes_max {
        file.seek(SeekFrom::Start(length - bytes_max))?;
    }
    file.take(bytes_max).read_to_end(&mut text)?;
    if length > bytes_max {
        text.drain(..first_line(&text));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        for (date, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-23", 20_780),
        ] {
            assert_eq!(day_number(date), Some(number), "{date}");
        }
        for date in ["", "2026", "2026-13-01", "x-y-z", "2026-01-32"] {
            assert_eq!(day_number(date), None, "{date}");
        }
    }

    #[test]
    fn files_of_long_ago_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let names = [
            "2026-11-01.log",
            "2026-11-13.000001.log",
            "2026-11-13.log",
            "notes.log",
        ];
        for name in names {
            std::fs::write(at(name), "old\n").expect("written");
        }
        let bounds = LogBounds {
            days_max: Some(10),
            ..LogBounds::of_bytes(1 << 20)
        };
        let path = directory.path().to_owned();
        let mut files = LogFiles::new(path, "", bounds, Arc::default());
        files.write("2026-11-23", b"new\n").expect("written");
        assert!(!at("2026-11-01.log").exists());
        assert!(at("2026-11-13.log").exists() && at("2026-11-13.000001.log").exists());
        assert!(at("notes.log").exists());
        files.write("2026-11-24", b"new\n").expect("written");
        assert!(!at("2026-11-13.log").exists() && !at("2026-11-13.000001.log").exists());
        assert_eq!(files.current_bytes(), 4);
    }

    #[test]
    fn a_file_has_its_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let bounds = LogBounds {
            file_bytes_max: 4 << 10,
            ..LogBounds::of_bytes(1 << 20)
        };
        let path = directory.path().to_owned();
        let mut files = LogFiles::new(path, "", bounds, Arc::default());
        for _ in 0..100 {
            files
                .write("2026-11-23", &[[b'x'; 999].as_slice(), b"\n"].concat())
                .expect("written");
        }
        let files: Vec<u64> = parts(directory.path())
            .iter()
            .map(|path| path.metadata().expect("metadata").len())
            .collect();
        assert!(
            files.len() >= 25 && files.iter().all(|bytes| *bytes <= 4 << 10),
            "{files:?}"
        );
    }
}
