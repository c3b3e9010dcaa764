//! Removal of log files: those that are too old, and the oldest when all are too large.
//!
//! The clock is trusted as little as possible. A file is removed for its age only if its name and its modification time agree, and
//! all files before it are gone. A file of a future day was written when the clock was ahead, and becomes one of today.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::names::{day_number, parts, Part};
use super::{LogFiles, Stuck};

const DAY_SECONDS: u64 = 24 * 60 * 60;

impl LogFiles {
    /// Removes the files of days that are too old. One that cannot be removed stays, see [`LogFiles::take_stuck`].
    pub fn remove_days(&mut self, today: &str) {
        let (Some(days_max), Some(today)) = (self.bounds.days_max, day_number(today)) else {
            return;
        };
        let days_max = i64::try_from(days_max).unwrap_or(i64::MAX);
        let parts = parts(&self.directory, self.prefix).into_iter();
        // Behind a file that stays, all are newer, whatever their names say.
        for part in parts.take_while(|part| today.saturating_sub(last_day(part, today)) > days_max)
        {
            self.remove(&part.path);
        }
    }

    /// Removes the oldest files until there is room for one more full file. Those that cannot be removed stay and do not count.
    pub(super) fn remove_old(&mut self, current: &Path) {
        let room = self.bounds.bytes_max.saturating_sub(self.file_bytes_max());
        let parts = parts(&self.directory, self.prefix).into_iter();
        let files: Vec<(PathBuf, u64)> = parts
            .filter(|part| part.path != current)
            .filter_map(|part| {
                let bytes = part.path.metadata().ok()?.len();
                Some((part.path, bytes))
            })
            .collect();
        let mut all: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        for (path, bytes) in files {
            if all <= room {
                return;
            }
            self.remove(&path);
            all -= bytes;
        }
    }

    /// Files of future days become full files of today, after today's own. One that cannot be renamed stays.
    pub(super) fn settle_future(&mut self, today: &str) {
        let parts = parts(&self.directory, self.prefix);
        let future: Vec<_> = parts.iter().filter(|part| *part.date > *today).collect();
        let has_current = |part: &Part| part.date == today && part.number.is_none();
        if !future.is_empty() && parts.iter().any(has_current) {
            let renamed = self.rotate(today);
            self.note_stuck(&self.directory.clone(), renamed);
        }
        for part in future {
            let renamed = self.make_full(&part.path, today);
            self.note_stuck(&part.path, renamed);
        }
    }

    fn remove(&mut self, path: &Path) {
        self.note_stuck(path, std::fs::remove_file(path));
    }

    fn note_stuck(&mut self, path: &Path, result: std::io::Result<()>) {
        let error = match result {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => error,
            _ => return,
        };
        self.stuck.get_or_insert(Stuck {
            path: path.to_owned(),
            error,
            is_told: false,
        });
    }

    /// The first old file that could not be removed or renamed, and why. Reported once.
    pub fn take_stuck(&mut self) -> Option<(&Path, &std::io::Error)> {
        let stuck = self.stuck.as_mut().filter(|stuck| !stuck.is_told)?;
        stuck.is_told = true;
        Some((&stuck.path, &stuck.error))
    }
}

/// The last day on which a file may have been written, by its name and its modification time. Future times say nothing.
fn last_day(part: &Part, today: i64) -> i64 {
    let changed = part.path.metadata().and_then(|data| data.modified());
    let changed = changed.ok().and_then(day_of);
    let changed = changed.filter(|day| *day <= today);
    changed.map_or(part.day, |day| day.max(part.day))
}

