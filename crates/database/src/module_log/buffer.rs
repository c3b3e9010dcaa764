//! The lines of a module log on their way to its files: how many may be logged, and what was left out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lightcone_host::{ConsoleLevel, ConsoleRecord};
use lightcone_storage::{DiskReserve, LogBounds, LogFiles, NotWritten};
use lightcone_types::Timestamp;
use parking_lot::Mutex;
use tokio::sync::broadcast;

/// Records buffered for a live reader; a slower one loses records silently.
pub const LIVE_RECORDS_MAX: usize = 64;
/// How many seconds' worth a module may log at once, after a pause.
pub(super) const BURST_SECONDS: u64 = 16;
/// Lines that wait for the disk. More are left out.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// A buffer that was larger is not kept.
const QUEUE_BYTES_KEPT: usize = 64 << 10;
/// Lines about calls that did not reach the module: so many each second, [`BURST_SECONDS`] times as many at once. The others are
/// counted.
const REFUSED_RECORDS_PER_SECOND: u64 = 1;
const REFUSED_BYTES_PER_SECOND: u64 = 4 << 10;
/// How often the server's log tells of a disk that takes no lines.
const COMPLAIN_INTERVAL: Duration = Duration::from_secs(60);
/// Name in `target`, `filename` and `function` of records the host makes.
pub(super) const HOST: &str = "__spacetimedb__";

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

/// The lines of a log that wait for the disk, and its files.
pub(super) struct LogBuffer {
    pub pending: Mutex<Pending>,
    /// Locked before `pending` by the thread that writes, so that lines stay in order.
    pub files: Mutex<Files>,
    pub live: broadcast::Sender<Bytes>,
}

pub(super) struct Pending {
    lines: Vec<u8>,
    /// The thread knows that there is something.
    is_queued: bool,
    counted: ModuleLogMetrics,
    /// Of the module, and of what is said about it.
    pub module: Account,
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
pub(super) enum Author {
    Module,
    /// Any caller of what there is not.
    Caller,
}

/// What an author may log now, and what was left out of it.
pub(super) struct Account {
    bytes: Allowance,
    records: Allowance,
    pub left_out: LeftOut,
}

impl Account {
    fn new(bytes_per_second: u64, records_per_second: u64) -> Account {
        Account {
            bytes: Allowance::new(bytes_per_second),
            records: Allowance::new(records_per_second),
            left_out: LeftOut::default(),
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.records.left > 0 && bytes as u64 <= self.bytes.left
    }

    fn refill(&mut self, now: Instant) {
        self.bytes.refill(now);
        self.records.refill(now);
    }
}

/// What was not written, since the last line that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub records: u64,
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

pub(super) fn host_record<'a>(
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
pub(super) struct Files {
    pub log: LogFiles,
    spare: Vec<u8>,
    complained: Option<Instant>,
}

impl Files {
    /// Also a module that logs nothing any more keeps no older files.
    pub fn remove_days(&mut self) {
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

impl LogBuffer {
    pub fn new(directory: PathBuf, bounds: Bounds, disk: Arc<DiskReserve>) -> LogBuffer {
        let pending = Pending {
            lines: Vec::new(),
            is_queued: false,
            counted: ModuleLogMetrics::default(),
            module: Account::new(bounds.bytes_per_second, bounds.records_per_second),
            refused: Account::new(REFUSED_BYTES_PER_SECOND, REFUSED_RECORDS_PER_SECOND),
        };
        LogBuffer {
            pending: Mutex::new(pending),
            files: Mutex::new(Files {
                log: LogFiles::new(directory, "", bounds.files, disk),
                spare: Vec::new(),
                complained: None,
            }),
            live: broadcast::channel(LIVE_RECORDS_MAX).0,
        }
    }

    /// Takes a record, or counts it as left out. True: the thread is to be told that there is something to write.
    pub fn take(&self, author: Author, record: &ConsoleRecord<'_>) -> bool {
        let mut pending = self.pending.lock();
        let start = pending.lines.len();
        let is_first = !pending.is_queued;
        let account = pending.account(author);
        // Few read the clock: the first of those that are written together, and those for which nothing is left.
        if is_first || !account.has_room(record.message.len()) {
            account.refill(Instant::now());
        }
        // Most of a flood is not even put into words.
        let is_worded = account.has_room(record.message.len());
        if is_worded {
            record.write_json_line(&mut pending.lines);
        }
        let (end, bytes) = (pending.lines.len(), pending.lines.len() - start);
        let account = pending.account(author);
        if bytes as u64 > account.bytes.left {
            account.refill(Instant::now());
        }
        if bytes == 0 || bytes as u64 > account.bytes.left || end > QUEUE_BYTES_MAX {
            account.left_out.add(1, bytes.max(record.message.len()));
            pending.lines.truncate(start);
            pending.counted.left_out_records += 1;
        } else {
            account.bytes.left -= bytes as u64;
            account.records.left -= 1;
            pending.counted.records += 1;
            if self.live.receiver_count() > 0 {
                // Fails only if the last reader just left.
                let line = Bytes::copy_from_slice(&pending.lines[start..]);
                let _ = self.live.send(line);
            }
        }
        !std::mem::replace(&mut pending.is_queued, true)
    }

    pub fn metrics(&self) -> ModuleLogMetrics {
        self.pending.lock().counted
    }

    /// Writes what has gathered. Returns whether something was left out that no line tells of yet.
    pub fn flush(&self, say_what_was_left_out: bool) -> bool {
        let mut files = self.files.lock();
        let mut pending = self.pending.lock();
        pending.is_queued = false;
        let spare = std::mem::take(&mut files.spare);
        let mut lines = std::mem::replace(&mut pending.lines, spare);
        drop(pending);
        let lost = files.write(&lines);
        let mut pending = self.pending.lock();
        pending.counted.file_bytes = files.log.current_bytes();
        pending.counted.left_out_records += lost.records;
        let left_out = &mut pending.module.left_out;
        left_out.add(lost.records, lost.bytes as usize);
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
            let mut pending = self.pending.lock();
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
