//! The module's log: one JSON object per line, files per day, and live readers (06 §5.13).
//!
//! Whoever logs never waits for a disk: lines gather in a buffer, and one thread of the process writes them for all
//! databases. What a module may log is bounded in pace and in total; what is left out is counted, and one line says so. What
//! strangers cause without reaching the module has an allowance of its own, so that it takes nothing of the module's.

mod clock;
mod thread;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lightcone_host::{ConsoleLevel, ConsoleRecord, ConsoleSink};
use lightcone_storage::{has_log_files, log_tail, DiskReserve, LogBounds, LogFiles, NotWritten};
use lightcone_types::{cut, cut_name, Timestamp};
use tokio::sync::broadcast;

/// Records buffered for a live reader; a slower one loses records silently.
pub const LIVE_RECORDS_MAX: usize = 64;
/// How many seconds' worth a module may log at once, after a pause.
const BURST_SECONDS: u64 = 16;
/// Lines that wait for the disk. More are left out.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// A buffer that was larger is not kept.
const QUEUE_BYTES_KEPT: usize = 64 << 10;
/// The most of a text that the host itself logs: an error of a reducer, arguments that do not fit.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Lines about calls that did not reach the module: so many each second, [`BURST_SECONDS`] times as many at once. The others are
/// counted.
const REFUSED_RECORDS_PER_SECOND: u64 = 1;
const REFUSED_BYTES_PER_SECOND: u64 = 4 << 10;
/// The most of what such a line says.
const REFUSED_MESSAGE_BYTES_MAX: usize = 1 << 10;
/// How often the server's log tells of a disk that takes no lines.
const COMPLAIN_INTERVAL: Duration = Duration::from_secs(60);
/// Their directory in that of the database.
pub(crate) const MODULE_LOGS: &str = "module_logs";
/// Name in `target`, `filename` and `function` of records the host makes.
const HOST: &str = "__spacetimedb__";

/// What a database's module may log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub files: LogBounds,
    /// On average; [`BURST_SECONDS`] times as much at once.
    pub bytes_per_second: u64,
    /// The same of records.
    pub records_per_second: u64,
}

/// What a module has logged since its database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleLogMetrics {
    /// Those that were taken.
    pub records: u64,
    pub left_out_records: u64,
    /// Of the file that is written to.
    pub file_bytes: u64,
}

impl ModuleLogMetrics {
    pub(crate) fn add(&mut self, other: &ModuleLogMetrics) {
        self.records += other.records;
        self.left_out_records += other.left_out_records;
        self.file_bytes += other.file_bytes;
    }
}

/// As [`ModuleLogMetrics`]; changed under locks, read without.
#[derive(Default)]
struct Counted {
    records: AtomicU64,
    left_out_records: AtomicU64,
    file_bytes: AtomicU64,
}

/// The log of one database's module.
pub struct ModuleLog {
    inner: Arc<Inner>,
}

struct Inner {
    pending: Mutex<Pending>,
    /// Locked before `pending` by whoever writes, so that lines stay in order.
    files: Mutex<Files>,
    live: broadcast::Sender<Bytes>,
    counted: Counted,
}

struct Pending {
    lines: Vec<u8>,
    /// The thread knows that there is something.
    is_queued: bool,
    /// Of the module, and of what is said about it.
    module: Account,
    /// Of calls that did not reach it.
    refused: Account,
}

impl Pending {
    fn account(&mut self, author: Author) -> &mut Account {
        match author {
            Author::Module => &mut self.module,
            Author::Caller => &mut self.refused,
        }
    }
}

/// Who causes a record.
#[derive(Clone, Copy)]
enum Author {
    Module,
    /// Anybody who calls what there is not.
    Caller,
}

/// What somebody may log now, and what was left out of it.
struct Account {
    bytes: Allowance,
    records: Allowance,
    left_out: LeftOut,
}

impl Account {
    fn new(bytes_per_second: u64, records_per_second: u64) -> Account {
        Account {
            bytes: Allowance::new(bytes_per_second),
            records: Allowance::new(records_per_second),
            left_out: LeftOut::default(),
        }
    }

    fn refill(&mut self, now: Instant) {
        self.bytes.refill(now);
        self.records.refill(now);
    }
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

    fn subtract(&mut self, told: LeftOut) {
        self.records -= told.records;
        self.bytes -= told.bytes;
    }
}