fn day_of(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs() / DAY_SECONDS).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::LogBounds;
    use super::*;

    const BOUNDS: LogBounds = LogBounds {
        bytes_max: 1 << 20,
        file_bytes_max: u64::MAX,
        days_max: Some(10),
    };

    fn log(directory: &Path, names: &[&str]) -> LogFiles {
        for name in names {
            let day = day_number(&name[..10]).expect("a day");
            put(directory, name, day);
        }
        LogFiles::new(directory.to_owned(), "", BOUNDS, Arc::default())
    }

    /// A file that was last modified on this day.
    fn put(directory: &Path, name: &str, day: i64) {
        let path = directory.join(name);
        std::fs::write(&path, format!("{name}\n")).expect("written");
        let time = UNIX_EPOCH + Duration::from_secs(day as u64 * DAY_SECONDS);
        let file = File::options().append(true).open(&path).expect("opened");
        file.set_modified(time).expect("a time");
    }

    fn names(directory: &Path) -> Vec<String> {
        let parts = parts(directory, "").into_iter();
        let name = |part: Part| Some(part.path.file_name()?.to_str()?.to_owned());
        parts.filter_map(name).collect()
    }

    #[test]
    fn files_of_long_ago_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let old = ["2026-11-01.log", "2026-11-13.000001.log", "2026-11-13.log"];
        let mut files = log(directory.path(), &old);
        std::fs::write(directory.path().join("notes.log"), "").expect("written");
        files.remove_days("2026-11-23");
        assert_eq!(names(directory.path()), old[1..]);
        files.remove_days("2026-11-24");
        assert!(names(directory.path()).is_empty());
        assert!(directory.path().join("notes.log").exists());
    }

    #[test]
    fn what_was_changed_of_late_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        // Written when the clock was behind: the name is old, the order says that it is newer than what is in front of it.
        let mut files = log(directory.path(), &["1970-01-01.log"]);
        let today = day_number("2026-11-23").expect("a day");
        put(directory.path(), "1970-01-01.000001.log", today - 1);
        files.remove_days("2026-11-23");
        assert_eq!(
            names(directory.path()),
            ["1970-01-01.000001.log", "1970-01-01.log"]
        );
        files.remove_days("2026-12-23");
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn files_of_the_future_become_todays() {
        let directory = tempfile::tempdir().expect("a directory");
        // Days that are also in the future of the machine: what is written now has today's modification time.
        let names_before = [
            "2100-11-22.log",
            "2100-11-23.000004.log",
            "2100-11-23.log",
            "2104-01-01.000001.log",
            "2104-01-01.log",
        ];
        let mut files = log(directory.path(), &names_before);
        files.write("2100-11-23", b"new\n").expect("written");
        let now = [
            "2100-11-22.log",
            "2100-11-23.000004.log",
            "2100-11-23.000005.log",
            "2100-11-23.000006.log",
            "2100-11-23.000007.log",
            "2100-11-23.log",
        ];
        assert_eq!(names(directory.path()), now);
        let text = super::super::log_tail(directory.path(), None);
        let expected: String = names_before[1..]
            .iter()
            .map(|name| format!("{name}\n"))
            .collect();
        assert_eq!(String::from_utf8_lossy(&text), expected + "new\n");
        // Their modification time is in the future: the name counts.
        files.remove_days("2100-12-04");
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_file_that_stays_stops_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        // A directory cannot be removed as a file.
        let stuck = directory.path().join("2026-11-01.log");
        std::fs::create_dir(&stuck).expect("a directory");
        let mut files = log(directory.path(), &["2026-11-02.log", "2026-11-22.log"]);
        files.bounds.bytes_max = 1;
        files.remove_days("2026-11-23");
        files.write("2026-11-23", b"new\n").expect("written");
        files.write("2026-11-24", b"newer\n").expect("written");
        assert_eq!(
            names(directory.path()),
            ["2026-11-01.log", "2026-11-24.log"]
        );
        assert_eq!(
            files.take_stuck().map(|(path, _)| path.to_owned()),
            Some(stuck)
        );
        // Reported once.
        files.write("2026-11-25", b"newest\n").expect("written");
        assert!(files.take_stuck().is_none());
    }
}
