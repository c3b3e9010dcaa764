//! The module's log: one JSON object per line, files per day, and live readers (06 §5.13).
//!
//! Whoever logs never waits for a disk: lines gather in a buffer, and one thread of the process writes them for all
//! databases. What a module may log is bounded in pace and in total; what is left out is counted, and one line says so.

mod thread;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lightcone_host::{ConsoleLevel, ConsoleRecord, ConsoleSink};
use lightcone_storage::{has_log_files, log_tail, DiskReserve, LogFiles, NotWritten};
use lightcone_types::{cut, cut_name, Timestamp};
use tokio::sync::broadcast;

/// Records buffered for a live reader; a slower one loses records silently.
const LIVE_RECORDS_MAX: usize = 64;
/// How many seconds' worth a module may log at once, after a pause.
const BURST_SECONDS: u64 = 16;
/// Lines that wait for the disk. More are left out.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// A buffer that was larger is not kept.
const QUEUE_BYTES_KEPT: usize = 64 << 10;
/// The most of a text that the host itself logs: an error of a reducer, arguments that do not fit.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How often the server's log tells of a disk that takes no lines.
const COMPLAIN_INTERVAL: Duration = Duration::from_secs(60);
/// Their directory in that of the database.
pub(crate) const MODULE_LOGS: &str = "module_logs";
/// Name in `target`, `filename` and `function` of records the host makes.
const HOST: &str = "__spacetimedb__";

/// What a database's module may log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// All files together.
    pub bytes_max: u64,
    /// On average; [`BURST_SECONDS`] times as much at once.
    pub bytes_per_second: u64,
}

/// The log of one database's module.
pub struct ModuleLog {
    inner: Arc<Inner>,
}

struct Inner {
    bounds: Bounds,
    pending: Mutex<Pending>,
    /// Locked before `pending` by whoever writes, so that lines stay in order.
    files: Mutex<Files>,
    live: broadcast::Sender<Bytes>,
}

struct Pending {
    lines: Vec<u8>,
    /// The thread knows that there is something.
    is_queued: bool,
    /// Bytes that may be logged now.
    allowed: u64,
    refilled: Instant,
    left_out: LeftOut,
}

/// What was not written, since the last line that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    records: u64,
    bytes: u64,
}

impl LeftOut {
    fn add(&mut self, records: u64, bytes: usize) {
        self.records += records;
        self.bytes += bytes as u64;
    }
}

impl ModuleLog {
    pub(crate) fn new(directory: PathBuf, bounds: Bounds, disk: Arc<DiskReserve>) -> ModuleLog {
        let pending = Pending {
            lines: Vec::new(),
            is_queued: false,
            allowed: bounds.bytes_per_second.saturating_mul(BURST_SECONDS),
            refilled: Instant::now(),
            left_out: LeftOut::default(),
        };
        let inner = Inner {
            bounds,
            pending: Mutex::new(pending),
            files: Mutex::new(Files {
                log: LogFiles::new(directory, "", bounds.bytes_max, disk),
                spare: Vec::new(),
                complained: None,
            }),
            live: broadcast::channel(LIVE_RECORDS_MAX).0,
        };
        ModuleLog {
            inner: Arc::new(inner),
        }
    }

    /// The last `num_lines` lines (at least one; all if none) of today, or of the newest day there is.
    pub fn tail(&self, num_lines: Option<u32>) -> Vec<u8> {
        self.flush();
        let directory = self.inner.files().log.directory().to_owned();
        log_tail(&directory, num_lines)
    }

    /// The same of a database that does not run, by its directory. None if it has no log.
    pub fn stored_tail(database: &Path, num_lines: Option<u32>) -> Option<Vec<u8>> {
        let directory = database.join(MODULE_LOGS);
        has_log_files(&directory).then(|| log_tail(&directory, num_lines))
    }

    /// Records from now on, each a line.
    pub fn subscribe(&self) -> broadcast::Receiver<Bytes> {
        self.inner.live.subscribe()
    }

    /// Writes what is still in memory, with the line about what was left out.
    pub(crate) fn flush(&self) {
        self.inner.flush(true);
    }

