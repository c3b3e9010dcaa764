//! The module's log: one JSON object per line, files per day, and live readers (06 §5.13).
//!
//! Code that logs never waits for a disk: lines gather in a buffer, and one thread of the process writes them for all
//! databases. What a module may log is bounded in pace and in total; what is left out is counted, and one line says so. What
//! strangers cause without reaching the module has an allowance of its own, so that it takes nothing of the module's.

mod buffer;
mod clock;
mod thread;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use lightcone_host::{ConsoleLevel, ConsoleRecord, ConsoleSink};
use lightcone_storage::{has_log_files, log_tail, DiskReserve, LogBounds};
use lightcone_types::{cut, cut_name, Timestamp};
use tokio::sync::broadcast;

use self::buffer::{host_record, Author, Bounds, LogBuffer, HOST};
use crate::options::DatabaseOptions;

pub use self::buffer::{ModuleLogMetrics, LIVE_RECORDS_MAX};

/// The most of a text that the host itself logs: an error of a reducer, arguments that do not fit.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The same of a call that did not reach the module.
const REFUSED_MESSAGE_BYTES_MAX: usize = 1 << 10;
/// Their directory in that of the database.
const MODULE_LOGS: &str = "module_logs";

/// The log of one database's module.
pub struct ModuleLog {
    buffer: Arc<LogBuffer>,
}

impl ModuleLog {
    fn new(directory: PathBuf, bounds: Bounds, disk: Arc<DiskReserve>) -> ModuleLog {
        let buffer = Arc::new(LogBuffer::new(directory, bounds, disk));
        thread::opened(&buffer);
        ModuleLog { buffer }
    }

    /// That of a database.
    pub(crate) fn of(options: &DatabaseOptions) -> ModuleLog {
        let limits = &options.limits;
        let bounds = Bounds {
            files: LogBounds {
                bytes_max: limits.module_log_bytes_max,
                file_bytes_max: limits.module_log_file_bytes_max,
                days_max: Some(limits.module_log_days_max),
            },
            records_per_second: limits.module_log_records_per_second,
            bytes_per_second: limits.module_log_bytes_per_second,
        };
        ModuleLog::new(
            options.directory.join(MODULE_LOGS),
            bounds,
            options.disk.clone(),
        )
    }

    /// The last `num_lines` lines (at least one; all if none) of today, or of the newest day there is.
    pub fn tail(&self, num_lines: Option<u32>) -> Vec<u8> {
        self.flush();
        let directory = self.buffer.files.lock().log.directory().to_owned();
        log_tail(&directory, num_lines)
    }

    /// The same of a database that does not run, by its directory. None if it has no log.
    pub fn stored_tail(database: &Path, num_lines: Option<u32>) -> Option<Vec<u8>> {
        let directory = database.join(MODULE_LOGS);
        has_log_files(&directory).then(|| log_tail(&directory, num_lines))
    }

    /// What has been logged since the log was opened.
    pub fn metrics(&self) -> ModuleLogMetrics {
        self.buffer.metrics()
    }

    /// Records from now on, each a line.
    pub fn subscribe(&self) -> broadcast::Receiver<Bytes> {
        self.buffer.live.subscribe()
    }

    /// Whether anyone reads them.
    pub(crate) fn is_followed(&self) -> bool {
        self.buffer.live.receiver_count() > 0
    }

    /// Writes what is still in memory, with the line about what was left out.
    pub(crate) fn flush(&self) {
        self.buffer.flush(true);
    }

    /// Takes a record. A full disk loses module logs, never transactions.
    fn write(&self, author: Author, record: &ConsoleRecord<'_>) {
        if self.buffer.take(author, record) {
            thread::wake(&self.buffer);
        }
    }

    /// A record the host makes about a function, or about the database if there is none.
    pub(crate) fn host(
        &self,
        level: ConsoleLevel,
        function: Option<&str>,
        message: &str,
        ts: Timestamp,
    ) {
        let function = cut_name(function.unwrap_or(HOST));
        let message = cut(message, MESSAGE_BYTES_MAX);
        let record = host_record(level, &function, &message, ts);
        self.write(Author::Module, &record);
    }

    /// A record about a call that did not reach the module. Any caller can make as many as he likes, so they have an allowance of
    /// their own, and most of a flood is one line a second that counts them.
    pub(crate) fn refused_call(&self, function: &str, message: &str, ts: Timestamp) {
        let function = cut_name(function);
        let message = cut(message, REFUSED_MESSAGE_BYTES_MAX);
        let record = host_record(ConsoleLevel::Error, &function, &message, ts);
        self.write(Author::Caller, &record);
    }