impl ModuleLog {
    pub(crate) fn new(directory: PathBuf, bounds: Bounds, disk: Arc<DiskReserve>) -> ModuleLog {
        let pending = Pending {
            lines: Vec::new(),
            is_queued: false,
            module: Account::new(bounds.bytes_per_second, bounds.records_per_second),
            refused: Account::new(REFUSED_BYTES_PER_SECOND, REFUSED_RECORDS_PER_SECOND),
        };
        let inner = Inner {
            pending: Mutex::new(pending),
            files: Mutex::new(Files {
                log: LogFiles::new(directory, "", bounds.files, disk),
                spare: Vec::new(),
                complained: None,
            }),
            live: broadcast::channel(LIVE_RECORDS_MAX).0,
            counted: Counted::default(),
        };
        let inner = Arc::new(inner);
        thread::opened(&inner);
        ModuleLog { inner }
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

    /// What has been logged since the log was opened.
    pub fn metrics(&self) -> ModuleLogMetrics {
        let counted = &self.inner.counted;
        ModuleLogMetrics {
            records: counted.records.load(Relaxed),
            left_out_records: counted.left_out_records.load(Relaxed),
            file_bytes: counted.file_bytes.load(Relaxed),
        }
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
        self.write_for(Author::Module, record);
    }

    fn write_for(&self, author: Author, record: &ConsoleRecord<'_>) {
        let inner = &self.inner;
        let mut pending = inner.pending();
        let start = pending.lines.len();
        let account = pending.account(author);
        account.refill(Instant::now());
        // Most of a flood is not even put into words.
        let is_worded =
            account.records.left > 0 && record.message.len() as u64 <= account.bytes.left;
        if is_worded {
            record.write_json_line(&mut pending.lines);
        }
        let (end, bytes) = (pending.lines.len(), pending.lines.len() - start);
        let account = pending.account(author);
        if bytes == 0 || bytes as u64 > account.bytes.left || end > QUEUE_BYTES_MAX {
            account.left_out.add(1, bytes.max(record.message.len()));
            pending.lines.truncate(start);
            inner.counted.left_out_records.fetch_add(1, Relaxed);
        } else {
            account.bytes.left -= bytes as u64;
            account.records.left -= 1;
            inner.counted.records.fetch_add(1, Relaxed);
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

    /// A record about a call that did not reach the module. Anybody can make as many as he likes, so they have an allowance of
    /// their own, and most of a flood is one line a second that counts them.
    pub(crate) fn refused_call(&self, function: &str, message: &str, ts: Timestamp) {
        let function = cut_name(function);
        let message = cut(message, REFUSED_MESSAGE_BYTES_MAX);
        let record = host_record(ConsoleLevel::Error, &function, &message, ts);
        self.write_for(Author::Caller, &record);
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

/// How much may be logged now of what is bounded by the second.
struct Allowance {
    per_second: u64,
    left: u64,
    refilled: Instant,
}

impl Allowance {
    fn new(per_second: u64) -> Allowance {
        Allowance {
            per_second,
            left: per_second.saturating_mul(BURST_SECONDS),
            refilled: Instant::now(),
        }
    }

    fn refill(&mut self, now: Instant) {
        let per_second = self.per_second;
        let elapsed = now.saturating_duration_since(self.refilled);
        let more = u128::from(elapsed.as_micros() as u64) * u128::from(per_second) / 1_000_000;
        // Too short a time for one is kept for the next look.
        if more > 0 {
            let most = per_second.saturating_mul(BURST_SECONDS);
            self.left = self.left.saturating_add(more as u64).min(most);
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
    /// Also a module that logs nothing any more keeps no older files.
    fn remove_days(&mut self) {
        self.log.remove_days(&today());
        self.tell_stuck();
    }

    fn tell_stuck(&mut self) {
        if let Some((path, error)) = self.log.take_stuck() {
            tracing::warn!(file = %path.display(), %error, "an old file of a module log cannot be removed or renamed; the log goes on without that");
        }
    }

    /// Writes lines. Returns what was not written.
    fn write(&mut self, lines: &[u8]) -> LeftOut {
        let mut lost = LeftOut::default();
        if lines.is_empty() {
            return lost;
        }
        let result = self.log.write(&today(), lines);
        self.tell_stuck();
        if let Err(NotWritten { written, error }) = result {
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

fn today() -> String {
    Timestamp::now().to_rfc3339().chars().take(10).collect()
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
        let counted = &self.counted;
        counted.file_bytes.store(files.log.current_bytes(), Relaxed);
        counted.left_out_records.fetch_add(lost.records, Relaxed);
        let mut pending = self.pending();
        pending
            .module
            .left_out
            .add(lost.records, lost.bytes as usize);
        let (module, refused) = (pending.module.left_out, pending.refused.left_out);
        drop(pending);
        lines.clear();
        lines.shrink_to(QUEUE_BYTES_KEPT);
        let is_anything_left_out = module != LeftOut::default() || refused != LeftOut::default();
        if !is_anything_left_out || !say_what_was_left_out {
            files.spare = lines;
            return is_anything_left_out;
        }
        write_what_was_left_out(module, refused, &mut lines);
        let is_told = files.write(&lines) == LeftOut::default();
        if is_told {
            if self.live.receiver_count() > 0 {
                let _ = self.live.send(Bytes::copy_from_slice(&lines));
            }
            let mut pending = self.pending();
            pending.module.left_out.subtract(module);
            pending.refused.left_out.subtract(refused);
        }
        lines.clear();
        files.spare = lines;
        !is_told
    }
}

/// A line for each kind of record of which some were left out.
fn write_what_was_left_out(module: LeftOut, refused: LeftOut, lines: &mut Vec<u8>) {
    let now = Timestamp::now();
    let mut write = |text: &str| {
        host_record(ConsoleLevel::Warn, HOST, text, now).write_json_line(lines);
    };
    if module != LeftOut::default() {
        write(&format!(
            "{} records ({} bytes) of this module's log were left out: it logs more than limits.module-log-bytes-per-second or limits.module-log-records-per-second, or the disk is full [LC0124]",
            module.records, module.bytes
        ));
    }
    if refused != LeftOut::default() {
        write(&format!(
            "{} more calls were refused before they reached the module: there is no such function for the caller, or its arguments are others; at most {REFUSED_RECORDS_PER_SECOND} of these a second has a line of its own [LC0124]",
            refused.records
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Whoever reads along is told too.
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
        assert_eq!(log.inner.pending().module.left_out, LeftOut::default());
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
        thread::OpenLogs::visit(&[Arc::downgrade(&log.inner)], false);
        assert!(old.exists());
        thread::OpenLogs::visit(&[Arc::downgrade(&log.inner)], true);
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
        log.info("nobody reads this");
        assert!(log.tail(None).is_empty());
        let left_out = log.inner.pending().module.left_out;
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