    /// Takes a record. A full disk loses module logs, never transactions.
    pub(crate) fn write(&self, record: &ConsoleRecord<'_>) {
        let inner = &self.inner;
        let mut pending = inner.pending();
        pending.refill(&inner.bounds, Instant::now());
        let start = pending.lines.len();
        // Most of a flood is not even put into words.
        if record.message.len() as u64 <= pending.allowed {
            record.write_json_line(&mut pending.lines);
        }
        let bytes = pending.lines.len() - start;
        if bytes == 0 || bytes as u64 > pending.allowed || pending.lines.len() > QUEUE_BYTES_MAX {
            pending.lines.truncate(start);
            pending.left_out.add(1, bytes.max(record.message.len()));
        } else {
            pending.allowed -= bytes as u64;
            if inner.live.receiver_count() > 0 {
                // Fails only if the last reader just left.
                let line = Bytes::copy_from_slice(&pending.lines[start..]);
                let _ = inner.live.send(line);
            }
        }
        if !pending.is_queued {
            pending.is_queued = true;
            drop(pending);
            thread::wake(inner);
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
        self.write(&host_record(level, &function, &message, ts));
    }

    pub(crate) fn info(&self, message: &str) {
        self.host(ConsoleLevel::Info, None, message, Timestamp::now());
    }
}

fn host_record<'a>(
    level: ConsoleLevel,
    function: &'a str,
    message: &'a str,
    ts: Timestamp,
) -> ConsoleRecord<'a> {
    ConsoleRecord {
        level,
        ts,
        target: Some(HOST),
        filename: Some(HOST),
        line_number: None,
        function: Some(function),
        message,
        trace: (level == ConsoleLevel::Panic).then_some(&[]),
    }
}

impl Drop for ModuleLog {
    fn drop(&mut self) {
        self.flush();
    }
}

impl ConsoleSink for ModuleLog {
    fn log(&self, record: ConsoleRecord<'_>) {
        self.write(&record);
    }
}

impl Pending {
    fn refill(&mut self, bounds: &Bounds, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled);
        let more = elapsed.as_micros() as u64;
        let more = (u128::from(more) * u128::from(bounds.bytes_per_second) / 1_000_000) as u64;
        // Too short a time for a byte is kept for the next look.
        if more > 0 {
            let most = bounds.bytes_per_second.saturating_mul(BURST_SECONDS);
            self.allowed = self.allowed.saturating_add(more).min(most);
            self.refilled = now;
        }
    }
}

/// The files, and a buffer for the next lines.
struct Files {
    log: LogFiles,
    spare: Vec<u8>,
    complained: Option<Instant>,
}

impl Files {
    /// Writes lines. Returns what was not written.
    fn write(&mut self, lines: &[u8]) -> LeftOut {
        let mut lost = LeftOut::default();
        if lines.is_empty() {
            return lost;
        }
        let date: String = Timestamp::now().to_rfc3339().chars().take(10).collect();
        if let Err(NotWritten { written, error }) = self.log.write(&date, lines) {
            let rest = &lines[written..];
            let records = rest.iter().filter(|byte| **byte == b'\n').count();
            lost.add(records as u64, rest.len());
            let complained = self.complained.map(|at| at.elapsed());
            if complained.is_none_or(|ago| ago >= COMPLAIN_INTERVAL) {
                self.complained = Some(Instant::now());
                tracing::error!(directory = %self.log.directory().display(), %error, "records of a module log are lost [LC0124]");
            }
        }
        lost
    }
}

impl Inner {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what has gathered. Returns whether something was left out that no line tells of yet.
    fn flush(&self, say_what_was_left_out: bool) -> bool {
        let mut files = self.files();
        let mut pending = self.pending();
        pending.is_queued = false;
        let spare = std::mem::take(&mut files.spare);
        let mut lines = std::mem::replace(&mut pending.lines, spare);
        drop(pending);
        let lost = files.write(&lines);
        let mut pending = self.pending();
        pending.left_out.add(lost.records, lost.bytes as usize);
        let left_out = pending.left_out;
        drop(pending);
        lines.clear();
        lines.shrink_to(QUEUE_BYTES_KEPT);
        if left_out == LeftOut::default() || !say_what_was_left_out {
            files.spare = lines;
            return left_out != LeftOut::default();
        }
        let text = format!(
            "{} records ({} bytes) of this module's log were left out: it logs more than limits.module-log-bytes-per-second, or the disk is full [LC0124]",
            left_out.records, left_out.bytes
        );
        let now = Timestamp::now();
        host_record(ConsoleLevel::Warn, HOST, &text, now).write_json_line(&mut lines);
        let is_told = files.write(&lines) == LeftOut::default();
        if is_told {
            let mut pending = self.pending();
            pending.left_out.records -= left_out.records;
            pending.left_out.bytes -= left_out.bytes;
        }
        lines.clear();
        files.spare = lines;
        !is_told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(directory: &Path, bytes_max: u64, bytes_per_second: u64) -> ModuleLog {
        let bounds = Bounds {
            bytes_max,
            bytes_per_second,
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
            bytes_max: 1 << 20,
            bytes_per_second: 1 << 20,
        };
        let full = DiskReserve::new(dir.path().to_owned(), Some(u64::MAX));
        let log = ModuleLog::new(dir.path().join("logs"), bounds, Arc::new(full));
        log.info("nobody reads this");
        assert!(log.tail(None).is_empty());
        let left_out = log.inner.pending().left_out;
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
