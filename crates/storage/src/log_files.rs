//! Log files for people: `YYYY-MM-DD.log` is written to; `YYYY-MM-DD.000001.log` and so on are full. Their sum is bounded; the
//! oldest are removed. Nothing is synced.

mod lines;
mod names;
mod removal;
mod tail;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::lines::{cut_half_line, first_line, first_lines};
use self::names::known_parts;
use crate::reserve::DiskReserve;

pub use self::tail::{has_log_files, log_tail};

/// A file is full at this share of the bound of all.
const FILE_SHARE: u64 = 8;
/// The least bound of a file.
const FILE_BYTES_MIN: u64 = 4 << 10;

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    pub bytes_max: u64,
    /// At most an eighth of `bytes_max`.
    pub file_bytes_max: u64,
    /// Files of older days are removed. None: they stay.
    pub days_max: Option<u64>,
}

impl LogBounds {
    pub fn of_bytes(bytes_max: u64) -> LogBounds {
        LogBounds {
            bytes_max,
            file_bytes_max: u64::MAX,
            days_max: None,
        }
    }
}

pub struct LogFiles {
    directory: PathBuf,
    prefix: &'static str,
    bounds: LogBounds,
    disk: Arc<DiskReserve>,
    current: Option<Current>,
    stuck: Option<Stuck>,
}

/// An old file that could not be removed or renamed.
struct Stuck {
    path: PathBuf,
    error: std::io::Error,
    is_told: bool,
}

/// Lines that were not written.
#[derive(Debug)]
pub struct NotWritten {
    /// How many bytes were written.
    pub written: usize,
    /// Why the other bytes were not.
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
            stuck: None,
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file_bytes_max(&self) -> u64 {
        let share = self.bounds.bytes_max / FILE_SHARE;
        share.min(self.bounds.file_bytes_max).max(FILE_BYTES_MIN)
    }

    /// Writes whole lines, on this day (`YYYY-MM-DD`). Fails if the disk, less its reserve, is full.
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
                    self.forget_current();
                    return Err(NotWritten { written, error });
                }
            }
        }
        Ok(())
    }

    /// After a failed write: cuts the part of the line that was written, if possible. The next write opens the file anew and cuts
    /// again.
    fn forget_current(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        // Another process may have cut it meanwhile: it must not grow.
        let length = current.file.metadata().map_or(0, |data| data.len());
        if length > current.bytes {
            let _ = current.file.set_len(current.bytes);
        }
    }

    /// Writes the lines for which the current file has room, at least one.
    fn write_some(&mut self, date: &str, lines: &[u8]) -> std::io::Result<usize> {
        let file_bytes_max = self.file_bytes_max();
        let current = match self.current.take() {
            Some(current) if current.date == date => current,
            _ => self.open(date)?,
        };
        let room = file_bytes_max.saturating_sub(current.bytes) as usize;
        let is_full = first_lines(lines, room) == 0 && current.bytes > 0;
        let current = match is_full {
            true => {
                drop(current);
                self.rotate(date)?;
                self.open(date)?
            }
            false => current,
        };
        let current = self.current.insert(current);
        let room = file_bytes_max.saturating_sub(current.bytes) as usize;
        let bytes = match first_lines(lines, room) {
            0 => first_line(lines),
            bytes => bytes,
        };
        current.file.write_all(&lines[..bytes])?;
        current.bytes += bytes as u64;
        Ok(bytes)
    }

    fn open(&mut self, date: &str) -> std::io::Result<Current> {
        std::fs::create_dir_all(&self.directory)?;
        self.settle_future(date);
        let path = self.directory.join(format!("{}{date}.log", self.prefix));
        let options = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path);
        let mut file = options?;
        let bytes = cut_half_line(&mut file)?;
        self.remove_old(&path);
        Ok(Current {
            date: date.to_owned(),
            file,
            bytes,
        })
    }

    /// The current file of the day becomes a full one.
    fn rotate(&self, date: &str) -> std::io::Result<()> {
        let current = self.directory.join(format!("{}{date}.log", self.prefix));
        self.make_full(&current, date)
    }

    /// Makes a file the last full one of a day.
    fn make_full(&self, path: &Path, date: &str) -> std::io::Result<()> {
        // A number in use would overwrite that file.
        let of_day = known_parts(&self.directory, self.prefix)?.into_iter();
        let numbers = of_day
            .filter(|part| part.date == date)
            .filter_map(|part| part.number);
        let next = numbers.max().unwrap_or(0) + 1;
        let name = format!("{}{date}.{next:06}.log", self.prefix);
        std::fs::rename(path, self.directory.join(name))
    }

    /// Bytes of the current file.
    pub fn current_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::names::parts;
    use super::*;

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
        let files: Vec<u64> = parts(directory.path(), "")
            .iter()
            .map(|part| part.path.metadata().expect("metadata").len())
            .collect();
        assert!(
            files.len() >= 25 && files.iter().all(|bytes| *bytes <= 4 << 10),
            "{files:?}"
        );
    }

    #[test]
    fn lines_stay_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().join("2026-11-23.log");
        let long = vec![b'x'; 200 << 10];
        std::fs::write(&at, [b"one\n", long.as_slice()].concat()).expect("written");
        let files = || {
            let path = directory.path().to_owned();
            LogFiles::new(path, "", LogBounds::of_bytes(1 << 20), Arc::default())
        };
        files().write("2026-11-23", b"two\n").expect("written");
        assert_eq!(std::fs::read(&at).expect("read"), b"one\ntwo\n");
        // There was not even one.
        std::fs::write(&at, "half").expect("written");
        files().write("2026-11-23", b"two\n").expect("written");
        assert_eq!(std::fs::read(&at).expect("read"), b"two\n");
    }
}