    pub(crate) fn info(&self, message: &str) {
        self.host(ConsoleLevel::Info, None, message, Timestamp::now());
    }
}

impl Drop for ModuleLog {
    fn drop(&mut self) {
        self.flush();
    }
}

impl ConsoleSink for ModuleLog {
    fn log(&self, record: ConsoleRecord<'_>) {
        self.write(Author::Module, &record);
    }
}

#[cfg(test)]
mod tests {
    use super::buffer::{LeftOut, BURST_SECONDS};
    use super::*;
    use std::time::Duration;

    fn log(directory: &Path, bytes_max: u64, bytes_per_second: u64) -> ModuleLog {
        let bounds = Bounds {
            files: LogBounds::of_bytes(bytes_max),
            bytes_per_second,
            records_per_second: 1 << 30,
        };
        ModuleLog::new(directory.to_owned(), bounds, Arc::default())
    }

    fn text(log: &ModuleLog) -> String {
        String::from_utf8(log.tail(None)).expect("JSON")
    }

    fn bytes_on_disk(directory: &Path) -> u64 {
        let entries = std::fs::read_dir(directory).expect("listed");
        entries
            .map(|entry| entry.expect("entry").metadata().expect("metadata").len())
            .sum()
    }

    #[test]
    fn lines_come_in_order_and_live() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = log(dir.path(), 1 << 20, 1 << 20);
        let mut live = log.subscribe();
        for number in 0..100 {
            log.info(&format!("line {number}"));
        }
        let text = text(&log);
        let numbers = text.lines().map(|line| {
            let (_, rest) = line.split_once("line ").expect("the text");
            rest.trim_end_matches("\"}").parse::<u32>().expect("number")
        });
        assert!(numbers.eq(0..100));
        let last = log.tail(Some(1));
        assert!(String::from_utf8_lossy(&last).contains("line 99"));
        assert_eq!(log.tail(Some(0)), last);
        assert_eq!(log.tail(Some(1000)), text.as_bytes());
        // Of 100 records a reader that takes none gets the last 64.
        live.try_recv().expect_err("the reader was too slow");
        assert!(live.try_recv().is_ok());
    }

    #[test]
    fn a_flood_is_left_out_and_counted() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = log(dir.path(), 1 << 20, 1000);
        for _ in 0..1000 {
            log.info(&"x".repeat(100));
        }
        let text = text(&log);
        let (told, written): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.contains("LC0124"));
        assert!(written.len() < 900, "{}", written.len());
        let left_out = told.iter().map(|line| {
            let (_, rest) = line.split_once("\"message\":\"").expect("a message");
            let (count, _) = rest.split_once(' ').expect("a number");
            count.parse::<usize>().expect("a number")
        });
        assert_eq!(left_out.sum::<usize>() + written.len(), 1000);
        // It is said once.
        assert_eq!(self::text(&log), text);
    }

    #[test]
    fn many_short_records_are_left_out_too() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let bounds = Bounds {
            files: LogBounds::of_bytes(1 << 20),
            bytes_per_second: 1 << 20,
            records_per_second: 10,
        };
        let log = ModuleLog::new(dir.path().to_owned(), bounds, Arc::default());
        let mut live = log.subscribe();
        for _ in 0..1000 {
            log.info("x");
        }
        let text = text(&log);
        let written = text.lines().filter(|line| !line.contains("LC0124")).count();
        let most = 10 * BURST_SECONDS as usize;
        assert!((most..most + 10).contains(&written), "{written}");
        let metrics = log.metrics();
        assert_eq!(metrics.records, written as u64);
        assert_eq!(metrics.records + metrics.left_out_records, 1000);
        assert!(metrics.file_bytes > 0);
        // A reader that follows the log is told too.
        let mut told = false;
        loop {
            match live.try_recv() {
                Ok(line) => told |= String::from_utf8_lossy(&line).contains("LC0124"),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => break,
            }
        }
        assert!(told);
    }

    #[test]
    fn refused_calls_take_nothing_of_the_module() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let bytes_max = 256 << 10;
        let log = log(dir.path(), bytes_max, 1 << 20);
        log.info("said before");
        let name = "n".repeat(250);
        for _ in 0..20_000 {
            log.refused_call(&name, &name, Timestamp::now());
        }
        log.info("said after");
        let text = text(&log);
        assert!(text.contains("said before") && text.contains("said after"));
        let of_calls = text.lines().filter(|line| line.contains("nnnn")).count();
        let most = BURST_SECONDS as usize;
        assert!((most..most + 10).contains(&of_calls), "{of_calls}");
        let told = text.lines().filter(|line| line.contains("LC0124"));
        let counts = told.map(|line| {
            assert!(line.contains("more calls were refused"), "{line}");
            let (_, rest) = line.split_once("\"message\":\"").expect("a message");
            let (count, _) = rest.split_once(' ').expect("a number");
            count.parse::<usize>().expect("a number")
        });
        assert_eq!(counts.sum::<usize>() + of_calls, 20_000);
        // The module has all of its own allowance.
        assert_eq!(
            log.buffer.pending.lock().module.left_out,
            LeftOut::default()
        );
        assert_eq!(self::text(&log), text);
    }

    #[test]
    fn old_days_go_once_the_clock_is_believed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let old = dir.path().join("2020-01-01.log");
        let file = std::fs::File::create(&old).expect("old");
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
        file.set_modified(time).expect("a time");
        let bounds = Bounds {
            files: LogBounds {
                days_max: Some(30),
                ..LogBounds::of_bytes(1 << 20)
            },
            bytes_per_second: 1 << 20,
            records_per_second: 1 << 30,
        };
        let log = ModuleLog::new(dir.path().to_owned(), bounds, Arc::default());
        log.info("new");
        assert!(text(&log).contains("new"));
        // This process has begun just now.
        assert!(old.exists());
        thread::OpenLogs::visit(&[Arc::downgrade(&log.buffer)], false);
        assert!(old.exists());
        thread::OpenLogs::visit(&[Arc::downgrade(&log.buffer)], true);
        assert!(!old.exists());
        assert!(text(&log).contains("new"));
    }

    #[test]
    fn files_are_rotated_and_old_ones_go() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::write(dir.path().join("2020-01-01.log"), vec![b'o'; 30_000]).expect("old");
        let bytes_max = 64 << 10;
        let log = log(dir.path(), bytes_max, 1 << 30);
        let message = "y".repeat(500);
        for number in 0..2000 {
            log.info(&format!("{number} {message}"));
        }
        log.flush();
        assert!(!dir.path().join("2020-01-01.log").exists(), "oldest first");
        let bytes = bytes_on_disk(dir.path());
        assert!(bytes <= bytes_max && bytes > bytes_max / 2, "{bytes}");
        // The tail goes on in the files before, and ends with the newest line.
        let text = String::from_utf8(log.tail(Some(50))).expect("JSON");
        let first = text.lines().next().expect("a line");
        assert!(first.contains("\"1950 yy"), "{first}");
        assert_eq!(text.lines().count(), 50);
        let all = self::text(&log);
        assert!(all.len() as u64 > bytes_max / 2);
        assert!(all.ends_with(&text));
    }

    #[test]
    fn a_line_of_any_size_is_written_or_counted() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = log(dir.path(), 16 << 10, 1 << 30);
        log.host(
            ConsoleLevel::Error,
            Some(&"n".repeat(30 << 20)),
            &"m".repeat(30 << 20),
            Timestamp::now(),
        );
        let text = text(&log);
        assert!(text.len() < (64 << 10) + 1000, "{}", text.len());
        assert!(text.contains("[31457280 bytes]"));
    }

    #[test]
    fn a_disk_without_room_takes_no_lines() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let bounds = Bounds {
            files: LogBounds::of_bytes(1 << 20),
            bytes_per_second: 1 << 20,
            records_per_second: 1 << 30,
        };
        let full = DiskReserve::new(dir.path().to_owned(), Some(u64::MAX));
        let log = ModuleLog::new(dir.path().join("logs"), bounds, Arc::new(full));
        log.info("this cannot be read");
        assert!(log.tail(None).is_empty());
        let left_out = log.buffer.pending.lock().module.left_out;
        assert_eq!(left_out.records, 1);
    }

    #[test]
    fn the_thread_writes_without_being_asked() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let log = log(dir.path(), 1 << 20, 1 << 20);
        log.info("by itself");
        for _ in 0..2000 {
            if dir.path().read_dir().expect("listed").count() > 0 && bytes_on_disk(dir.path()) > 0 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("nothing was written");
    }
}
